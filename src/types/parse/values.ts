/**
 * Parses one text as a value of a type, for literals, parameters and settings. Columns are parsed by the functions on
 * bytes.
 */
import type { Value } from "../layout.ts";
import { typeOf } from "../registry.ts";
import type { ReadFailure } from "../text-forms.ts";

export type { ReadFailure };

/** Parses `text` as a value of type `tag`, or returns why it is invalid. Text types accept any text. */
export function readValue(text: string, tag: string): Value | ReadFailure {
  const type = typeOf(tag);
  const value = type.text.parse(text);
  if (value !== undefined) return value;
  return { problem: notOf(text, type.name) };
}

/** The message for a text that is not a value of the type. */
export function notOf(text: unknown, typeName: string): string {
  return `'${text}' is not ${/^[AEIOU]/i.test(typeName) ? "an" : "a"} ${typeName}`;
}
