/**
 * Matches parsed lines to their table: finds missing columns, and converts the rows to the types of the table's columns.
 * One entry for each column type says which literals it accepts.
 */
import { LineError } from "../../errors.ts";
import type { NewColumn, NewTable, PartitionUnit } from "../../sql/plan.ts";
import type { AppendBatch, AppendColumn, TableColumn, TableSchema } from "../../storage/contract.ts";
import { typeOf } from "../../types/mod.ts";
import { parseIPv4, parseUuid } from "../../types/parse/mod.ts";
import {
  arrayDimensions,
  decimalOf,
  type DecimalType,
  geohashBits,
  parseDecimal,
  parseGeohash,
  parseLong256,
} from "../../types/wide.ts";
import { KIND, KIND_NAMES, type LineColumn, type LineTable } from "./columns.ts";
import { excerpt } from "./excerpts.ts";
import { hiddenCharacterFault, nameKey } from "../../types/names.ts";

/** Name of the designated timestamp of a new table. */
export const TIME_COLUMN = "timestamp";

/** Types of new columns for numeric literals. */
export interface LineTypes {
  float: "DOUBLE" | "FLOAT";
  integer: "LONG" | "INT" | "SHORT" | "BYTE";
  /** A type tag with precision and scale. */
  decimal: string;
}

/** Type of a new column by the kind of its first literal, unless a setting decides. */
const NEW_TYPES: Record<number, string> = {
  [KIND.tag]: "SYMBOL",
  [KIND.boolean]: "BOOLEAN",
  [KIND.text]: "VARCHAR",
  [KIND.micros]: "TIMESTAMP",
  [KIND.nanos]: "TIMESTAMP_NS",
  [KIND.millis]: "TIMESTAMP",
  [KIND.long256]: "LONG256",
};

/** @throws {LineError} if the column's first value is missing. */
function newColumn(column: LineColumn, types: LineTypes): NewColumn {
  if (column.isUntyped) {
    throw new LineError(column.line, `column ${column.name} is new and has no value to tell its type`);
  }
  const fault = hiddenCharacterFault(column.name);
  if (fault !== undefined) throw new LineError(column.line, fault);
  return {
    name: column.name,
    type: newType(column, types),
    indexed: false,
    symbolCapacity: 256,
    symbolCached: true,
  };
}

function newType({ kind, dimensions }: LineColumn, types: LineTypes): string {
  if (kind === KIND.array) return `DOUBLE${"[]".repeat(dimensions)}`;
  if (kind === KIND.double) return types.float;
  if (kind === KIND.decimal) return types.decimal;
  return kind === KIND.long ? types.integer : NEW_TYPES[kind];
}

/** Finds a column by its exact name ignoring case, or by its name in Unicode normal form. */
function columnOf(known: Map<string, TableColumn>, name: string): TableColumn | undefined {
  return known.get(name.toLowerCase()) ?? known.get(nameKey(name));
}

/** The columns of a schema by lower-case name, and by name in Unicode normal form. */
function columnsOf(schema: TableSchema): Map<string, TableColumn> {
  let columns = columnsBySchema.get(schema);
  if (columns === undefined) {
    columns = new Map(schema.columns.map((column) => [nameKey(column.name), column]));
    for (const column of schema.columns) columns.set(column.name.toLowerCase(), column);
    columnsBySchema.set(schema, columns);
  }
  return columns;
}

const columnsBySchema = new WeakMap<TableSchema, Map<string, TableColumn>>();

/** Columns of the lines that the table lacks. @throws {LineError} */
export function missingColumns(lines: LineTable, schema: TableSchema, types: LineTypes): NewColumn[] {
  const known = columnsOf(schema);
  const missing = lines.columns.filter((column) => columnOf(known, column.name) === undefined);
  checkDistinct(missing);
  return missing.map((column) => newColumn(column, types));
}

/** @throws {LineError} if the names of two new columns have the same Unicode normal form. */
function checkDistinct(columns: readonly LineColumn[]): void {
  const names = new Set<string>();
  for (const { name, line } of columns) {
    const key = nameKey(name);
    if (names.has(key)) throw new LineError(line, `there are two columns ${name}, in different Unicode forms`);
    names.add(key);
  }
}

/**
 * Definition of a new table for the lines: columns in order of appearance, the designated timestamp last. @throws
 * {LineError}
 */
export function newTable(lines: LineTable, partitionBy: PartitionUnit, types: LineTypes): NewTable {
  const given = lines.columns.filter((column) => column.name.toLowerCase() !== TIME_COLUMN);
  const fault = hiddenCharacterFault(lines.name);
  if (fault !== undefined) throw new LineError(lines.line, fault);
  checkDistinct(given);
  const columns = given.map((column) => newColumn(column, types));
  const type = lines.nanosecondTable ? "TIMESTAMP_NS" : "TIMESTAMP";
  columns.push({ name: TIME_COLUMN, type, indexed: false, symbolCapacity: 256, symbolCached: true });
  return { name: lines.name, columns, timestamp: columns.length - 1, partitionBy, wal: true, dedupKeys: [] };
}

/** Converts the rows to the table's types. @throws {LineError} for the first line with a value that does not fit. */
export function fitToTable(lines: LineTable, schema: TableSchema): AppendBatch {
  const columns: AppendColumn[] = [];
  let fault: LineError | undefined;
  let timeField: LineColumn | undefined;
  const known = columnsOf(schema);
  for (const column of lines.columns) {
    const target = columnOf(known, column.name);
    if (target === undefined) throw new LineError(column.line, `table ${schema.name} has no column ${column.name}`);
    if (target.id === schema.timestampId) {
      timeField = column;
      continue;
    }
    try {
      columns.push({ columnId: target.id, ...fitColumn(column, lines, target) });
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      if (fault === undefined || error.line < fault.line) fault = error;
    }
  }
  if (fault !== undefined) throw fault;
  const time = schema.columns.find((column) => column.id === schema.timestampId);
  if (time !== undefined) columns.push({ columnId: time.id, values: fitTimes(lines, timeField, time) });
  else if (lines.timed === undefined || lines.timed.includes(1)) {
    const row = lines.timed === undefined ? 0 : lines.timed.indexOf(1);
    throw new LineError(
      lines.lines[row],
      `table ${schema.name} has no designated timestamp, but the line gives a time`,
    );
  }
  return { rowCount: lines.rowCount, columns };
}

type Fitted = Omit<AppendColumn, "columnId">;

/** The values of a column before conversion: reads them and makes the errors for bad ones. */
class Source {
  readonly doubles: Float64Array;
  readonly longs: BigInt64Array;

  constructor(readonly column: LineColumn, private readonly lines: LineTable, private readonly target: TableColumn) {
    this.doubles = new Float64Array(column.slots.buffer, column.slots.byteOffset, column.slots.length / 2);
    this.longs = new BigInt64Array(column.slots.buffer, column.slots.byteOffset, column.slots.length / 2);
  }

  get rowCount(): number {
    return this.lines.rowCount;
  }

  /** True if all values have this kind. Rows without a value then already have its null. */
  isAll(kind: number): boolean {
    return this.column.kind === kind && !this.column.mixed;
  }

  /** Calls back for each row with a value. */
  forEach(take: (row: number, kind: number) => void): void {
    const { kinds } = this.column;
    for (let row = 0; row < kinds.length; row++) if (kinds[row] !== KIND.none) take(row, kinds[row]);
  }

  /** The bytes of a text or tag. */
  bytes(row: number): Uint8Array {
    const { column } = this;
    if (column.kinds[row] === KIND.tag) {
      const pair = 2 * column.codes[row];
      return column.symbolHeap.subarray(column.symbols[pair], column.symbols[pair] + column.symbols[pair + 1]);
    }
    return column.heap.subarray(column.slots[2 * row], column.slots[2 * row] + column.slots[2 * row + 1]);
  }

  text(row: number): string {
    return new TextDecoder().decode(this.bytes(row));
  }

  refuse(row: number, why?: string): LineError {
    const { name, type } = this.target;
    const what = KIND_NAMES[this.column.kinds[row]];
    return new LineError(this.lines.lines[row], why ?? `column ${name} has type ${type} and cannot take ${what}`);
  }
}

const words = (values: Int32Array): Uint8Array => new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

function fitColumn(column: LineColumn, lines: LineTable, target: TableColumn): Fitted {
  const source = new Source(column, lines, target);
  const fit = FITS[target.type] ?? parametrisedFit(target.type);
  if (fit === undefined) {
    throw source.refuse(firstRow(column), `column ${target.name} has type ${target.type}, which lines cannot fill`);
  }
  return fit(source);
}

function firstRow(column: LineColumn): number {
  return Math.max(0, column.kinds.findIndex((kind) => kind !== KIND.none));
}

/** BYTE, SHORT, INT: accepts integers in range, and booleans as 1 and 0. */
function integers(
  make: (rowCount: number) => Int8Array | Int16Array | Int32Array,
  low: number,
  high: number,
  nullValue: number,
) {
  return (source: Source): Fitted => {
    const values = make(source.rowCount).fill(nullValue);
    source.forEach((row, kind) => {
      if (kind === KIND.boolean) values[row] = source.column.slots[2 * row];
      else if (kind !== KIND.long) throw source.refuse(row);
      else if (!isNull(source, row)) {
        const value = Number(source.longs[row]);
        if (value < low || value > high) throw source.refuse(row, `${source.longs[row]} is out of range`);
        values[row] = value;
      }
    });
    return { values: new Uint8Array(values.buffer) };
  };
}

function isNull(source: Source, row: number): boolean {
  return source.longs[row] === NULL_LONG;
}

const NULL_LONG = -(2n ** 63n);

const long = (source: Source): Fitted => {
  if (source.isAll(KIND.long)) return { values: words(source.column.slots) };
  const values = new BigInt64Array(source.rowCount).fill(NULL_LONG);
  source.forEach((row, kind) => {
    if (kind === KIND.long) values[row] = source.longs[row];
    else if (kind === KIND.boolean) values[row] = BigInt(source.column.slots[2 * row]);
    else throw source.refuse(row);
  });
  return { values: new Uint8Array(values.buffer) };
};

/** Returns a number or a boolean as a double; NaN is null. */
function asDouble(source: Source, row: number, kind: number): number {
  if (kind === KIND.double) return source.doubles[row];
  if (kind === KIND.long) return isNull(source, row) ? NaN : Number(source.longs[row]);
  if (kind === KIND.boolean) return source.column.slots[2 * row];
  throw source.refuse(row);
}

const double = (source: Source): Fitted => {
  if (source.isAll(KIND.double)) return { values: words(source.column.slots) };
  const values = new Float64Array(source.rowCount).fill(NaN);
  source.forEach((row, kind) => values[row] = asDouble(source, row, kind));
  return { values: new Uint8Array(values.buffer) };
};

const float = (source: Source): Fitted => {
  const values = new Float32Array(source.rowCount).fill(NaN);
  source.forEach((row, kind) => {
    const value = Math.fround(asDouble(source, row, kind));
    values[row] = Number.isFinite(value) ? value : NaN;
  });
  return { values: new Uint8Array(values.buffer) };
};

const boolean = (source: Source): Fitted => {
  const values = new Uint8Array(source.rowCount);
  source.forEach((row, kind) => {
    if (kind !== KIND.boolean) throw source.refuse(row);
    values[row] = source.column.slots[2 * row];
  });
  return { values };
};

const floorDivide = (value: bigint, by: bigint): bigint => (value - (((value % by) + by) % by)) / by;

/** Nanoseconds in the unit of each kind of timestamp literal. */
const KIND_NANOS: Record<number, bigint> = { [KIND.nanos]: 1n, [KIND.micros]: 1_000n, [KIND.millis]: 1_000_000n };

/** `unitNanos`: nanoseconds in the column's unit. Bare integers have the column's unit. */
function instants(natural: number, unitNanos: bigint) {
  return (source: Source): Fitted => {
    if (source.isAll(natural) || source.isAll(KIND.long)) return { values: words(source.column.slots) };
    const values = new BigInt64Array(source.rowCount).fill(NULL_LONG);
    source.forEach((row, kind) => {
      const literalNanos = kind === KIND.long ? unitNanos : KIND_NANOS[kind];
      if (literalNanos === undefined) throw source.refuse(row);
      if (isNull(source, row)) return;
      const value = floorDivide(source.longs[row] * literalNanos, unitNanos);
      if (BigInt.asIntN(64, value) !== value) throw source.refuse(row, `${source.longs[row]} is out of range`);
      values[row] = value;
    });
    return { values: new Uint8Array(values.buffer) };
  };
}

/** Text pairs of NULLs. */
function nullPairs(rowCount: number): Int32Array {
  const pairs = new Int32Array(rowCount * 2);
  for (let row = 0; row < rowCount; row++) pairs[2 * row + 1] = -1;
  return pairs;
}

/** Text pairs of texts and tags. */
const text = (source: Source): Fitted => {
  const { column } = source;
  if (source.isAll(KIND.text)) return { values: words(column.slots), heap: column.heap };
  // The bytes of tags go behind those of the texts.
  const heap = new Uint8Array(column.heap.length + column.symbolHeap.length);
  heap.set(column.heap);
  heap.set(column.symbolHeap, column.heap.length);
  const pairs = nullPairs(source.rowCount);
  source.forEach((row, kind) => {
    if (kind === KIND.text) {
      pairs[2 * row] = column.slots[2 * row];
      pairs[2 * row + 1] = column.slots[2 * row + 1];
    } else if (kind === KIND.tag) {
      const symbol = 2 * column.codes[row];
      pairs[2 * row] = column.heap.length + column.symbols[symbol];
      pairs[2 * row + 1] = column.symbols[symbol + 1];
    } else throw source.refuse(row);
  });
  return { values: words(pairs), heap };
};

/** Accepts every kind, as text. */
const symbol = (source: Source): Fitted => {
  const { column } = source;
  if (source.isAll(KIND.tag)) return { values: words(column.codes), heap: column.symbolHeap, symbols: column.symbols };
  const codes = new Int32Array(source.rowCount).fill(-1);
  const known = new Map<string, number>();
  source.forEach((row, kind) => {
    const value = symbolText(source, row, kind);
    if (value === undefined) return;
    let code = known.get(value);
    if (code === undefined) known.set(value, code = known.size);
    codes[row] = code;
  });
  const encoded = [...known.keys()].map((value) => new TextEncoder().encode(value));
  const heap = new Uint8Array(encoded.reduce((size, bytes) => size + bytes.length, 0));
  const symbols = new Int32Array(encoded.length * 2);
  let at = 0;
  encoded.forEach((bytes, code) => {
    heap.set(bytes, at);
    symbols[2 * code] = at;
    symbols[2 * code + 1] = bytes.length;
    at += bytes.length;
  });
  return { values: words(codes), heap, symbols };
};

function symbolText(source: Source, row: number, kind: number): string | undefined {
  if (kind === KIND.double) return Number.isNaN(source.doubles[row]) ? undefined : String(source.doubles[row]);
  if (kind === KIND.long) return isNull(source, row) ? undefined : String(source.longs[row]);
  if (kind === KIND.boolean) return source.column.slots[2 * row] === 1 ? "t" : "f";
  if (kind === KIND.micros || kind === KIND.nanos || kind === KIND.millis) return String(source.longs[row]);
  return source.text(row);
}

/** Types that are parsed from text. */
function readTexts(
  width: number,
  nullValue: bigint,
  read: (bytes: Uint8Array) => bigint | null | undefined,
  literal: number = KIND.text,
) {
  return (source: Source): Fitted => {
    const values = new Uint8Array(source.rowCount * width);
    const view = new DataView(values.buffer);
    for (let at = 0; at < values.length; at += width) writeValue(view, at, width, nullValue);
    source.forEach((row, kind) => {
      if (kind !== KIND.text && kind !== KIND.tag && kind !== literal) throw source.refuse(row);
      const value = read(source.bytes(row));
      if (value === undefined) throw source.refuse(row, `'${excerpt(source.text(row))}' does not fit its column`);
      if (value !== null) writeValue(view, row * width, width, value);
    });
    return { values };
  };
}

function writeValue(view: DataView, at: number, width: number, value: bigint): void {
  if (width === 2) view.setUint16(at, Number(value), true);
  else if (width === 4) view.setUint32(at, Number(value), true);
  else {
    for (let word = 0; word < width / 8; word++) {
      view.setBigUint64(at + 8 * word, BigInt.asUintN(64, value >> BigInt(64 * word)), true);
    }
  }
}

/** The null of types of several words: each word is the smallest i64. */
function wideNull(width: number): bigint {
  let value = 0n;
  for (let word = 0; word < width / 8; word++) value = (value << 64n) | BigInt.asUintN(64, NULL_LONG);
  return value;
}

/** LONG256: accepts `0xffi` and texts. */
const long256 = (source: Source): Fitted =>
  readTexts(32, wideNull(32), (bytes) => parseLong256(new TextDecoder().decode(bytes)), KIND.long256)(source);

/** Types with parameters; undefined for a type that lines cannot fill. */
function parametrisedFit(tag: string): ((source: Source) => Fitted) | undefined {
  const bits = geohashBits(tag);
  // A text that is not a geohash of enough characters becomes null.
  if (bits !== undefined) {
    return readTexts(8, wideNull(8), (bytes) => parseGeohash(new TextDecoder().decode(bytes), bits) ?? null);
  }
  const type = decimalOf(tag);
  if (type !== undefined) return (source) => decimal(source, typeOf(tag).width, type);
  const dimensions = arrayDimensions(tag);
  return dimensions > 0 ? (source) => array(source, dimensions) : undefined;
}

/** Accepts `1.25d`, texts, floats and integers that fit precision and scale. */
function decimal(source: Source, width: number, type: DecimalType): Fitted {
  const values = new Uint8Array(source.rowCount * width);
  const view = new DataView(values.buffer);
  for (let at = 0; at < values.length; at += width) writeValue(view, at, width, wideNull(width));
  source.forEach((row, kind) => {
    if (kind !== KIND.decimal && kind !== KIND.text && kind !== KIND.double && kind !== KIND.long) {
      throw source.refuse(row);
    }
    const text = kind === KIND.decimal ? source.text(row) : symbolText(source, row, kind);
    if (text === undefined) return;
    const value = parseDecimal(text, type);
    if (value === undefined) {
      throw source.refuse(row, `${excerpt(text)} does not fit DECIMAL(${type.precision},${type.scale})`);
    }
    writeValue(view, row * width, width, value);
  });
  return { values };
}

function array(source: Source, dimensions: number): Fitted {
  const { column } = source;
  source.forEach((row, kind) => {
    const found = kind === KIND.array ? column.heap[column.slots[2 * row]] : 0; // fewer than 256, so one byte suffices
    if (found !== dimensions) {
      throw source.refuse(
        row,
        found === 0 ? undefined : `an array of ${found} dimensions does not fit one of ${dimensions}`,
      );
    }
  });
  return { values: words(column.slots.length > 0 ? column.slots : nullPairs(source.rowCount)), heap: column.heap };
}

const NULL_UUID = wideNull(16);

const FITS: Record<string, (source: Source) => Fitted> = {
  BOOLEAN: boolean,
  BYTE: integers((rowCount) => new Int8Array(rowCount), -128, 127, 0),
  SHORT: integers((rowCount) => new Int16Array(rowCount), -32768, 32767, 0),
  INT: integers((rowCount) => new Int32Array(rowCount), -2147483648, 2147483647, -2147483648),
  LONG: long,
  FLOAT: float,
  DOUBLE: double,
  DATE: instants(KIND.millis, 1_000_000n),
  TIMESTAMP: instants(KIND.micros, 1_000n),
  TIMESTAMP_NS: instants(KIND.nanos, 1n),
  STRING: text,
  VARCHAR: text,
  SYMBOL: symbol,
  CHAR: readTexts(2, 0n, (bytes) => {
    const characters = new TextDecoder().decode(bytes);
    return characters.length === 1 ? BigInt(characters.charCodeAt(0)) : undefined;
  }),
  LONG256: long256,
  UUID: readTexts(16, NULL_UUID, (bytes) => parseUuid(bytes, 0, bytes.length)),
  IPv4: readTexts(4, 0n, (bytes) => {
    const address = parseIPv4(bytes, 0, bytes.length);
    return address === undefined ? undefined : BigInt(address >>> 0);
  }),
};

/** Timestamps in the designated timestamp's unit. A field with its name applies to lines without a timestamp. */
function fitTimes(lines: LineTable, field: LineColumn | undefined, target: TableColumn): Uint8Array {
  const inNanos = target.type === "TIMESTAMP_NS";
  let times = words(lines.times);
  if (inNanos) {
    const micros = new BigInt64Array(lines.times.buffer, lines.times.byteOffset, lines.rowCount);
    const nanos = new BigInt64Array(lines.rowCount);
    for (let row = 0; row < nanos.length; row++) {
      nanos[row] = micros[row] * 1_000n + BigInt(lines.timeNanos?.[row] ?? 0);
      if (micros[row] > 9_223_372_036_854_775n) {
        throw new LineError(lines.lines[row], `${micros[row]} us is out of range for TIMESTAMP_NS`);
      }
    }
    times = new Uint8Array(nanos.buffer);
  }
  if (field === undefined || lines.timed === undefined) return times;
  const given = FITS[target.type](new Source(field, lines, target)).values;
  for (let row = 0; row < lines.rowCount; row++) {
    if (lines.timed[row] === 1 || field.kinds[row] === KIND.none) continue;
    times.set(given.subarray(row * 8, row * 8 + 8), row * 8);
  }
  return times;
}
