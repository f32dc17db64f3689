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

const FROM_QUERY = /^(\s*COPY\s*\(\s*)(.*)\)\s*TO\s+(?:STDOUT|STDIN)\b/is;
const FROM_TABLE =
  /^(\s*COPY\s+(?:TABLE\s+)?)((?:"(?:[^"]|"")+"|[\w$]+)(?:\s*\.\s*(?:"(?:[^"]|"")+"|[\w$]+))?)\s*(\(([^()]*)\))?\s*TO\s+(?:STDOUT|STDIN)\b/is;

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
        if (name !== "null" && [...given.text].length !== 1) {
          throw new SqlError(`${name.toUpperCase()} must be one character`, given.at, SQLSTATE.invalidParameter);
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

const encoder = new TextEncoder(), decoder = new TextDecoder();
/** Signature, flags and size of the extension of the binary format. */
const BINARY_HEADER = new Uint8Array([80, 71, 67, 79, 80, 89, 10, 255, 13, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
const BINARY_END = new Uint8Array([255, 255]);
const HEAD_SIZE = 5;

/** Converts rows to the data of COPY. Each row is one message. */
export class CopyRows implements RowSink {
  /** Goes in front of the first row, or of the end. */
  private header: Uint8Array<ArrayBuffer> | undefined;
  private readonly binaryColumns: boolean[];
  private readonly special: RegExp;

  constructor(
    private readonly output: Output,
    columns: readonly ResultColumn[],
    private readonly options: CopyOptions,
  ) {
    this.binaryColumns = columns.map(({ type }) => type === "BINARY");
    const { delimiter, quote, format, hasHeader } = options;
    this.special = new RegExp(
      `[${
        (format === "csv" ? `${delimiter}${quote}\n\r` : `${delimiter}\\\b\f\n\r\t\v`).replace(/[\\\]^-]/g, "\\$&")
      }]`,
      format === "csv" ? "" : "g",
    );
    output.copyOutResponse(columns.length, format === "binary" ? 1 : 0);
    if (format === "binary") this.header = BINARY_HEADER;
    else if (hasHeader) output.copyData(encoder.encode(this.line(columns.map(({ name }) => name))));
  }

  noticeResponse(message: string): void {
    this.output.noticeResponse(message);
  }

  /** What is converted has at most four times the size. */
  hasRoom({ length }: Pick<Uint8Array, "length">): boolean {
    return this.output.hasRoom({ length: length * 4 + BINARY_HEADER.length });
  }

  rows(bytes: Uint8Array): Promise<void> | undefined {
    return this.output.rows(this.options.format === "binary" ? this.binary(bytes) : this.text(bytes));
  }

  end(): void {
    if (this.options.format === "binary") {
      this.output.copyData(this.header === undefined ? BINARY_END : joined(this.header, BINARY_END));
    }
    this.output.copyDone();
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

  private text(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const lines: Uint8Array<ArrayBuffer>[] = [];
    let size = 0;
    for (let at = 0; at < bytes.length; at += 1 + sizeAt(bytes, at)) {
      const values: (string | null)[] = [];
      const count = view.getInt16(at + HEAD_SIZE);
      for (let k = 0, from = at + HEAD_SIZE + 2; k < count; k++) {
        const length = view.getInt32(from);
        from += 4;
        if (length < 0) values.push(null);
        else {
          const value = bytes.subarray(from, from + length);
          values.push(this.binaryColumns[k] ? `\\x${value.toHex()}` : decoder.decode(value));
          from += length;
        }
      }
      const line = encoder.encode(this.line(values));
      lines.push(line);
      size += HEAD_SIZE + line.length;
    }
    const data = new Uint8Array(size), sizes = new DataView(data.buffer);
    let at = 0;
    for (const line of lines) {
      data[at] = COPY_DATA;
      sizes.setInt32(at + 1, line.length + 4);
      data.set(line, at + HEAD_SIZE);
      at += HEAD_SIZE + line.length;
    }
    return data;
  }

  private line(values: readonly (string | null)[]): string {
    const { delimiter, format, nulls } = this.options;
    const written = format === "csv" ? this.csv : this.escaped;
    return values.map((value) => value === null ? nulls : written(value)).join(delimiter) + "\n";
  }

  private readonly csv = (value: string): string => {
    const { quote, escape, nulls } = this.options;
    if (value !== nulls && !this.special.test(value)) return value;
    const doubled = escape === quote ? value : value.replaceAll(escape, escape + escape);
    return quote + doubled.replaceAll(quote, escape + quote) + quote;
  };

  private readonly escaped = (value: string): string =>
    value.replace(this.special, (character) => `\\${LETTERS[character] ?? character}`);
}

const COPY_DATA = 0x64;
const LETTERS: Record<string, string> = Object.fromEntries(
  Object.entries(ESCAPES).map(([letter, character]) => [character, letter]),
);

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
