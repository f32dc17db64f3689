/** Arrays in PostgreSQL's text form, `{a,"b c",NULL}`. */
import { SqlError, SQLSTATE } from "../errors.ts";

/** The text of an element; undefined is NULL. */
export function quotedElement(text: string | undefined): string {
  if (text === undefined) return "NULL";
  if (text !== "" && !/[{},"\\\s]/.test(text) && !/^null$/i.test(text)) return text;
  return `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}

/**
 * Maximum length of an array's text. An array is parsed in one step that cannot be cancelled, which takes some ten
 * milliseconds at this length.
 */
const LENGTH_MAX = 262_144;

/** The elements; undefined is NULL. @throws if the text is too long. */
export function elementsOf(array: string): (string | undefined)[] {
  if (array.length > LENGTH_MAX) {
    const message = `the text of an array can have at most ${LENGTH_MAX} characters: found ${array.length}`;
    throw new SqlError(message, 0, SQLSTATE.programLimitExceeded);
  }
  const elements: (string | undefined)[] = [];
  for (const [, quoted, plain] of array.replace(/^\{|\}$/g, "").matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)) {
    if (quoted !== undefined) elements.push(quoted.replaceAll(/\\(.)/g, "$1"));
    else elements.push(plain === "NULL" ? undefined : plain);
  }
  return elements;
}
