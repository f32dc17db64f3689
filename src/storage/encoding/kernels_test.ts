import { deepEqual, equal, ok } from "node:assert/strict";
import { createHeap } from "../heap.ts";
import { SHARED_WORD } from "../heap.ts";
import { sharedBytes } from "../shared-bytes.ts";
import { kernelsOf, shareKernels } from "./kernels.ts";

Deno.test("shareKernels() makes the module that kernelsOf() would assemble", () => {
  const heap = createHeap(4 << 20);
  equal(sharedBytes(heap.memory, SHARED_WORD.codecModule), undefined);
  shareKernels(heap);
  const bytes = sharedBytes(heap.memory, SHARED_WORD.codecModule);
  ok(bytes !== undefined);
  const names = WebAssembly.Module.exports(new WebAssembly.Module(bytes)).map(({ name }) => name);
  ok(names.includes("decodeFloats4") && names.includes("selectDecimals"));
  const other = createHeap(4 << 20);
  shareKernels(other);
  deepEqual(sharedBytes(other.memory, SHARED_WORD.codecModule), bytes, "V8 finds the machine code of equal bytes");
  kernelsOf(heap.memory);
});
