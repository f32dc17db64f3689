/** Parses a statement parameter that a client sends as text, in the forms that PostgreSQL accepts. */
import type { Value } from "../layout.ts";
import { typeOf } from "../registry.ts";
import { type ReadFailure, readValue } from "./values.ts";

const TRUE = /^(?:t|tr|tru|true|y|ye|yes|on|1)$/i;
const FALSE = /^(?:f|fa|fal|fals|false|n|no|of|off|0)$/i;

export function readParameter(text: string, tag: string): Value | ReadFailure {
  if (tag === "BOOLEAN") return TRUE.test(text) ? true : FALSE.test(text) ? false : fault(text, tag);
  if (tag === "CHAR" && text.length > 1) return fault(text, tag);
  if (tag === "UUID" && text === "") return null;
  if (tag === "UUID" && /^\{?[0-9a-fA-F-]{32,40}\}?$/.test(text)) return uuid(text);
  if (typeOf(tag).timeUnit === undefined) return readValue(text, tag);
  // A plain integer is in the type's own unit since 1970; it is not a year.
  return /^-?\d{1,19}$/.test(text) ? BigInt(text) : readValue(timeText(text), tag);
}

/** Some drivers write dates with an offset: it means midnight there. */
function timeText(text: string): string {
  return text.replace(/^(\d{4}-\d\d-\d\d) ?([+-]\d\d(?::?\d\d)?)$/, "$1T00:00:00$2");
}

/** The digits may be in any grouping, and some drivers send no groups. */
function uuid(text: string): bigint | ReadFailure {
  const digits = text.replaceAll(/[{}-]/g, "");
  return digits.length === 32 ? BigInt(`0x${digits}`) : fault(text, "UUID");
}

function fault(text: string, tag: string): ReadFailure {
  return { problem: `'${text}' is not a ${tag}` };
}
