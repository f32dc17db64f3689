import assert from "node:assert/strict";
import { createHeap } from "../../storage/heap.ts";
import { randomFrom } from "../testing.ts";
import { SEED } from "../../testing.ts";
import { i32, input } from "./ir.ts";
import {
  addOffsetsKernel,
  emptyOffsetsKernel,
  type OffsetsArgument,
  type OffsetsShape,
  offsetsStride,
} from "./offsets.ts";
import { KERNEL_CELLS } from "./kernel.ts";

/** Of the two keys. */
const SIZES = [6, 3], BIASES = [1, -2];
const ROWS = 1_001, GROUPS = SIZES[0]! * SIZES[1]!;
const heap = createHeap(1 << 20);
const allocate = (sizeBytes: number) => heap.allocate(sizeBytes, "other");

const SUM = { sum: true, min: false, max: false }, MAX = { sum: false, min: false, max: true };
const ALL = { sum: true, min: true, max: true };
const CASES: { name: string; arguments: OffsetsArgument[] }[] = [
  { name: "no argument", arguments: [] },
  { name: "one sum", arguments: [{ columns: [0], needs: SUM }] },
  { name: "two sums", arguments: [{ columns: [0], needs: SUM }, { columns: [1], needs: SUM }] },
  { name: "a product", arguments: [{ columns: [0, 1], needs: SUM }] },
  { name: "a square and a sum", arguments: [{ columns: [1, 1], needs: SUM }, { columns: [0], needs: SUM }] },
  { name: "a sum and extremes", arguments: [{ columns: [0], needs: SUM }, { columns: [1], needs: ALL }] },
  { name: "an extreme without its sum", arguments: [{ columns: [1], needs: MAX }, { columns: [0], needs: SUM }] },
  {
    name: "three sums and a product",
    arguments: [
      { columns: [2], needs: SUM },
      { columns: [0], needs: ALL },
      { columns: [1], needs: SUM },
      { columns: [0, 2], needs: SUM },
    ],
  },
];

Deno.test("four rows at once are added as each by itself", async (t) => {
  const columns = [0, 1, 2].map(() => allocate(4 * ROWS + 64)), cancel = allocate(8);
  const keys = [0, 1].map(() => allocate(4 * ROWS + 64));
  heap.i32[cancel / 4] = 0;
  const block = allocate(512), word = randomFrom(SEED), random = () => word() / 2 ** 32, leasts = [-70_000, 3, -2];
  for (let row = 0; row < ROWS; row++) {
    keys.forEach((at, k) => heap.i32[at / 4 + row] = Math.floor(random() * random() * SIZES[k]!) - BIASES[k]!);
    columns.forEach((at, k) => heap.i32[at / 4 + row] = Math.floor(random() * [140_000, 2 ** 20, 2][k]!));
  }
  const inputs = [0, 1, 2, 3, 4].map((column) => ({ kind: "column" as const, column, form: "i32" as const }));
  const keyOf = (k: number) => (
    { node: input(3 + k, "i32"), bias: BIASES[k]!, size: i32.const(SIZES[k]!), form: "i32" as const }
  );
  for (const { name, arguments: list } of CASES) {
    for (const isJoined of [false, true]) {
      const canJoin = list[0]?.needs.sum === true && list[0].columns.length === 1;
      if (isJoined && !canJoin) continue;
      for (const used of [[0], [0, 1]]) {
        await t.step(`${name} by ${used.length} keys${isJoined ? ", beside the number of rows" : ""}`, () => {
          const shape: OffsetsShape = {
            columns: [0, 1, 2].map((input) => ({ input, values: "integers" })),
            ...{ arguments: list, aggregates: [], sources: [], headerWords: 1 },
          };
          const tables = [true, false].map((isNarrow) => {
            const sizeBytes = GROUPS * offsetsStride(shape), table = allocate(sizeBytes);
            heap.u8.fill(0, table, table + sizeBytes);
            const variant = {
              hasNulls: list.map(() => false),
              isJoined,
              isNarrow,
            };
            const empty = emptyOffsetsKernel(heap.memory, shape);
            const add = addOffsetsKernel(heap.memory, inputs, used.map(keyOf), shape, variant);
            const cell = (number: number) => block / 4 + 2 * number;
            heap.i32[cell(KERNEL_CELLS.cancel)] = cancel;
            heap.i32[cell(empty.cells.segment!)] = table;
            empty.run(block, 0, GROUPS);
            [...columns, ...keys].forEach((at, k) => heap.i32[cell(KERNEL_CELLS.firstInput + 2 * k)] = at);
            heap.i32[cell(add.cells.table!)] = table;
            for (const [k, least] of leasts.entries()) {
              const at = add.cells[`least${k}`];
              if (at !== undefined) heap.f64[block / 8 + at] = least;
            }
            // In parts, whose ends are not multiples of four.
            for (const [from, to] of [[0, 7], [7, 9], [9, 500], [500, ROWS]]) {
              assert.equal(add.run(block, from!, to!), to);
            }
            return heap.i64.slice(table / 8, (table + sizeBytes) / 8);
          });
          assert.ok(tables[0]!.some((word) => word !== 0n));
          assert.deepEqual(tables[0], tables[1]);
        });
      }
    }
  }
});
