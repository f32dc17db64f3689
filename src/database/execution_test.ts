import assert from "node:assert/strict";
import type { Scheduler } from "../engine/mod.ts";
import { type Row, storedRows, testContext } from "../engine/testing.ts";
import { createRegistry } from "../sql/functions/mod.ts";
import type { Catalogue } from "../storage/contract.ts";
import type { OnMiss, SharedPool } from "../storage/mod.ts";
import { Execution, type Run, type RunOptions } from "./execution.ts";

/** A table whose frames are not in memory until a worker has run a query. */
function coldTable(directRowsMax = 1_000) {
  const context = testContext(), { heap } = context;
  const columns = [{ name: "x", type: "LONG" }], rows: Row[] = [[1n], [2n]];
  const { node, source } = storedRows(columns, rows, context, 10);
  const [segment] = source.segments, [chunk] = segment.chunks;
  const table = { source: { ...source, segments: [{ ...segment, chunks: [{ ...chunk!, address: 0 }] }] } };
  let isLoaded = false;
  const pool = {
    frames: { filledCount: 0, filled: () => new Promise(() => {}) },
    lease: (onMiss: OnMiss) => ({ pin: () => isLoaded ? chunk!.address : onMiss("frame"), unpin() {}, release() {} }),
  };
  const running: (() => void)[] = [];
  const scheduler = {
    run() {
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      running.push(() => {
        isLoaded = true;
        resolve();
      });
      return { whole: () => ended, chunks: (async function* () {})(), totalRows: () => 0, cancel() {}, ended };
    },
  };
  const settings = { directRowsMax, queryMemoryLimitBytes: 0 };
  const execution = new Execution(
    {
      heap,
      pool: pool as unknown as SharedPool,
      functions: createRegistry(),
      nowMicros: () => 0n,
      nowMs: () => 0,
      neverCancelled: context.cancelWord,
      settings,
    },
    scheduler as unknown as Scheduler,
    { ...settings, spillRoot: "", spillLimitBytes: 0, queryTimeoutMs: 0, useStatistics: true },
  );
  const catalogue = { tableById: () => ({ source: () => table.source }), pin: () => () => {} } as unknown as Catalogue;
  const answer = (key: object, more: Partial<RunOptions> = {}) =>
    execution.answer(node, {
      output: { kind: "rows", encoding: { name: "json", quoteLargeNumbers: false } },
      columns,
      user: "ann",
      catalogue,
      key,
      ...more,
    });
  return { answer, running, execution, table };
}

const textOf = ({ ready }: Run) => ready?.map(({ bytes }) => new TextDecoder().decode(bytes)).join("");

Deno.test("Execution: while a worker reads the frames of a plan, other executions of it wait, and then run on the calling thread", async () => {
  const { answer, running, execution } = coldTable(), plan = {}, other = {};
  void answer(plan);
  const waiting = Array.from({ length: 20 }, () => answer(plan));
  assert.equal(running.length, 1);
  void answer(other);
  assert.equal(running.length, 2, "another plan does not wait for this one");
  running[0]();
  for (const each of waiting) {
    assert.ok(each instanceof Promise);
    assert.equal(textOf(await each), "[1],[2]");
  }
  assert.equal(running.length, 2);
  running[1]();
  await new Promise((resolve) => setTimeout(resolve));
  assert.equal(textOf(await answer(plan)), "[1],[2]");
  execution.close();
});

Deno.test("Execution: a client that leaves while its query waits gets no answer", async () => {
  const { answer, running, execution } = coldTable(), plan = {}, leaving = new AbortController();
  void answer(plan);
  const waiting = answer(plan, { signal: leaving.signal });
  leaving.abort();
  running[0]();
  await assert.rejects(Promise.resolve(waiting));
  execution.close();
});

Deno.test("Execution: what was much work goes to a worker at once when it is executed again, as long as its table has not changed", () => {
  const { answer, running, execution, table } = coldTable(0), plan = {};
  let answered = 0;
  const asked = execution.answered.bind(execution);
  execution.answered = (...given) => (answered++, asked(...given));
  for (let k = 0; k < 3; k++) void answer(plan);
  assert.deepEqual([running.length, answered], [3, 1]);
  table.source = { ...table.source };
  for (let k = 0; k < 3; k++) void answer(plan);
  assert.deepEqual([running.length, answered], [6, 2]);
  execution.close();
});
