/** How fast rows become durable: line protocol over HTTP, one fsync a group of commits. */
import { startServer, type TestServer } from "../tests/server.ts";
import { makeTrades, type Trades } from "./trades.ts";

const BATCH_LINES = 10_000;

/** Bodies of `BATCH_LINES` lines: six columns (symbol, side, price, amount, trader, timestamp). */
function bodies(trades: Trades, table: (row: number) => string, from: number, count: number, shift: (row: number) => bigint = () => 0n): Uint8Array<ArrayBuffer>[] {
  const encoder = new TextEncoder();
  const out: Uint8Array<ArrayBuffer>[] = [];
  for (let start = from; start < from + count; start += BATCH_LINES) {
    let text = "";
    for (let row = start; row < Math.min(start + BATCH_LINES, from + count); row++) {
      text += `${table(row)},symbol=${trades.symbolNames[trades.symbol[row]]},side=${trades.side[row] ? "sell" : "buy"} price=${trades.price[row]},amount=${trades.amount[row]},trader=${trades.trader[row]}i ${
        trades.timestamp[row] + shift(row)
      }\n`;
    }
    out.push(encoder.encode(text));
  }
  return out;
}

async function send(server: TestServer, all: Uint8Array<ArrayBuffer>[], connections: number): Promise<number> {
  let next = 0;
  const start = performance.now();
  await Promise.all(Array.from({ length: connections }, async () => {
    for (let k = next++; k < all.length; k = next++) {
      const reply = await fetch(`${server.http}/write?precision=u`, { method: "POST", body: all[k] });
      if (reply.status !== 204) throw new Error(`/write answered ${reply.status}: ${await reply.text()}`);
    }
  }));
  return performance.now() - start;
}

async function countOf(server: TestServer, table: string): Promise<number> {
  return Number((await server.exec(`select count() from ${table}`)).dataset?.[0]?.[0]);
}

export async function ingestSuite(work: string, rowCountMax: number): Promise<void> {
  const rows = Math.min(rowCountMax, 2_000_000);
  const trades = makeTrades(rows);
  const rate = (count: number, ms: number) => `${Math.round(count / ms)}k rows/s`;
  console.log(`\ningest, durable (fsync before each answer), batches of ${BATCH_LINES} lines of six columns`);
  {
    await using server = await startServer({ root: `${work}/ingest` });
    const all = bodies(trades, () => "trades", 0, rows);
    await send(server, all.slice(0, 10), 4);
    const ms = await send(server, all.slice(10), 4);
    const expected = rows;
    const counted = await countOf(server, "trades");
    console.log(`4 connections: ${rate(rows - 10 * BATCH_LINES, ms)}${counted === expected ? "" : `, WRONG: ${counted} of ${expected} rows are there`}`);
  }
  {
    await using server = await startServer({ root: `${work}/tables` });
    const count = Math.min(rows, 500_000);
    const ms = await send(server, bodies(trades, (row) => `t${row % 200}`, 0, count), 4);
    console.log(`200 tables, 4 connections: ${rate(count, ms)}`);
  }
  {
    // One row in twenty is up to an hour late.
    await using server = await startServer({ root: `${work}/late` });
    const late = bodies(trades, () => "trades", 0, Math.min(rows, 1_000_000), (row) => row % 20 === 0 ? -BigInt((row * 7919) % 3_600_000_000) : 0n);
    const base = Math.min(rows, 1_000_000);
    const ms = await send(server, late, 4);
    console.log(`1 row in 20 up to an hour late, 4 connections: ${rate(base, ms)}`);
  }
}
