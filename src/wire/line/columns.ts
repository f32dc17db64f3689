/**
 * Parsed lines before they are matched to a table: the rows of each table as columns, in plain data that can be posted
 * between threads. A column records the kind of each row's literal, because the table's types determine which kinds are
 * valid.
 */

/** The kind of a literal. `none`: the row has no value for the column. */
export const KIND = {
  none: 0,
  /** Code into `symbols`. */
  tag: 1,
  double: 2,
  long: 3,
  boolean: 4,
  /** Text pair into `heap`. */
  text: 5,
  micros: 6,
  nanos: 7,
  millis: 8,
  /** `0xffi`, as text. */
  long256: 9,
  /** `1.5d`, as text. */
  decimal: 10,
  /** Bytes in the form of a column: u32 number of dimensions, their u32 lengths, then f64s. */
  array: 11,
} as const;

export const KIND_NAMES = [
  "nothing",
  "a tag",
  "a float",
  "an integer",
  "a boolean",
  "a string",
  "a timestamp",
  "a timestamp",
  "a timestamp",
  "a long256",
  "a decimal",
  "an array",
];

export interface LineColumn {
  name: string;
  /** Kind of the first value; `none` if there were only empty fields. */
  kind: number;
  /** True if rows have values of other kinds. */
  mixed: boolean;
  /** True if the first line that names the column has no value, so that a new column would have no type. */
  isUntyped: boolean;
  /** First line that names the column, from 1. */
  line: number;
  /** Number of dimensions of the first array. */
  dimensions: number;
  /** One byte for each row. */
  kinds: Uint8Array;
  /**
   * Two words for each row, by kind: an i64, the bits of a double, 0 or 1, or a text pair (offset into `heap`, length).
   * Rows without a value have the null of the column's `kind`. Empty if the column has only tags.
   */
  slots: Int32Array;
  /** One code for each row, -1 without a tag. Empty if the column has no tags. */
  codes: Int32Array;
  heap: Uint8Array;
  /** Text pairs into `symbolHeap`. */
  symbols: Int32Array;
  symbolHeap: Uint8Array;
}

/** What decides about a new column. */
export type ColumnOutline = Pick<LineColumn, "name" | "kind" | "isUntyped" | "line" | "dimensions">;

/** What decides about a new table, and about new columns. */
export type TableOutline = Pick<LineTable, "name" | "line" | "nanosecondTable"> & {
  columns: readonly ColumnOutline[];
};

export function outlineOf({ name, line, nanosecondTable, columns }: TableOutline): TableOutline {
  const outlines = columns.map(({ name, kind, isUntyped, line, dimensions }) => ({
    ...{ name, kind, isUntyped, line, dimensions },
  }));
  return { name, line, nanosecondTable, columns: outlines };
}

export interface LineTable {
  name: string;
  /** First line that names the table, from 1. */
  line: number;
  rowCount: number;
  columns: LineColumn[];
  /** Timestamps in microseconds, two words for each row: from the line, or from the clock. */
  times: Int32Array;
  /** Nanoseconds beyond the microsecond, if any row has them. */
  timeNanos: Int16Array | undefined;
  /** 1 for rows with a timestamp in the line; undefined if all have one. */
  timed: Uint8Array | undefined;
  /** True if the first row's timestamp is in nanoseconds (`…n`): a new table then uses TIMESTAMP_NS. */
  nanosecondTable: boolean;
  /** Line number of each row. */
  lines: Int32Array;
}

/** Greatest size of a buffer for several arrays. A multiple of 8. */
const ARENA_BYTES = 1 << 19;
const SLAB_BYTES = 4 << 20;
/** A multiple of 8. */
const OWN_BUFFER_BYTES_MIN = 1 << 16;

/** Approximate size of a row without its values, of a value, and of a column without its values. */
const ROW_BYTES = 13, CELL_BYTES = 9, COLUMN_BYTES = 512;

const NULL_HIGH = -2147483648;
export const NO_BYTES = new Uint8Array(0);
const NO_WORDS = new Int32Array(0), NO_DOUBLES = new Float64Array(0);
/** High word of the canonical NaN. */
const NAN_HIGH = 0x7ff80000;

/** The buffers of the tables' columns. Several columns may share one. */
export function buffersOf(tables: readonly LineTable[]): Set<ArrayBuffer> {
  const buffers = new Set<ArrayBuffer>();
  for (const { columns, times, timeNanos, timed, lines } of tables) {
    const views = columns.flatMap(({ kinds, slots, codes, heap, symbols, symbolHeap }) => {
      return [kinds, slots, codes, heap, symbols, symbolHeap];
    });
    for (const view of [times, timeNanos, timed, lines, ...views]) {
      if (view !== undefined) buffers.add(view.buffer as ArrayBuffer);
    }
  }
  return buffers;
}

/** Smaller buffers are left to the garbage collector. */
const FREED_BYTES_MIN = 1 << 15;

/**
 * Frees a buffer immediately. V8 would keep tens of MiB until its next major collection. The buffer must not be used
 * afterwards.
 */
export function free(buffer: ArrayBuffer): void {
  if (buffer.byteLength >= FREED_BYTES_MIN) buffer.transfer(0);
}

/** Makes the arrays of a result from the first `count` values of arrays that grow. */
interface Finish {
  u8(from: Uint8Array, count: number): Uint8Array;
  i16(from: Int16Array, count: number): Int16Array;
  i32(from: Int32Array, count: number): Int32Array;
}

/** Views of the arrays that grow. */
export const VIEWS: Finish = {
  u8: (from, count) => from.subarray(0, count),
  i16: (from, count) => from.subarray(0, count),
  i32: (from, count) => from.subarray(0, count),
};

/**
 * Copies arrays into few buffers, because posting costs time for each buffer. A large array gets a buffer of its own,
 * which can be transferred again without a copy and freed separately.
 */
export class Arena implements Finish {
  private buffer = new ArrayBuffer(0);
  private at = 0;

  /** `nextBytes`: what will be needed, roughly. Clearing a buffer that is far too large would take longer than parsing a line. */
  constructor(private nextBytes: number) {}

  u8(from: Uint8Array, count: number): Uint8Array<ArrayBuffer> {
    const { buffer, at } = this.take(count);
    const out = new Uint8Array(buffer, at, count);
    out.set(from.subarray(0, count));
    return out;
  }

  i16(from: Int16Array, count: number): Int16Array<ArrayBuffer> {
    const { buffer, at } = this.take(count * 2);
    const out = new Int16Array(buffer, at, count);
    out.set(from.subarray(0, count));
    return out;
  }

  i32(from: Int32Array, count: number): Int32Array<ArrayBuffer> {
    const { buffer, at } = this.take(count * 4);
    const out = new Int32Array(buffer, at, count);
    out.set(from.subarray(0, count));
    return out;
  }

  /** Allocates `sizeBytes` at a multiple of 8, in a new buffer if necessary. */
  private take(sizeBytes: number): { buffer: ArrayBuffer; at: number } {
    if (sizeBytes >= OWN_BUFFER_BYTES_MIN) return { buffer: new ArrayBuffer(sizeBytes), at: 0 };
    if (this.at + sizeBytes > this.buffer.byteLength) {
      this.buffer = new ArrayBuffer(align8(Math.min(ARENA_BYTES, Math.max(this.nextBytes, sizeBytes))));
      this.nextBytes = 2 * this.buffer.byteLength;
      this.at = 0;
    }
    const { buffer, at } = this;
    this.at = align8(at + sizeBytes);
    return { buffer, at };
  }
}

const align8 = (size: number) => (size + 7) & ~7;

/**
 * Memory of the arrays of one parse. A parse of many tables has thousands of short arrays, and a buffer for each costs much more than
 * a view of this memory, which the next parse uses again.
 */
export class Slab {
  private buffer = new ArrayBuffer(0);
  private at = 0;

  /** Begins a parse. The arrays of the one before must not be used any more. */
  reset(): void {
    this.at = 0;
  }

  /** Zeros. */
  u8(count: number): Uint8Array<ArrayBuffer> {
    const at = this.take(count);
    return at < 0 ? new Uint8Array(count) : new Uint8Array(this.buffer, at, count).fill(0);
  }

  /** Zeros. */
  i32(count: number): Int32Array<ArrayBuffer> {
    const at = this.take(count * 4);
    return at < 0 ? new Int32Array(count) : new Int32Array(this.buffer, at, count).fill(0);
  }

  /** Large arrays get a buffer of their own, and all do when the memory is used up. */
  private take(sizeBytes: number): number {
    const { at } = this;
    if (sizeBytes >= OWN_BUFFER_BYTES_MIN || at + sizeBytes > SLAB_BYTES) return -1;
    if (this.buffer.byteLength === 0) this.buffer = new ArrayBuffer(SLAB_BYTES);
    this.at = align8(at + sizeBytes);
    return at;
  }
}

/** Grows a column row by row. */
export class ColumnBuilder {
  kind: number = KIND.none;
  mixed = false;
  kinds: Uint8Array;
  slots = NO_WORDS;
  doubles = NO_DOUBLES;
  codes = NO_WORDS;
  heap = NO_BYTES;
  heapSize = 0;
  dimensions = 0;
  symbols: SymbolSet | undefined;
  isUntyped = false;

  /** `index`: its index in the table. */
  constructor(
    readonly name: string,
    readonly index: number,
    readonly line: number,
    private capacity: number,
    readonly slab: Slab,
  ) {
    this.kinds = slab.u8(capacity);
  }

  grow(capacity: number): void {
    this.capacity = capacity;
    const kinds = this.slab.u8(capacity);
    kinds.set(this.kinds);
    this.kinds = kinds;
    if (this.slots.length > 0) this.makeSlots();
    if (this.codes.length > 0) this.makeCodes();
  }

  /** Sets the kind of a row's literal. Call it before writing the value. */
  note(row: number, kind: number): void {
    this.kinds[row] = kind;
    if (kind !== this.kind) {
      if (this.kind === KIND.none) this.kind = kind;
      else this.mixed = true;
    }
    if (kind === KIND.tag) {
      if (this.codes.length === 0) this.makeCodes();
    } else if (this.slots.length === 0) this.makeSlots();
  }

  /** A null of known kind determines the type of a new column. */
  noteNull(kind: number): void {
    if (this.kind === KIND.none) this.kind = kind;
  }

  setWords(row: number, low: number, high: number): void {
    this.slots[2 * row] = low;
    this.slots[2 * row + 1] = high;
  }

  /** Makes space for `size` more bytes of text. */
  ensureHeap(size: number): Uint8Array {
    if (this.heapSize + size > this.heap.length) {
      const larger = this.slab.u8(Math.max(1024, this.heap.length * 2, this.heapSize + size));
      larger.set(this.heap.subarray(0, this.heapSize));
      this.heap = larger;
    }
    return this.heap;
  }

  finish(rowCount: number, arena: Finish): LineColumn {
    const { name, kind, mixed, isUntyped, line, dimensions, symbols } = this;
    return {
      name,
      kind,
      mixed,
      isUntyped,
      line,
      dimensions,
      kinds: arena.u8(this.kinds, rowCount),
      slots: arena.i32(this.slots, this.slots.length === 0 ? 0 : rowCount * 2),
      codes: arena.i32(this.codes, this.codes.length === 0 ? 0 : rowCount),
      heap: arena.u8(this.heap, this.heapSize),
      symbols: arena.i32(symbols?.pairs ?? NO_WORDS, 2 * (symbols?.count ?? 0)),
      symbolHeap: arena.u8(symbols?.heap ?? NO_BYTES, symbols?.heapSize ?? 0),
    };
  }

  private makeSlots(): void {
    const from = this.slots.length / 2;
    const slots = this.slab.i32(this.capacity * 2);
    slots.set(this.slots);
    const isText = [KIND.text, KIND.long256, KIND.decimal, KIND.array].some((kind) => kind === this.kind);
    const low = 0;
    const high = isText ? -1 : this.kind === KIND.double ? NAN_HIGH : this.kind === KIND.boolean ? 0 : NULL_HIGH;
    for (let row = from; row < this.capacity; row++) {
      slots[2 * row] = low;
      slots[2 * row + 1] = high;
    }
    this.slots = slots;
    this.doubles = new Float64Array(slots.buffer, slots.byteOffset, this.capacity);
  }

  private makeCodes(): void {
    const codes = this.slab.i32(this.capacity).fill(-1, this.codes.length);
    codes.set(this.codes);
    this.codes = codes;
  }
}

/** The distinct tags of a column: an open-addressing hash table over their bytes. */
export class SymbolSet {
  pairs: Int32Array;
  hashes: Int32Array;
  heap: Uint8Array;
  heapSize = 0;
  count = 0;
  private slots: Int32Array;

  constructor(private readonly slab: Slab) {
    this.pairs = slab.i32(64);
    this.hashes = slab.i32(32);
    this.heap = slab.u8(512);
    this.slots = slab.i32(64).fill(-1);
  }

  /** Returns the code of `bytes[from … to)`, which has the given hash. */
  intern(bytes: Uint8Array, from: number, to: number, hash: number): number {
    const mask = this.slots.length - 1;
    const length = to - from;
    let slot = (hash ^ (hash >>> 15)) & mask;
    for (;; slot = (slot + 1) & mask) {
      const code = this.slots[slot];
      if (code < 0) break;
      if (this.hashes[code] !== hash || this.pairs[2 * code + 1] !== length) continue;
      const offset = this.pairs[2 * code];
      let same = 0;
      while (same < length && this.heap[offset + same] === bytes[from + same]) same++;
      if (same === length) return code;
    }
    this.slots[slot] = this.count;
    return this.add(bytes, from, to, hash);
  }

  private add(bytes: Uint8Array, from: number, to: number, hash: number): number {
    const code = this.count++;
    if (code === this.hashes.length) {
      this.hashes = grown(this.slab, this.hashes, code * 2);
      this.pairs = grown(this.slab, this.pairs, code * 4);
    }
    const length = to - from;
    if (this.heapSize + length > this.heap.length) {
      const larger = this.slab.u8(Math.max(this.heap.length * 2, this.heapSize + length));
      larger.set(this.heap);
      this.heap = larger;
    }
    for (let index = 0; index < length; index++) this.heap[this.heapSize + index] = bytes[from + index];
    this.pairs[2 * code] = this.heapSize;
    this.pairs[2 * code + 1] = length;
    this.hashes[code] = hash;
    this.heapSize += length;
    if (this.count * 2 > this.slots.length) this.rehash();
    return code;
  }

  private rehash(): void {
    const slots = this.slab.i32(this.slots.length * 2).fill(-1);
    const mask = slots.length - 1;
    for (let code = 0; code < this.count; code++) {
      const hash = this.hashes[code];
      let slot = (hash ^ (hash >>> 15)) & mask;
      while (slots[slot] >= 0) slot = (slot + 1) & mask;
      slots[slot] = code;
    }
    this.slots = slots;
  }
}

function grown(slab: Slab, from: Int32Array, length: number): Int32Array<ArrayBuffer> {
  const larger = slab.i32(length);
  larger.set(from);
  return larger;
}

/** Collects a table's rows. A row is filled and then committed; an uncommitted row is overwritten by the next one. */
export class TableBuilder {
  rowCount = 0;
  capacity = 64;
  readonly columns: ColumnBuilder[] = [];
  readonly byName = new Map<string, ColumnBuilder>();
  /** For each column the row of its last value, to detect a second value in one line. */
  readonly lastRow: number[] = [];
  times: Int32Array;
  timeNanos: Int16Array<ArrayBuffer> | undefined;
  timed: Uint8Array;
  untimedCount = 0;
  lines: Int32Array;
  nanosecondTable = false;
  /** The columns of the table's last line in order, because the next line mostly has the same ones. */
  readonly layout: { key: Uint8Array; index: number }[] = [];
  /** The table that last followed a line of this table. */
  follower: TableBuilder | undefined;

  /** `key`: the bytes of the name as written in a line. */
  constructor(readonly name: string, readonly key: Uint8Array, readonly line: number, private readonly slab: Slab) {
    this.times = slab.i32(128);
    this.timed = slab.u8(64);
    this.lines = slab.i32(64);
  }

  /** Approximate memory that one more column takes. */
  get columnBytes(): number {
    return COLUMN_BYTES + CELL_BYTES * this.capacity;
  }

  /** Approximate memory that one more row takes: more if the arrays must grow. */
  get growthBytes(): number {
    return this.rowCount < this.capacity ? 0 : this.capacity * (ROW_BYTES + CELL_BYTES * this.columns.length);
  }

  addColumn(name: string, line: number): number {
    const column = new ColumnBuilder(name, this.columns.length, line, this.capacity, this.slab);
    this.columns.push(column);
    this.lastRow.push(-1);
    this.byName.set(name.toLowerCase(), column);
    return this.columns.length - 1;
  }

  beginRow(): number {
    if (this.rowCount === this.capacity) {
      this.capacity *= 2;
      for (const column of this.columns) column.grow(this.capacity);
      this.times = grown(this.slab, this.times, this.capacity * 2);
      this.lines = grown(this.slab, this.lines, this.capacity);
      const timed = this.slab.u8(this.capacity);
      timed.set(this.timed);
      this.timed = timed;
      if (this.timeNanos) this.growNanos();
    }
    return this.rowCount;
  }

  /** Commits the current row with its timestamp. `low`, `high`: words of the microseconds. */
  commitRow(low: number, high: number, nanos: number, isGiven: boolean, line: number): void {
    const row = this.rowCount++;
    this.times[2 * row] = low;
    this.times[2 * row + 1] = high;
    if (nanos !== 0) {
      if (!this.timeNanos) this.growNanos();
      this.timeNanos![row] = nanos;
    }
    if (isGiven) this.timed[row] = 1;
    else this.untimedCount++;
    this.lines[row] = line;
  }

  /** `columns`: those of the result. */
  finish(columns: readonly ColumnBuilder[], arena: Finish): LineTable {
    const { name, line, rowCount, nanosecondTable } = this;
    return {
      name,
      line,
      rowCount,
      columns: columns.map((column) => column.finish(rowCount, arena)),
      times: arena.i32(this.times, rowCount * 2),
      timeNanos: this.timeNanos && arena.i16(this.timeNanos, rowCount),
      timed: this.untimedCount > 0 ? arena.u8(this.timed, rowCount) : undefined,
      nanosecondTable,
      lines: arena.i32(this.lines, rowCount),
    };
  }

  private growNanos(): void {
    const larger = new Int16Array(this.capacity);
    if (this.timeNanos) larger.set(this.timeNanos);
    this.timeNanos = larger;
  }
}
