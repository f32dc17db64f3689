/** Detects the format of a file from its first lines: delimiter, header, and the types of its columns. */
import { columnNameOf } from "./names.ts";
import { FIELD, type Records, splitRecords, textOf } from "./records.ts";
import { datePatternsOf, typeOfValue, ValueForms } from "./types.ts";

export interface AnalysisOptions {
  /** A byte. Undefined: detected from the lines. */
  delimiter?: number;
  /** Treat the first line as the header, whatever it contains. */
  forceHeader: boolean;
  /** Maximum number of lines to examine. */
  linesMax: number;
  /** True if the bytes are the whole file. */
  isWhole: boolean;
  /** Columns of the table, if it exists. A first line with these names is a header. */
  knownNames?: readonly string[];
}

export interface FoundColumn {
  /** The name in the header. */
  title: string;
  /** From the header; `f0`, `f1` and so on without one. */
  name: string;
  /** VARCHAR if there is no value. */
  type: string;
  /** Pattern of dates that are not in a form of ISO 8601. */
  pattern?: string;
  /** True if all values are dates and times in a form that TIMESTAMP accepts. */
  isInstant: boolean;
}

export interface Analysis {
  delimiter: number;
  hasHeader: boolean;
  columns: FoundColumn[];
  /** Size of the byte order mark and the header. */
  headBytes: number;
  /** Number of lines of the header. */
  headLines: number;
}

const DELIMITERS = [...",\t|;"].map((character) => character.charCodeAt(0));
/** Characters that are frequent in texts, too. They must split all lines alike, and are only looked for if none of the others is found. */
const RARE_DELIMITERS = [...": ^~"].map((character) => character.charCodeAt(0));
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
/** Share of the lines that a detected delimiter splits into as many values as the first one. The others are bad lines. */
const FITTING_MIN = 0.75;
/** Maximum number of fields of a line. More indicate a wrong delimiter. */
const FIELDS_MAX = 10_000;

/** Returns a text with the reason if the format cannot be detected. */
export function analyse(file: Uint8Array, options: AnalysisOptions): Analysis | string {
  const markSize = BYTE_ORDER_MARK.every((byte, index) => file[index] === byte) ? BYTE_ORDER_MARK.length : 0;
  const bytes = file.subarray(markSize);
  const delimiter = options.delimiter ?? findDelimiter(bytes, options);
  if (typeof delimiter === "string") return delimiter;
  const fieldCount = fieldCountOf(bytes, delimiter, options);
  if (typeof fieldCount === "string") return fieldCount;
  const records = split(bytes, delimiter, fieldCount, options.linesMax + 1, options);
  const first = Array.from({ length: fieldCount }, (_, field) => textOf(bytes, records, 0, field));
  const rest = Array.from({ length: fieldCount }, (_, field) => formsOf(bytes, records, field));
  const hasHeader = options.forceHeader || isHeader(first, rest, options.knownNames);
  const columns = first.map((text, field): FoundColumn => {
    const forms = rest[field];
    if (!hasHeader) forms.add(text);
    const { found: type = "VARCHAR", pattern, isInstant } = forms;
    return hasHeader
      ? { title: text ?? "", name: columnNameOf(text ?? "", field), type, pattern, isInstant }
      : { title: "", name: `f${field}`, type, pattern, isInstant };
  });
  const header = hasHeader ? split(bytes, delimiter, fieldCount, 1, options) : undefined;
  return {
    delimiter,
    hasHeader,
    columns,
    headBytes: markSize + (header?.doneBytes ?? 0),
    headLines: (header?.nextLine ?? 1) - 1,
  };
}

function split(
  bytes: Uint8Array,
  delimiter: number,
  fieldCount: number,
  recordsMax: number,
  { isWhole }: AnalysisOptions,
): Records {
  return splitRecords(bytes, { delimiter, fieldCount, firstLine: 1, isLast: isWhole, recordsMax });
}

/** The forms of a column's values without the first line. */
function formsOf(bytes: Uint8Array, records: Records, field: number): ValueForms {
  const forms = new ValueForms();
  for (let record = 1; record < records.count; record++) forms.add(textOf(bytes, records, record, field));
  return forms;
}

const isText = (type: string) => type === "VARCHAR" || type === "CHAR";

/** True if a value could be a name. */
const isWord = (text: string) => isText(typeOfValue(text)) && datePatternsOf(text).length === 0;

/**
 * True if the first line is a header: texts above columns that are not all text, or the names of the table's columns. An
 * empty value says nothing about its column, except above the first one if all others have names, as row numbers have none.
 */
function isHeader(
  first: readonly (string | undefined)[],
  rest: readonly ValueForms[],
  knownNames: readonly string[] | undefined,
): boolean {
  const titles = first.map((text) => text?.trim() ?? "");
  if (titles.every((title) => title === "")) return false;
  const known = knownNames && new Set(knownNames.map((name) => name.toLowerCase()));
  if (known && titles.every((title, field) => known.has(columnNameOf(title, field).toLowerCase()))) return true;
  const isNumbered = titles.every((title, field) => field === 0 || title !== "");
  return titles.every((title) => title === "" || isWord(title)) &&
    rest.some(({ found }, field) =>
      found !== undefined && !isText(found) && (titles[field] !== "" || field === 0 && isNumbered)
    );
}

/** True if no line is a single value of another type than text, such as a date and time with blanks and colons. */
function areTexts(bytes: Uint8Array, options: AnalysisOptions): boolean {
  const records = split(bytes, DELIMITERS[0], 1, options.linesMax, options);
  return Array.from({ length: records.count }, (_, record) => textOf(bytes, records, record, 0))
    .every((text) => text === undefined || isText(typeOfValue(text.trim())));
}

/** Number of fields of the first line. */
function fieldCountOf(bytes: Uint8Array, delimiter: number, options: AnalysisOptions): number | string {
  const { kinds, count, bad } = split(bytes, delimiter, FIELDS_MAX, 1, options);
  if (bad.length > 0) return `line ${bad[0].line}: ${bad[0].problem}`;
  if (count === 0) return "the file has no lines";
  const missing = kinds.subarray(0, FIELDS_MAX).indexOf(FIELD.missing);
  return missing < 0 ? FIELDS_MAX : missing;
}

/** The comma if no line contains any delimiter. */
function findDelimiter(bytes: Uint8Array, options: AnalysisOptions): number | string {
  const usual = splitting(bytes, DELIMITERS, FITTING_MIN, options);
  if (usual.lineCount === 0) return "the file has no lines";
  if (usual.lineCount === 1) return "cannot detect the delimiter from a single line: set the parameter delimiter";
  if (usual.best !== undefined) return usual.best;
  const rare = areTexts(bytes, options) ? splitting(bytes, RARE_DELIMITERS, 1, options).best : undefined;
  if (rare !== undefined) return rare;
  if (!usual.isAny) return DELIMITERS[0];
  return "cannot detect the delimiter: no character splits most lines into as many values as the first one; set the parameter delimiter";
}

/**
 * Finds the character that splits most lines into as many values as the first one, and at least this share of them: the
 * one with the most such lines, then the one with the most values. `isAny`: some line contains one of the characters.
 */
function splitting(
  bytes: Uint8Array,
  delimiters: readonly number[],
  fittingMin: number,
  options: AnalysisOptions,
): { best?: number; lineCount: number; isAny: boolean } {
  let best: number | undefined, bestFits = 0, bestCount = 1, lineCount = 0, isAny = false;
  for (const delimiter of delimiters) {
    const counts = fieldCounts(bytes, delimiter, options), [first] = counts;
    lineCount = Math.max(lineCount, counts.length);
    isAny ||= counts.some((count) => count > 1);
    const fits = counts.filter((count) => count === first).length;
    if (first === 1 || fits < counts.length * fittingMin) continue;
    if (fits > bestFits || fits === bestFits && first > bestCount) {
      [best, bestFits, bestCount] = [delimiter, fits, first];
    }
  }
  return { best, lineCount, isAny };
}

/** Number of fields of each of the first lines. */
function fieldCounts(bytes: Uint8Array, delimiter: number, { linesMax, isWhole }: AnalysisOptions): number[] {
  const counts: number[] = [];
  let count = 1, isQuoted = false, isEmpty = true;
  for (let at = 0; at < bytes.length && counts.length < linesMax; at++) {
    const byte = bytes[at];
    if (byte === 0x22) isQuoted = !isQuoted;
    if (isQuoted) continue;
    if (byte === delimiter) count++;
    else if (byte === 0x0a || byte === 0x0d) {
      if (!isEmpty || count > 1) counts.push(count);
      count = 1;
      isEmpty = true;
      continue;
    }
    isEmpty = false;
  }
  if (isWhole && (!isEmpty || count > 1) && counts.length < linesMax) counts.push(count);
  return counts;
}
