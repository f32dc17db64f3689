import assert from "node:assert/strict";
import { latch, tryLatch, unlatch } from "./latch.ts";

/** Adds to a plain word under the lock, from two threads. */
const WORKER = `
  import { latch, unlatch } from ${JSON.stringify(import.meta.resolve("./latch.ts"))};
  self.onmessage = ({ data: { words, count } }) => {
    for (let k = 0; k < count; k++) {
      latch(words, 0);
      words[1]++;
      unlatch(words, 0);
    }
    self.postMessage("done");
  };
`;

Deno.test("latch() lets one thread in at a time, and wakes those that sleep", async () => {
  const words = new Int32Array(new SharedArrayBuffer(8)), count = 20_000;
  const url = URL.createObjectURL(new Blob([WORKER], { type: "application/typescript" }));
  const workers = [0, 1].map(() => new Worker(url, { type: "module" }));
  const ended = workers.map((worker) => new Promise((resolve) => worker.onmessage = resolve));
  latch(words, 0);
  for (const worker of workers) worker.postMessage({ words, count });
  // The workers find it taken.
  while (Atomics.load(words, 0) !== 2) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.equal(tryLatch(words, 0), false);
  assert.equal(words[1], 0);
  unlatch(words, 0);
  await Promise.all(ended);
  assert.deepEqual([...words], [0, 2 * count]);
  for (const worker of workers) worker.terminate();
  URL.revokeObjectURL(url);
});
