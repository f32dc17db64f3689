/**
 * InfluxDB line protocol → columns.
 *
 *     table[,tag=value]* [field=value[,field=value]*] [time]\n
 *
 * The scanner works on bytes in place. Consecutive lines of a table mostly have the same keys, so the keys of the last line are
 * compared first, and names are decoded only if that fails. The first error ends the parse; the lines before it are returned.
 * @see https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/ (comments are not supported)
 */
import type { LinePrecision } from "../../api.ts";
import { LineError } from "../../errors.ts";
import { DECIMAL_PRECISION_MAX, formatDecimal } from "../../types/wide.ts";
import {
  Arena,
  ColumnBuilder,
  KIND,
  type LineTable,
  NO_BYTES,
  Slab,
  SymbolSet,
  TableBuilder,
  VIEWS,
} from "./columns.ts";
import { columnNameFault, tableNameFault } from "./names.ts";
import { excerpt } from "./excerpts.ts";

export interface ParseOptions {
  precision: LinePrecision;
  /** Timestamp of lines without one. */
  nowMicros: bigint;
  /** Number of the first line; 1 by default. */
  firstLine?: number;
  /**
   * True if more text follows. Then the text ends with a line feed, and a last line whose value continues behind it is
   * left for the next parse.
   */
  isContinued?: boolean;
  /** Maximum length of a line. */
  lineSizeMax?: number;
}

export interface ParsedLines {
  tables: LineTable[];
  /** The first bad line. */
  fault?: { line: number; message: string };
  /** The input. If it was transferred to a thread, it is returned here. */
  body: Uint8Array;
  /** End of the lines in `tables`. After it comes the bad line, or the text for the next parse. */
  doneBytes: number;
  /** Number of the line at `doneBytes`. */
  nextLine: number;
}

const LF = 0x0a, CR = 0x0d, BLANK = 0x20, QUOTE = 0x22, COMMA = 0x2c, EQUALS = 0x3d, BACKSLASH = 0x5c;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const PLUS = 0x2b, MINUS = 0x2d, POINT = 0x2e, UNDERSCORE = 0x5f;

/** Bytes that end a key or a tag's value, or begin an escape. */
const SPECIAL = new Uint8Array(256);
for (const byte of [LF, CR, BLANK, COMMA, EQUALS, BACKSLASH]) SPECIAL[byte] = 1;
/** Bytes that may follow a field's value. */
const ENDS_VALUE = new Uint8Array(256);
for (const byte of [LF, CR, BLANK, COMMA]) ENDS_VALUE[byte] = 1;

const ELEMENT_DOUBLE = 0x0a, ELEMENT_NULL = 0x21;
const DIMENSIONS_MAX = 32;
/** Binary values of protocol version 2 and later, after `==`. */
const BINARY_DOUBLE = 0x10, BINARY_ARRAY = 0x0e, BINARY_DECIMAL = 0x17;

const TWO_32 = 4294967296;
const HASH_START = 0x811c9dc5 | 0, HASH_PRIME = 0x01000193;

/** `POWERS[k]` = 10^k. These are exact doubles, so a product or quotient with an exact operand is rounded only once. */
const POWERS = Array.from({ length: 23 }, (_, power) => Number(`1e${power}`));

/** The units of suffixes: `t`, `n` and `m`. They are those of fields, so `m` is not a minute. */
const TIME_UNITS = new Map<number, LinePrecision>([[0x74, "u"], [0x6e, "n"], [0x6d, "ms"]]);
/** Microseconds in a unit of time. */
const MICROS = { u: 1, ms: 1_000, s: 1_000_000, m: 60_000_000, h: 3_600_000_000 };

/** 9999-12-31T23:59:59.999999Z, the last time of the dialect, and the largest number of nanoseconds. */
const MICROS_MAX = 253402300799999999n, NANOS_MAX = 2n ** 63n - 1n;

/**
 * Approximate maximum memory of the rows of one parse, except for a single line. Many columns with few values need much
 * more than their text.
 */
const ROWS_BYTES_MAX = 16 << 20;
/** Bytes of the result for a byte of text, roughly. */
const RESULT_BYTES = 4;
/** Maximum number of columns in a line. */
const COLUMNS_MAX = 65_536;

/**
 * Parses until the first bad line, or until the rows take too much memory for one parse. `take` may take the rows of a table: it
 * may use their arrays until the next parse. It returns false to leave them to the result.
 */
export function parseLines(
  body: Uint8Array,
  options: ParseOptions,
  take: (lines: LineTable) => boolean = () => false,
): ParsedLines {
  const scanner = new Scanner(options);
  let fault: ParsedLines["fault"];
  try {
    scanner.scan(body);
  } catch (error) {
    if (!(error instanceof LineError)) throw error;
    if (error !== PAUSE) fault = { line: error.line, message: error.message };
  }
  const { lineStart: doneBytes, firstLineOfRow: nextLine } = scanner;
  const arena = new Arena(RESULT_BYTES * body.length);
  const tables: LineTable[] = [];
  for (const table of scanner.tables) {
    if (table.rowCount === 0) continue;
    // Omit columns that occur only in the bad line.
    const columns = table.columns.filter(({ line }) => doneBytes === body.length || line < nextLine);
    if (!take(table.finish(columns, VIEWS))) tables.push(table.finish(columns, arena));
  }
  return { tables, fault, body, doneBytes, nextLine };
}

/** Parses small texts as if they were one, but that none continues in the next. Returns the tables, and the number of rows of each text. @throws {LineError} */
export function parseTexts(
  texts: readonly Uint8Array[],
  options: Pick<ParseOptions, "precision" | "nowMicros" | "lineSizeMax">,
): { tables: LineTable[]; rows: number[] } {
  const scanner = new Scanner(options), rows: number[] = [];
  let bytes = 0;
  for (const text of texts) {
    const before = scanner.rowCount;
    scanner.scan(text, true);
    rows.push(scanner.rowCount - before);
    bytes += text.length;
  }
  const arena = new Arena(RESULT_BYTES * bytes);
  return { tables: scanner.tables.map((table) => table.finish(table.columns, arena)), rows };
}

/** Of this thread, which parses one text at a time. */
const slab = new Slab();
/** Thrown when the line at `lineStart` must be left for the next parse. Making an error takes as long as parsing a line. */
const PAUSE = new LineError(0, "");

class Scanner {
  readonly tables: TableBuilder[] = [];
  private readonly byName = new Map<string, TableBuilder>();
  private bytes = NO_BYTES;
  /** End of the text; a line feed is there. */
  private end = 0;
  private at = 0;
  private line = 0;
  /** Bytes of the last unescaped token. */
  private scratch = new Uint8Array(256);
  private view = new DataView(NO_BYTES.buffer);
  /** The words of the row's time in microseconds. */
  private timeLow = 0;
  private timeHigh = 0;
  private readonly precision: LinePrecision;
  private readonly nowMicros: number;
  private readonly lineSizeMax: number;
  private readonly isContinued: boolean;
  /** Start of the current line, and its number. */
  lineStart = 0;
  firstLineOfRow: number;
  /** Approximate memory of the rows. */
  private rowsBytes = 0;

  constructor(options: ParseOptions) {
    this.precision = options.precision;
    this.nowMicros = Number(options.nowMicros);
    this.firstLineOfRow = options.firstLine ?? 1;
    this.line = this.firstLineOfRow - 1;
    this.isContinued = options.isContinued ?? false;
    this.lineSizeMax = options.lineSizeMax ?? Infinity;
    slab.reset();
  }

  get rowCount(): number {
    return this.tables.reduce((sum, { rowCount }) => sum + rowCount, 0);
  }

  /** Adds the rows of a text, whose lines are numbered from the line after the last one. */
  scan(text: Uint8Array, isStart = this.line === 0): void {
    // A copy with a line feed at the end, so that loops need not check for the end, and the bytes cannot change as
    // shared memory could.
    this.bytes = new Uint8Array(text.length + 16);
    this.bytes.set(text);
    this.bytes[text.length] = LF;
    this.end = text.length;
    this.at = this.lineStart = 0;
    this.view = new DataView(this.bytes.buffer);
    let table: TableBuilder | undefined;
    if (isStart && BYTE_ORDER_MARK.every((byte, index) => this.bytes[index] === byte)) {
      this.lineStart = this.at = BYTE_ORDER_MARK.length;
    }
    while (this.at < this.end) {
      this.line++;
      const byte = this.bytes[this.at];
      if (byte === LF) this.at++;
      else if (byte === CR && this.bytes[this.at + 1] === LF) this.at += 2;
      else table = this.scanLine(table);
      this.lineStart = Math.min(this.at, this.end);
      this.firstLineOfRow = this.line + 1;
    }
  }

  /** Called before rows take more memory. A single line may take any amount. */
  private reserve(bytes: number): void {
    if (bytes === 0) return;
    if (this.rowsBytes + bytes > ROWS_BYTES_MAX && this.lineStart > 0) throw PAUSE;
    this.rowsBytes += bytes;
  }

  private scanLine(last: TableBuilder | undefined): TableBuilder {
    const table = this.table(last);
    const bytes = this.bytes;
    this.reserve(table.growthBytes);
    const row = table.beginRow();
    let step = 0;
    let isEmpty = true;
    while (bytes[this.at] === COMMA) {
      this.at++;
      if (this.isTrailing()) break;
      this.tag(table, row, step++);
      isEmpty = false;
    }
    let nanos = 0, isGiven = false;
    this.setTime(this.nowMicros);
    if (bytes[this.at] === BLANK) {
      this.at++;
      if (!this.isTime(isEmpty)) {
        this.field(table, row, step++);
        isEmpty = false;
        while (bytes[this.at] === COMMA) {
          this.at++;
          if (this.isTrailing()) break;
          this.field(table, row, step++);
        }
        if (bytes[this.at] === BLANK) this.at++;
      }
      const first = bytes[this.at];
      if (first !== LF && first !== CR) {
        isGiven = true;
        nanos = this.time(table);
      }
    }
    if (isEmpty) throw this.fault("expected tags or fields after the table name");
    if (bytes[this.at] === CR && bytes[this.at + 1] === LF) this.at++;
    if (bytes[this.at] !== LF) throw this.unexpected("the end of the line");
    if (this.at >= this.end && this.isContinued) throw PAUSE;
    this.checkSize();
    this.at++;
    table.commitRow(this.timeLow, this.timeHigh, nanos, isGiven, this.line);
    return table;
  }

  private table(last: TableBuilder | undefined): TableBuilder {
    const expected = last?.follower ?? last;
    if (expected !== undefined) {
      if (this.takes(expected.key)) return expected;
      if (expected !== last && this.takes(last!.key)) return last!.follower = last!;
    }
    const from = this.at;
    const to = this.token(true);
    const name = this.decode(to);
    let table = this.byName.get(name.toLowerCase());
    if (table === undefined) {
      const fault = tableNameFault(name);
      if (fault !== undefined) throw this.fault(fault);
      this.reserve(TABLE_BYTES);
      table = new TableBuilder(name, this.bytes.slice(from, this.at), this.line, slab);
      this.byName.set(name.toLowerCase(), table);
      this.tables.push(table);
    }
    if (last !== undefined) last.follower = table;
    return table;
  }

  /** If the table name here is `key`, skips it and returns true. */
  private takes(key: Uint8Array): boolean {
    const { bytes, at } = this;
    for (let index = 0; index < key.length; index++) if (bytes[at + index] !== key[index]) return false;
    const next = bytes[at + key.length];
    if (next !== COMMA && next !== BLANK) return false;
    this.at = at + key.length;
    return true;
  }

  /** Reads the column name here and the `=` after it. Returns the column's index in the table. */
  private column(table: TableBuilder, step: number): number {
    const { bytes, at } = this;
    const known = table.layout[step];
    if (known !== undefined) {
      const key = known.key;
      let same = 0;
      while (same < key.length && bytes[at + same] === key[same]) same++;
      if (same === key.length) {
        this.at = at + same;
        return known.index;
      }
    }
    const to = this.token(false);
    if (bytes[this.at] !== EQUALS) throw this.unexpected("'=' after a name");
    this.at++;
    const name = this.decode(to);
    const found = table.byName.get(name.toLowerCase());
    const index = found?.index ?? this.newColumn(table, name);
    table.layout[step] = { key: bytes.slice(at, this.at), index };
    return index;
  }

  private newColumn(table: TableBuilder, name: string): number {
    const fault = columnNameFault(name);
    if (fault !== undefined) throw this.fault(fault);
    if (table.columns.length >= COLUMNS_MAX) throw this.fault(`a line has more than ${COLUMNS_MAX} columns`);
    this.reserve(table.columnBytes);
    return table.addColumn(name, this.line);
  }

  private tag(table: TableBuilder, row: number, step: number): void {
    const index = this.column(table, step);
    const bytes = this.bytes;
    const from = this.at;
    let at = from, hash = HASH_START, all = 0;
    for (;; at++) {
      const byte = bytes[at];
      if (SPECIAL[byte] === 1) break;
      hash = Math.imul(hash ^ byte, HASH_PRIME);
      all |= byte;
    }
    const isPlain = bytes[at] !== BACKSLASH && bytes[at] !== EQUALS;
    let source = bytes, start = from, to = at;
    if (isPlain) this.at = at;
    else {
      to = this.token(false);
      if (bytes[this.at] === EQUALS) throw this.unexpected("',' or a blank after a tag");
      source = this.scratch;
      start = 0;
      hash = HASH_START;
      for (let index = 0; index < to; index++) {
        hash = Math.imul(hash ^ source[index], HASH_PRIME);
        all |= source[index];
      }
    }
    if (all >= 0x80) this.checkUtf8(source, start, to);
    if (table.lastRow[index] === row) return; // the first of two values is used
    table.lastRow[index] = row;
    const column = table.columns[index];
    column.note(row, KIND.tag);
    column.symbols ??= new SymbolSet(slab);
    column.codes[row] = column.symbols.intern(source, start, to, hash);
  }

  /** True if nothing follows a comma after tags or fields, as QuestDB accepts it. */
  private isTrailing(): boolean {
    const next = this.bytes[this.at];
    return next === BLANK || next === LF || next === CR;
  }

  /** True if the line has no fields: its end or a timestamp is next. `isEmpty`: it has no tags either. */
  private isTime(isEmpty: boolean): boolean {
    const bytes = this.bytes;
    const first = bytes[this.at];
    if (first === LF || first === CR) return true;
    if (isEmpty || !(isDigit(first) || first === MINUS)) return false;
    let at = this.at + 1;
    while (isDigit(bytes[at])) at++;
    if (TIME_UNITS.has(bytes[at])) at++;
    return bytes[at] === LF || bytes[at] === CR;
  }

  private field(table: TableBuilder, row: number, step: number): void {
    const index = this.column(table, step);
    // The first of two values is used, but the second must be well-formed too.
    const isRepeated = table.lastRow[index] === row;
    table.lastRow[index] = row;
    if (isRepeated) this.value(new ColumnBuilder("", -1, this.line, 1, slab), 0);
    else this.value(table.columns[index], row);
  }

  private value(column: ColumnBuilder, row: number): void {
    const first = this.bytes[this.at];
    if (isDigit(first) || first === MINUS || first === PLUS || first === POINT) this.number(column, row);
    else if (first === QUOTE) this.text(column, row);
    else if (first === EQUALS) this.binary(column, row);
    else if (ENDS_VALUE[first] === 0) this.word(column, row);
    else if (column.line === this.line) column.isUntyped = true;
    if (ENDS_VALUE[this.bytes[this.at]] === 0) {
      throw this.unexpected("',', a blank or the end of the line after a value");
    }
  }

  /**
   * A number with its suffix. Up to 15 digits fit exactly into a double, and one multiplication or division by a power
   * of ten up to 10^22 then gives the correctly rounded result (Clinger, "How to Read Floating Point Numbers
   * Accurately", 1990). Other numbers are parsed from text.
   */
  private number(column: ColumnBuilder, row: number): void {
    const bytes = this.bytes;
    const from = this.at;
    let at = from;
    const isNegative = bytes[at] === MINUS;
    if (isNegative || bytes[at] === PLUS) at++;
    if (bytes[at] === 0x30 && (bytes[at + 1] | 0x20) === 0x78) return this.long256(column, row);
    let mantissa = 0, digits = 0, exponent = 0;
    let byte = bytes[at];
    const whole = at;
    while (byte >= 0x30 && byte <= 0x39) {
      mantissa = mantissa * 10 + (byte - 0x30);
      byte = bytes[++at];
    }
    digits = at - whole;
    let isInteger = true;
    if (byte === UNDERSCORE) return this.grouped(column, row, from);
    if (byte === POINT) {
      isInteger = false;
      const fraction = ++at;
      byte = bytes[at];
      while (byte >= 0x30 && byte <= 0x39) {
        mantissa = mantissa * 10 + (byte - 0x30);
        byte = bytes[++at];
      }
      exponent = fraction - at;
      digits += at - fraction;
    }
    if (digits === 0) return this.word(column, row);
    if ((byte | 0x20) === 0x65) {
      isInteger = false;
      let power = 0;
      byte = bytes[++at];
      const isDown = byte === MINUS;
      if (isDown || byte === PLUS) byte = bytes[++at];
      if (!isDigit(byte)) throw this.fault(`'${excerpt(this.ascii(from, at + 1))}' is not a number`);
      while (isDigit(byte)) {
        power = Math.min(9999, power * 10 + (byte - 0x30));
        byte = bytes[++at];
      }
      exponent += isDown ? -power : power;
    }
    this.at = at;
    if (ENDS_VALUE[byte] === 1) {
      let value: number;
      if (digits <= 15 && exponent >= -22 && exponent <= 22) {
        value = exponent < 0 ? mantissa / POWERS[-exponent] : mantissa * POWERS[exponent];
        if (isNegative) value = -value;
      } else {
        value = Number(this.ascii(from, at));
        if (!Number.isFinite(value)) throw this.fault(`${excerpt(this.ascii(from, at))} is too large for a double`);
      }
      column.note(row, KIND.double);
      column.doubles[row] = value;
      return;
    }
    this.at = at + 1;
    if (byte === 0x64) return this.decimal(column, row, from, at);
    const isUnsigned = byte === 0x75 && !isNegative;
    const kind = byte === 0x69 || isUnsigned
      ? KIND.long
      : byte === 0x74
      ? KIND.micros
      : byte === 0x6e
      ? KIND.nanos
      : byte === 0x6d
      ? KIND.millis
      : 0;
    if (kind === 0 || !isInteger) {
      this.skipToken();
      throw this.noValue(from);
    }
    column.note(row, kind);
    if (digits <= 15) {
      const value = isNegative ? -mantissa : mantissa;
      column.setWords(row, value, Math.floor(value / TWO_32));
    } else this.wideInteger(column, row, this.ascii(from, at));
  }

  private wideInteger(column: ColumnBuilder, row: number, text: string): void {
    const digits = text.replace("+", "").replace(/^(-?)0+(?=\d)/, "$1");
    // Do not convert very long digit strings.
    const value = digits.length > 20 ? 1n << 64n : BigInt(digits);
    if (BigInt.asIntN(64, value) !== value) throw this.fault(`${excerpt(text)} is out of the range of LONG`);
    column.setWords(row, Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
  }

  /** `1_000i`. */
  private grouped(column: ColumnBuilder, row: number, from: number): void {
    this.at = from;
    this.skipToken();
    const text = this.ascii(from, this.at);
    if (!/^[+-]?\d+(_\d+)*i$/.test(text)) throw this.noValue(from);
    column.note(row, KIND.long);
    this.wideInteger(column, row, text.slice(0, -1).replaceAll("_", ""));
  }

  private long256(column: ColumnBuilder, row: number): void {
    const from = this.at;
    this.skipToken();
    const text = this.ascii(from, this.at);
    if (!/^0[xX][0-9a-fA-F]{1,64}i$/.test(text)) throw this.noValue(from);
    this.rawText(column, row, KIND.long256, from, this.at - 1);
  }

  /** `1.5d` and `1e3d`, stored as a text without exponent. */
  private decimal(column: ColumnBuilder, row: number, from: number, to: number): void {
    const text = this.ascii(from, to);
    const [, sign, whole, fraction, power] = /^([+-]?)0*(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text)!;
    if (power === undefined) return this.rawText(column, row, KIND.decimal, from, to);
    const digits = whole + fraction, point = whole.length + Number(power);
    const isZero = /^0*$/.test(digits);
    if (!isZero && Math.abs(point) > 2 * DECIMAL_PRECISION_MAX + digits.length) {
      throw this.fault(`${excerpt(text)} is out of the range of DECIMAL`);
    }
    const plain = isZero
      ? "0"
      : point <= 0
      ? `0.${"0".repeat(-point)}${digits}`
      : `${digits.slice(0, point).padEnd(point, "0")}.${digits.slice(point)}0`;
    this.decimalText(column, row, sign + plain);
  }

  private decimalText(column: ColumnBuilder, row: number, text: string): void {
    column.note(row, KIND.decimal);
    const { written } = new TextEncoder().encodeInto(text, column.ensureHeap(text.length).subarray(column.heapSize));
    column.setWords(row, column.heapSize, written);
    column.heapSize += written;
  }

  private rawText(column: ColumnBuilder, row: number, kind: number, from: number, to: number): void {
    column.note(row, kind);
    const heap = column.ensureHeap(to - from);
    heap.set(this.bytes.subarray(from, to), column.heapSize);
    column.setWords(row, column.heapSize, to - from);
    column.heapSize += to - from;
  }

  /** Booleans, and numbers written as words (NaN, Infinity). */
  private word(column: ColumnBuilder, row: number): void {
    const from = this.at;
    this.skipToken();
    const text = this.ascii(from, this.at);
    const boolean = BOOLEANS.get(text.length <= 5 ? text.toLowerCase() : text);
    if (boolean !== undefined) {
      column.note(row, KIND.boolean);
      column.setWords(row, boolean ? 1 : 0, 0);
    } else if (NO_NUMBERS.has(text)) {
      column.note(row, KIND.double);
      column.doubles[row] = NaN;
    } else if (text.endsWith("d") && NO_NUMBERS.has(text.slice(0, -1))) column.noteNull(KIND.decimal);
    else throw this.noValue(from);
  }

  private text(column: ColumnBuilder, row: number): void {
    const bytes = this.bytes;
    const from = ++this.at;
    let at = from, all = 0, byte = bytes[at];
    while (byte !== QUOTE && byte !== BACKSLASH && byte !== LF) {
      all |= byte;
      byte = bytes[++at];
    }
    column.note(row, KIND.text);
    const start = column.heapSize;
    const heap = column.ensureHeap(at - from);
    for (let index = from, to = start; index < at; index++) heap[to++] = bytes[index];
    column.heapSize += at - from;
    while (byte !== QUOTE) {
      // A backslash escapes the next byte, including a line feed.
      if (byte === LF) throw this.fault("a string is not closed");
      if (at + 2 >= this.end) throw this.cut("a string is not closed");
      byte = bytes[++at];
      do {
        if (byte === LF) this.line++;
        column.ensureHeap(1)[column.heapSize++] = byte;
        all |= byte;
        byte = bytes[++at];
      } while (byte !== QUOTE && byte !== BACKSLASH && byte !== LF);
    }
    this.at = at + 1;
    if (all >= 0x80) this.checkUtf8(column.heap, start, column.heapSize);
    column.setWords(row, start, column.heapSize - start);
  }

  private binary(column: ColumnBuilder, row: number): void {
    const type = this.bytes[this.at + 1];
    if (type === BINARY_DOUBLE) {
      if (this.at + 10 > this.end) throw this.cut("a binary double is incomplete");
      const value = this.view.getFloat64(this.at + 2, true);
      column.note(row, KIND.double);
      column.doubles[row] = Number.isFinite(value) ? value : NaN;
      this.at += 10;
      return;
    }
    if (type === BINARY_ARRAY) return this.array(column, row);
    if (type === BINARY_DECIMAL) return this.binaryDecimal(column, row);
    throw this.fault(`unknown binary type ${type}`);
  }

  /**
   *     0e 21        null
   *     0e 0a        array of doubles
   *     dimensions   u8
   *     lengths      u32 each
   *     values       f64 each, row by row
   */
  private array(column: ColumnBuilder, row: number): void {
    const from = this.at + 2;
    if (this.bytes[from] === ELEMENT_NULL) {
      if (column.line === this.line) column.isUntyped = true;
      this.at = from + 1;
      return;
    }
    if (from + 2 > this.end) throw this.cut("an array is incomplete");
    const dimensions = this.bytes[from + 1];
    if (this.bytes[from] !== ELEMENT_DOUBLE) {
      throw this.fault(`unknown element type ${this.bytes[from]} of an array`);
    }
    if (dimensions < 1 || dimensions > DIMENSIONS_MAX) {
      throw this.fault(`invalid number of dimensions of an array: ${dimensions}`);
    }
    const lengths = from + 2;
    let valueCount = lengths + 4 * dimensions <= this.end ? 1 : Infinity;
    for (let index = 0; index < dimensions && valueCount < Infinity; index++) {
      valueCount *= this.view.getUint32(lengths + 4 * index, true);
    }
    const values = lengths + 4 * dimensions;
    const end = values + 8 * valueCount;
    if (!(end <= this.end)) throw this.cut("an array is incomplete");
    column.note(row, KIND.array);
    if (column.dimensions === 0) column.dimensions = dimensions;
    const size = 4 + end - lengths;
    const heap = column.ensureHeap(size);
    const to = new DataView(heap.buffer, heap.byteOffset + column.heapSize, size);
    to.setUint32(0, dimensions, true);
    for (let index = 0; index < dimensions; index++) {
      to.setUint32(4 + 4 * index, this.view.getUint32(lengths + 4 * index, true), true);
    }
    for (let index = 0; index < valueCount; index++) {
      const value = this.view.getFloat64(values + 8 * index, true);
      to.setFloat64(4 + 4 * dimensions + 8 * index, Number.isFinite(value) ? value : NaN, true);
    }
    column.setWords(row, column.heapSize, size);
    column.heapSize += size;
    this.at = end;
  }

  /** 0x17, scale u8, size u8, the unscaled value, most significant byte first. */
  private binaryDecimal(column: ColumnBuilder, row: number): void {
    const scale = this.bytes[this.at + 2], size = this.bytes[this.at + 3];
    const from = this.at + 4;
    if (from > this.end || from + size > this.end) throw this.cut("a binary decimal is incomplete");
    if (size > 32 || scale > DECIMAL_PRECISION_MAX) throw this.fault("a binary decimal is too large");
    this.at = from + size;
    if (size === 0) return column.noteNull(KIND.decimal);
    let value = 0n;
    for (let index = from; index < this.at; index++) value = (value << 8n) | BigInt(this.bytes[index]);
    const text = formatDecimal(BigInt.asIntN(8 * size, value), scale);
    this.decimalText(column, row, text);
  }

  private setTime(micros: number): void {
    this.timeLow = micros;
    this.timeHigh = Math.floor(micros / TWO_32);
  }

  /** Reads the row's time, sets its microseconds, and returns the remaining nanoseconds. */
  private time(table: TableBuilder): number {
    const bytes = this.bytes;
    const from = this.at;
    let at = from;
    if (bytes[at] === MINUS) throw this.fault("a row's time is before 1970");
    while (isDigit(bytes[at])) at++;
    if (at === from) throw this.unexpected("the row's time");
    const to = at;
    const suffix = TIME_UNITS.get(bytes[at]);
    if (suffix !== undefined) {
      if (suffix === "n" && table.rowCount === 0) table.nanosecondTable = true;
      at++;
    }
    const unit = suffix ?? this.precision;
    this.at = at;
    const isNanos = unit === "n";
    const lastDigit = isNanos ? Math.max(from, to - 3) : to;
    let value = 0;
    for (let index = from; index < lastDigit; index++) value = value * 10 + (bytes[index] - 0x30);
    const unitMicros = isNanos ? 1 : MICROS[unit as keyof typeof MICROS];
    const micros = value * unitMicros;
    if (micros <= Number.MAX_SAFE_INTEGER) this.setTime(micros);
    else this.setFarTime(from, to, lastDigit, unitMicros);
    if (!isNanos) return 0;
    let nanos = 0;
    for (let index = lastDigit; index < to; index++) nanos = nanos * 10 + (bytes[index] - 0x30);
    return nanos;
  }

  /** A time from the year 2255 on. Its microseconds are the digits up to `lastDigit`, in units. */
  private setFarTime(from: number, to: number, lastDigit: number, unitMicros: number): void {
    const isNanos = lastDigit < to;
    const max = isNanos ? NANOS_MAX : MICROS_MAX;
    const isLong = to - from > String(NANOS_MAX).length; // do not convert very long digit strings
    if (isLong || BigInt(this.ascii(from, to)) * BigInt(unitMicros) > max) {
      throw this.fault(`${excerpt(this.ascii(from, to))} is out of the range of timestamps`);
    }
    const micros = BigInt(this.ascii(from, lastDigit)) * BigInt(unitMicros);
    this.timeLow = Number(BigInt.asIntN(32, micros));
    this.timeHigh = Number(micros >> 32n);
  }

  /**
   * Unescapes a name or a tag's value into `scratch` and returns its length. It ends before `,`, a blank, a line end
   * and (except for table names) `=`.
   */
  private token(isTable: boolean): number {
    const bytes = this.bytes;
    let size = 0;
    for (let at = this.at;; at++) {
      let byte = bytes[at];
      if (byte === BACKSLASH && SPECIAL[bytes[at + 1]] === 1 && at + 1 < this.end) {
        byte = bytes[++at];
        if (byte === LF) this.line++;
      } else if (SPECIAL[byte] === 1 && byte !== BACKSLASH && !(isTable && byte === EQUALS)) {
        this.at = at;
        return size;
      }
      if (size === this.scratch.length) {
        const larger = new Uint8Array(size * 2);
        larger.set(this.scratch);
        this.scratch = larger;
      }
      this.scratch[size++] = byte;
    }
  }

  private decode(size: number): string {
    return this.checkUtf8(this.scratch, 0, size);
  }

  private checkUtf8(bytes: Uint8Array, from: number, to: number): string {
    try {
      return strictDecoder.decode(bytes.subarray(from, to));
    } catch {
      throw this.fault("a text is not valid UTF-8");
    }
  }

  private skipToken(): void {
    while (ENDS_VALUE[this.bytes[this.at]] === 0) this.at++;
  }

  private ascii(from: number, to: number): string {
    return new TextDecoder().decode(this.bytes.subarray(from, to));
  }

  /** The error for a text that ends within a value. */
  private cut(message: string): LineError {
    return this.isContinued ? PAUSE : this.fault(message);
  }

  private checkSize(): void {
    const size = this.at - this.lineStart;
    if (size > this.lineSizeMax) throw lineTooLong(this.firstLineOfRow, this.lineSizeMax);
  }

  private fault(message: string): LineError {
    return new LineError(this.line, message);
  }

  private noValue(from: number): LineError {
    return this.fault(`'${excerpt(this.ascii(from, this.at))}' is not a value`);
  }

  private unexpected(expected: string): LineError {
    const byte = this.bytes[this.at];
    if (this.at >= this.end || byte === LF) return this.fault(`expected ${expected}, found the end of the line`);
    const from = this.at;
    return this.fault(`expected ${expected}, found '${this.ascii(from, from + 1)}'`);
  }
}

/** The limit is a setting. */
export function lineTooLong(line: number, sizeMax: number): LineError {
  return new LineError(line, `the line is longer than ${sizeMax} bytes (line.tcp.max.measurement.size)`);
}

/** Approximate memory of a table without columns. */
const TABLE_BYTES = 2_048;

const BOOLEANS = new Map([["t", true], ["true", true], ["f", false], ["false", false]]);
const NO_NUMBERS = new Set(["NaN", "Infinity", "-Infinity", "+Infinity"]);
const strictDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}
