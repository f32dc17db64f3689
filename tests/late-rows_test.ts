/** Late rows of many partitions, of which query threads merge some beside the writer, and a thread that fails meanwhile loses nothing. */
import assert from "node:assert/strict";
import { startServer } from "./server.ts";

const ENV = { SVC_DEV_MODE_ENABLED: "true", SVC_METRICS_ENABLED: "true", SVC_SHARED_WORKER_COUNT: "2" };
const DAYS = 10, STORED = 1_000_000, DAY_MICROS = 86_400_000_000;

Deno.test("late rows of many partitions are merged while query threads fail, and are there after a start", async () => {
  let root: string, rowCount = STORED, sum = STORED * (STORED + 1) / 2;
  const check = "select count(), sum(x), count_distinct(note), sum(length(note)) from t";
  const unordered = "select count() from (select ts, lag(ts) over () before from t) where before > ts";
  let before: unknown[][];
  {
    await using server = await startServer({ env: ENV, keepRoot: true });
    root = server.root;
    const exec = async (sql: string) => {
      const { dataset, error } = await server.exec(sql);
      assert.equal(error, undefined);
      return dataset!;
    };
    await exec(
      `create table t as (select timestamp_sequence(0, ${
        DAYS * DAY_MICROS / STORED
      }) ts, x, 'note ' || (x % 1000) note,` +
        ` rnd_symbol('a', 'b') s from long_sequence(${STORED})) timestamp(ts) partition by day`,
    );
    for (let round = 0; round < 8; round++) {
      await exec(
        `insert into t select timestamp_sequence(${round + 1}, ${
          DAYS * DAY_MICROS / 500
        }), x, 'late ' || x, 'c' from long_sequence(500)`,
      );
      rowCount += 500;
      sum += 500 * 501 / 2;
      if (round === 3) await server.exec("select simulate_crash('out of luck', 'query')");
    }
    before = await exec(check);
    assert.deepEqual(before[0].slice(0, 3), [rowCount, sum, 1500]);
    assert.deepEqual(await exec(unordered), [[0]]);
    const metrics = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
    assert.match(metrics, /^service_late_segments_merged_by_query_threads_total \d+$/m);
    await server.stop();
  }
  await using server = await startServer({ env: ENV, root });
  assert.deepEqual((await server.exec(check)).dataset, before);
  assert.deepEqual((await server.exec(unordered)).dataset, [[0]]);
});
