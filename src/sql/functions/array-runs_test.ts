import assert from "node:assert/strict";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";
import { inRuns, SHORT_ARRAY_BYTES, toArraysInRuns } from "./array-runs.ts";

const SIZES = [8, -1, 24, SHORT_ARRAY_BYTES, 8, SHORT_ARRAY_BYTES + 8, 8, -1, -1];
const column = { values: Int32Array.from(SIZES.flatMap((size, row) => [64 * row, size])) } as unknown as BatchColumn;
const context = { poll() {} } as FunctionContext;

Deno.test("inRuns() leaves long arrays and rows that a kernel refuses to the other function", () => {
  const runs: number[][] = [], others: number[] = [];
  const refused = 2;
  inRuns([column], SIZES.length, context, (from, to, sizeBytes) => {
    runs.push([from, to, sizeBytes]);
    return from <= refused && to > refused ? refused : to;
  }, (row) => others.push(row));
  assert.deepEqual(others, [2, 5]);
  // After a refused row, runs begin with one row, and grow again.
  const short = SHORT_ARRAY_BYTES;
  assert.deepEqual(runs, [[0, 5, 40 + short], [3, 4, short], [4, 5, 8], [6, 9, 8]]);
});

Deno.test("toArraysInRuns() gives back what results do not take", () => {
  let next = 1_000, used = 0;
  const out = {
    values: new Int32Array(2 * SIZES.length),
    reserve(sizeBytes: number) {
      used += sizeBytes;
      next += sizeBytes;
      return next - sizeBytes;
    },
    giveBack(sizeBytes: number) {
      used -= sizeBytes;
      next -= sizeBytes;
    },
  } as unknown as BatchOut;
  let expected = 0;
  toArraysInRuns([column], out, SIZES.length, context, (from, to, at) => {
    for (let row = from; row < to; row++) {
      const size = SIZES[row]! < 0 ? -1 : 8;
      out.values.set([size < 0 ? 0 : at, size], 2 * row);
      at += Math.max(0, size);
      expected += Math.max(0, size);
    }
    return to;
  }, () => {});
  assert.equal(used, expected);
});
