/** Stored columns are encoded where that is smaller, and read back as they were. */
import assert from "node:assert/strict";
import { startServer, type TestServer } from "./server.ts";

const ROWS = 50_000;
/** Columns of each layout up to 64 bits, with NULLs among their values, and some of more. */
const COLUMNS = [
  "timestamp_sequence('2024-01-01', 1000 + 17) ts",
  "x % 3 = 0 flag",
  "(x % 100)::byte b",
  "(x % 10000 - 5000)::short s",
  "case when x % 7 = 0 then null else (x % 50)::char end c",
  "case when x % 5 = 0 then null else (x * 37 % 100003)::int end i",
  "case when x % 11 = 0 then null else x * 1000003 end l",
  "case when x % 1000 = 1 then -9223372036854775807 else 9223372036854775807 end extremes",
  "(x * 1000)::date d",
  "(x * 1000000)::timestamp_ns n",
  "cast(case when x % 9 = 0 then null else x % 1000 / 8.0 end as float) f",
  "case when x % 13 = 0 then null else (x * 7919 % 100003) / 100.0 end price",
  "case when x % 500 = 0 then 1 / 3.0 else x / 100000.0 end mostly",
  "sin(x) full",
  "round(x % 1000 / 7.0, 2) rounded",
  "case when x % 4 = 0 then null else ('S' || x % 100)::symbol end sym",
  "('10.0.' || x % 256 || '.' || x % 100)::ipv4 ip",
  "case when x % 6 = 0 then null else (x % 100000 / 100.0)::decimal(18, 2) end amount",
  "'text ' || x % 1000 t",
  "case when x % 8 = 0 then null when x % 8 = 1 then '' else 'message ' || x || ' of äöü' end message",
  "rnd_str(20, 30, 1) noise",
  "('host-' || x % 50)::varchar host",
  "rnd_uuid4() id",
];

async function rowsOf(server: TestServer, table: string): Promise<string> {
  const reply = await fetch(`${server.http}/exp?query=${encodeURIComponent(`select * from ${table}`)}`);
  return await reply.text();
}

async function sizeOf(server: TestServer, table: string): Promise<number> {
  const { dataset, error } = await server.exec(`select sum(diskSize) from table_partitions('${table}')`);
  assert.equal(error, undefined);
  return dataset![0][0] as number;
}

Deno.test("columns are read back as they were, and take less space than with cairo.column.encoding=raw", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const create = (name: string, from: string) => `create table ${name} as (${from}) timestamp(ts) partition by month`;
  let before: string;
  {
    await using server = await startServer({ root });
    const made = await server.exec(create("t", `select ${COLUMNS.join(", ")} from long_sequence(${ROWS})`));
    assert.equal(made.error, undefined);
    before = await rowsOf(server, "t");
    await server.stop();
  }
  {
    await using server = await startServer({ root, env: { SVC_CAIRO_COLUMN_ENCODING: "raw" } });
    assert.ok(await rowsOf(server, "t") === before, "rows from encoded columns");
    assert.equal((await server.exec(create("u", "select * from t"))).error, undefined);
    await server.stop();
  }
  await using server = await startServer({ root });
  assert.ok(await rowsOf(server, "u") === before, "rows from raw columns");
  const encoded = await sizeOf(server, "t"), raw = await sizeOf(server, "u");
  assert.ok(encoded < 0.6 * raw, `${encoded} bytes encoded, ${raw} raw`);
  const { dataset: sizes } = await server.exec(
    "select column, type, numRows, storedRows, rawSize > diskSize, encodings from table_column_storage('t')",
  );
  const all = [ROWS, ROWS];
  assert.deepEqual(
    sizes!.filter(([column]) =>
      ["ts", "flag", "extremes", "price", "rounded", "sym", "t", "message", "id"].includes(column as string)
    ),
    [
      ["ts", "TIMESTAMP", ...all, true, "frame"],
      ["flag", "BOOLEAN", ...all, true, "frame"],
      ["extremes", "LONG", ...all, false, "raw"],
      ["price", "DOUBLE", ...all, true, "decimal"],
      ["rounded", "DOUBLE", ...all, true, "decimal"],
      ["sym", "SYMBOL", ...all, true, "frame"],
      ["t", "STRING", ...all, true, "dictionary, zstd"],
      ["message", "STRING", ...all, true, "zstd"],
      ["id", "UUID", ...all, false, "raw"],
    ],
  );
  const { dataset: ofRaw } = await server.exec(
    "select sum(case when diskSize = rawSize and encodings = 'raw' then 0 else 1 end) from table_column_storage('u')",
  );
  assert.deepEqual(ofRaw, [[0]]);
  // What is encoded is changed like anything else.
  const updated = await server.exec("update t set price = -1, message = 'no number' where i is null");
  assert.equal(updated.error, undefined);
  const late = await server.exec("insert into t(ts, price) values ('2024-01-01T00:00:10', 5.25)");
  assert.equal(late.error, undefined);
  const { dataset } = await server.exec(
    "select count(), sum(case when price = -1 then 1 else 0 end), sum(case when price = 5.25 and l is null and i is null then 1 else 0 end), sum(case when message = 'no number' then 1 else 0 end), count_distinct(host) from t",
  );
  assert.deepEqual(dataset, [[ROWS + 1, ROWS / 5, 1, ROWS / 5, 50]]);
  await server.stop();
  await Deno.remove(root, { recursive: true });
});
