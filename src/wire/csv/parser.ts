/** Converts a piece of a file to rows of a table. */
import { type Column, convert } from "./values.ts";
import { bytesText, FIELD, type Records, splitRecords, textOf } from "./records.ts";

/** Handling of a value that does not fit: it becomes null, its row is skipped, or nothing is imported. */
export type Atomicity = "skipCol" | "skipRow" | "abort";

/** A column of the table. */
export interface CsvTarget {
  readonly columnId: number;
  readonly name: string;
  /** Type tag. */
  readonly type: string;
  /** Index of its field, or -1 if the file does not have it. */
  readonly field: number;
  /** Pattern of dates and times. */
  readonly pattern?: string;
  /** Rows without a valid value are skipped. */
  readonly isDesignated: boolean;
}

export interface ParseOptions {
  delimiter: number;
  fieldCount: number;
  targets: readonly CsvTarget[];
  atomicity: Atomicity;
  /** Number of the piece's first line. */
  firstLine: number;
  /** True if the piece is the end of the file. */
  isLast: boolean;
  /** Maximum number of faults to return. */
  faultsMax: number;
}

/** A line that was skipped, or a value that became NULL or made its row be skipped. */
export interface CsvFault {
  line: number;
  /** Name of the column. Undefined if the line as a whole is at fault. */
  column?: string;
  /** The start of the value, or of the line. Undefined if there is no value. */
  value?: string;
  reason: string;
}

export interface ParsedCsv {
  rowCount: number;
  columns: (Column & { columnId: number })[];
  /** Number of skipped lines. */
  rejected: number;
  /** For each target, the number of values that did not fit. */
  errors: number[];
  /** The first values and lines that do not fit, by line. */
  faults: CsvFault[];
  doneBytes: number;
  nextLine: number;
}

/** Maximum number of faults of a call. Those of a piece of short lines took hundreds of MiB, in the worker and in main. */
const FAULTS_A_CALL_MAX = 16_384;

export function parseCsv(bytes: Uint8Array, options: ParseOptions): ParsedCsv {
  const { faultsMax, targets } = options;
  // Few records are parsed more than once, and files with few faults in few calls.
  const first = faultsMax <= FAULTS_A_CALL_MAX ? undefined : Math.ceil(4 * FAULTS_A_CALL_MAX / targets.length);
  for (let recordsMax = first;;) {
    const parsed = parseRecords(bytes, { ...options, recordsMax });
    const { rowCount, rejected, errors } = parsed, faultCount = errors.reduce((sum, count) => sum + count, rejected);
    const wanted = Math.min(faultsMax, faultCount), recordCount = rowCount + rejected;
    if (wanted <= FAULTS_A_CALL_MAX || recordCount <= 1) return parsed;
    recordsMax = Math.ceil(recordCount / 2);
  }
}

function parseRecords(bytes: Uint8Array, options: ParseOptions & { recordsMax: number | undefined }): ParsedCsv {
  const { targets, atomicity } = options, faultsMax = Math.min(options.faultsMax, FAULTS_A_CALL_MAX);
  const records = splitRecords(bytes, options);
  const errors = targets.map(() => 0);
  /** 1 for rows to skip. */
  let dropped: Uint8Array | undefined;
  const faults = records.bad.slice(0, faultsMax).map(({ line, from, to, problem }): CsvFault => ({
    line,
    value: excerpt(bytesText(bytes, from, to)),
    reason: problem,
  }));
  const refuse = (target: number, row: number) => {
    errors[target]++;
    const { isDesignated, field, name, type } = targets[target];
    if (isDesignated || atomicity === "skipRow") (dropped ??= new Uint8Array(records.count))[row] = 1;
    if (errors[target] > faultsMax) return;
    const text = field < 0 ? undefined : textOf(bytes, records, row, field);
    const reason = `expected ${type}${isDesignated ? " from 1970 on" : ""}`;
    faults.push({ line: records.lines[row], column: name, value: text && excerpt(text), reason });
  };
  const convertAll = (from: Records, bad: (target: number, row: number) => void) =>
    targets.map(({ columnId, type, field, pattern }, index) => ({
      columnId,
      ...convert({
        bytes,
        records: field < 0 ? nothing(from.count) : from,
        field: Math.max(0, field),
        pattern,
        bad: (row) => bad(index, row),
      }, type),
    }));
  let columns = convertAll(records, refuse);
  targets.forEach(({ isDesignated }, index) => {
    if (isDesignated) forEachUnfit(columns[index].values, (row) => dropped?.[row] === 1 || refuse(index, row));
  });
  let rowCount = records.count;
  const rejected = records.bad.length + (dropped?.reduce((sum, flag) => sum + flag, 0) ?? 0);
  if (dropped !== undefined) {
    const kept = without(records, dropped);
    rowCount = kept.count;
    columns = convertAll(kept, () => {});
  }
  faults.sort((a, b) => a.line - b.line);
  const { doneBytes, nextLine } = records;
  return { rowCount, columns, rejected, errors, faults: faults.slice(0, faultsMax), doneBytes, nextLine };
}

/** Records of one field without a value. */
function nothing(count: number): Records {
  const words = new Int32Array(count), kinds = new Uint8Array(count).fill(FIELD.missing);
  return { fieldCount: 1, count, starts: words, ends: words, kinds, lines: words, bad: [], doneBytes: 0, nextLine: 0 };
}

/** The records that are not dropped. */
function without(records: Records, dropped: Uint8Array): Records {
  const { fieldCount } = records;
  const starts = records.starts.slice(), ends = records.ends.slice(), kinds = records.kinds.slice();
  let count = 0;
  for (let record = 0; record < records.count; record++) {
    if (dropped[record] === 1) continue;
    for (let field = 0; field < fieldCount; field++) {
      const from = record * fieldCount + field, to = count * fieldCount + field;
      starts[to] = starts[from];
      ends[to] = ends[from];
      kinds[to] = kinds[from];
    }
    count++;
  }
  return { ...records, count, starts, ends, kinds };
}

const EXCERPT_MAX = 100;

const excerpt = (text: string): string => text.length <= EXCERPT_MAX ? text : `${text.slice(0, EXCERPT_MAX)}…`;

/** Calls back for each timestamp that cannot be designated: NULL, and times before 1970. */
function forEachUnfit(values: Uint8Array, take: (row: number) => void): void {
  const words = new Int32Array(values.buffer, values.byteOffset, values.byteLength / 4);
  for (let word = 1; word < words.length; word += 2) if (words[word] < 0) take(word >> 1);
}
