import assert from "node:assert/strict";
import { createHeap } from "../../storage/heap.ts";
import { KernelCache, KernelWriter } from "./kernel.ts";

Deno.test("KernelCache keeps the most recently used modules, limited in number and in bytes", () => {
  const { memory } = createHeap(1 << 20);
  const bytesOf = () => {
    const writer = new KernelWriter(memory, []);
    writer.code.i32(7);
    return writer.finish();
  };
  const moduleBytes = bytesOf().length;
  for (const [capacity, bytesMax] of [[2, 1 << 20], [100, 2 * (moduleBytes + 1) + 1]]) {
    const cache = new KernelCache(memory, capacity, bytesMax);
    const built: string[] = [];
    const get = (key: string) =>
      cache.get(key, () => {
        built.push(key);
        return { bytes: bytesOf(), cells: {} };
      });
    for (const key of ["a", "b", "a", "c", "a", "b"]) get(key);
    assert.deepEqual(built, ["a", "b", "c", "b"]);
    // A module that is larger than the bound is kept until the next one.
    get("long".repeat(1_000));
    get("long".repeat(1_000));
    assert.equal(built.length, 5);
  }
});
