/**
 * What the row kernel is told, and what it tells, in words of its own memory: those of the rows, then `COLUMN_WORDS` for each column.
 */

/**
 * Index of the shared memory. The kernel's own memory, where it writes, is the first one: V8 reaches it faster, and copies from shared
 * memory word by word.
 */
export const HEAP = 1;

/** The memory of the tables, which the kernel has copied to its own. */
export interface TableViews {
  u8: Uint8Array<ArrayBuffer>;
  i64: BigInt64Array;
}

/** Words of the rows, by index. */
export const ROW = {
  columnCount: 0,
  /** 1: texts with bytes that are to be escaped stop the kernel. */
  escapes: 1,
  // The kernel sets these when it stops.
  row: 2,
  column: 3,
  /** Where the present row starts, or 0 if that was before the call. */
  start: 4,
  /** See `STOP`. */
  stop: 5,
} as const;
export const ROW_WORDS = 6;

/** Words of a column, by index. Characters are eight bytes, the first one is the lowest. */
export const COLUMN = {
  /** Index in `OPERATIONS`. */
  operation: 0,
  /** Address of row 0. */
  base: 1,
  /** Address of the dictionary's texts. */
  entries: 2,
  // The rest is for text with delimiters.
  beforeCount: 3,
  afterCount: 4,
  missingCount: 5,
  /** Characters in front of a value and behind it. */
  before: 6,
  after: 8,
  /** NULL with what is in front of it and behind it. */
  missing: 10,
} as const;
export const COLUMN_WORDS = 12;
/** Most characters in front of a value, behind it, and of NULL with both. */
export const CHARACTERS_MAX = 8;

/** Why the kernel has stopped. */
export const STOP = {
  /** All rows are written. */
  end: 0,
  /** Its output memory is full. */
  full: 1,
  /** JavaScript is to write the next value, with what is in front of it and behind it. */
  value: 2,
  /** The row has ended. JavaScript is to write its size, because it had started before the call. */
  rowEnd: 3,
} as const;
