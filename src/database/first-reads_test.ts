import assert from "node:assert/strict";
import { FirstReads } from "./first-reads.ts";

Deno.test("FirstReads: the others wait for the first one, each plan for its own, and go on in order", async () => {
  const reads = new FirstReads(), [plan, other] = [{}, {}];
  assert.equal(reads.wait(plan), undefined);
  const first = Promise.withResolvers<void>();
  reads.begin(plan, first.promise);
  assert.equal(reads.wait(other), undefined);
  const order: number[] = [];
  const waiting = [0, 1, 2].map((k) => reads.wait(plan)!.then(() => void order.push(k)));
  // A second one that a worker runs changes nothing.
  reads.begin(plan, Promise.resolve());
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual(order, []);
  first.resolve();
  await Promise.all(waiting);
  assert.deepEqual(order, [0, 1, 2]);
  assert.equal(reads.wait(plan), undefined);
});

Deno.test("FirstReads: executions of a plan that waiting does not help do not wait for a while", () => {
  const reads = new FirstReads(), plan = {};
  reads.isNoHelp(plan);
  reads.begin(plan, Promise.resolve());
  assert.equal(reads.wait(plan), undefined);
});

Deno.test("FirstReads: the event loop has turns while many go on", async () => {
  const reads = new FirstReads(), plan = {};
  const first = Promise.withResolvers<void>();
  reads.begin(plan, first.promise);
  let isOver = false, turns = 0;
  const count = () => {
    turns++;
    if (!isOver) setTimeout(count);
  };
  const waiting = Array.from({ length: 5 }, () =>
    reads.wait(plan)!.then(() => {
      for (const start = performance.now(); performance.now() - start < 6;);
    }));
  count();
  first.resolve();
  await Promise.all(waiting);
  isOver = true;
  assert.ok(turns >= 3, `${turns} turns`);
});
