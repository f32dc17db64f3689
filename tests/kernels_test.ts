/** Rows are not interpreted: they pass through compiled kernels, which count them. */
import assert from "node:assert/strict";
import { startServer } from "./server.ts";

const QUERIES: [title: string, sql: string][] = [
  ["aggregates", "select sum(price), min(amount), count() from t where price > 0"],
  ["filter and projection", "select price * amount + 1 from t where amount >= 0 and side <> 'none'"],
  ["group by a symbol", "select symbol, avg(price) from t group by symbol"],
  ["group by a computed key", "select cast(price / 10 as int) k, count() from t group by k"],
  ["group by text", "select side_text, sum(amount) from t group by side_text"],
  ["SAMPLE BY", "select timestamp, sum(price) from t sample by 1h"],
  ["SAMPLE BY with a key", "select timestamp, symbol, max(price * 2) from t sample by 1h fill(null)"],
  ["CASE and text", "select sum(case when side_text like 'b%' then amount else -amount end) from t"],
  ["top rows of an expression", "select price, amount from t order by price * amount desc limit 5"],
  [
    "window over a computed column",
    "select sum(d) from (select price - lag(price * 1.0) over (partition by symbol) d from t)",
  ],
  ["join on a computed key", "select count() from t join names n on length(t.symbol) = n.length"],
  ["DISTINCT of an expression", "select distinct round(price) from t"],
];

Deno.test("rows pass through compiled kernels", { sanitizeOps: false, sanitizeResources: false }, async (test) => {
  for (const where of ["in workers", "on the main thread"]) {
    await using server = await startServer({
      env: {
        SVC_METRICS_ENABLED: "true",
        SVC_QUERY_STATISTICS_ENABLED: "false",
        SVC_QUERY_DIRECT_ROWS_MAX: where === "in workers" ? "0" : "1000000",
      },
    });
    const run = async (sql: string) => {
      const reply = await server.exec(sql);
      assert.equal(reply.error, undefined, `${sql}: ${reply.error}`);
    };
    const kernelRows = async () => {
      const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
      return Number(/^service_kernel_rows_total (\d+)/m.exec(text)![1]);
    };
    await run(
      "create table t as (select timestamp, symbol::symbol symbol, side::symbol side, side side_text, price, amount " +
        "from read_parquet('trades.parquet')) timestamp(timestamp) partition by day",
    );
    await run("create table names as (select x::int length from long_sequence(3))");
    const rowCount = 100_000;
    for (const [title, sql] of QUERIES) {
      await test.step(`${title}, ${where}`, async () => {
        const before = await kernelRows();
        await run(sql);
        const passed = await kernelRows() - before;
        assert.ok(passed >= rowCount, `${passed} of ${rowCount} rows passed through kernels`);
      });
    }
  }
});
