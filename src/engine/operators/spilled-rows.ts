/**
 * Rows on disk: columns in blocks, in the order in which they were written. A block has the columns one after the other, each at a
 * multiple of 16 bytes, then the bytes of their texts, which the pairs of address and length refer to by their offsets:
 *
 *     column 0, padding, column 1, padding, … bytes of texts
 */
import { assert } from "../../assert.ts";
import type { Column } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { unnamedColumns } from "../physical/reading.ts";
import { ColumnStore, endOfPickedTexts, endOfTexts, NO_DICTIONARY, PairCache, Workspace } from "../columns.ts";
import {
  type Batch,
  MORSEL_ROWS,
  type Operator,
  type QueryContext,
  type Spill,
  type SpilledBlock,
  type Vector,
} from "../contract.ts";

export interface SpilledRows {
  types: readonly string[];
  /** By column; undefined for other types than SYMBOL. */
  dictionaries: (Dictionary | undefined)[];
  blocks: { block: SpilledBlock; rowCount: number }[];
  rowCount: number;
}

const ALIGNMENT = 16;
/** Lanes may read beyond the last row. */
const SLACK_BYTES = 16;
const BLOCK_BYTES_MIN = 16 << 10, BLOCK_BYTES_MAX = 512 << 10;
/** Blocks of this fraction of the query's memory are in memory when many files are read or written together. */
const BLOCK_SHARE = 512;

/** Memory of a block of rows, which is a power of two; more if a row needs more. */
export function blockBytesOf({ memory, heap }: QueryContext): number {
  const bytes = (memory.limitBytes || heap.sizeBytes()) / BLOCK_SHARE;
  return 2 ** Math.floor(Math.log2(Math.max(BLOCK_BYTES_MIN, Math.min(BLOCK_BYTES_MAX, bytes))));
}

/** Bytes that the query can still allocate. */
export function roomOf({ memory, heap }: QueryContext): number {
  const inHeap = heap.sizeBytes() - heap.usedBytes();
  return memory.limitBytes === 0 ? inHeap : Math.min(inHeap, memory.limitBytes - memory.usedBytes);
}

export function widthOf(types: readonly string[]): number {
  return types.reduce((sum, type) => sum + typeOf(type).width, 0);
}

/** Offsets of the columns in a block of `rowCount` rows, and at the end that of the texts. */
function offsetsOf(types: readonly string[], rowCount: number): number[] {
  const offsets = [0];
  for (const type of types) {
    offsets.push(offsets.at(-1)! + Math.ceil(rowCount * typeOf(type).width / ALIGNMENT) * ALIGNMENT);
  }
  return offsets;
}

/** A block with texts is written when so much of it is used. The next rows might have longer texts. */
const FULL = 0.75;

export class RowsWriter {
  private readonly store: ColumnStore;
  private readonly rows: SpilledRows;
  private readonly rowBytes: number;
  private readonly rowsMax: number;
  private readonly spill: Spill;
  private readonly space: Workspace;

  constructor(
    types: readonly string[],
    private readonly context: QueryContext,
    operator: string,
    private readonly blockBytes = blockBytesOf(context),
  ) {
    assert(context.spill !== undefined, "the query may write to disk");
    this.spill = context.spill;
    this.space = Workspace.of(context, operator);
    this.store = new ColumnStore(types, this.space);
    this.rowBytes = Math.max(1, widthOf(types));
    const rowsMax = Math.floor((blockBytes - SLACK_BYTES - types.length * ALIGNMENT) / this.rowBytes);
    this.rowsMax = Math.max(1, Math.min(MORSEL_ROWS, rowsMax));
    this.rows = { types, dictionaries: [], blocks: [], rowCount: 0 };
  }

  get rowCount(): number {
    return this.rows.rowCount + this.store.rowCount;
  }

  /** Appends rows from … to-1. */
  append(columns: readonly Vector[], to: number, from = 0): void {
    while (from < to) {
      const end = Math.min(to, from + this.rowsMax - this.store.rowCount);
      const next = endOfTexts(this.context.heap, this.texts(columns), from, end, this.blockBytes);
      this.store.append(columns, next - from, from);
      from = next;
      this.flushIfFull();
    }
  }

  /** Appends rows `indices[from … to-1]`. */
  appendRows(columns: readonly Vector[], indices: Int32Array, to = indices.length, from = 0): void {
    const texts = this.texts(columns);
    while (from < to) {
      const end = Math.min(to, from + this.rowsMax - this.store.rowCount);
      const next = endOfPickedTexts(this.context.heap, texts, indices, from, end, (1 - FULL) * this.blockBytes);
      this.store.appendRows(columns, indices.subarray(from, next), next - from);
      from = next;
      this.flushIfFull();
    }
  }

  private texts(columns: readonly Vector[]): Vector[] {
    return columns.filter(({ type }) => layoutOf(type) === "text");
  }

  private flushIfFull(): void {
    const { rowsMax, rowBytes, store: { rowCount, textBytes } } = this;
    if (rowCount >= rowsMax || (textBytes > 0 && rowCount * rowBytes + textBytes >= FULL * this.blockBytes)) {
      this.flush();
    }
  }

  private flush(): void {
    const { store, space, rows, context: { heap } } = this, { rowCount, vectors, types } = store;
    if (rowCount === 0) return;
    this.context.poll();
    const offsets = offsetsOf(types, rowCount), size = offsets.at(-1)!;
    const image = space.allocate(size);
    const texts = new TextImage();
    vectors.forEach(({ address }, c) => {
      const target = image + offsets[c], end = rowCount * typeOf(types[c]).width;
      heap.u8.copyWithin(target, address, address + end);
      if (layoutOf(types[c]) === "text") texts.place(heap.u32, heap.i32, target >>> 2, rowCount);
    });
    const bytes = texts.sizeBytes > 0 ? space.allocate(texts.sizeBytes) : 0;
    texts.copyTo(heap.u8, bytes);
    const block = this.spill.write(texts.sizeBytes > 0 ? [[image, size], [bytes, texts.sizeBytes]] : [[image, size]]);
    rows.blocks.push({ block, rowCount });
    rows.rowCount += rowCount;
    space.free(image);
    if (bytes !== 0) space.free(bytes);
    store.clear();
  }

  /** The rows, once their blocks have been written. The writer must be closed as well. */
  finish(): SpilledRows {
    this.flush();
    this.spill.flush();
    this.rows.dictionaries = this.store.vectors.map(({ dictionary }) => dictionary);
    return this.rows;
  }

  close(): void {
    this.space.release();
  }
}

/** The texts of a block. Equal pairs of address and length share their bytes. */
class TextImage {
  sizeBytes = 0;
  private readonly placed: [from: number, length: number][] = [];
  private readonly known = new PairCache();

  constructor() {
    this.known.clear();
  }

  /** Replaces the addresses of pairs by offsets. */
  place(u32: Uint32Array, i32: Int32Array, at: number, rowCount: number): void {
    const { known, placed } = this;
    for (const end = at + 2 * rowCount; at < end; at += 2) {
      const address = u32[at], length = i32[at + 1];
      if (length <= 0) continue;
      const slot = known.slot(address, length);
      if (!known.holds(slot, address, length)) {
        known.put(slot, address, length, this.sizeBytes);
        placed.push([address, length]);
        this.sizeBytes += length;
      }
      u32[at] = known.values[slot];
    }
  }

  copyTo(u8: Uint8Array, to: number): void {
    for (const [from, length] of this.placed) {
      u8.copyWithin(to, from, from + length);
      to += length;
    }
  }
}

/** Reads rows in their order, one block at a time. */
export class RowsReader {
  private readonly space: Workspace;
  private position = 0;
  private buffer = { address: 0, sizeBytes: 0 };
  private readonly vectors: Vector[];

  constructor(private readonly rows: SpilledRows, private readonly context: QueryContext, operator: string) {
    this.space = Workspace.of(context, operator);
    this.vectors = rows.types.map((type, c) => ({ type, address: 0, dictionary: rows.dictionaries[c] }));
  }

  /** Memory that a reader of these rows needs. */
  static bufferBytes({ blocks }: SpilledRows): number {
    return blocks.reduce((most, { block }) => Math.max(most, block.sizeBytes), 0) + SLACK_BYTES;
  }

  /** Valid until the next call. */
  next(): Batch | undefined {
    const { rows: { blocks, types }, context: { heap }, vectors } = this;
    if (this.position === blocks.length) return undefined;
    this.context.poll();
    const { block, rowCount } = blocks[this.position++];
    if (this.buffer.sizeBytes < block.sizeBytes) {
      if (this.buffer.address !== 0) this.space.free(this.buffer.address);
      this.buffer = { address: 0, sizeBytes: 0 };
      this.buffer = { address: this.space.allocate(block.sizeBytes + SLACK_BYTES), sizeBytes: block.sizeBytes };
    }
    const { address } = this.buffer;
    this.context.spill!.read(block, address);
    const offsets = offsetsOf(types, rowCount), texts = address + offsets.at(-1)!;
    vectors.forEach((vector, c) => {
      vector.address = address + offsets[c];
      if (layoutOf(types[c]) !== "text") return;
      const { u32, i32 } = heap;
      for (let at = vector.address >>> 2, end = at + 2 * rowCount; at < end; at += 2) {
        if (i32[at + 1] > 0) u32[at] += texts;
      }
    });
    return { rowCount, columns: vectors };
  }

  /** Frees the buffer. */
  close(): void {
    this.space.release();
  }
}

/** An operator that outputs rows on disk. */
export class SpilledInput implements Operator {
  readonly columns: readonly Column[];
  readonly rowsAtMost: number;
  private readonly reader: RowsReader;

  constructor(rows: SpilledRows, context: QueryContext, operator: string) {
    this.columns = unnamedColumns(rows.types);
    this.rowsAtMost = rows.rowCount;
    this.reader = new RowsReader(rows, context, operator);
  }

  next(): Batch | undefined {
    return this.reader.next();
  }

  close(): void {
    this.reader.close();
  }
}

/** SYMBOL columns without rows have no dictionary. */
export function dictionaryOfRuns(runs: readonly SpilledRows[], column: number): Dictionary | undefined {
  const known = runs.map(({ dictionaries }) => dictionaries[column]);
  return known.find((dictionary) => dictionary !== undefined && dictionary !== NO_DICTIONARY) ?? known[0];
}
