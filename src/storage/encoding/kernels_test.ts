import { deepEqual, equal, ok } from "node:assert/strict";
import { createHeap } from "../heap.ts";
import { kernelsOf, sharedKernels, shareKernels } from "./kernels.ts";

Deno.test("shareKernels() makes the module that kernelsOf() would assemble", () => {
  const heap = createHeap(4 << 20);
  equal(sharedKernels(heap.memory), undefined);
  shareKernels(heap);
  const bytes = sharedKernels(heap.memory);
  ok(bytes !== undefined);
  const names = WebAssembly.Module.exports(new WebAssembly.Module(bytes)).map(({ name }) => name);
  ok(names.includes("decodeFloats4") && names.includes("selectDecimals"));
  const other = createHeap(4 << 20);
  shareKernels(other);
  deepEqual(sharedKernels(other.memory), bytes, "V8 finds the machine code of equal bytes");
  kernelsOf(heap.memory);
});
