/** Columns that an operator keeps: rows that are added to the end, and the columns of one batch. Symbols stay codes. */
import { assert } from "../../assert.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { SharedHeap } from "../../storage/heap.ts";
import { fillNull, type Layout, layoutOf, typeOf } from "../../types/mod.ts";
import { type Batch, MORSEL_ROWS, type Vector } from "../contract.ts";
import { gather } from "./gather.ts";
import { TextArena } from "./text-arena.ts";
import type { Workspace } from "./workspace.ts";

/** For SYMBOL columns without rows so far; every code is -1. */
export const NO_DICTIONARY: Dictionary = { tableId: -1, columnId: -1, entries: 0, count: 0 };

/** Rows kept in growing columns. Each column is one block, so that rows are addressed by number. */
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

  /**
   * Reserves space for this many rows in total; doubles the capacity, but the first time allocates as much as
   * requested.
   */
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

  /** Bytes of the texts. */
  get textBytes(): number {
    return this.arena.usedBytes;
  }

  /** Bytes of the blocks that it needs to take this many rows in total, besides those of texts; 0 if it has them. */
  bytesToReserve(rowCount: number): number {
    if (rowCount <= this.capacity) return 0;
    let capacity = Math.max(64, this.capacity === 0 ? rowCount : this.capacity);
    while (capacity < rowCount) capacity *= 2;
    return this.widths.reduce((sum, width) => sum + SharedHeap.blockBytes(capacity * width), 0);
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

  /** Appends rows `from … from+rowCount-1` of these columns. */
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

  /** Adds `n` rows that `write` puts at an address for each column. Texts are copied then. */
  appendWritten(n: number, write: (column: number, address: number) => void): void {
    this.reserve(this.rowCount + n);
    for (let c = 0; c < this.vectors.length; c++) {
      const target = this.vectors[c].address + this.rowCount * this.widths[c];
      write(c, target);
      if (this.layouts[c] === "text") this.arena.adopt(target, n);
    }
    this.rowCount += n;
  }

  /** Keeps rows `indices[0 … n-1]`, in that order, and frees the memory of the others. If it throws, all rows are kept. */
  compact(indices: Int32Array, n: number): void {
    const old = this.vectors.map((vector) => ({ ...vector })), oldArena = this.arena, { rowCount, capacity } = this;
    this.arena = new TextArena(this.space);
    this.capacity = this.rowCount = 0;
    for (const vector of this.vectors) vector.address = 0;
    try {
      this.appendRows(old, indices, n);
    } catch (error) {
      this.release();
      old.forEach((vector, c) => this.vectors[c].address = vector.address);
      Object.assign(this, { rowCount, capacity, arena: oldArena });
      throw error;
    }
    for (const vector of old) if (vector.address !== 0) this.space.free(vector.address);
    oldArena.release();
  }

  /** Removes all rows but keeps the columns' blocks for further ones. */
  clear(): void {
    this.rowCount = 0;
    this.arena.release();
  }

  /** Rows `from …` of the columns as a batch, without a copy. */
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

/** Output columns of one morsel, which are overwritten by each batch. */
export class OutputColumns {
  readonly vectors: Vector[];

  constructor(readonly types: readonly string[], private readonly space: Workspace, readonly capacity = MORSEL_ROWS) {
    this.vectors = types.map((type) => ({
      type,
      address: space.allocate(capacity * typeOf(type).width),
      dictionary: layoutOf(type) === "symbol" ? NO_DICTIONARY : undefined,
    }));
  }

  /** Fills column `c` with rows `indices[0 … n-1]` of `source`; with `nulls`, -1 gives null. */
  gather(c: number, source: Vector, indices: Int32Array, n: number, nulls: boolean): void {
    const target = this.vectors[c];
    if (source.address === 0) fillNull(this.space.heap, target.type, target.address, 0, n);
    else gather(this.space.heap, target.type, source.address, indices, n, target.address, nulls);
    // Rows without symbols must not replace the known dictionary.
    if (target.dictionary !== undefined && source.dictionary !== undefined && source.dictionary !== NO_DICTIONARY) {
      target.dictionary = source.dictionary;
    }
  }
}
