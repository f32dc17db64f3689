/** Every column type through `/exp?fmt=parquet`, read by pyarrow, by DuckDB, and by read_parquet. */
import { DuckDBInstance } from "@duckdb/node-api";
import assert from "node:assert/strict";
import { typeNames } from "../../src/types/mod.ts";
import { startServer, type TestServer } from "../server.ts";
import { hasPyarrow, python } from "./python.ts";
import { CASES } from "./types.ts";

const CODECS = ["uncompressed", "snappy", "gzip", "brotli", "zstd", "lz4_raw"];
/** Row 0 has values and row 1 nulls, repeated so that dictionaries are created. */
const ROW_COUNT = 200;

Deno.test("every column type has a case of its Parquet round trip", () => {
  const covered = new Set(CASES.map(({ type }) => type));
  assert.deepEqual(typeNames().filter((name) => !covered.has(name)), []);
});

const column = (index: number) => `c${index}`;

/** Exports a table of all types. */
async function exported(server: TestServer, directory: string, codec: string): Promise<string> {
  const url = new URL("/exp", server.http);
  url.search = String(new URLSearchParams({ fmt: "parquet", compression_codec: codec, query: "select * from t" }));
  const reply = await fetch(url);
  assert.equal(reply.status, 200);
  const path = `${directory}/${codec}.parquet`;
  await Deno.writeFile(path, new Uint8Array(await reply.arrayBuffer()));
  return path;
}

Deno.test("every column type goes through Parquet and comes back", async (t) => {
  await using server = await startServer();
  const duck = await (await DuckDBInstance.create(":memory:")).connect();
  const ask = async (sql: string) => {
    const reply = await server.exec(sql);
    assert.equal(reply.error, undefined, `${sql}: ${reply.error}`);
    return reply;
  };
  const directory = `${server.root}/import`;
  await Deno.mkdir(directory, { recursive: true });
  await duck.run(`copy (select '\\x00\\xFF\\x80\\x00\\x00'::blob bytes) to '${directory}/bytes.parquet'`);
  const columns = CASES.map(({ type }, index) => `${column(index)} ${type}`).join(", ");
  await ask(`create table t (row long, ${columns})`);
  const values = CASES.map(({ sql }) => sql).join(", ");
  const rows = `read_parquet('bytes.parquet') cross join long_sequence(${ROW_COUNT / 2})`;
  await ask(`insert into t select 0, ${values} from ${rows}`);
  await ask(`insert into t (row) select 1 from long_sequence(${ROW_COUNT / 2})`);
  const here = await ask("select * from t");
  const isThere = await hasPyarrow("Parquet files in pyarrow");

  for (const codec of CODECS) {
    const path = await exported(server, directory, codec);

    await t.step(`read_parquet() gives the same types and values, ${codec}`, async () => {
      const back = await ask(`select * from read_parquet('${codec}.parquet')`);
      const expected = here.columns!.slice(1).map((described, index) => {
        const { back: type } = CASES[index];
        return type === undefined ? described : { ...described, type };
      });
      assert.deepEqual(back.columns!.slice(1), expected);
      assert.deepEqual(back.dataset, here.dataset);
      const bytes = CASES.findIndex(({ type }) => type === "BINARY");
      const encoded = `select base64(${column(bytes)}, 100) from`;
      const found = await ask(`${encoded} read_parquet('${codec}.parquet') limit 1`);
      assert.deepEqual(found.dataset, [["AP+AAAA="]]);
    });

    await t.step(`DuckDB reads the same, ${codec}`, async () => {
      await duck.run("set timezone = 'UTC'");
      for (const [index, { type, duck: [duckType, value], none }] of CASES.entries()) {
        const name = column(index);
        const text = duckType === "BLOB" ? `hex(${name})` : `${name}::varchar`;
        const answer = await duck.runAndReadAll(
          `select row, typeof(${name}) as type, ${text} as value, count(*)::int as n from '${path}' group by all order by row`,
        );
        assert.deepEqual(
          answer.getRowsJS(),
          [[0n, duckType, value, 100], [1n, duckType, none?.[1] ?? null, 100]],
          type,
        );
      }
    });

    await t.step({
      name: `pyarrow reads the same, ${codec}`,
      ignore: !isThere,
      fn: async () => {
        const found: Record<string, [string, unknown[]]> = JSON.parse(await python("arrow.py", path));
        for (const [index, { type, arrow: [arrowType, value], none }] of CASES.entries()) {
          const [foundType, values] = found[column(index)];
          assert.equal(foundType, arrowType, type);
          const half = ROW_COUNT / 2, nothing = none?.[0] ?? null;
          assert.deepEqual(values, [...Array(half).fill(value), ...Array(half).fill(nothing)], type);
        }
      },
    });
  }
});

Deno.test("texts that repeat, and such that look like the bytes of others, come back from Parquet", async () => {
  await using server = await startServer();
  const texts = [
    "Ã©",
    "é",
    "é".normalize("NFD"),
    "a",
    "",
    "ab",
    "ÿ",
    "Ã¿",
    "x".repeat(32),
    "x".repeat(33),
    "😀",
    "ð\x9f\x98\x80",
  ];
  const list = [...texts, null].map((text) => text === null ? "null" : `'${text}'`).join();
  const rows = `select rnd_varchar(${list.replace(",null", "")}) v, x from long_sequence(5000)`;
  const made = await server.exec(
    `create table t as (select case when x % 7 = 0 then null else v end v, x from (${rows}))`,
  );
  assert.equal(made.error, undefined);
  await Deno.mkdir(`${server.root}/import`, { recursive: true });
  const path = await exported(server, `${server.root}/import`, "zstd");
  assert.ok(path.endsWith("zstd.parquet"));
  const read = await server.exec("select v, x from read_parquet('zstd.parquet')");
  assert.deepEqual(read.dataset, (await server.exec("select v, x from t")).dataset);
  assert.equal(new Set(read.dataset!.map(([v]) => v)).size, texts.length + 1);
});

Deno.test("a file of many columns has row groups of at most 2^20 values", async () => {
  await using server = await startServer();
  const duck = await (await DuckDBInstance.create(":memory:")).connect();
  const names = Array.from({ length: 200 }, (_, index) => `x + ${index} ${column(index)}`);
  const directory = `${server.root}/import`;
  await Deno.mkdir(directory, { recursive: true });
  const url = new URL("/exp", server.http);
  url.search = String(
    new URLSearchParams({ fmt: "parquet", query: `select ${names.join(", ")} from long_sequence(20_000)` }),
  );
  const path = `${directory}/wide.parquet`;
  await Deno.writeFile(path, new Uint8Array(await (await fetch(url)).arrayBuffer()));
  const groups = await duck.runAndReadAll(
    `select count(distinct row_group_id), max(row_group_num_rows) * 200 <= 1 << 20 from parquet_metadata('${path}')`,
  );
  assert.deepEqual(groups.getRows(), [[4n, true]]);
  const sums = "select count(*), sum(c0)::bigint, sum(c199)::bigint, max(c7) from";
  const expected = [[20_000n, 200_010_000n, 203_990_000n, 20_007n]];
  assert.deepEqual((await duck.runAndReadAll(`${sums} '${path}'`)).getRows(), expected);
  const back = await server.exec(`${sums} read_parquet('wide.parquet')`);
  assert.deepEqual(back.dataset, expected.map((row) => row.map(Number)));
});
