/** Types of columns, found from their values. */
import { parsePattern } from "../../types/format/pattern.ts";
import { encodeAscii } from "../../types/parse/ascii.ts";
import { parseInstant, parseInteger, parseIPv4, parseUuid } from "../../types/parse/mod.ts";
import { parseLong256 } from "../../types/wide.ts";
import { readDouble, readLong } from "./numbers.ts";

const DATE_FORM = /^\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d|T\d\d:\d\d:\d\d\.\d{1,3}(?:Z|[+-]\d\d:?\d\d)?)?$/;
const FRACTION_FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.(\d{4,9})(?:Z|[+-]\d\d:?\d\d)?$/;

/** The narrowest type of a value. */
export function typeOfValue(text: string): string {
  const bytes = encodeAscii(text);
  if (bytes === undefined) return [...text].length === 1 && text.length === 1 ? "CHAR" : "VARCHAR";
  const { length } = text;
  if (/^[+-]?\d/.test(text)) {
    if (!Number.isNaN(parseInteger(bytes, 0, length, 2147483647))) return "INT";
    if (readLong(bytes, 0, length) !== undefined) return "LONG";
  }
  if (readDouble(bytes, 0, length) !== undefined) return "DOUBLE";
  if (/^(?:true|false)$/i.test(text)) return "BOOLEAN";
  if (DATE_FORM.test(text)) return parseInstant(bytes, 0, length) ? "DATE" : "VARCHAR";
  const fraction = FRACTION_FORM.exec(text);
  if (fraction !== null) {
    if (!parseInstant(bytes, 0, length)) return "VARCHAR";
    return fraction[1].length > 6 ? "TIMESTAMP_NS" : "TIMESTAMP";
  }
  if (length === 36 && parseUuid(bytes, 0, length) !== undefined) return "UUID";
  if (text === "null" || parseIPv4(bytes, 0, length) !== undefined) return "IPv4";
  if (parseLong256(text) !== undefined) return "LONG256";
  return length === 1 ? "CHAR" : "VARCHAR";
}

const NUMBERS = ["INT", "LONG", "DOUBLE"];

/** The type for the values of both. Undefined represents the type of no values. */
export function commonType(a: string | undefined, b: string): string {
  if (a === undefined || a === b) return b;
  const [x, y] = [NUMBERS.indexOf(a), NUMBERS.indexOf(b)];
  return x >= 0 && y >= 0 ? NUMBERS[Math.max(x, y)] : "VARCHAR";
}

/** True if a TIMESTAMP column accepts the text. */
function isInstant(text: string): boolean {
  const bytes = encodeAscii(text);
  return bytes !== undefined && /^\d{4}-/.test(text) && parseInstant(bytes, 0, text.length);
}

/** Patterns of dates besides the forms of ISO 8601. The first one that all values of a column have is taken. */
const DATE_PATTERNS: readonly string[] = ["dd/MM/y", "MM/dd/y"];
const SLASHED_DATE = /^\d\d\/\d\d\/(?:\d\d|\d{4})$/;

/** The patterns that a value has. */
export function datePatternsOf(text: string): readonly string[] {
  return SLASHED_DATE.test(text) ? DATE_PATTERNS.filter((pattern) => parsePattern(pattern, text)) : [];
}

/** The common form of some values. */
export class ValueForms {
  private type: string | undefined;
  private patterns = DATE_PATTERNS;
  private areInstants = true;
  /** Some integer has the letter of LONG, which a DOUBLE cannot have. */
  private hasLongLetter = false;

  /** Blank texts count as no value. */
  add(value: string | undefined): void {
    const text = value?.trim() ?? "";
    if (text === "") return;
    this.areInstants &&= isInstant(text);
    if (this.patterns.length > 0) {
      const patterns = datePatternsOf(text);
      this.patterns = this.patterns.filter((pattern) => patterns.includes(pattern));
    }
    if (this.type === "VARCHAR") return;
    const type = typeOfValue(text);
    this.hasLongLetter ||= type === "LONG" && /l$/i.test(text);
    this.type = commonType(this.type, type);
    if (this.type === "DOUBLE" && this.hasLongLetter) this.type = "VARCHAR";
  }

  /** Undefined if there is no value. */
  get found(): string | undefined {
    return this.pattern === undefined ? this.type : "DATE";
  }

  /** Pattern of dates that are not in a form of ISO 8601. */
  get pattern(): string | undefined {
    return this.type === undefined ? undefined : this.patterns[0];
  }

  /** True if all values are dates and times that a TIMESTAMP column accepts. */
  get isInstant(): boolean {
    return this.type !== undefined && this.areInstants;
  }
}
