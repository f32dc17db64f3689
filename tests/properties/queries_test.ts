/**
 * Random queries over small random tables give the same answers as DuckDB, where the semantics agree; see queries.ts.
 */
import { DuckDBInstance } from "@duckdb/node-api";
import fc from "../../src/properties.ts";
import assert from "node:assert/strict";
import { startServer, type TestServer } from "../server.ts";
import { query, type Row, rows } from "./queries.ts";
import { SEED } from "../../src/testing.ts";

const QUERIES_PER_TABLES = 12;
const RUNS = 25;

const COLUMNS = "id int, k int, l long, d double, s varchar";

function insert(table: string, content: Row[]): string {
  const text = (value: number | string | null) =>
    value === null ? "null" : typeof value === "string" ? `'${value}'` : String(value);
  const tuples = content.map(({ k, l, d, s }, id) => `(${[id, k, l, d, s].map(text).join(", ")})`);
  return `insert into ${table} values ${tuples.join(", ")}`;
}

/** Rows as sorted texts: order is not compared, except that LIMIT with ORDER BY determines the rows. */
function normal(answer: unknown[][]): string[] {
  return answer.map((row) => JSON.stringify(row.map(plain))).sort();
}

function plain(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (typeof value === "number") return Number(value.toPrecision(12)) + 0;
  return value;
}

async function ask(server: TestServer, sql: string): Promise<unknown[][]> {
  const reply = await server.exec(sql);
  assert.equal(reply.error, undefined, `${sql}: ${reply.error}`);
  return reply.dataset ?? [];
}

Deno.test("random queries give the same answers as DuckDB", async () => {
  console.log(`SEED=${SEED}`);
  await using server = await startServer();
  const duck = await (await DuckDBInstance.create(":memory:")).connect();
  for (const table of ["a", "b"]) {
    await ask(server, `create table ${table} (${COLUMNS})`);
    await duck.run(`create table ${table} (${COLUMNS})`);
  }
  const cases = fc.asyncProperty(
    rows,
    rows,
    fc.array(query, { minLength: QUERIES_PER_TABLES, maxLength: QUERIES_PER_TABLES }),
    async (a, b, queries) => {
      for (const [table, content] of [["a", a], ["b", b]] as const) {
        await ask(server, `truncate table ${table}`);
        await duck.run(`delete from ${table}`);
        if (content.length === 0) continue;
        await ask(server, insert(table, content));
        await duck.run(insert(table, content));
      }
      for (const { ours, duck: theirs } of queries) {
        const expected = (await duck.runAndReadAll(theirs)).getRowsJS() as unknown[][];
        assert.deepEqual(normal(await ask(server, ours)), normal(expected), `${ours}\n  DuckDB: ${theirs}`);
      }
    },
  );
  await fc.assert(cases, { numRuns: RUNS });
  duck.closeSync();
});
