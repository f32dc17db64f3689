/** Random joins of large tables have the same answers with several workers and with little memory as with one worker and much; see joins.ts. */
import fc from "../../src/properties.ts";
import assert from "node:assert/strict";
import { FULL, SEED } from "../../src/testing.ts";
import { startServer, type TestServer } from "../server.ts";
import { joinQuery, joinTables } from "./joins.ts";

const QUERIES = FULL ? 30 : 20;

const IN_MEMORY = / (window|horizon) join /;

/** Less memory than most of the joins need. */
const LITTLE = ["16m", "20m"];

async function ask(server: TestServer, sql: string): Promise<unknown[][] | undefined> {
  const { error, dataset } = await server.exec(sql);
  assert.equal(error, undefined, `${sql}: ${error}`);
  return dataset;
}

Deno.test("random joins have the same answers with any number of workers and any memory", async () => {
  console.log(`SEED=${SEED}`);
  const [[creates, queries]] = fc.sample(
    fc.tuple(joinTables, fc.array(joinQuery, { minLength: QUERIES, maxLength: QUERIES })),
    { numRuns: 1 },
  );
  const root = await Deno.makeTempDir({ prefix: "sundial-joins-" });
  try {
    const expected: unknown[] = [];
    let spilled = 0;
    for (const [workers, limit] of [["1", "2g"], ["4", "2g"], ["1", LITTLE[0]], ["3", LITTLE[1]]]) {
      const env = {
        SVC_SHARED_WORKER_COUNT: workers,
        SVC_CAIRO_QUERY_MEMORY_LIMIT: limit,
        SVC_QUERY_TIMEOUT: "5m",
        SVC_METRICS_ENABLED: "true",
      };
      await using server = await startServer({ root, keepRoot: true, env });
      const isFirst = expected.length === 0;
      for (const create of isFirst ? creates : []) await ask(server, create);
      for (const [k, sql] of queries.entries()) {
        // These do not continue on disk.
        if (LITTLE.includes(limit) && IN_MEMORY.test(sql)) {
          const { error, dataset } = await server.exec(sql);
          if (error !== undefined) assert.match(error, /the query's memory limit of \d+ bytes is reached/, sql);
          else assert.deepEqual(dataset, expected[k], `${workers} workers, limit ${limit}: ${sql}`);
          continue;
        }
        const answer = await ask(server, sql);
        if (isFirst) expected.push(answer);
        else assert.deepEqual(answer, expected[k], `${workers} workers, limit ${limit}: ${sql}\n${creates.join("\n")}`);
      }
      const metrics = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
      if (LITTLE.includes(limit)) spilled += Number(/^service_query_spilled_bytes_total (\S+)$/m.exec(metrics)![1]);
    }
    assert.ok(spilled > 0, "some joins exceed the memory");
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
