import assert from "node:assert/strict";
import { type FilledFrames, FirstReads } from "./first-reads.ts";

/** Frames, of which one is filled at each call of `fill`. */
class Frames implements FilledFrames {
  filledCount = 0;
  private waiting = Promise.withResolvers<void>();

  async filled(filledCount: number): Promise<void> {
    if (filledCount === this.filledCount) await this.waiting.promise;
  }

  fill(): void {
    this.filledCount++;
    this.waiting.resolve();
    this.waiting = Promise.withResolvers();
  }
}

const turn = () => new Promise((resolve) => setTimeout(resolve));

Deno.test("FirstReads: the others go on in order as soon as the frames are there, each plan by itself", async () => {
  const frames = new Frames(), reads = new FirstReads<number>(frames), [plan, other] = [{}, {}];
  const first = Promise.withResolvers<void>();
  reads.begin(plan, first.promise);
  assert.ok(reads.isUnderway(plan) && !reads.isUnderway(other));
  let isThere = false;
  const tried: number[] = [];
  const waiting = [0, 1, 2].map((k) =>
    reads.wait(plan, () => {
      if (isThere) tried.push(k);
      return isThere ? k : undefined;
    })
  );
  // A frame of another query.
  frames.fill();
  await turn();
  assert.deepEqual(tried, []);
  isThere = true;
  frames.fill();
  assert.deepEqual(await Promise.all(waiting), [0, 1, 2]);
  assert.deepEqual(tried, [0, 1, 2]);
  first.resolve();
  await turn();
  assert.ok(!reads.isUnderway(plan));
  frames.fill();
});

Deno.test("FirstReads: when the first one is over, the others get nothing if they still lack frames, or an error", async () => {
  const reads = new FirstReads<number>(new Frames()), plan = {};
  const first = Promise.withResolvers<void>();
  reads.begin(plan, first.promise);
  const lacking = reads.wait(plan, () => undefined);
  const failing = assert.rejects(reads.wait(plan, () => assert.fail("fails")), /fails/);
  first.resolve();
  assert.equal(await lacking, undefined);
  await failing;
});

Deno.test("FirstReads: executions of a plan that waiting does not help do not wait for a while", () => {
  const reads = new FirstReads<number>(new Frames()), plan = {};
  reads.isNoHelp(plan);
  reads.begin(plan, Promise.resolve());
  assert.ok(!reads.isUnderway(plan));
});

Deno.test("FirstReads: the event loop has turns while many go on", async () => {
  const reads = new FirstReads<number>(new Frames()), plan = {};
  reads.begin(plan, Promise.resolve());
  let isOver = false, turns = 0;
  const count = () => {
    turns++;
    if (!isOver) setTimeout(count);
  };
  const waiting = Array.from({ length: 5 }, () =>
    reads.wait(plan, () => {
      for (const start = performance.now(); performance.now() - start < 6;);
      return 1;
    }));
  count();
  await Promise.all(waiting);
  isOver = true;
  assert.ok(turns >= 3, `${turns} turns`);
});
