/** Converts a piece of a file to rows of a table. */
import { type Column, convert } from "./values.ts";
import { FIELD, type Records, splitRecords, textOf } from "./records.ts";

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
}

export interface CsvFault {
  line: number;
  message: string;
}

export interface ParsedCsv {
  rowCount: number;
  columns: (Column & { columnId: number })[];
  /** Number of skipped lines. */
  rejected: number;
  /** For each target, the number of values that did not fit. */
  errors: number[];
  /** With `abort`: the first value or line that does not fit. */
  fault?: CsvFault;
  doneBytes: number;
  nextLine: number;
}

export function parseCsv(bytes: Uint8Array, options: ParseOptions): ParsedCsv {
  const { targets, atomicity } = options;
  const records = splitRecords(bytes, options);
  const errors = targets.map(() => 0);
  /** 1 for rows to skip. */
  let dropped: Uint8Array | undefined;
  let fault: CsvFault | undefined = records.bad[0] && { line: records.bad[0].line, message: records.bad[0].problem };
  const refuse = (target: number, row: number) => {
    errors[target]++;
    const { isDesignated, field, name, type } = targets[target];
    if (isDesignated || atomicity === "skipRow") (dropped ??= new Uint8Array(records.count))[row] = 1;
    const line = records.lines[row];
    if (atomicity !== "abort" || fault !== undefined && fault.line <= line) return;
    const found = excerpt(field < 0 ? undefined : textOf(bytes, records, row, field));
    fault = { line, message: `column ${name}: found ${found}, expected ${type}` };
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
  if (atomicity !== "abort") fault = undefined;
  return { rowCount, columns, rejected, errors, fault, doneBytes: records.doneBytes, nextLine: records.nextLine };
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

const EXCERPT_MAX = 40;

function excerpt(text: string | undefined): string {
  if (text === undefined) return "nothing";
  return text.length <= EXCERPT_MAX ? `'${text}'` : `'${text.slice(0, EXCERPT_MAX)}…'`;
}

/** Calls back for each timestamp that cannot be designated: NULL, and times before 1970. */
function forEachUnfit(values: Uint8Array, take: (row: number) => void): void {
  const words = new Int32Array(values.buffer, values.byteOffset, values.byteLength / 4);
  for (let word = 1; word < words.length; word += 2) if (words[word] < 0) take(word >> 1);
}
