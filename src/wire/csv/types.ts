/** Types of columns, found from their values. */
import { encodeAscii } from "../../types/parse/ascii.ts";
import { parseDouble, parseInstant, parseInteger, parseIPv4, parseLong, parseUuid } from "../../types/parse/mod.ts";
import { parseLong256 } from "../../types/wide.ts";

const DATE_FORM = /^\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d|T\d\d:\d\d:\d\d\.\d{1,3}(?:Z|[+-]\d\d:?\d\d)?)?$/;
const FRACTION_FORM = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.(\d{4,9})(?:Z|[+-]\d\d:?\d\d)?$/;

/** The narrowest type of a value. */
export function typeOfValue(text: string): string {
  const bytes = encodeAscii(text);
  if (bytes === undefined) return [...text].length === 1 && text.length === 1 ? "CHAR" : "VARCHAR";
  const { length } = text;
  if (/^[+-]?\d/.test(text)) {
    if (!Number.isNaN(parseInteger(bytes, 0, length, 2147483647))) return "INT";
    if (parseLong(bytes, 0, length) !== undefined) return "LONG";
  }
  if (parseDouble(bytes, 0, length) !== undefined) return "DOUBLE";
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
export function isInstant(text: string): boolean {
  const bytes = encodeAscii(text);
  return bytes !== undefined && /^\d{4}-/.test(text) && parseInstant(bytes, 0, text.length);
}
