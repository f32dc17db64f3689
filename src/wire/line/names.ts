/** Rules for the names of tables and columns. */

const NAME_LENGTH_MAX = 127;

/** Returns why the name is not allowed for a column; undefined if it is. */
export function columnNameFault(name: string): string | undefined {
  if (name === "") return "a column's name is empty";
  if (name.length > NAME_LENGTH_MAX) return `a column's name is longer than ${NAME_LENGTH_MAX} characters`;
  // deno-lint-ignore no-control-regex
  const forbidden = /[?.,'"\\/:)(+\-*%~\u0000-\u001f\u007f\ufeff]/.exec(name);
  return forbidden === null
    ? undefined
    : `column name '${name}' has the character '${forbidden[0]}' at ${forbidden.index}`;
}

export function tableNameFault(name: string): string | undefined {
  if (name === "") return "the table's name is empty";
  if (name.length > NAME_LENGTH_MAX) return `the table's name is longer than ${NAME_LENGTH_MAX} characters`;
  // deno-lint-ignore no-control-regex
  const forbidden = /[?*:/\\%~(),+'"\u0000-\u001f\u007f\ufeff]/.exec(name);
  if (forbidden !== null) return `table name '${name}' has the character '${forbidden[0]}' at ${forbidden.index}`;
  if (name.trim() !== name) return `table name '${name}' has a blank at its end`;
  if (name.startsWith(".") || name.endsWith(".") || name.includes("..")) {
    return `table name '${name}' has a dot out of place`;
  }
  return undefined;
}
