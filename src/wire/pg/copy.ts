/**
 * COPY … TO STDOUT: the rows of a query as text, CSV or in PostgreSQL's binary format. COPY of files is a statement of the database
 * and is not read here.
 */
import type { ResultColumn } from "../../api.ts";
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Output } from "./output.ts";
import type { RowSink } from "./portal.ts";

export interface CopyOut {
  query: string;
  /** Offset in the statement of the part of it that `query` ends with, and its offset in `query`. */
  sourceAt: number;
  queryAt: number;
  options: CopyOptions;
}

export interface CopyOptions {
  format: "text" | "csv" | "binary";
  hasHeader: boolean;
  delimiter: string;
  /** The text of NULL. */
  nulls: string;
  quote: string;
  escape: string;
}

// Each space can be matched in one way only: a text may have very many.
const FROM_QUERY = /^(\s*COPY\s*\(\s*)(?=\S)(.*)\)\s*TO\s+(?:STDOUT|STDIN)\b/is;
const FROM_TABLE =
  /^(\s*COPY\s+(?:TABLE\s+)?)((?:"(?:[^"]|"")+"|[\w$]+)(?:\s*\.\s*(?:"(?:[^"]|"")+"|[\w$]+))?)\s*(?:(\(([^()]*)\))\s*)?TO\s+(?:STDOUT|STDIN)\b/is;

/** Most statements are none. */
export function mayBeCopyOut(text: string): boolean {
  return /^\s*COPY\b/i.test(text) && /\bTO\s+(?:STDOUT|STDIN)\b/i.test(text);
}

/** The COPY … TO STDOUT that this text is; undefined for other statements. */
export function copyOut(text: string): CopyOut | undefined {
  const ofQuery = FROM_QUERY.exec(text);
  if (ofQuery !== null) {
    const [all, before = "", query = ""] = ofQuery;
    return { query, sourceAt: before.length, queryAt: 0, options: optionsOf(text, all.length) };
  }
  const ofTable = FROM_TABLE.exec(text);
  if (ofTable === null) return undefined;
  const [all, before = "", table = "", , columns = "*"] = ofTable, start = `select ${columns} from `;
  return {
    query: start + table,
    sourceAt: before.length,
    queryAt: start.length,
    options: optionsOf(text, all.length),
  };
}

const OPTION = /\s*(?:E'((?:[^'\\]|''|\\.)*)'|'((?:[^']|'')*)'|([A-Za-z_]+)|(\S))/isy;
const ESCAPES: Record<string, string> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" };

interface Word {
  at: number;
  kind: "text" | "word" | "mark";
  text: string;
}

function wordsOf(text: string, from: number): Word[] {
  const words: Word[] = [];
  OPTION.lastIndex = from;
  for (let found = OPTION.exec(text); found !== null; found = OPTION.exec(text)) {
    const [all, escaped, plain, word, mark = ""] = found, quoted = (escaped ?? plain)?.replaceAll("''", "'");
    const at = found.index + all.length - all.trimStart().length;
    if (quoted !== undefined) {
      words.push({ at, kind: "text", text: escaped === undefined ? quoted : unescaped(quoted) });
    } else if (word !== undefined) words.push({ at, kind: "word", text: word.toLowerCase() });
    else words.push({ at, kind: "mark", text: mark });
  }
  return words;
}

function unescaped(text: string): string {
  return text.includes("\\") ? text.replace(/\\(.)/gs, (_, letter: string) => ESCAPES[letter] ?? letter) : text;
}

/** `WITH (FORMAT csv, HEADER true)`, and the former `WITH CSV HEADER DELIMITER AS ','`. */
function optionsOf(text: string, from: number): CopyOptions {
  const words = wordsOf(text, from).filter(({ kind, text }) => kind !== "mark" || text !== ";");
  let format: CopyOptions["format"] = "text", hasHeader = false;
  const texts: Partial<Record<string, string>> = {};
  for (let k = 0; k < words.length; k++) {
    const { kind, text: name, at } = words[k]!;
    const value = (): Word | undefined => {
      if (words[k + 1]?.text === "as" && words[k + 1]?.kind === "word") k++;
      return words[++k];
    };
    if (kind === "mark" && "(),".includes(name) || kind === "word" && name === "with") continue;
    switch (kind === "word" ? name : "") {
      case "binary":
      case "csv":
        format = name as CopyOptions["format"];
        break;
      case "format": {
        const given = value();
        if (!given || !["text", "csv", "binary"].includes(given.text)) {
          throw new SqlError("expected FORMAT text, csv or binary", given?.at ?? at, SQLSTATE.invalidParameter);
        }
        format = given.text as CopyOptions["format"];
        break;
      }
      case "header": {
        const next = words[k + 1], isGiven = next !== undefined && /^(?:true|false|on|off|1|0)$/.test(next.text);
        hasHeader = !isGiven || /^(?:true|on|1)$/.test(value()!.text);
        break;
      }
      case "encoding":
        value();
        break;
      case "delimiter":
      case "null":
      case "quote":
      case "escape": {
        const given = value();
        if (given?.kind !== "text") throw new SqlError(`expected a text for ${name.toUpperCase()}`, given?.at ?? at);
        if (name !== "null" && (given.text.length !== 1 || given.text > "\x7f")) {
          throw new SqlError(
            `${name.toUpperCase()} must be one character of ASCII`,
            given.at,
            SQLSTATE.invalidParameter,
          );
        }
        texts[name] = given.text;
        break;
      }
      default:
        throw notSupported(`the option ${name.toUpperCase()} of COPY`, at);
    }
  }
  const isCsv = format === "csv", quote = texts.quote ?? '"';
  return {
    format,
    hasHeader,
    delimiter: texts.delimiter ?? (isCsv ? "," : "\t"),
    nulls: texts.null ?? (isCsv ? "" : "\\N"),
    quote,
    escape: texts.escape ?? quote,
  };
}

const encoder = new TextEncoder();
/** Signature, flags and size of the extension of the binary format. */
const BINARY_HEADER = new Uint8Array([80, 71, 67, 79, 80, 89, 10, 255, 13, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
const BINARY_END = new Uint8Array([255, 255]);
const HEAD_SIZE = 5;

/** Rows are converted in pieces of about this many bytes. */
const PIECE_SIZE = 32_768;
/** After so long, others get a turn. */
const TURN_MS = 5;

/** Converts rows to the data of COPY. Each row is one message. */
export class CopyRows implements RowSink {
  /** Goes in front of the first row, or of the end. */
  private header: Uint8Array<ArrayBuffer> | undefined;
  private readonly isBinary: boolean;
  private readonly lines: Lines;

  constructor(
    private readonly output: Output,
    columns: readonly ResultColumn[],
    { format, hasHeader, ...marks }: CopyOptions,
  ) {
    this.isBinary = format === "binary";
    this.lines = new Lines(format === "csv", marks, columns.map(({ type }) => type === "BINARY"));
    output.copyOutResponse(columns.length, this.isBinary ? 1 : 0);
    if (this.isBinary) this.header = BINARY_HEADER;
    else if (hasHeader) output.copyData(this.lines.header(columns.map(({ name }) => name)));
  }

  noticeResponse(message: string): void {
    this.output.noticeResponse(message);
  }

  /** What is converted has at most four times the size. */
  hasRoom({ length }: Pick<Uint8Array, "length">): boolean {
    return this.output.hasRoom({ length: length * 4 + BINARY_HEADER.length });
  }

  rows(bytes: Uint8Array): Promise<void> | undefined {
    return bytes.length <= PIECE_SIZE ? this.output.rows(this.converted(bytes)) : this.inPieces(bytes);
  }

  private async inPieces(bytes: Uint8Array): Promise<void> {
    let turnMs = performance.now();
    for (let from = 0, to = 0; from < bytes.length; from = to) {
      while (to < bytes.length && to - from < PIECE_SIZE) to += 1 + sizeAt(bytes, to);
      const sent = this.output.rows(this.converted(bytes.subarray(from, to)));
      if (sent !== undefined) await sent;
      if (performance.now() - turnMs > TURN_MS) {
        await new Promise((resolve) => setTimeout(resolve, 0));
        turnMs = performance.now();
      }
    }
  }

  end(): void {
    if (this.isBinary) {
      this.output.copyData(this.header === undefined ? BINARY_END : joined(this.header, BINARY_END));
    }
    this.output.copyDone();
  }

  private converted(rows: Uint8Array): Uint8Array<ArrayBuffer> {
    return this.isBinary ? this.binary(rows) : this.lines.of(rows);
  }

  /** The body of DataRow is a row of the binary format. */
  private binary(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const data = bytes.slice();
    for (let at = 0; at < data.length; at += 1 + sizeAt(data, at)) data[at] = COPY_DATA;
    const { header } = this;
    if (header === undefined || data.length === 0) return data;
    this.header = undefined;
    const first = 1 + sizeAt(data, 0);
    const message = new Uint8Array(header.length + data.length);
    message.set(data.subarray(0, HEAD_SIZE));
    message.set(header, HEAD_SIZE);
    message.set(data.subarray(HEAD_SIZE), HEAD_SIZE + header.length);
    new DataView(message.buffer).setInt32(1, first - 1 + header.length);
    return message;
  }
}

/** Writes lines of text or CSV. */
class Lines {
  private readonly nulls: Uint8Array;
  private readonly delimiter: number;
  private readonly quote: number;
  private readonly escape: number;
  /** By byte: of text, what stands behind the backslash; of CSV, 1 if it requires quotes. 0 for others. */
  private readonly special = new Uint8Array(256);
  private data = new Uint8Array(2 * PIECE_SIZE);
  private at = 0;

  constructor(
    private readonly isCsv: boolean,
    { delimiter, nulls, quote, escape }: Pick<CopyOptions, "delimiter" | "nulls" | "quote" | "escape">,
    /** By column: values are bytes, which are written in hexadecimal digits. */
    private readonly areBytes: readonly boolean[],
  ) {
    this.nulls = encoder.encode(nulls);
    [this.delimiter, this.quote, this.escape] = [delimiter, quote, escape].map((mark) => mark.charCodeAt(0)) as [
      number,
      number,
      number,
    ];
    if (isCsv) { for (const mark of `${delimiter}${quote}\n\r`) this.special[mark.charCodeAt(0)] = 1; }
    else {
      for (const [letter, character] of Object.entries(ESCAPES)) {
        this.special[character.charCodeAt(0)] = letter.charCodeAt(0);
      }
      for (const mark of `\\${delimiter}`) this.special[mark.charCodeAt(0)] ||= mark.charCodeAt(0);
    }
  }

  header(names: readonly string[]): Uint8Array<ArrayBuffer> {
    this.at = 0;
    names.forEach((name, k) => this.value(k, encoder.encode(name)));
    return this.ended().slice();
  }

  /** The lines of DataRow messages, as CopyData messages. */
  of(rows: Uint8Array): Uint8Array<ArrayBuffer> {
    const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
    this.at = 0;
    for (let at = 0; at < rows.length; at += 1 + sizeAt(rows, at)) {
      const start = this.at, count = view.getInt16(at + HEAD_SIZE);
      this.reserve(HEAD_SIZE);
      this.at += HEAD_SIZE;
      for (let k = 0, from = at + HEAD_SIZE + 2; k < count; k++) {
        const length = view.getInt32(from);
        from += 4;
        if (length < 0) this.value(k, undefined);
        else this.value(k, rows.subarray(from, from += length));
      }
      this.ended();
      const size = this.at - start - 1, { data } = this;
      data[start] = COPY_DATA;
      for (let k = 0; k < 4; k++) data[start + 1 + k] = size >>> (24 - 8 * k);
    }
    return this.data.slice(0, this.at);
  }

  private ended(): Uint8Array<ArrayBuffer> {
    this.reserve(1);
    this.data[this.at++] = LINE_END;
    return this.data.subarray(0, this.at);
  }

  private value(column: number, value: Uint8Array | undefined): void {
    const { nulls, delimiter, isCsv, areBytes } = this;
    this.reserve(
      2 + (value === undefined ? nulls.length : areBytes[column] ? 3 + 2 * value.length : 2 * value.length + 1),
    );
    if (column > 0) this.data[this.at++] = delimiter;
    if (value === undefined) return this.raw(nulls);
    const bytes = areBytes[column] ? encoder.encode(`\\x${value.toHex()}`) : value;
    if (isCsv) this.csv(bytes);
    else this.escaped(bytes);
  }

  private escaped(value: Uint8Array): void {
    const { data, special } = this;
    let { at } = this;
    for (let k = 0; k < value.length; k++) {
      const byte = value[k]!, letter = special[byte]!;
      if (letter !== 0) data[at++] = BACKSLASH;
      data[at++] = letter !== 0 ? letter : byte;
    }
    this.at = at;
  }

  private csv(value: Uint8Array): void {
    const { data, quote, escape } = this;
    if (!this.needsQuotes(value)) return this.raw(value);
    let { at } = this;
    data[at++] = quote;
    for (let k = 0; k < value.length; k++) {
      const byte = value[k]!;
      if (byte === quote || byte === escape) data[at++] = escape;
      data[at++] = byte;
    }
    data[at++] = quote;
    this.at = at;
  }

  private needsQuotes(value: Uint8Array): boolean {
    const { special, nulls } = this;
    for (let k = 0; k < value.length; k++) {
      if (special[value[k]!] !== 0) return true;
    }
    return value.length === nulls.length && value.every((byte, k) => byte === nulls[k]);
  }

  private raw(bytes: Uint8Array): void {
    this.data.set(bytes, this.at);
    this.at += bytes.length;
  }

  private reserve(size: number): void {
    if (this.at + size <= this.data.length) return;
    const data = new Uint8Array(2 * (this.at + size));
    data.set(this.data.subarray(0, this.at));
    this.data = data;
  }
}

const LINE_END = 10, BACKSLASH = 92;
const COPY_DATA = 0x64;
/** The size of a message's body with its size. */
function sizeAt(bytes: Uint8Array, at: number): number {
  return (bytes[at + 1]! << 24) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
