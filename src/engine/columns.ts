/**
 * Columns that an operator keeps: building, growing, gathering and comparing them, over views of the shared memory.
 *
 * A text value in a batch points into a segment that is only pinned until the next batch, so what outlives a batch gets its bytes copied
 * into blocks of the query (`TextArena`). Symbols stay codes: dictionaries live as long as the query's snapshot.
 */
import { assert } from "../errors.ts";
import type { Dictionary } from "../storage/contract.ts";
import type { SharedHeap } from "../storage/heap.ts";
import { type Layout, layoutOf, typeOf, type Value } from "../types/mod.ts";
import { textBytes, textOfBytes } from "../types/wide.ts";
import { pollLongText } from "./long-texts.ts";
import { gatherOf } from "./wasm/gather.ts";
import { type Batch, MORSEL_ROWS, type QueryContext, type QueryMemory, type Vector } from "./contract.ts";

/** Rows between two polls of the cancel word. */
export const POLL_ROWS = 4_096;

/** Of SYMBOL columns of which no row was seen, so that every code is -1. */
export const NO_DICTIONARY: Dictionary = { tableId: -1, columnId: -1, entries: 0, count: 0 };

/** The i32 words (i8 and i16: the one number) that a null of this type is. */
export function nullWords(type: string): number[] {
  switch (layoutOf(type)) {
    case "i8":
    case "i16":
      return [0];
    case "i32":
      return [Number(typeOf(type).nullValue) | 0];
    case "symbol":
      return [-1];
    case "f32":
      return [0x7fc00000];
    case "f64":
      return [0, 0x7ff80000];
    case "text":
      return [0, -1];
    case "i64":
      return [0, -0x80000000];
    case "i128":
      return [0, -0x80000000, 0, -0x80000000];
    case "i256":
      return [0, -0x80000000, 0, -0x80000000, 0, -0x80000000, 0, -0x80000000];
  }
}

/** Eight bytes of null, again and again for wider types. */
function nullWord(type: string): bigint {
  const words = nullWords(type);
  return words.length === 1 ? BigInt(words[0]) : BigInt.asUintN(32, BigInt(words[0])) | BigInt(words[1]) << 32n;
}

export function fillNull(heap: SharedHeap, type: string, address: number, from: number, rowCount: number): void {
  const words = nullWords(type), width = typeOf(type).width;
  if (width === 1) heap.u8.fill(0, address + from, address + from + rowCount);
  else if (width === 2) heap.u16.fill(0, (address >>> 1) + from, (address >>> 1) + from + rowCount);
  else {
    const i32 = heap.i32, n = words.length;
    let at = (address >>> 2) + from * n;
    for (let row = 0; row < rowCount; row++) for (let k = 0; k < n; k++) i32[at++] = words[k];
  }
}

/** Copies rows `indices[0 … n-1]` of the column at `source` to `target`; with `nulls`, index -1 gives the type's null. */
export function gather(
  heap: SharedHeap,
  type: string,
  source: number,
  indices: Int32Array,
  n: number,
  target: number,
  nulls: boolean,
): void {
  const width = typeOf(type).width;
  if (indices.buffer === heap.buffer) {
    gatherOf(heap.memory, width, nulls)(source, indices.byteOffset, n, target, nulls ? nullWord(type) : 0n);
    return;
  }
  if (nulls) return gatherWithNulls(heap, type, source, indices, n, target);
  if (width === 8) {
    const i32 = heap.i32, from = source >>> 2;
    let to = target >>> 2;
    for (let i = 0; i < n; i++, to += 2) {
      const at = from + indices[i] * 2;
      i32[to] = i32[at];
      i32[to + 1] = i32[at + 1];
    }
  } else if (width === 4) {
    const i32 = heap.i32, from = source >>> 2, to = target >>> 2;
    for (let i = 0; i < n; i++) i32[to + i] = i32[from + indices[i]];
  } else if (width === 1) {
    const i8 = heap.i8;
    for (let i = 0; i < n; i++) i8[target + i] = i8[source + indices[i]];
  } else if (width === 2) {
    const i16 = heap.i16, from = source >>> 1, to = target >>> 1;
    for (let i = 0; i < n; i++) i16[to + i] = i16[from + indices[i]];
  } else {
    const i32 = heap.i32, from = source >>> 2, words = width >>> 2;
    let to = target >>> 2;
    for (let i = 0; i < n; i++) {
      for (let k = 0, at = from + indices[i] * words; k < words; k++) i32[to++] = i32[at++];
    }
  }
}

function gatherWithNulls(
  heap: SharedHeap,
  type: string,
  source: number,
  indices: Int32Array,
  n: number,
  target: number,
): void {
  const width = typeOf(type).width;
  if (width <= 2) {
    const view = width === 1 ? heap.i8 : heap.i16, shift = width - 1;
    const from = source >>> shift, to = target >>> shift;
    for (let i = 0; i < n; i++) view[to + i] = indices[i] < 0 ? 0 : view[from + indices[i]];
    return;
  }
  const i32 = heap.i32, from = source >>> 2, words = width >>> 2, none = nullWords(type);
  let to = target >>> 2;
  for (let i = 0; i < n; i++) {
    const row = indices[i];
    if (row < 0) { for (let k = 0; k < words; k++) i32[to++] = none[k]; }
    else for (let k = 0, at = from + row * words; k < words; k++) i32[to++] = i32[at++];
  }
}

/** The row's value is null (never, for types without null). CHAR and IPv4: 0; floats: NaN. */
export function isNullAt(heap: SharedHeap, type: string, address: number, row: number): boolean {
  const { layout, nullable } = typeOf(type);
  if (!nullable) return false;
  switch (layout) {
    case "i8":
      return false;
    case "i16":
      return heap.i16[(address >>> 1) + row] === 0;
    case "i32":
      return heap.i32[(address >>> 2) + row] === (Number(typeOf(type).nullValue) | 0);
    case "symbol":
      return heap.i32[(address >>> 2) + row] < 0;
    case "f32":
      return Number.isNaN(heap.f32[(address >>> 2) + row]);
    case "f64":
      return Number.isNaN(heap.f64[(address >>> 3) + row]);
    case "text":
      return heap.i32[(address >>> 2) + row * 2 + 1] < 0;
    default: {
      const words = typeOf(type).width >>> 2, none = nullWords(type);
      for (let k = 0, at = (address >>> 2) + row * words; k < words; k++) {
        if (heap.i32[at + k] !== none[k]) return false;
      }
      return true;
    }
  }
}

/** Marks the rows that are not null with 1 in `out`. */
export function markNotNull(heap: SharedHeap, vector: Vector, rowCount: number, out: Uint8Array): void {
  const { type, address } = vector, layout = layoutOf(type);
  if (!typeOf(type).nullable) out.fill(1, 0, rowCount);
  else if (layout === "f64") {
    const view = heap.f64, from = address >>> 3;
    for (let i = 0; i < rowCount; i++) out[i] = view[from + i] === view[from + i] ? 1 : 0;
  } else if (layout === "i64") {
    const view = heap.i32;
    for (let i = 0, at = address >>> 2; i < rowCount; i++, at += 2) {
      out[i] = view[at] === 0 && view[at + 1] === -0x80000000 ? 0 : 1;
    }
  } else if (layout === "text") {
    const view = heap.i32;
    for (let i = 0, at = (address >>> 2) + 1; i < rowCount; i++, at += 2) out[i] = view[at] < 0 ? 0 : 1;
  } else for (let i = 0; i < rowCount; i++) out[i] = isNullAt(heap, type, address, i) ? 0 : 1;
}

/** By bytes, which is the order of code points; null (length -1) first. */
export function compareText(u8: Uint8Array, a: number, aLength: number, b: number, bLength: number): number {
  const n = aLength < bLength ? aLength : bLength;
  pollLongText(n);
  for (let i = 0; i < n; i++) {
    const difference = u8[a + i] - u8[b + i];
    if (difference !== 0) return difference;
  }
  return aLength - bLength;
}

/** The address and length of a row of a text or symbol column; null is length -1. */
export function textPair(heap: SharedHeap, vector: Vector, row: number): [address: number, length: number] {
  let at = (vector.address >>> 2) + row * 2;
  if (layoutOf(vector.type) === "symbol") {
    const code = heap.i32[(vector.address >>> 2) + row];
    if (code < 0) return [0, -1];
    at = (vector.dictionary!.entries >>> 2) + code * 2;
  }
  return [heap.u32[at], heap.i32[at + 1]];
}

/** Where the rows from `from` on have more than so many bytes of text: a row behind `from` at least. */
export function endOfTexts(
  { i32 }: SharedHeap,
  vectors: readonly Vector[],
  from: number,
  rowCount: number,
  bytesMax: number,
): number {
  let end = rowCount;
  for (const { type, address, dictionary } of vectors) {
    const layout = layoutOf(type);
    if (layout !== "text" && layout !== "symbol") continue;
    const words = address >>> 2, entries = (dictionary?.entries ?? 0) >>> 2;
    let bytes = 0;
    for (let row = from; row < end; row++) {
      if (layout === "text") bytes += i32[words + 2 * row + 1];
      else if (i32[words + row] >= 0) bytes += i32[entries + 2 * i32[words + row] + 1];
      if (bytes > bytesMax) end = row + 1;
    }
  }
  return end;
}

/** The value of a row, for the edges and for tests. */
export function valueAt(heap: SharedHeap, vector: Vector, row: number): Value {
  const { type, address } = vector, layout = layoutOf(type);
  if (layout === "text" || layout === "symbol") {
    const [at, length] = textPair(heap, vector, row);
    return length < 0 ? null : textOfBytes(heap.u8.slice(at, at + length), type);
  }
  if (isNullAt(heap, type, address, row)) return null;
  switch (layout) {
    case "i8":
      return type === "BOOLEAN" ? heap.i8[address + row] !== 0 : heap.i8[address + row];
    case "i16":
      return type === "CHAR" ? String.fromCharCode(heap.u16[(address >>> 1) + row]) : heap.i16[(address >>> 1) + row];
    case "i32":
      return type === "IPv4" ? heap.u32[(address >>> 2) + row] : heap.i32[(address >>> 2) + row];
    case "i64":
      return heap.i64[(address >>> 3) + row];
    case "f32":
      return heap.f32[(address >>> 2) + row];
    case "f64":
      return heap.f64[(address >>> 3) + row];
    case "i128":
    case "i256": {
      const words = typeOf(type).width >>> 3, at = (address >>> 3) + row * words;
      let value = 0n;
      for (let word = words - 1; word >= 0; word--) value = value << 64n | heap.u64[at + word];
      return typeOf(type).order === "signed" ? BigInt.asIntN(64 * words, value) : value;
    }
    default:
      return null;
  }
}

/** Memory that belongs to one operator: what is left is freed with `release`. */
export class Workspace {
  private readonly blocks = new Map<number, number>();

  constructor(readonly heap: SharedHeap, readonly memory: QueryMemory, readonly operator: string) {}

  static of(context: QueryContext, operator: string): Workspace {
    return new Workspace(context.heap, context.memory, operator);
  }

  allocate(sizeBytes: number): number {
    const size = Math.max(8, sizeBytes);
    const address = this.memory.allocate(size, this.operator);
    this.blocks.set(address, size);
    return address;
  }

  free(address: number): void {
    const size = this.blocks.get(address);
    assert(size !== undefined, "a block is freed by the workspace that allocated it");
    this.blocks.delete(address);
    this.memory.free(address, size);
  }

  /** A block as i32 words, with whatever it held. */
  words(count: number): Int32Array {
    const address = this.allocate(count * 4);
    return this.heap.i32.subarray(address >>> 2, (address >>> 2) + count);
  }

  bytes(count: number): Uint8Array {
    const address = this.allocate(count);
    return this.heap.u8.subarray(address, address + count);
  }

  freeWords(view: Int32Array | Uint8Array | Uint32Array | Float64Array): void {
    this.free(view.byteOffset);
  }

  /** A longer copy of `view`; the old one is freed. The new words hold `fill`. */
  grow(view: Int32Array, count: number, fill = 0): Int32Array {
    const longer = this.words(count);
    longer.set(view);
    longer.fill(fill, view.length);
    this.freeWords(view);
    return longer;
  }

  /** Leaves all blocks to whoever is told of them. */
  leave(): [address: number, sizeBytes: number][] {
    const blocks = [...this.blocks];
    this.blocks.clear();
    return blocks;
  }

  release(): void {
    for (const [address, size] of this.blocks) this.memory.free(address, size);
    this.blocks.clear();
  }
}

/** What was last found for a text pair: a table that forgets, so it costs no more for texts that never come again. */
export class PairCache {
  private readonly addresses = new Uint32Array(1024);
  private readonly lengths = new Int32Array(1024);
  readonly values = new Int32Array(1024);

  /** Where the pair would be. */
  slot(address: number, length: number): number {
    return (Math.imul(address ^ length, 0x9e3779b1) >>> 22) & 1023;
  }

  holds(slot: number, address: number, length: number): boolean {
    return this.addresses[slot] === address && this.lengths[slot] === length;
  }

  put(slot: number, address: number, length: number, value: number): void {
    this.addresses[slot] = address;
    this.lengths[slot] = length;
    this.values[slot] = value;
  }

  clear(): void {
    this.lengths.fill(-2);
  }
}

/** Bytes of text that outlive the batch they came in. */
export class TextArena {
  private blocks: number[] = [];
  private next = 0;
  private end = 0;
  private blockSizeBytes = 16_384;
  usedBytes = 0;
  private cache?: PairCache;

  constructor(private readonly space: Workspace) {}

  private get copies(): PairCache {
    return this.cache ??= new PairCache();
  }

  /** Room for `length` bytes; gives the address. */
  reserve(length: number): number {
    if (this.next + length > this.end) {
      if (this.blockSizeBytes < 1 << 20) this.blockSizeBytes *= 2;
      const size = Math.max(this.blockSizeBytes, length);
      this.next = this.space.allocate(size);
      this.end = this.next + size;
      this.blocks.push(this.next);
    }
    const address = this.next;
    this.next += length;
    this.usedBytes += length;
    return address;
  }

  copy(address: number, length: number): number {
    const to = this.reserve(length), u8 = this.space.heap.u8;
    if (length > 24) u8.copyWithin(to, address, address + length);
    else for (let i = 0; i < length; i++) u8[to + i] = u8[address + i];
    return to;
  }

  encode(text: string | Uint8Array): [address: number, length: number] {
    const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
    const address = this.reserve(bytes.length);
    this.space.heap.u8.set(bytes, address);
    return [address, bytes.length];
  }

  /**
   * Makes the text pairs at `target` own their bytes. Neighbouring rows mostly have neighbouring bytes, so the whole range is
   * copied at once unless much of it is not used.
   */
  adopt(target: number, rowCount: number): void {
    const { u32, i32 } = this.space.heap, from = target >>> 2, to = from + rowCount * 2;
    let low = 0xffffffff, high = 0, total = 0;
    for (let at = from; at < to; at += 2) {
      const length = i32[at + 1];
      if (length <= 0) continue;
      const address = u32[at];
      if (address < low) low = address;
      if (address + length > high) high = address + length;
      total += length;
    }
    if (total === 0) return;
    pollLongText(total);
    if (high - low <= total + 4_096) {
      const shift = this.copy(low, high - low) - low;
      for (let at = from; at < to; at += 2) if (i32[at + 1] > 0) u32[at] += shift;
    } else {
      // Texts of a dictionary are copied once a batch.
      const copies = this.copies;
      copies.clear();
      for (let at = from; at < to; at += 2) {
        const length = i32[at + 1], address = u32[at];
        if (length <= 0) continue;
        const slot = copies.slot(address, length);
        if (!copies.holds(slot, address, length)) copies.put(slot, address, length, this.copy(address, length));
        u32[at] = copies.values[slot];
      }
    }
  }

  release(): void {
    for (const address of this.blocks) this.space.free(address);
    this.blocks = [];
    this.next = this.end = this.usedBytes = 0;
    this.blockSizeBytes = 16_384;
  }
}

/** Rows kept in columns that grow: each column is one block, so that a row is found by its number alone. */
export class ColumnStore {
  rowCount = 0;
  private capacity = 0;
  /** Addresses change when it grows. */
  readonly vectors: Vector[];
  private arena: TextArena;
  private readonly widths: number[];
  private readonly layouts: Layout[];

  constructor(readonly types: readonly string[], private readonly space: Workspace) {
    this.vectors = types.map((type) => ({
      type,
      address: 0,
      dictionary: layoutOf(type) === "symbol" ? NO_DICTIONARY : undefined,
    }));
    this.widths = types.map((type) => typeOf(type).width);
    this.layouts = types.map(layoutOf);
    this.arena = new TextArena(space);
  }

  /** Room for so many rows in all; grown by doubling, but for the first time as large as is asked for. */
  reserve(rowCount: number): void {
    if (rowCount <= this.capacity) return;
    let capacity = Math.max(64, this.capacity === 0 ? rowCount : this.capacity);
    while (capacity < rowCount) capacity *= 2;
    for (let c = 0; c < this.vectors.length; c++) {
      const address = this.space.allocate(capacity * this.widths[c]);
      const old = this.vectors[c].address;
      if (old !== 0) {
        this.space.heap.u8.copyWithin(address, old, old + this.rowCount * this.widths[c]);
        this.space.free(old);
      }
      this.vectors[c].address = address;
    }
    this.capacity = capacity;
  }

  private learnDictionary(c: number, vector: Vector): void {
    if (this.layouts[c] !== "symbol" || vector.dictionary === undefined || vector.dictionary.count === 0) return;
    const mine = this.vectors[c];
    if (mine.dictionary === NO_DICTIONARY) mine.dictionary = vector.dictionary;
    assert(
      sameDictionary(mine.dictionary!, vector.dictionary),
      "all batches of an operator have the same dictionaries",
    );
  }

  /** Adds rows `from … from+rowCount-1` of these columns. */
  append(columns: readonly Vector[], rowCount: number, from = 0): void {
    this.reserve(this.rowCount + rowCount);
    const { u8 } = this.space.heap;
    for (let c = 0; c < this.vectors.length; c++) {
      const width = this.widths[c];
      this.learnDictionary(c, columns[c]);
      const target = this.vectors[c].address + this.rowCount * width, source = columns[c].address + from * width;
      u8.copyWithin(target, source, source + rowCount * width);
      if (this.layouts[c] === "text") this.arena.adopt(target, rowCount);
    }
    this.rowCount += rowCount;
  }

  /** Adds rows `indices[0 … n-1]`. */
  appendRows(columns: readonly Vector[], indices: Int32Array, n: number): void {
    this.reserve(this.rowCount + n);
    for (let c = 0; c < this.vectors.length; c++) {
      this.learnDictionary(c, columns[c]);
      const target = this.vectors[c].address + this.rowCount * this.widths[c];
      gather(this.space.heap, this.types[c], columns[c].address, indices, n, target, false);
      if (this.layouts[c] === "text") this.arena.adopt(target, n);
    }
    this.rowCount += n;
  }

  /** Keeps rows `indices[0 … n-1]`, in that order, and gives the other rows' memory back. */
  compact(indices: Int32Array, n: number): void {
    const old = this.vectors.map((vector) => ({ ...vector })), oldArena = this.arena;
    this.arena = new TextArena(this.space);
    this.capacity = this.rowCount = 0;
    for (const vector of this.vectors) vector.address = 0;
    this.appendRows(old, indices, n);
    for (const vector of old) if (vector.address !== 0) this.space.free(vector.address);
    oldArena.release();
  }

  /** Forgets all rows; the columns' blocks are kept for the next ones. */
  clear(): void {
    this.rowCount = 0;
    this.arena.release();
  }

  /** Rows `from …` of the columns as a batch of their own, without a copy. */
  slice(from: number, rowCount: number): Batch {
    return {
      rowCount,
      columns: this.vectors.map((vector, c) => ({ ...vector, address: vector.address + from * this.widths[c] })),
    };
  }

  release(): void {
    for (const vector of this.vectors) {
      if (vector.address !== 0) this.space.free(vector.address);
      vector.address = 0;
    }
    this.arena.release();
    this.rowCount = this.capacity = 0;
  }
}

export function sameDictionary(a: Dictionary, b: Dictionary): boolean {
  return a === b || (a.entries === b.entries && a.tableId === b.tableId && a.columnId === b.columnId);
}

/** Columns of one morsel that are written again for each batch. */
export class OutputColumns {
  readonly vectors: Vector[];

  constructor(readonly types: readonly string[], private readonly space: Workspace, readonly capacity = MORSEL_ROWS) {
    this.vectors = types.map((type) => ({
      type,
      address: space.allocate(capacity * typeOf(type).width),
      dictionary: layoutOf(type) === "symbol" ? NO_DICTIONARY : undefined,
    }));
  }

  /** Column `c` becomes rows `indices[0 … n-1]` of `source`; with `nulls`, -1 gives null. */
  gather(c: number, source: Vector, indices: Int32Array, n: number, nulls: boolean): void {
    const target = this.vectors[c];
    if (source.address === 0) fillNull(this.space.heap, target.type, target.address, 0, n);
    else gather(this.space.heap, target.type, source.address, indices, n, target.address, nulls);
    // Rows without symbols do not make the known dictionary forgotten.
    if (target.dictionary !== undefined && source.dictionary !== undefined && source.dictionary !== NO_DICTIONARY) {
      target.dictionary = source.dictionary;
    }
  }
}

/** Writes one value, as `Value` has it, to a row; text goes to the arena. */
export function setValue(
  heap: SharedHeap,
  type: string,
  address: number,
  row: number,
  value: Value,
  arena: TextArena,
): void {
  const layout = layoutOf(type);
  if (value === null) return fillNull(heap, type, address, row, 1);
  switch (layout) {
    case "i8":
      heap.i8[address + row] = Number(value);
      break;
    case "i16":
      heap.i16[(address >>> 1) + row] = typeof value === "string" ? value.charCodeAt(0) : Number(value);
      break;
    case "i32":
      heap.i32[(address >>> 2) + row] = Number(value);
      break;
    case "i64":
      heap.i64[(address >>> 3) + row] = BigInt(value);
      break;
    case "f32":
      heap.f32[(address >>> 2) + row] = Number(value);
      break;
    case "f64":
      heap.f64[(address >>> 3) + row] = Number(value);
      break;
    case "i128":
    case "i256": {
      const words = typeOf(type).width >>> 3, at = (address >>> 3) + row * words;
      for (let word = 0; word < words; word++) {
        heap.u64[at + word] = BigInt.asUintN(64, BigInt(value) >> BigInt(64 * word));
      }
      break;
    }
    case "text": {
      const [at, length] = arena.encode(textBytes(String(value), type));
      heap.u32[(address >>> 2) + row * 2] = at;
      heap.i32[(address >>> 2) + row * 2 + 1] = length;
      break;
    }
    default:
      assert(false, `no value of layout ${layout} is written by itself`);
  }
}

/** Writes one value to rows 0 … rowCount-1. */
export function fillConstant(
  heap: SharedHeap,
  type: string,
  address: number,
  rowCount: number,
  value: Value,
  arena: TextArena,
): void {
  if (rowCount === 0) return;
  if (value === null) return fillNull(heap, type, address, 0, rowCount);
  setValue(heap, type, address, 0, value, arena);
  repeatFirst(heap, address, typeOf(type).width, rowCount);
}

/** All rows of a column become as its first. */
export function repeatFirst(heap: SharedHeap, address: number, width: number, rowCount: number): void {
  for (let done = 1; done < rowCount; done *= 2) {
    heap.u8.copyWithin(address + done * width, address, address + Math.min(done, rowCount - done) * width);
  }
}
