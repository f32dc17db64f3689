/**
 * The distinct texts of a batch. Texts that a segment stores in a dictionary are the same bytes in all rows that have them, so they are recognised
 * by address and length. A function is then called for each of them, and not for each row.
 */
import type { SharedHeap } from "../../storage/heap.ts";
import type { Workspace } from "../columns.ts";

/** Batches of fewer rows are not searched, and those with more than one distinct text in this many rows have too many. */
const ROWS_MIN = 256, ROWS_SHARE = 8;
const TEXTS_MAX = 2_048, SLOTS = 2 * TEXTS_MAX;
/** Most batches that are not searched after some with too many distinct texts. */
const SKIPPED_MAX = 63;

export class DistinctTexts {
  /** Pairs of the distinct texts, in the order of their first rows. */
  private pairs = 0;
  private numbers?: Int32Array;
  /** Of a slot: the number of its text, if its mark is that of the batch. */
  private readonly slots = new Int32Array(SLOTS);
  private readonly marks = new Int32Array(SLOTS);
  private mark = 0;
  private skipped = 0;
  private left = 0;

  constructor(private readonly heap: SharedHeap, private readonly space: Workspace) {}

  /** The distinct texts of a column, and the number of each row's text. Undefined if they are not few. They are valid until the next call. */
  find(address: number, rowCount: number): { pairs: number; count: number; numbers: Int32Array } | undefined {
    if (rowCount < ROWS_MIN || this.left-- > 0) return undefined;
    if (this.pairs === 0) this.pairs = this.space.allocate(8 * TEXTS_MAX);
    if (this.numbers === undefined || this.numbers.length < rowCount) {
      if (this.numbers !== undefined) this.space.freeWords(this.numbers);
      this.numbers = this.space.words(rowCount);
    }
    const { pairs, numbers } = this, count = this.search(address >>> 2, rowCount, numbers);
    this.skipped = count === undefined ? Math.min(SKIPPED_MAX, 2 * this.skipped + 1) : 0;
    this.left = this.skipped;
    return count === undefined ? undefined : { pairs, count, numbers };
  }

  private search(from: number, rowCount: number, numbers: Int32Array): number | undefined {
    const { heap: { i32 }, slots, marks } = this, mark = ++this.mark, first = this.pairs >>> 2;
    const most = Math.min(TEXTS_MAX, rowCount / ROWS_SHARE);
    let count = 0;
    for (let row = 0, at = from; row < rowCount; row++, at += 2) {
      const text = i32[at]!, length = i32[at + 1]!;
      let slot = Math.imul(text ^ Math.imul(length, 0x85ebca6b), 0x9e3779b1) >>> 20;
      for (; marks[slot] === mark; slot = (slot + 1) & (SLOTS - 1)) {
        const pair = first + 2 * slots[slot]!;
        if (i32[pair] === text && i32[pair + 1] === length) break;
      }
      if (marks[slot] !== mark) {
        if (count >= most) return undefined;
        marks[slot] = mark;
        slots[slot] = count;
        i32[first + 2 * count] = text;
        i32[first + 2 * count++ + 1] = length;
      }
      numbers[row] = slots[slot]!;
    }
    return count;
  }
}
