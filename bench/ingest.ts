/** Measures the rate of durable rows: line protocol over HTTP, one fsync for each group of commits. */
import { startServer, type TestServer } from "./server.ts";
import { makeTrades, type Trades } from "./trades.ts";

const BATCH_LINES = 10_000;

/** Bodies of `BATCH_LINES` lines: six columns (symbol, side, price, amount, trader, timestamp). */
function bodies(
  trades: Trades,
  table: (row: number) => string,
  from: number,
  count: number,
  shift: (row: number) => bigint = () => 0n,
): Uint8Array<ArrayBuffer>[] {
  const encoder = new TextEncoder();
  const out: Uint8Array<ArrayBuffer>[] = [];
  for (let start = from; start < from + count; start += BATCH_LINES) {
    let text = "";
    for (let row = start; row < Math.min(start + BATCH_LINES, from + count); row++) {
      text += `${table(row)},symbol=${trades.symbolNames[trades.symbol[row]]},side=${
        trades.side[row] ? "sell" : "buy"
      } price=${trades.price[row]},amount=${trades.amount[row]},trader=${trades.trader[row]}i ${
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
    console.log(
      `4 connections: ${rate(rows - 10 * BATCH_LINES, ms)}${
        counted === expected ? "" : `, WRONG: ${counted} of ${expected} rows are there`
      }`,
    );
  }
  {
    const root = `${work}/slow`;
    await using server = await startServer({ root, env: { SVC_DEV_SYNC_DELAY: "5" } });
    const all = bodies(trades, () => "trades", 0, rows);
    await send(server, all.slice(0, 10), 16);
    const ms = await send(server, all.slice(10), 16);
    const counted = await countOf(server, "trades");
    console.log(
      `16 connections, each fsync takes 5 ms longer: ${rate(rows - 10 * BATCH_LINES, ms)}${
        counted === rows ? "" : `, WRONG: ${counted} of ${rows} rows are there`
      }`,
    );
  }
  {
    await using server = await startServer({ root: `${work}/tables` });
    const count = Math.min(rows, 500_000);
    const ms = await send(server, bodies(trades, (row) => `t${row % 200}`, 0, count), 4);
    console.log(`200 tables, 4 connections: ${rate(count, ms)}`);
  }
  {
    // One row in twenty is up to an hour late, in a day of ten million rows (or as --rows says).
    await using server = await startServer({ root: `${work}/late` });
    const columns =
      "timestamp, 'S' || x % 100 symbol, case when x % 2 = 0 then 'buy' else 'sell' end side, rnd_double() price, rnd_double() amount, x % 1000000 trader";
    const dayMicros = 86_400_000_000;
    const firstMicros = Number(trades.timestamp[0]) - (Number(trades.timestamp[0]) % dayMicros);
    const before = Math.min(rowCountMax, 10_000_000), added = Math.min(rows, 1_000_000);
    const gapMicros = Math.floor(dayMicros / 2 / before);
    const made = await server.exec(
      `create table trades as (select timestamp, symbol::symbol symbol, side::symbol side, price, amount, trader from (select ${columns} from (select x, timestamp_sequence(${firstMicros}, ${gapMicros}) timestamp from long_sequence(${before})))) timestamp(timestamp) partition by day`,
    );
    if (made.error) throw new Error(`the day of ${before} rows could not be made: ${made.error}`);
    // The new rows continue after the day's first half at the same rate.
    const start = firstMicros + before * gapMicros;
    const shift = (row: number) =>
      BigInt(start + row * gapMicros - (row % 20 === 0 ? (row * 7919) % 3_600_000_000 : 0)) - trades.timestamp[row];
    const all = bodies(trades, () => "trades", 0, added, shift);
    const ms = await send(server, all, 4);
    const counted = await countOf(server, "trades");
    console.log(
      `1 row in 20 up to an hour late, into a day of ${before} rows, 4 connections: ${rate(added, ms)}${
        counted === before + added ? "" : `, WRONG: ${counted} of ${before + added} rows are there`
      }`,
    );
  }
}
