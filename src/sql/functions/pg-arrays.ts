/** Arrays in PostgreSQL's text form, `{a,"b c",NULL}`. */

/** An element in the text of an array; undefined is NULL. */
export function quotedElement(text: string | undefined): string | undefined {
  if (text === undefined) return "NULL";
  if (text !== "" && !/[{},"\\\s]/.test(text) && !/^null$/i.test(text)) return text;
  return `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}

/** The elements of `{a,"b c",NULL}` that are not null. */
export function elementsOf(array: string): string[] {
  const elements: string[] = [];
  for (const [, quoted, plain] of array.replace(/^\{|\}$/g, "").matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)) {
    if (quoted !== undefined) elements.push(quoted.replaceAll(/\\(.)/g, "$1"));
    else if (plain !== "NULL") elements.push(plain);
  }
  return elements;
}
