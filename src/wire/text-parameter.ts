/** Statement parameters that a client sends as text. */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { Value } from "../types/mod.ts";
import { readValue } from "../types/parse/mod.ts";

const TRUE = /^(?:t|tr|tru|true|y|ye|yes|on|1)$/i;
const FALSE = /^(?:f|fa|fal|fals|false|n|no|of|off|0)$/i;

/** Returns the value of parameter `number` (from 1). @throws {SqlError} 22P02 */
export function textParameter(text: string, tag: string, number: number): Value {
  switch (tag) {
    case "BOOLEAN":
      if (TRUE.test(text)) return true;
      if (FALSE.test(text)) return false;
      throw noValue(`'${text}' is not a BOOLEAN`, number);
    case "DATE":
    case "TIMESTAMP":
    case "TIMESTAMP_NS":
      // A plain integer is in the type's own unit since 1970; it is not a year.
      if (/^-?\d{1,19}$/.test(text)) return BigInt(text);
      // Some drivers write dates with an offset: it means midnight there.
      text = text.replace(/^(\d{4}-\d\d-\d\d) ?([+-]\d\d(?::?\d\d)?)$/, "$1T00:00:00$2");
      break;
    case "UUID":
      // PostgreSQL accepts the digits in any grouping, and some drivers send no groups.
      if (/^\{?[0-9a-fA-F-]{32,40}\}?$/.test(text)) return readUuid(text.replaceAll(/[{}-]/g, ""), text, number);
  }
  const value = readValue(text, tag);
  if (value !== null && typeof value === "object") throw noValue(value.problem, number);
  return value;
}

function readUuid(digits: string, text: string, number: number): bigint {
  if (digits.length !== 32) throw noValue(`'${text}' is not an UUID`, number);
  return BigInt(`0x${digits}`);
}

function noValue(problem: string, number: number): SqlError {
  return new SqlError(`parameter $${number}: ${problem}`, 0, SQLSTATE.invalidText);
}
