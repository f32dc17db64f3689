/** A kernel that joins the texts of several columns. JavaScript takes about 100 ns for three short texts. */
import type { ValueType } from "../../wasm/assembler.ts";
import { eachRow, kernelOf } from "./column-kernels.ts";
import type { BatchOut, FunctionContext } from "./entry.ts";

/** A column of texts, and what stands for NULL. */
export interface Pieces {
  /** Address of the pairs. */
  pairs: number;
  /** From one pair to the next one: 0 for a constant. */
  step: 0 | 8;
  noneAt: number;
  noneLength: number;
}

/** More columns are left to JavaScript. */
export const COLUMNS_MAX = 8;
/** Longer results are left to JavaScript, which looks more often at whether the query is cancelled. */
export const JOINED_BYTES_MAX = 4_096;
/** Of the space that results get at once. Texts are copied eight bytes at a time, so it ends a word before. */
const RESULTS_BYTES = 65_536, WORD_BYTES = 8;
/** Rows between two looks at whether the query is cancelled. */
const STEP_ROWS = 4_096;

/** (from, to, out, at, limit, …pieces): returns `to`, or the row for whose result there is no space, or that is too long. */
type ConcatKernel = (from: number, to: number, out: number, at: number, limit: number, ...pieces: number[]) => number;

/** Joins the texts of each row, and calls `other` for those that become too long. */
export function joinTexts(
  columns: readonly Pieces[],
  out: BatchOut,
  rowCount: number,
  { heap, poll }: FunctionContext,
  other: (row: number) => void,
): void {
  const kernel = concatKernel(heap.memory, columns.length);
  const pieces = columns.flatMap(({ pairs, step, noneAt, noneLength }) => [pairs, step, noneAt, noneLength]);
  const { u32 } = heap, words = out.address >>> 2;
  let at = 0, limit = 0;
  for (let row = 0; row < rowCount; poll()) {
    const end = kernel(row, Math.min(rowCount, row + STEP_ROWS), out.address, at, limit, ...pieces);
    if (end > row) {
      row = end;
      at = u32[words + 2 * row - 2] + u32[words + 2 * row - 1];
    } else if (limit - at < JOINED_BYTES_MAX) {
      at = out.reserve(RESULTS_BYTES + WORD_BYTES);
      limit = at + RESULTS_BYTES;
    } else other(row++);
  }
}

function concatKernel(memory: WebAssembly.Memory, count: number): ConcatKernel {
  const parameters = Array.from<unknown, ValueType>({ length: 5 + 4 * count }, () => "i32");
  return kernelOf(memory, `concat ${count}`, parameters, ["i32"], (code) => {
    const [row, to, out, at, limit] = [0, 1, 2, 3, 4] as const;
    const columns = Array.from({ length: count }, (_, k) => ({
      pairs: 5 + 4 * k,
      step: 6 + 4 * k,
      noneAt: 7 + 4 * k,
      noneLength: 8 + 4 * k,
      text: code.local("i32"),
      length: code.local("i32"),
    }));
    const total = code.local("i32"), end = code.local("i32");
    const stopAbove = (local: number) =>
      code.get(local).i32(JOINED_BYTES_MAX).op("i32.gt_u").if(() => code.get(row).return());
    for (const { pairs, step } of columns) code.get(pairs).get(row).get(step).op("i32.mul").op("i32.add").set(pairs);
    eachRow(code, [{ base: out, width: 8 }], row, to, () => {
      code.i32(0).set(total);
      for (const { pairs, noneAt, noneLength, text, length } of columns) {
        const isThere = () => code.get(pairs).memory("i32.load", 4).i32(0).op("i32.ge_s").op("select");
        code.get(pairs).memory("i32.load", 4).get(noneLength);
        isThere().set(length).get(pairs).memory("i32.load").get(noneAt);
        isThere().set(text);
        stopAbove(length);
        code.get(total).get(length).op("i32.add").set(total);
      }
      stopAbove(total);
      code.get(limit).get(at).op("i32.sub").get(total).op("i32.lt_u").if(() => code.get(row).return());
      code.get(out).get(at).memory("i32.store").get(out).get(total).memory("i32.store", 4);
      const copy = (text: number, width: number, load: string, store: string) =>
        code.block((done) =>
          code.loop((again) => {
            code.get(at).get(end).op("i32.ge_u").brIf(done);
            code.get(at).get(text).memory(load).memory(store);
            code.get(at).i32(width).op("i32.add").set(at).get(text).i32(width).op("i32.add").set(text).br(again);
          })
        );
      for (const { text, length } of columns) {
        code.get(at).get(length).op("i32.add").set(end);
        // The last word must be within memory.
        code.get(text).get(length).op("i32.add").i32(memory.buffer.byteLength - WORD_BYTES | 0).op("i32.le_u").if(
          () => copy(text, WORD_BYTES, "i64.load", "i64.store"),
          () => copy(text, 1, "i32.load8_u", "i32.store8"),
        );
        code.get(end).set(at);
      }
      for (const { pairs, step } of columns) code.get(pairs).get(step).op("i32.add").set(pairs);
    });
    code.get(to);
  });
}
