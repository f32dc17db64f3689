/** Rules for the names of tables and columns. */

const NAME_LENGTH_MAX = 127;

/** Returns why a column cannot have the name. Undefined if it can. */
export function columnNameFault(name: string): string | undefined {
  if (name === "") return "a column name is empty";
  if (name.length > NAME_LENGTH_MAX) return `a column name is longer than ${NAME_LENGTH_MAX} characters`;
  // deno-lint-ignore no-control-regex
  const forbidden = /[?.,'"\\/:)(+\-*%~\u0000-\u001f\u007f\ufeff]/.exec(name);
  return forbidden === null
    ? undefined
    : `column name '${name}' contains the character '${forbidden[0]}' at ${forbidden.index}`;
}

export function tableNameFault(name: string): string | undefined {
  if (name === "") return "the table name is empty";
  if (name.length > NAME_LENGTH_MAX) return `the table name is longer than ${NAME_LENGTH_MAX} characters`;
  // deno-lint-ignore no-control-regex
  const forbidden = /[?*:/\\%~(),+'"\u0000-\u001f\u007f\ufeff]/.exec(name);
  if (forbidden !== null) return `table name '${name}' contains the character '${forbidden[0]}' at ${forbidden.index}`;
  if (name.trim() !== name) return `table name '${name}' ends with a blank`;
  if (name.startsWith(".") || name.endsWith(".") || name.includes("..")) {
    return `table name '${name}' has a dot at a position where it is not allowed`;
  }
  return undefined;
}
