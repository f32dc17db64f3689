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

function checkLength(text: string): void {
  if (text.length <= LENGTH_MAX) return;
  const message = `the text of an array can have at most ${LENGTH_MAX} characters: found ${text.length}`;
  throw new SqlError(message, 0, SQLSTATE.programLimitExceeded);
}

/** The array of the parts of a text; without a separator, of its characters. @throws if the text is too long. */
export function splitText(text: string, separator: string | undefined): string {
  checkLength(text);
  if (text === "") return "{}";
  if (separator === "") return arrayOf([text]);
  return arrayOf(separator === undefined ? [...text] : text.split(separator));
}

/** `a."B c"` → `{a,"B c"}`. Parts without double quotes become lower case. Undefined if the text is no such name. @throws if it is too long. */
export function partsOfName(text: string): string | undefined {
  checkLength(text);
  const parts: string[] = [], part = /\s*(?:"((?:[^"]|"")+)"|([\p{L}_][\p{L}\p{N}_$]*))\s*(\.|$)/uy;
  for (;;) {
    const found = part.exec(text);
    if (found === null) return undefined;
    parts.push(found[1]?.replaceAll('""', '"') ?? found[2]!.toLowerCase());
    if (found[3] === "") return arrayOf(parts);
  }
}

const arrayOf = (parts: string[]): string => `{${parts.map(quotedElement).join()}}`;

/** The elements; undefined is NULL. @throws if the text is too long. */
export function elementsOf(array: string): (string | undefined)[] {
  checkLength(array);
  const elements: (string | undefined)[] = [];
  for (const [, quoted, plain] of array.replace(/^\{|\}$/g, "").matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)) {
    if (quoted !== undefined) elements.push(quoted.replaceAll(/\\(.)/g, "$1"));
    else elements.push(plain === "NULL" ? undefined : plain);
  }
  return elements;
}
