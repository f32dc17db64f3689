/**
 * The resident memory of the process is bounded by its settings: while it loads a Parquet file, answers the queries of the benchmark,
 * exports rows and changes them. `SUNDIAL_MEMORY_ROWS` sets the number of rows; `deno task bench --suite memory` prints each stage.
 */
import assert from "node:assert/strict";
import { exceeded, measureMemory, OTHER_BYTES_MAX } from "../../bench/memory.ts";
import { residentBytes } from "../memory.ts";
import { startServer } from "../server.ts";

Deno.test({
  name: "resident memory is at most cairo.memory.size + 400 MiB",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const work = await Deno.makeTempDir({ prefix: "sundial-memory-" });
    try {
      const report = await measureMemory({
        rowCount: Number(Deno.env.get("SUNDIAL_MEMORY_ROWS") ?? 600_000),
        env: { SVC_CAIRO_MEMORY_SIZE: "192m", SVC_CAIRO_POOL_SIZE: "48m", SVC_CAIRO_QUERY_MEMORY_LIMIT: "64m" },
        work,
        idleSeconds: 0,
      });
      assert.equal(report.sharedBytes, 192 << 20);
      assert.deepEqual(exceeded(report), []);
    } finally {
      await Deno.remove(work, { recursive: true });
    }
  },
});

Deno.test({
  name: "UPDATE, DELETE and late rows of millions of rows keep to the bound",
  ignore: Deno.build.os !== "linux",
  async fn() {
    const env = { SVC_CAIRO_MEMORY_SIZE: "192m", SVC_CAIRO_POOL_SIZE: "48m", SVC_CAIRO_QUERY_MEMORY_LIMIT: "64m" };
    await using server = await startServer({ env });
    const rows = 3_000_000, { pid } = server.process;
    const exec = async (sql: string) => {
      const reply = await server.exec(sql);
      assert.equal(reply.error, undefined, sql);
      return reply.dataset;
    };
    await exec(
      `create table t as (select (x * 1000000)::timestamp ts, x a, x * 1.5 b, x % 1000 c from long_sequence(${rows}))` +
        " timestamp(ts) partition by month",
    );
    await exec("update t set a = a + 1, b = b + 1.5, c = c + 1");
    await exec("insert into t select (ts::long + 500000)::timestamp, a, b, c from t where c <= 200");
    await exec("delete from t where c > 900");
    const kept = rows * 0.9, added = rows * 0.2;
    assert.deepEqual(await exec("select count(), max(c), min(a) from t"), [[kept + added, 900, 2]]);
    await exec("delete from t");
    assert.deepEqual(await exec("select count() from t"), [[0]]);
    const peakMiB = residentBytes(pid, "VmHWM") >> 20;
    assert.ok(peakMiB <= 192 + (OTHER_BYTES_MAX >> 20), `${peakMiB} MiB`);
  },
});
