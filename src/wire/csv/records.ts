/**
 * Splits bytes into records and fields.
 *
 *     record   field (delimiter field)* (LF | CRLF | CR)      an empty line is skipped
 *     field    bytes without delimiter, LF and CR | "…"       `""` within quotes is one quote; blanks may follow
 *
 * @see https://www.rfc-editor.org/rfc/rfc4180
 */

const QUOTE = 0x22, LF = 0x0a, CR = 0x0d, BLANK = 0x20, TAB = 0x09;

/**
 * The end of the last whole line of some bytes, which may be within a value; 0: there is none. After a CR it is only if
 * no LF can follow.
 */
export function endOfCsvLines(bytes: Uint8Array): number {
  return bytes.lastIndexOf(LF) + 1 || bytes.subarray(0, -1).lastIndexOf(CR) + 1;
}

/** Kind of a field. */
export const FIELD = {
  plain: 0,
  quoted: 1,
  /** Quoted, with doubled quotes. */
  escaped: 2,
  /** The record has fewer fields. */
  missing: 3,
} as const;

/** A record that cannot be split into the expected fields. */
export interface BadRecord {
  line: number;
  /** Its bytes, without the line end. */
  from: number;
  to: number;
  problem: string;
}

/** Fields of records as offsets into the bytes. Field `f` of record `r` is at `r * fieldCount + f`. */
export interface Records {
  readonly fieldCount: number;
  count: number;
  starts: Int32Array;
  ends: Int32Array;
  kinds: Uint8Array;
  /** Number of the first line of each record. */
  lines: Int32Array;
  bad: BadRecord[];
  /** Number of bytes before the first incomplete record. */
  doneBytes: number;
  /** Number of the line at `doneBytes`. */
  nextLine: number;
}

export interface SplitOptions {
  delimiter: number;
  /** Expected number of fields. Records with more are errors, and records with fewer have missing fields. */
  fieldCount: number;
  /** Number of the first line. */
  firstLine: number;
  /** True if no bytes follow, so that the last record needs no line end. */
  isLast: boolean;
  /** Stop after this many records, or earlier if they have many fields. */
  recordsMax?: number;
}

const FIRST_RECORDS = 1024;

/** Limits the memory of a call, because short lines may represent records with many missing fields. */
const CELLS_MAX = 1 << 21;

/** Maximum number of records of a call. */
function recordsMaxOf(fieldCount: number): number {
  return Math.max(2, Math.floor(CELLS_MAX / fieldCount));
}

export function splitRecords(bytes: Uint8Array, options: SplitOptions): Records {
  const { delimiter, fieldCount, isLast } = options;
  const recordsMax = Math.min(options.recordsMax ?? Infinity, recordsMaxOf(fieldCount));
  const { length } = bytes;
  let capacity = Math.min(recordsMax, Math.max(FIRST_RECORDS, Math.floor(length / Math.max(64, 2 * fieldCount))));
  let starts = new Int32Array(capacity * fieldCount), ends = new Int32Array(capacity * fieldCount);
  let kinds = new Uint8Array(capacity * fieldCount), lines = new Int32Array(capacity);
  const bad: BadRecord[] = [];
  let count = 0, at = 0, line = options.firstLine, doneBytes = 0, nextLine = line;
  while (at < length && count + bad.length < recordsMax) {
    if (count === capacity) {
      capacity *= 2;
      [starts, ends] = [grown(starts, capacity * fieldCount), grown(ends, capacity * fieldCount)];
      [kinds, lines] = [grownBytes(kinds, capacity * fieldCount), grown(lines, capacity)];
    }
    const base = count * fieldCount, recordStart = at;
    lines[count] = line;
    let field = 0, problem: string | undefined, isBlank = false, isComplete = false, recordEnd = at;
    for (;;) {
      let start = at, end = at, kind: number = FIELD.plain;
      if (bytes[at] === QUOTE) {
        kind = FIELD.quoted;
        start = ++at;
        for (; at < length; at++) {
          const byte = bytes[at];
          if (byte <= CR) {
            if (byte === LF || byte === CR && bytes[at + 1] !== LF) line++;
          } else if (byte === QUOTE) {
            if (bytes[at + 1] !== QUOTE || at + 1 === length) break;
            kind = FIELD.escaped;
            at++;
          }
        }
        end = at;
        if (at === length) {
          if (!isLast) break;
          problem = "a quoted value is not closed";
        } else at++;
        while (at < length && (bytes[at] === BLANK || bytes[at] === TAB) && bytes[at] !== delimiter) at++;
        if (at < length && bytes[at] !== delimiter && bytes[at] !== LF && bytes[at] !== CR) {
          problem ??= "found text after a quoted value, expected a delimiter or a line end";
          while (at < length && bytes[at] !== LF && bytes[at] !== CR) at++;
        }
      } else {
        for (; at < length; at++) {
          const byte = bytes[at];
          if (byte === delimiter || byte <= CR && (byte === LF || byte === CR)) break;
        }
        end = at;
        isBlank = field === 0 && start === end;
      }
      if (field < fieldCount) {
        starts[base + field] = start;
        ends[base + field] = end;
        kinds[base + field] = kind;
      }
      field++;
      if (at < length && bytes[at] === delimiter) {
        at++;
        continue;
      }
      recordEnd = at;
      if (at < length) {
        at += bytes[at] === CR && bytes[at + 1] === LF ? 2 : 1;
        line++;
      } else if (!isLast) break;
      isComplete = true;
      break;
    }
    if (!isComplete) break;
    doneBytes = at;
    nextLine = line;
    if (isBlank && field === 1) continue;
    if (field > fieldCount) problem ??= `found ${field} values, expected ${fieldCount}`;
    if (problem !== undefined) {
      bad.push({ line: lines[count], from: recordStart, to: recordEnd, problem });
      continue;
    }
    for (; field < fieldCount; field++) {
      starts[base + field] = ends[base + field] = 0;
      kinds[base + field] = FIELD.missing;
    }
    count++;
  }
  return { fieldCount, count, starts, ends, kinds, lines, bad, doneBytes, nextLine };
}

function grown(values: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(length);
  larger.set(values);
  return larger;
}

function grownBytes(values: Uint8Array<ArrayBuffer>, length: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(length);
  larger.set(values);
  return larger;
}

const utf8 = new TextDecoder();

export const bytesText = (bytes: Uint8Array, from: number, to: number): string => utf8.decode(bytes.subarray(from, to));

/** The text of a field; undefined if it has no value. */
export function textOf(bytes: Uint8Array, records: Records, record: number, field: number): string | undefined {
  const at = record * records.fieldCount + field;
  const kind = records.kinds[at];
  if (kind === FIELD.missing) return undefined;
  const text = bytesText(bytes, records.starts[at], records.ends[at]);
  if (kind === FIELD.plain && text === "") return undefined;
  return kind === FIELD.escaped ? text.replaceAll('""', '"') : text;
}
