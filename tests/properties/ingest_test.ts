/**
 * Random valid rows are read back as they were sent: by line protocol over HTTP and TCP, and by INSERT over HTTP and PG.
 * SUNDIAL_INGEST_SECONDS=3600 runs each for an hour; SEED=… repeats a run.
 */
import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { startServer, type TestServer } from "../server.ts";
import { pgClient } from "../pg-client.ts";
import { SEED } from "../../src/testing.ts";

const SECONDS = Number(Deno.env.get("SUNDIAL_INGEST_SECONDS") ?? 6);
const LINE_BYTES_MAX = 16 << 20;
const CELLS_MAX = 30_000;

type Random = (below: number) => number;

/** Mulberry32. */
function randomOf(seed: number): Random {
  return (below) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor(((t ^ (t >>> 14)) >>> 0) / 4294967296 * below);
  };
}

/** Runs for the configured time, at least once. A failure prints its seed. */
async function forSeeds(run: (random: Random, name: string) => Promise<void>): Promise<void> {
  const until = performance.now() + SECONDS * 1000;
  for (let seed = SEED, count = 1;; seed++, count++) {
    try {
      await run(randomOf(seed), `t${count}`);
    } catch (error) {
      throw new Error(`SEED=${seed}: ${(error as Error).message.slice(0, 2000)}`, { cause: error });
    }
    if (performance.now() > until) return console.log(`${count} cases`);
  }
}

/** Remaining total length of the texts of a case. */
interface Budget {
  left: number;
}

/** Mostly short; otherwise with a length near a power of two. */
function randomText(random: Random, budget: Budget, sizeMax: number): string {
  const isLong = random(10) === 0;
  const wanted = isLong ? 2 ** random(25) + random(3) - 1 : random(20);
  const size = Math.max(0, Math.min(wanted, budget.left, sizeMax));
  budget.left -= size;
  const special = ["\\", '"', "'", "\n", " ", ",", "=", "é", "漢", "$1"][random(10)];
  const block = size > 40 ? "0123456789abcdefghijklmnopqrstuvwxyz" : "ab";
  const text = block.repeat(Math.ceil(size / block.length)).slice(0, size);
  const at = random(size + 1);
  return size > 2 && random(3) === 0 ? (text.slice(0, at) + special + text.slice(at)).slice(0, size) : text;
}

function randomDouble(random: Random): number {
  if (random(2) === 0) return (random(2_000_001) - 1_000_000) / 64;
  const bytes = Uint8Array.from({ length: 8 }, () => random(4) === 0 ? 0x0a : random(256));
  const value = new Float64Array(bytes.buffer)[0];
  return Number.isFinite(value) && value !== 0 ? value : 1.5;
}

const bytesOfDouble = (value: number) => [...new Uint8Array(Float64Array.of(value).buffer)];
const encoder = new TextEncoder();
const escapedTag = (text: string) => text.replaceAll(/[ ,=\\]/g, "\\$&");

interface Sent {
  /** The bytes after the `=`. */
  literal: string | number[];
  /** As shown by /exec. */
  shown: unknown;
}

/** A random value of each kind of field. */
const FIELDS: ((random: Random, budget: Budget) => Sent)[] = [
  (random) => {
    const value = randomDouble(random);
    return { literal: String(value), shown: value };
  },
  (random) => {
    const value = randomDouble(random);
    return { literal: [0x3d, 0x10, ...bytesOfDouble(value)], shown: value };
  },
  (random) => {
    const value = (random(2) - random(2)) * (2 ** random(53) + random(1000));
    return { literal: `${value + 0}i`, shown: value + 0 };
  },
  (random) => {
    const value = 2 ** random(53) + random(1000);
    return { literal: `${value}u`, shown: value };
  },
  (random) => {
    const value = random(2) === 1;
    return { literal: ["f", "t", "false", "True"][random(2) * 2 + Number(value)], shown: value };
  },
  (random, budget) => {
    const text = randomText(random, budget, LINE_BYTES_MAX / 4);
    return { literal: `"${text.replaceAll(/[\\"\n]/g, "\\$&")}"`, shown: text };
  },
  (random) => {
    const seconds = random(2 ** 31 - 1), micros = String(random(1_000_000)).padStart(6, "0");
    const shown = `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${micros}Z`;
    return { literal: `${seconds}${micros}t`, shown };
  },
  (random) => {
    const value = random(100_000), text = `${value}.${String(random(100)).padStart(2, "0")}`;
    return { literal: `${text}d`, shown: `${text}${"0".repeat(16)}` };
  },
  (random) => {
    // 10 as the last byte is a line feed.
    const unscaled = random(3) === 0 ? 10 : random(128);
    return {
      literal: [0x3d, 0x17, 1, 1, unscaled],
      shown: `${Math.floor(unscaled / 10)}.${unscaled % 10}${"0".repeat(17)}`,
    };
  },
  (random) => {
    const values = Array.from({ length: random(5) }, () => randomDouble(random));
    return { literal: [0x3d, 0x0e, 0x0a, 1, values.length, 0, 0, 0, ...values.flatMap(bytesOfDouble)], shown: values };
  },
];
const BOOLEAN = 4;

interface LineColumn {
  name: string;
  /** Index in `FIELDS`; -1 for a tag. */
  kind: number;
  isKnown: boolean;
}

interface LineTable {
  name: string;
  columns: LineColumn[];
  /** By column name; missing columns are null. */
  rows: Record<string, unknown>[];
}

function randomTables(random: Random, name: string): LineTable[] {
  return Array.from({ length: 1 + random(3) }, (_, index) => ({
    name: `${name}_${index}`,
    columns: Array.from({ length: random(3) === 0 ? 1 + random(200) : 1 + random(8) }, (_, column) => ({
      name: ["c", "col umn", "é", "C"][random(4)] + column,
      kind: random(FIELDS.length + 1) - 1,
      isKnown: false,
    })).sort((a, b) => a.kind - b.kind),
    rows: [],
  }));
}

/** Lines of the tables, in random order. Adds the expected rows to `rows` of the tables. */
function randomLines(random: Random, tables: LineTable[]): Uint8Array<ArrayBuffer> {
  const columnsMax = Math.max(...tables.map(({ columns }) => columns.length));
  const rowCount = 1 + random(Math.min(50_000, CELLS_MAX / columnsMax, 2 ** (1 + random(16))));
  const budget = { left: random(6) === 0 ? LINE_BYTES_MAX * 0.9 : 400_000 };
  const parts: Uint8Array[] = [];
  let size = 0;
  const add = (part: string | number[]) => {
    const bytes = typeof part === "string" ? encoder.encode(part) : Uint8Array.from(part);
    parts.push(bytes);
    size += bytes.length;
  };
  for (let row = 0; row < rowCount; row++) {
    const table = tables[random(tables.length)];
    const expected: Record<string, unknown> = { timestamp: `2023-11-14T22:13:20.${String(row).padStart(6, "0")}Z` };
    let text = escapedTag(table.name), hasField = false, hasAny = false;
    for (const column of table.columns) {
      if (random(4) === 0 && hasAny) continue;
      hasAny = true;
      const key = `${escapedTag(column.name)}=`;
      if (column.kind < 0) {
        const tag = random(3) === 0 ? ["", "a b", "x,y", "k=v", "漢"][random(5)] : `tag${random(100)}`;
        text += `,${key}${escapedTag(tag)}`;
        expected[column.name] = tag;
      } else {
        text += (hasField ? "," : " ") + key;
        hasField = true;
        if (!column.isKnown || random(30) > 0) {
          const { literal, shown } = FIELDS[column.kind](random, budget);
          expected[column.name] = shown;
          if (typeof literal === "string") text += literal;
          else {
            add(text);
            add(literal);
            text = "";
          }
        }
      }
      column.isKnown = true;
    }
    add(`${text} 1700000000${String(row).padStart(6, "0")}000\n`);
    if (random(20) === 0) add("\n");
    table.rows.push(expected);
  }
  const body = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}

async function* randomChunks(random: Random, body: Uint8Array<ArrayBuffer>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const sizeMax = Math.max(2 ** random(21), body.length / 200);
  for (let at = 0; at < body.length;) {
    const end = Math.min(body.length, at + 1 + random(sizeMax));
    yield body.subarray(at, end);
    at = end;
  }
}

async function post(server: TestServer, random: Random, body: Uint8Array<ArrayBuffer>): Promise<void> {
  const isGzip = random(3) === 0;
  const sent = isGzip ? new Uint8Array(gzipSync(body, { level: 1 })) : body;
  const reply = await fetch(`${server.http}/write`, {
    method: "POST",
    headers: isGzip ? { "content-encoding": "gzip" } : {},
    body: random(2) === 0 ? sent : ReadableStream.from(randomChunks(random, sent)),
  });
  assert.equal(reply.status, 204, await reply.text());
}

async function sendOverTcp(server: TestServer, random: Random, body: Uint8Array<ArrayBuffer>): Promise<void> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.linePort });
  for await (const chunk of randomChunks(random, body)) {
    for (let at = 0; at < chunk.length;) at += await connection.write(chunk.subarray(at));
  }
  await connection.closeWrite();
  // The server closes after it has accepted everything.
  assert.equal(await connection.read(new Uint8Array(1)), null);
}

async function assertRows(server: TestServer, { name, columns, rows }: LineTable): Promise<void> {
  if (rows.length === 0) return;
  const reply = await server.exec(`select * from ${name} order by timestamp`);
  assert.equal(reply.error, undefined, reply.error);
  assert.equal(reply.count, rows.length, "rows");
  const kinds = new Map(columns.map((column) => [column.name, column.kind]));
  const names = reply.columns!.map((column) => column.name);
  assert.deepEqual(
    names.toSorted(),
    [...columns.filter(({ isKnown }) => isKnown).map((c) => c.name), "timestamp"].sort(),
  );
  names.forEach((column, index) => {
    const missing = kinds.get(column) === BOOLEAN ? false : null;
    rows.forEach((row, at) => {
      const found = reply.dataset![at][index], expected = row[column] ?? missing;
      if (found !== expected) assert.deepEqual(found, expected, `${name}, row ${at}, ${column}`);
    });
  });
}

Deno.test("random lines are read back as they were sent, over HTTP and TCP", async () => {
  await using server = await startServer();
  await forSeeds(async (random, name) => {
    const tables = randomTables(random, name);
    const body = randomLines(random, tables);
    if (random(4) === 0) await sendOverTcp(server, random, body);
    else await post(server, random, body);
    for (const table of tables) {
      await assertRows(server, table);
      await server.exec(`drop table if exists ${table.name}`);
    }
  });
});

const INSERTED = "l long, d double, b boolean, s varchar, k symbol";

type Inserted = [l: number | null, d: number | null, b: boolean, s: string | null, k: string | null];

function literalOf(value: Inserted[number]): string {
  return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value);
}

Deno.test("random rows are read back as they were inserted, over HTTP and PG, with parameters and without", async () => {
  await using server = await startServer();
  const client = pgClient(server);
  await client.connect();
  try {
    await forSeeds(async (random, name) => {
      const way = random(3);
      // The head of an HTTP request is limited.
      const budget = { left: way === 0 ? 2_000 : random(4) === 0 ? 5_000_000 : 100_000 };
      const count = 1 + random(way === 0 ? 20 : 2 ** (1 + random(11)));
      const orNull = <T>(value: T): T | null => random(8) === 0 ? null : value;
      const rows = Array.from({ length: count }, (): Inserted => [
        orNull((random(2) - random(2)) * (2 ** random(53) + random(1000)) + 0),
        orNull(randomDouble(random)),
        random(2) === 0,
        orNull(randomText(random, budget, 1 << 22)),
        orNull(`k${random(50)}`),
      ]);
      assert.equal((await server.exec(`create table ${name} (${INSERTED})`)).error, undefined);
      if (way < 2) {
        const sql = `insert into ${name} values ${rows.map((row) => `(${row.map(literalOf).join(",")})`).join(",")}`;
        if (way === 0) assert.equal((await server.exec(sql)).error, undefined);
        else await client.query(sql);
      } else {
        const places = rows.map((row, at) => `(${row.map((_, k) => `$${5 * at + k + 1}`).join(",")})`);
        await client.query(`insert into ${name} values ${places.join(",")}`, rows.flat());
      }
      const reply = await server.exec(name);
      assert.equal(reply.count, rows.length, reply.error);
      rows.forEach((row, at) => assert.deepEqual(reply.dataset![at], row, `${name}, row ${at}`));
      await server.exec(`drop table ${name}`);
    });
  } finally {
    await client.end();
  }
});
