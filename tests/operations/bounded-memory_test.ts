/**
 * The resident memory of the process is bounded by its settings: while it loads a Parquet file, answers the queries of the benchmark and
 * exports rows. `SUNDIAL_MEMORY_ROWS` sets the number of rows; `deno task bench --suite memory` prints each stage.
 */
import assert from "node:assert/strict";
import { exceeded, measureMemory } from "../../bench/memory.ts";

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
