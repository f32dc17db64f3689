/** What was wrong once, as SQL over HTTP: small and large tables, on the main thread and in workers. */
import assert from "node:assert/strict";
import { startServer, type TestServer } from "./server.ts";

interface Case {
  title: string;
  /** Statements, then the query. */
  sql: string[];
  rows: unknown[][];
}

const CASES: Case[] = [
  {
    title: "UPDATE with a filter before a function over whole columns changes the rows that pass",
    sql: [
      "create table r1 as (select x id, cast(x % 3 as int) z, 0::long l, 'text ' || x v, timestamp_sequence(0, 1000000) ts from long_sequence(100000)) timestamp(ts) partition by hour",
      "update r1 set l = id + length(upper(v)) - length(v) where z = 1",
      "select count() n, sum(l) l, sum(case when l = id then 1 else 0 end) same from r1 where z = 1 or l != 0",
    ],
    rows: [[33334, 1_666_716_667, 33334]],
  },
];

async function run(server: TestServer, { sql, rows }: Case): Promise<void> {
  for (const [k, text] of sql.entries()) {
    const reply = await server.exec(text);
    assert.equal(reply.error, undefined, `${text}: ${reply.error}`);
    if (k === sql.length - 1) assert.deepEqual(reply.dataset, rows, text);
  }
}

for (
  const [title, env] of [["on the main thread", {}], ["in workers", {
    SVC_QUERY_DIRECT_ROWS_MAX: "-1",
    SVC_SHARED_WORKER_COUNT: "3",
  }]] as const
) {
  Deno.test(`what was wrong once holds ${title}`, async (t) => {
    await using server = await startServer({ env });
    for (const c of CASES) await t.step(c.title, () => run(server, c));
  });
}
