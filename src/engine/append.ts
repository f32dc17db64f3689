/**
 * Converts result batches to batches for storage: the rows of INSERT … SELECT, CREATE TABLE AS and UPDATE. Works as an encoder, so
 * that a worker's rows are sent as one buffer (`packAppendBatch`). Text pairs become (offset into the heap, length); symbols become
 * codes of the batch's own dictionary.
 */
import type { AppendBatch, AppendColumn } from "../storage/contract.ts";
import type { SharedHeap } from "../storage/heap.ts";
import { packAppendBatch, unpackAppendBatch, unpackChangedBatch } from "../storage/mod.ts";
import { LAYOUT_WIDTH, layoutOf } from "../types/mod.ts";
import type { Batch, Vector } from "./contract.ts";

export { packAppendBatch, unpackAppendBatch, unpackChangedBatch };

interface Parts {
  values: Uint8Array;
  heap?: Uint8Array;
  symbols?: Int32Array;
}

/**
 * `targets`: the table columns' type tags; text for a SYMBOL column is interned. Unchanged values are not copied, so
 * pack the result before the batch's memory is reused.
 */
export function toAppendBatch(
  batch: Batch,
  columnIds: readonly number[],
  targets: readonly string[],
  heap: SharedHeap,
): AppendBatch {
  const columns = batch.columns.slice(0, targets.length).map((vector, i): AppendColumn => ({
    columnId: columnIds[i],
    ...parts(vector, targets[i], batch.rowCount, heap),
  }));
  return { rowCount: batch.rowCount, columns };
}

function parts(vector: Vector, target: string, rowCount: number, heap: SharedHeap): Parts {
  const layout = layoutOf(vector.type);
  if (layout === "symbol") return symbolParts(vector, rowCount, heap);
  if (layout !== "text") {
    const size = rowCount * LAYOUT_WIDTH[layout];
    return { values: heap.u8.subarray(vector.address, vector.address + size) };
  }
  return layoutOf(target) === "symbol"
    ? internParts(vector.address, rowCount, heap)
    : textParts(vector.address, rowCount, heap);
}

/** Copies texts contiguously. */
function textParts(address: number, rowCount: number, heap: SharedHeap): Parts {
  const pairs = new Int32Array(heap.buffer, address, rowCount * 2);
  let heapSize = 0;
  for (let i = 1; i < pairs.length; i += 2) if (pairs[i] > 0) heapSize += pairs[i];
  const out = new Int32Array(rowCount * 2);
  const bytes = new Uint8Array(heapSize);
  const source = heap.u8;
  let at = 0;
  for (let row = 0; row < rowCount; row++) {
    const length = pairs[2 * row + 1];
    out[2 * row] = at;
    out[2 * row + 1] = length;
    if (length <= 0) continue;
    const from = pairs[2 * row] >>> 0;
    if (length < 24) { for (let k = 0; k < length; k++) bytes[at + k] = source[from + k]; }
    else bytes.set(source.subarray(from, from + length), at);
    at += length;
  }
  return { values: new Uint8Array(out.buffer), heap: bytes };
}

function symbolParts(vector: Vector, rowCount: number, heap: SharedHeap): Parts {
  const dictionary = vector.dictionary!;
  const codes = new Int32Array(heap.buffer, vector.address, rowCount);
  const local = new Int32Array(dictionary.count).fill(-1);
  const used: number[] = [];
  const out = new Int32Array(rowCount);
  for (let row = 0; row < rowCount; row++) {
    const code = codes[row];
    if (code < 0) out[row] = -1;
    else {
      if (local[code] < 0) local[code] = used.push(code) - 1;
      out[row] = local[code];
    }
  }
  const pairs = new Int32Array(heap.buffer, dictionary.entries, dictionary.count * 2);
  const symbols = new Int32Array(used.length * 2);
  const bytes = new Uint8Array(used.reduce((sum, code) => sum + pairs[2 * code + 1], 0));
  let at = 0;
  used.forEach((code, k) => {
    const from = pairs[2 * code] >>> 0, length = pairs[2 * code + 1];
    bytes.set(heap.u8.subarray(from, from + length), at);
    symbols[2 * k] = at;
    symbols[2 * k + 1] = length;
    at += length;
  });
  return { values: new Uint8Array(out.buffer), heap: bytes, symbols };
}

/** Number of cached addresses, so that shared texts (dictionary entries) are hashed only once for each batch. */
const PLACES = 4096;

/** Assigns a code to each distinct text. */
function internParts(address: number, rowCount: number, heap: SharedHeap): Parts {
  const pairs = new Int32Array(heap.buffer, address, rowCount * 2);
  const source = heap.u8;
  const interner = new Interner();
  const out = new Int32Array(rowCount);
  const starts = new Int32Array(PLACES), lengths = new Int32Array(PLACES).fill(-1), codes = new Int32Array(PLACES);
  for (let row = 0; row < rowCount; row++) {
    const start = pairs[2 * row], length = pairs[2 * row + 1];
    if (length < 0) {
      out[row] = -1;
      continue;
    }
    const place = (start ^ (start >>> 12)) & (PLACES - 1);
    if (starts[place] !== start || lengths[place] !== length) {
      codes[place] = interner.code(source, start >>> 0, length);
      starts[place] = start;
      lengths[place] = length;
    }
    out[row] = codes[place];
  }
  return { values: new Uint8Array(out.buffer), ...interner.finish() };
}

/** Different texts that a new dictionary has room for. */
const FIRST_TEXTS = 256;

/** A growing dictionary of byte strings. */
export class Interner {
  private slots = new Int32Array(4 * FIRST_TEXTS).fill(-1);
  private hashes = new Int32Array(FIRST_TEXTS);
  private symbols = new Int32Array(2 * FIRST_TEXTS);
  private bytes: Uint8Array = new Uint8Array(16 * FIRST_TEXTS);
  private used = 0;
  private count = 0;

  /** The code of `length` bytes at `from` in `source`: the number of different texts before it. */
  code(source: Uint8Array, from: number, length: number): number {
    let hash = 0x811c9dc5 | 0; // FNV-1a
    for (let k = 0; k < length; k++) hash = Math.imul(hash ^ source[from + k], 0x01000193);
    const mask = this.slots.length - 1;
    for (let slot = (hash ^ (hash >>> 15)) & mask;; slot = (slot + 1) & mask) {
      const code = this.slots[slot];
      if (code < 0) return this.add(slot, hash, source, from, length);
      if (
        this.hashes[code] === hash && this.symbols[2 * code + 1] === length &&
        this.equals(this.symbols[2 * code], source, from, length)
      ) return code;
    }
  }

  private equals(at: number, source: Uint8Array, from: number, length: number): boolean {
    for (let k = 0; k < length; k++) if (this.bytes[at + k] !== source[from + k]) return false;
    return true;
  }

  private add(slot: number, hash: number, source: Uint8Array, from: number, length: number): number {
    const code = this.count++;
    if (this.count > this.hashes.length) {
      this.hashes = grown(this.hashes, Int32Array, this.count);
      this.symbols = grown(this.symbols, Int32Array, this.count * 2);
    }
    if (this.used + length > this.bytes.length) this.bytes = grown(this.bytes, Uint8Array, this.used + length);
    for (let k = 0; k < length; k++) this.bytes[this.used + k] = source[from + k];
    this.hashes[code] = hash;
    this.symbols[2 * code] = this.used;
    this.symbols[2 * code + 1] = length;
    this.used += length;
    this.slots[slot] = code;
    if (this.count * 2 > this.slots.length) this.rehash();
    return code;
  }

  private rehash(): void {
    this.slots = new Int32Array(this.slots.length * 4).fill(-1);
    const mask = this.slots.length - 1;
    for (let code = 0; code < this.count; code++) {
      const hash = this.hashes[code];
      let slot = (hash ^ (hash >>> 15)) & mask;
      while (this.slots[slot] >= 0) slot = (slot + 1) & mask;
      this.slots[slot] = code;
    }
  }

  finish(): { heap: Uint8Array; symbols: Int32Array } {
    return { heap: this.bytes.slice(0, this.used), symbols: this.symbols.slice(0, this.count * 2) };
  }
}

function grown<T extends Int32Array | Uint8Array>(old: T, make: new (length: number) => T, length: number): T {
  const next = new make(Math.max(length, old.length * 2));
  next.set(old);
  return next;
}
