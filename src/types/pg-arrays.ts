/** Arrays in PostgreSQL's text form, `{a,"b c",NULL}`. */

/** An element in the text of an array; undefined is NULL. */
export function quotedElement(text: string | undefined): string {
  if (text === undefined) return "NULL";
  if (text !== "" && !/[{},"\\\s]/.test(text) && !/^null$/i.test(text)) return text;
  return `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}

/** The elements; undefined is NULL. */
export function elementsOf(array: string): (string | undefined)[] {
  const elements: (string | undefined)[] = [];
  for (const [, quoted, plain] of array.replace(/^\{|\}$/g, "").matchAll(/"((?:[^"\\]|\\.)*)"|([^,]+)/g)) {
    if (quoted !== undefined) elements.push(quoted.replaceAll(/\\(.)/g, "$1"));
    else elements.push(plain === "NULL" ? undefined : plain);
  }
  return elements;
}
