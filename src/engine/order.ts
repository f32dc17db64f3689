/**
 * Ordering of rows: every sort key is converted to 32-bit words whose unsigned order is the required one, and a stable radix sort sorts
 * row numbers. Text is ranked first (its distinct values are sorted once); symbols by the rank of their dictionary entries.
 */
import type { SharedHeap } from "../storage/heap.ts";
import { layoutOf, typeOf } from "../types/mod.ts";
import { compareText, isNullAt, POLL_ROWS, Workspace } from "./columns.ts";
import type { ParallelRunner, Vector } from "./contract.ts";
import { TextInterner } from "./keys.ts";
import { type Payload, sortRows } from "./row-sort.ts";
import { columnSource, type KeySource, wordSource } from "./wasm/sort.ts";

export interface Ordering {
  descending: boolean;
  nulls?: "first" | "last";
}

/** Words of the rows' sort keys, most significant first; each an array by row. */
export type OrderWords = Int32Array[];

/** Frees the arrays of `orderWords`. */
export function freeOrderWords(words: OrderWords, space: Workspace): void {
  for (const word of words) space.freeWords(word);
}

/** Words whose unsigned lexicographic order is the order of the rows by these columns. */
export function orderWords(
  columns: readonly Vector[],
  orderings: readonly Ordering[],
  rowCount: number,
  space: Workspace,
  poll: () => void,
): OrderWords {
  return columns.flatMap((vector, k) => wordsOf(vector, orderings[k], rowCount, space, poll));
}

function wordsOf(vector: Vector, ordering: Ordering, rowCount: number, space: Workspace, poll: () => void): OrderWords {
  const { i8, i16, u16, i32 } = space.heap, { type, address } = vector;
  const { layout, order } = { layout: layoutOf(type), order: typeOf(type).order };
  poll();
  const flip = ordering.descending ? -1 : 0;
  const words: OrderWords = [];
  const word = () => {
    const made = space.words(Math.max(1, rowCount));
    words.push(made);
    return made;
  };
  // The default order of nulls follows from their words; the other order needs a preceding flag.
  const natural: "first" | "last" = (order === "float") === ordering.descending ? "first" : "last";
  if (
    typeOf(type).nullable &&
    ((ordering.nulls !== undefined && ordering.nulls !== natural) || layout === "i128" || layout === "i256")
  ) {
    const flag = word(), nullFlag = (ordering.nulls ?? natural) === "first" ? 0 : 1;
    for (let row = 0; row < rowCount; row++) {
      flag[row] = isNullAt(space.heap, type, address, row) ? nullFlag : 1 - nullFlag;
    }
  }
  switch (layout) {
    case "i8": {
      const out = word();
      for (let row = 0; row < rowCount; row++) out[row] = (i8[address + row] + 128) ^ flip;
      break;
    }
    case "i16": {
      const out = word(), from = address >>> 1;
      if (order === "unsigned") { for (let row = 0; row < rowCount; row++) out[row] = u16[from + row] ^ flip; }
      else for (let row = 0; row < rowCount; row++) out[row] = (i16[from + row] + 32_768) ^ flip;
      break;
    }
    case "i32": {
      const out = word(), from = address >>> 2, bias = order === "unsigned" ? 0 : -0x80000000;
      for (let row = 0; row < rowCount; row++) out[row] = i32[from + row] ^ bias ^ flip;
      break;
    }
    case "f32": {
      const out = word();
      for (let row = 0, from = address >>> 2; row < rowCount; row++) {
        let bits = i32[from + row];
        if (bits === -0x80000000) bits = 0;
        else if ((bits & 0x7fffffff) > 0x7f800000) bits = 0x7fffffff;
        out[row] = (bits < 0 ? ~bits : bits ^ -0x80000000) ^ flip;
      }
      break;
    }
    case "f64": {
      const high = word(), low = word();
      for (let row = 0, from = address >>> 2; row < rowCount; row++, from += 2) {
        let l = i32[from], h = i32[from + 1];
        const magnitude = h & 0x7fffffff;
        if (magnitude > 0x7ff00000 || (magnitude === 0x7ff00000 && l !== 0)) {
          h = 0x7fffffff;
          l = -1;
        } else if (magnitude === 0 && l === 0) h = 0;
        const negative = h >> 31;
        high[row] = (h ^ (negative | -0x80000000)) ^ flip;
        low[row] = (l ^ negative) ^ flip;
      }
      break;
    }
    case "i64": {
      const high = word(), low = word();
      for (let row = 0, from = address >>> 2; row < rowCount; row++, from += 2) {
        low[row] = i32[from] ^ flip;
        high[row] = i32[from + 1] ^ -0x80000000 ^ flip;
      }
      break;
    }
    case "i128":
    case "i256": {
      const n = typeOf(type).width >>> 2, parts = Array.from({ length: n }, word);
      for (let k = 0; k < n; k++) {
        const out = parts[n - 1 - k], sign = order === "signed" && k === n - 1 ? -0x80000000 : 0;
        for (let row = 0, from = (address >>> 2) + k; row < rowCount; row++, from += n) {
          out[row] = i32[from] ^ sign ^ flip;
        }
      }
      break;
    }
    case "symbol":
    case "text": {
      const out = word(), ranks = textRanks(vector, rowCount, out, space, poll);
      // Null has rank 0, so it is the smallest.
      for (let row = 0; row < rowCount; row++) out[row] = (out[row] < 0 ? 0 : ranks[out[row]]) ^ flip;
      space.freeWords(ranks);
      break;
    }
  }
  return words;
}

/** Writes a number for each row's text to `numbers` (-1 null) and returns the rank, from 1, by number. */
function textRanks(
  vector: Vector,
  rowCount: number,
  numbers: Int32Array,
  space: Workspace,
  poll: () => void,
): Int32Array {
  const { i32, u32 } = space.heap;
  if (layoutOf(vector.type) === "symbol") {
    const { count, entries } = vector.dictionary!;
    const from = vector.address >>> 2;
    for (let row = 0; row < rowCount; row++) numbers[row] = i32[from + row];
    const pairs = i32.subarray(entries >>> 2, (entries >>> 2) + count * 2);
    return ranksOf(pairs, count, space, poll);
  }
  const own = new Workspace(space.heap, space.memory, space.operator);
  try {
    const interner = new TextInterner(own);
    for (let row = 0, at = vector.address >>> 2; row < rowCount; row++, at += 2) {
      if (row % POLL_ROWS === 0) poll();
      numbers[row] = interner.number(u32[at], i32[at + 1], true);
    }
    return ranksOf(interner.pairs, interner.count, space, poll);
  } finally {
    own.release();
  }
}

/** Ranks of text pairs, from 1; equal texts get equal ranks. */
function ranksOf(pairs: Int32Array, count: number, space: Workspace, poll: () => void): Int32Array {
  const { u8 } = space.heap;
  const prefix = space.words(Math.max(1, count)), order = space.words(Math.max(1, count));
  for (let id = 0; id < count; id++) {
    const address = pairs[id * 2] >>> 0, length = pairs[id * 2 + 1];
    let bits = 0;
    for (let i = 0; i < 4; i++) bits = (bits << 8) | (i < length ? u8[address + i] : 0);
    prefix[id] = bits;
    order[id] = id;
  }
  radixSort(order, [prefix], count, space, poll);
  const compare = (a: number, b: number) =>
    compareText(u8, pairs[a * 2] >>> 0, pairs[a * 2 + 1], pairs[b * 2] >>> 0, pairs[b * 2 + 1]);
  for (let from = 0; from < count;) {
    let to = from + 1;
    while (to < count && prefix[order[to]] === prefix[order[from]]) to++;
    if (to - from > 1) mergeSort(order, from, to, compare, space, poll);
    from = to;
  }
  const ranks = space.words(Math.max(1, count));
  for (let i = 0, rank = 0; i < count; i++) {
    if (i === 0 || compare(order[i - 1], order[i]) !== 0) rank++;
    ranks[order[i]] = rank;
  }
  space.freeWords(prefix);
  space.freeWords(order);
  return ranks;
}

/** Sorts `order[from … to-1]`; stable. */
function mergeSort(
  order: Int32Array,
  from: number,
  to: number,
  compare: (a: number, b: number) => number,
  space: Workspace,
  poll: () => void,
): void {
  const RUN = 12;
  for (let start = from; start < to; start += RUN) {
    const end = Math.min(to, start + RUN);
    if (((start - from) & 0xfff) < RUN) poll();
    for (let i = start + 1; i < end; i++) {
      const value = order[i];
      let k = i;
      for (; k > start && compare(order[k - 1], value) > 0; k--) order[k] = order[k - 1];
      order[k] = value;
    }
  }
  if (to - from <= RUN) return;
  const scratch = space.words(to - from);
  for (let width = RUN; width < to - from; width *= 2) {
    for (let start = from; start + width < to; start += 2 * width) {
      poll();
      const middle = start + width, end = Math.min(to, middle + width);
      if (compare(order[middle - 1], order[middle]) <= 0) continue;
      const n = middle - start;
      scratch.set(order.subarray(start, middle));
      for (let a = 0, b = middle, out = start; a < n;) {
        if (((out - start) & 0xfff) === 0) poll();
        order[out++] = b < end && compare(order[b], scratch[a]) < 0 ? order[b++] : scratch[a++];
      }
    }
  }
  space.freeWords(scratch);
}

/** The row numbers in order of the keys, stable. The caller frees the result. */
export function sortedRows(
  keys: readonly Vector[],
  orderings: readonly Ordering[],
  rowCount: number,
  space: Workspace,
  poll: () => void,
  parallel?: ParallelRunner,
  /** Columns to rearrange, by the old row numbers. If it is rearranged, the result has its row numbers. */
  payload?: Payload,
): Int32Array {
  const order = space.words(Math.max(1, rowCount));
  for (let row = 0; row < rowCount; row++) order[row] = row;
  if (rowCount < 2) return order;
  const words: OrderWords = [], sources: KeySource[] = [];
  // Combine words of neighbouring columns; columns sorted directly need none.
  let pending: OrderWords = [];
  const flush = () => {
    sources.push(...sourcesOf(pending));
    pending = [];
  };
  keys.forEach((vector, k) => {
    const direct = directSource(vector, orderings[k]);
    if (direct === undefined) {
      const made = wordsOf(vector, orderings[k], rowCount, space, poll);
      pending.push(...made);
      words.push(...made);
    } else {
      flush();
      sources.push(direct);
    }
  });
  const onlyWords = sources.length === 0;
  flush();
  const isDone = onlyWords
    ? isSorted(order, words, rowCount, poll)
    : isAscending(space.heap, keys[0], orderings[0], rowCount, poll);
  if (!isDone) sortRows(order, sources, rowCount, space, poll, parallel, payload);
  freeOrderWords(words, space);
  return order;
}

/** A column that can be sorted directly as it is in memory. */
function directSource({ type, address }: Vector, { descending, nulls }: Ordering): KeySource | undefined {
  const layout = layoutOf(type);
  if (layout !== "i64" && layout !== "f64") return undefined;
  // Nulls sort by their values: those of integers are the least, those of floats the greatest.
  if (nulls !== undefined && nulls !== ((layout === "f64") === descending ? "first" : "last")) return undefined;
  return columnSource(layout, address, descending);
}

function sourcesOf(words: OrderWords): KeySource[] {
  const sources: KeySource[] = [];
  for (let w = 0; w < words.length; w += 2) {
    sources.push(wordSource(words[w].byteOffset, words[w + 1]?.byteOffset ?? 0));
  }
  return sources;
}

/**
 * True if each value is beyond the previous one, so that rows are already in order. Usually decided after a few rows.
 */
function isAscending(
  heap: SharedHeap,
  vector: Vector,
  { descending, nulls }: Ordering,
  n: number,
  poll: () => void,
): boolean {
  if (nulls !== undefined) return false;
  for (let row = 1; row < n; row++) {
    if (row % POLL_ROWS === 0) poll();
    const order = compareRows(heap, vector, row - 1, vector, row);
    if (descending ? order <= 0 : order >= 0) return false;
  }
  return true;
}

/** Sorts the row numbers in `order[0 … n-1]` by `words`; stable. */
export function radixSort(order: Int32Array, words: OrderWords, n: number, space: Workspace, poll: () => void): void {
  if (n < 2 || isSorted(order, words, n, poll)) return;
  sortRows(order, sourcesOf(words), n, space, poll);
}

function isSorted(order: Int32Array, words: OrderWords, n: number, poll: () => void): boolean {
  for (let i = 1; i < n; i++) {
    if (i % POLL_ROWS === 0) poll();
    for (let w = 0; w < words.length; w++) {
      const a = words[w][order[i - 1]] >>> 0, b = words[w][order[i]] >>> 0;
      if (a > b) return false;
      if (a < b) break;
    }
  }
  return true;
}

export function sameWords(words: OrderWords, a: number, b: number): boolean {
  for (let w = 0; w < words.length; w++) if (words[w][a] !== words[w][b]) return false;
  return true;
}

/** Compares two rows by one column: negative, 0, positive. Ascending, nulls are first, but last for floats. */
export function compareRows(heap: SharedHeap, a: Vector, rowA: number, b: Vector, rowB: number): number {
  const { layout, order, nullable, width } = typeOf(a.type);
  if (layout === "text" || layout === "symbol") {
    const { u32, i32 } = heap;
    const pairOf = (vector: Vector, row: number) => {
      if (layoutOf(vector.type) === "text") return (vector.address >>> 2) + row * 2;
      const code = i32[(vector.address >>> 2) + row];
      return code < 0 ? -1 : (vector.dictionary!.entries >>> 2) + code * 2;
    };
    const p = pairOf(a, rowA), q = pairOf(b, rowB);
    return compareText(
      heap.u8,
      p < 0 ? 0 : u32[p],
      p < 0 ? -1 : i32[p + 1],
      q < 0 ? 0 : u32[q],
      q < 0 ? -1 : i32[q + 1],
    );
  }
  if (order === "float") {
    const view = layout === "f64" ? heap.f64 : heap.f32, shift = layout === "f64" ? 3 : 2;
    const x = view[(a.address >>> shift) + rowA], y = view[(b.address >>> shift) + rowB];
    return x < y ? -1 : x > y ? 1 : x === y ? 0 : Number(x !== x) - Number(y !== y);
  }
  if (width <= 4) {
    const view = width === 1
      ? heap.i8
      : width === 2
      ? (order === "unsigned" ? heap.u16 : heap.i16)
      : order === "unsigned"
      ? heap.u32
      : heap.i32;
    const shift = width === 1 ? 0 : width === 2 ? 1 : 2;
    return view[(a.address >>> shift) + rowA] - view[(b.address >>> shift) + rowB];
  }
  const n = width >>> 2, p = (a.address >>> 2) + rowA * n, q = (b.address >>> 2) + rowB * n, { i32, u32 } = heap;
  if (order === "signed") {
    // Nulls have the least values.
    const high = n - 1;
    if (i32[p + high] !== i32[q + high]) return i32[p + high] - i32[q + high];
  } else if (nullable) {
    const none = typeOf(a.type).nullWords;
    const isNull = (at: number) => none.every((word, k) => i32[at + k] === word);
    const nullA = isNull(p), nullB = isNull(q);
    if (nullA || nullB) return Number(nullB) - Number(nullA);
  }
  for (let k = n - 1; k >= 0; k--) if (u32[p + k] !== u32[q + k]) return u32[p + k] - u32[q + k];
  return 0;
}
