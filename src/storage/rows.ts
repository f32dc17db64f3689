/** Batches to be added to a table: checks them, interns their symbols, sorts them by the designated timestamp. */
import { assert } from "../assert.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import { fillNullBytes, LAYOUT_WIDTH, layoutOf, typeOf, type Value } from "../types/mod.ts";
import type { AppendBatch, AppendColumn, TableColumn, TableSchema } from "./contract.ts";
import type { SymbolTable } from "./dictionary.ts";
import { checkNotFormer, columnById } from "./schema.ts";

/** Values of a column in its layout; symbols are codes of the table's dictionary, text is offsets into `heap`. */
export interface RowColumn {
  values: Uint8Array<ArrayBufferLike>;
  heap?: Uint8Array<ArrayBufferLike>;
}

export interface Rows {
  rowCount: number;
  /** By column id; undefined: all null. */
  columns: (RowColumn | undefined)[];
  /** The designated timestamp as 32-bit halves, the low one first. */
  times?: Int32Array;
}

/** Returns a view that starts at a multiple of 8 bytes, or a copy. */
export function aligned(bytes: Uint8Array): Uint8Array {
  return bytes.byteOffset % 8 === 0 ? bytes : bytes.slice();
}

export function halvesOf(bytes: Uint8Array, rowCount: number): Int32Array {
  return new Int32Array(bytes.buffer, bytes.byteOffset, rowCount * 2);
}

/** Compares 64-bit integers given as halves; the low half is unsigned. */
export function isLess(aHigh: number, aLow: number, bHigh: number, bLow: number): boolean {
  return aHigh < bHigh || (aHigh === bHigh && (aLow >>> 0) < (bLow >>> 0));
}

/** First index in [from, to) whose time is at or above (`orEqual`: above) the given one; `to` if there is none. */
export function firstNotBelow(
  times: Int32Array,
  start: number,
  from: number,
  to: number,
  high: number,
  low: number,
  orEqual: boolean,
): number {
  while (from < to) {
    const middle = (from + to) >>> 1;
    const at = start + 2 * middle;
    const below = orEqual ? !isLess(high, low, times[at + 1], times[at]) : isLess(times[at + 1], times[at], high, low);
    if (below) from = middle + 1;
    else to = middle;
  }
  return from;
}

export function timeAt(times: Int32Array, row: number): bigint {
  return (BigInt(times[2 * row + 1]) << 32n) | BigInt(times[2 * row] >>> 0);
}

/**
 * Refuses unacceptable batches before they go to the log, so that applying them cannot fail.
 * @throws {SqlError} at position 0.
 */
export function checkBatch(schema: TableSchema, batch: AppendBatch): void {
  const { rowCount } = batch;
  for (const { columnId, values, heap, symbols } of batch.columns) {
    const column = columnById(schema, columnId);
    if (column === undefined) {
      checkNotFormer(schema, [columnId]);
      throw new SqlError(`Cannot write to a column of ${schema.name}: it was dropped`, 0, SQLSTATE.undefinedColumn);
    }
    const layout = layoutOf(column.type);
    assert(values.length >= rowCount * LAYOUT_WIDTH[layout], `column ${column.name} has a value for every row`);
    if (layout === "text") checkTexts(aligned(values), rowCount, heap?.length ?? 0);
    if (layout === "symbol") checkCodes(aligned(values), rowCount, (symbols?.length ?? 0) / 2);
    if (layout === "symbol" && symbols !== undefined) {
      checkTexts(
        new Uint8Array(symbols.buffer, symbols.byteOffset, symbols.byteLength),
        symbols.length / 2,
        heap?.length ?? 0,
      );
    }
  }
  if (schema.timestampId >= 0 && rowCount > 0) checkTimes(schema, batch);
}

/** Like `checkBatch`, for new values of existing rows. */
export function checkUpdate(schema: TableSchema, batch: AppendBatch): void {
  if (batch.columns.some(({ columnId }) => columnId === schema.timestampId)) {
    throw new SqlError("Cannot update the designated timestamp", 0, SQLSTATE.featureNotSupported);
  }
  checkBatch({ ...schema, timestampId: -1 }, batch);
}

function checkTexts(values: Uint8Array, count: number, heapSize: number): void {
  const pairs = new Int32Array(values.buffer, values.byteOffset, 2 * count);
  for (let k = 0; k < pairs.length; k += 2) {
    const length = pairs[k + 1];
    if (length > 0 && (pairs[k] >>> 0) + length > heapSize) assert(false, "texts are in the batch's heap");
  }
}

function checkCodes(values: Uint8Array, count: number, symbolCount: number): void {
  const codes = new Int32Array(values.buffer, values.byteOffset, count);
  let max = -1;
  for (let k = 0; k < count; k++) if (codes[k] > max) max = codes[k];
  assert(max < symbolCount, "symbol codes refer to the batch's symbols");
}

const [NULL_LOW, NULL_HIGH] = typeOf("TIMESTAMP").nullWords;

function checkTimes(schema: TableSchema, batch: AppendBatch): void {
  const given = batch.columns.find((column) => column.columnId === schema.timestampId);
  if (given === undefined) {
    throw new SqlError("Cannot insert a row without its designated timestamp", 0, SQLSTATE.invalidParameter);
  }
  const times = halvesOf(aligned(given.values), batch.rowCount);
  for (let k = 1; k < times.length; k += 2) {
    if (times[k] < 0) throw invalidTime(times[k] === NULL_HIGH && times[k - 1] === NULL_LOW);
  }
}

/** Refuses a designated timestamp as `checkBatch` does. */
export function checkTime(time: Value): void {
  if (time === null || (time as bigint) < 0n) throw invalidTime(time === null);
}

function invalidTime(isNull: boolean): SqlError {
  const what = isNull ? "it is null" : "it lies before 1970-01-01";
  return new SqlError(`Invalid designated timestamp: ${what}`, 0, SQLSTATE.invalidParameter);
}

/** Interns the symbols of a batch that has passed `checkBatch`. */
export function toRows(schema: TableSchema, batch: AppendBatch, dictionaryOf: (columnId: number) => SymbolTable): Rows {
  const columns: (RowColumn | undefined)[] = [];
  for (const given of batch.columns) {
    const column = columnById(schema, given.columnId)!;
    columns[column.id] = layoutOf(column.type) === "symbol"
      ? { values: toCodes(given, batch.rowCount, dictionaryOf(column.id)) }
      : { values: aligned(given.values), heap: given.heap };
  }
  const times = schema.timestampId < 0 ? undefined : halvesOf(columns[schema.timestampId]!.values, batch.rowCount);
  return { rowCount: batch.rowCount, columns, times };
}

export function toCodes(
  { values, heap, symbols }: AppendColumn,
  rowCount: number,
  dictionary: SymbolTable,
): Uint8Array {
  const count = (symbols?.length ?? 0) / 2;
  const global = new Int32Array(count).fill(-1);
  const bytes = aligned(values);
  const codes = new Int32Array(bytes.buffer, bytes.byteOffset, rowCount);
  const out = new Int32Array(rowCount);
  for (let row = 0; row < rowCount; row++) {
    const code = codes[row];
    if (code < 0) out[row] = -1;
    else {
      // Only symbols that rows use are added to the dictionary, in row order.
      let found = global[code];
      if (found < 0) {
        found = global[code] = dictionary.intern(
          heap ?? new Uint8Array(0),
          symbols![2 * code] >>> 0,
          symbols![2 * code + 1],
        );
      }
      out[row] = found;
    }
  }
  return new Uint8Array(out.buffer);
}

export function isSorted(times: Int32Array): boolean {
  for (let k = 2; k < times.length; k += 2) {
    if (isLess(times[k + 1], times[k], times[k - 1], times[k - 2])) return false;
  }
  return true;
}

/** True if all rows of `b` are at or after those of `a`. Both are sorted. */
function follows(a: Int32Array, b: Int32Array): boolean {
  return a.length === 0 || b.length === 0 || !isLess(b[1], b[0], a[a.length - 1], a[a.length - 2]);
}

const SMALL_ROWS = 256;

/** Rows of a step of sorting: some ten milliseconds. */
const SORT_STEP_ROWS = 1 << 19;

/** Returns the rows in sorted parts, as few as possible without merging rows that are already in order. */
export function inOrder(schema: TableSchema, parts: Rows[]): Rows[] {
  const steps = sorting(schema, parts);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** The same in steps of some hundred thousand rows, for each digit of the times and each column. */
export function* sorting(schema: TableSchema, parts: Rows[]): Generator<void, Rows[]> {
  if (schema.timestampId < 0) return parts;
  let ordered = true;
  for (let k = 0; k < parts.length && ordered; k++) {
    ordered = isSorted(parts[k].times!) && (k === 0 || follows(parts[k - 1].times!, parts[k].times!));
  }
  if (ordered) {
    const rowCount = rowsOf(parts);
    // Copying a few rows is cheaper than walking the segments' chunks for each of many small parts.
    return parts.length > 1 && rowCount < parts.length * SMALL_ROWS ? [concatenate(schema, parts)] : parts;
  }
  const rowCount = rowsOf(parts);
  const times = (yield* joining(parts, columnById(schema, schema.timestampId)!))!.values;
  const order = yield* sortedOrder(halvesOf(times, rowCount));
  const columns: (RowColumn | undefined)[] = [];
  for (const column of schema.columns) {
    yield;
    const { values, heap } = (yield* joining(parts, column)) ?? {};
    if (values === undefined) continue;
    const width = LAYOUT_WIDTH[layoutOf(column.type)];
    const sorted = new Uint8Array(rowCount * width);
    for (let from = 0; from < rowCount; from += SORT_STEP_ROWS) {
      if (from > 0) yield;
      const step = order.subarray(from, from + SORT_STEP_ROWS);
      gather(values, width, step, sorted.subarray(from * width, (from + step.length) * width));
    }
    columns[column.id] = { values: sorted, heap };
  }
  return [{ rowCount, columns, times: halvesOf(columns[schema.timestampId]!.values, rowCount) }];
}

/** Rows [from, to) of rows. */
export function slicedRows(schema: TableSchema, rows: Rows, from: number, to: number): Rows {
  if (from === 0 && to === rows.rowCount) return rows;
  const columns = rows.columns.slice();
  for (const { id, type } of schema.columns) {
    const column = columns[id], width = LAYOUT_WIDTH[layoutOf(type)];
    if (column !== undefined) columns[id] = { ...column, values: column.values.subarray(from * width, to * width) };
  }
  return { rowCount: to - from, columns, times: rows.times?.subarray(2 * from, 2 * to) };
}

/** The rows of all parts, in this order, of a table with a designated timestamp. */
export function concatenate(schema: TableSchema, parts: readonly Rows[]): Rows {
  const rowCount = rowsOf(parts);
  const columns: (RowColumn | undefined)[] = [];
  for (const column of schema.columns) columns[column.id] = joinedColumn(parts, column);
  return { rowCount, columns, times: halvesOf(columns[schema.timestampId]!.values, rowCount) };
}

/** A column of all parts, undefined if none has it. */
function joinedColumn(parts: readonly Rows[], column: TableColumn): RowColumn | undefined {
  const steps = joining(parts, column);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** The same in steps. */
function* joining(parts: readonly Rows[], { id, type }: TableColumn): Generator<void, RowColumn | undefined> {
  if (parts.length === 1 || parts.every(({ columns }) => columns[id] === undefined)) return parts[0].columns[id];
  const layout = layoutOf(type), width = LAYOUT_WIDTH[layout];
  const values = new Uint8Array(rowsOf(parts) * width);
  const heap = layout === "text"
    ? new Uint8Array(parts.reduce((sum, part) => sum + (part.columns[id]?.heap?.length ?? 0), 0))
    : undefined;
  let row = 0, heapAt = 0, stepAt = SORT_STEP_ROWS;
  for (const part of parts) {
    if (row >= stepAt) {
      yield;
      stepAt = row + SORT_STEP_ROWS;
    }
    const from = part.columns[id];
    if (from === undefined) fillNullBytes(values.subarray(row * width, (row + part.rowCount) * width), type);
    else values.set(from.values.subarray(0, part.rowCount * width), row * width);
    if (heap !== undefined && from?.heap !== undefined) {
      const pairs = new Int32Array(values.buffer, row * width, part.rowCount * 2);
      for (let k = 0; k < pairs.length; k += 2) pairs[k] += heapAt;
      heap.set(from.heap, heapAt);
      heapAt += from.heap.length;
    }
    row += part.rowCount;
  }
  return { values, heap };
}

function rowsOf(parts: readonly Rows[]): number {
  return parts.reduce((sum, part) => sum + part.rowCount, 0);
}

/** Returns the rows with the given numbers, in that order. */
export function takeRows(schema: TableSchema, rows: Rows, order: Uint32Array): Rows {
  const columns = rows.columns.slice();
  for (const { id, type } of schema.columns) {
    const column = columns[id];
    if (column !== undefined) {
      columns[id] = { values: gather(column.values, LAYOUT_WIDTH[layoutOf(type)], order), heap: column.heap };
    }
  }
  return { rowCount: order.length, columns, times: halvesOf(columns[schema.timestampId]!.values, order.length) };
}

const DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS;

/**
 * Row numbers in stable time order: a radix sort, least significant digit first, of the distance from the earliest
 * time.
 */
function* sortedOrder(times: Int32Array): Generator<void, Uint32Array> {
  const count = times.length / 2;
  let minHigh = times[1], minLow = times[0] >>> 0, maxHigh = minHigh, maxLow = minLow;
  for (let k = 2; k < times.length; k += 2) {
    const low = times[k] >>> 0, high = times[k + 1];
    if (isLess(high, low, minHigh, minLow)) minHigh = high, minLow = low;
    if (isLess(maxHigh, maxLow, high, low)) maxHigh = high, maxLow = low;
  }
  const lows = new Uint32Array(count), highs = new Uint32Array(count);
  for (let row = 0; row < count; row++) {
    const low = times[2 * row] >>> 0;
    lows[row] = low - minLow;
    highs[row] = times[2 * row + 1] - minHigh - (low < minLow ? 1 : 0);
  }
  const range = timeBits(maxHigh - minHigh - (maxLow < minLow ? 1 : 0), (maxLow - minLow) >>> 0);
  let order = new Uint32Array(count), other = new Uint32Array(count);
  for (let row = 0; row < count; row++) order[row] = row;
  const starts = new Uint32Array(DIGITS);
  for (let bit = 0; bit < range; bit += DIGIT_BITS) {
    yield;
    const digits = { lows, highs, bit, starts };
    starts.fill(0);
    for (let from = 0; from < count; from += SORT_STEP_ROWS) {
      if (from > 0) yield;
      countDigits(digits, from, Math.min(count, from + SORT_STEP_ROWS));
    }
    for (let d = 0, at = 0; d < DIGITS; d++) {
      const size = starts[d];
      starts[d] = at;
      at += size;
    }
    for (let from = 0; from < count; from += SORT_STEP_ROWS) {
      if (from > 0) yield;
      scatter(digits, order, other, from, Math.min(count, from + SORT_STEP_ROWS));
    }
    [order, other] = [other, order];
  }
  return order;
}

interface Digits {
  lows: Uint32Array;
  highs: Uint32Array;
  /** The lowest bit of the digit. */
  bit: number;
  /** By digit: the number of rows, then the place of the next one. */
  starts: Uint32Array;
}

function digitOf(lows: Uint32Array, highs: Uint32Array, bit: number, row: number): number {
  const low = bit < 32 ? lows[row] >>> bit : 0;
  const high = bit >= 32 ? highs[row] >>> (bit - 32) : bit > 32 - DIGIT_BITS ? highs[row] << (32 - bit) : 0;
  return (low | high) & (DIGITS - 1);
}

function countDigits({ lows, highs, bit, starts }: Digits, from: number, end: number): void {
  for (let row = from; row < end; row++) starts[digitOf(lows, highs, bit, row)]++;
}

/** Puts the rows of these places behind the others of their digit. */
function scatter({ lows, highs, bit, starts }: Digits, order: Uint32Array, to: Uint32Array, from: number, end: number) {
  for (let k = from; k < end; k++) to[starts[digitOf(lows, highs, bit, order[k])]++] = order[k];
}

function timeBits(high: number, low: number): number {
  return high > 0 ? 64 - Math.clz32(high) : 32 - Math.clz32(low);
}

/** The values at these places. `values` and `out` begin at multiples of the width. */
export function gather(
  values: Uint8Array,
  width: number,
  order: Uint32Array,
  out = new Uint8Array(order.length * width),
): Uint8Array {
  const view = (bytes: Uint8Array) =>
    width === 1
      ? bytes
      : width === 2
      ? new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length >> 1)
      : new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  const from = view(values), to = view(out);
  const words = width <= 4 ? 1 : width / 4;
  if (words === 1) { for (let k = 0; k < order.length; k++) to[k] = from[order[k]]; }
  else if (words === 2) {
    for (let k = 0; k < order.length; k++) {
      const source = 2 * order[k];
      to[2 * k] = from[source];
      to[2 * k + 1] = from[source + 1];
    }
  } else {
    for (let k = 0; k < order.length; k++) {
      for (let w = 0; w < words; w++) to[words * k + w] = from[words * order[k] + w];
    }
  }
  return out;
}

/** The two halves of an i64, of which the first is signed. */
export function halves(value: bigint): [high: number, low: number] {
  return [Number(value >> 32n), Number(BigInt.asIntN(32, value))];
}
