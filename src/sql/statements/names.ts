/** Names of tables and columns in statements, and their restrictions. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { TableSchema } from "../../storage/contract.ts";
import { findNamed, hiddenCharacterFault } from "../../types/names.ts";
import type { Name } from "../ast.ts";
import { type Binding, unknownColumn } from "../binder/context.ts";
import type { Path } from "../tree-nodes.ts";

/** The name of a table. The only schema is `public`. */
export function onlyName(path: Path): Name {
  if (path.schema !== undefined && path.schema.text.toLowerCase() !== "public") {
    throw new SqlError(`Unknown schema ${path.schema.text}: tables are in public`, path.schema.at);
  }
  return path.name;
}

export function bareName(path: Path): Name {
  if (path.schema !== undefined) {
    throw new SqlError("A schema is not allowed here: expected only the table's name", path.schema.at);
  }
  return path.name;
}

export function findColumn(schema: TableSchema, name: Name): TableSchema["columns"][number] {
  const column = findNamed(schema.columns, name.text);
  if (column === undefined) throw unknownColumn(name.text, name.at, schema.columns);
  return column;
}

const TABLE_NAME_LENGTH_MAX = 127;

/**
 * Refuses names that are empty, contain a character not allowed in file names, begin or end with a blank or a dot, or
 * contain two dots.
 */
export function checkTableName(name: Name): void {
  const { text } = name;
  const problem = text === ""
    ? "expected a name"
    : text.length > TABLE_NAME_LENGTH_MAX
    ? `the name has more than ${TABLE_NAME_LENGTH_MAX} characters`
    // deno-lint-ignore no-control-regex
    : /[?*:/\\%~(),+'"\u0000-\u001f\u007f\ufeff]/.test(text)
    ? `${text} contains a character that is not allowed in table names`
    : /^\s|\s$|^\.|\.$|\..*\./.test(text)
    ? `invalid table name ${text}`
    : hiddenCharacterFault(text);
  if (problem === undefined) return;
  // Report the error at the character where the dialect would split a path.
  const sign = Math.max(text.search(/[/\\]/), text.search(/\.\./));
  throw new SqlError(problem, sign > 0 ? name.at + sign : name.at, SQLSTATE.invalidName);
}

/** `itemAt`: the item of a select list whose name it is. */
export function checkColumnName(name: Name, itemAt?: number): void {
  // deno-lint-ignore no-control-regex
  const hasSign = /[?.,'"\\/:()+\-*%~\u0000-\u001f\u007f\ufeff]/.test(name.text);
  if (name.text === "" || name.text.length > TABLE_NAME_LENGTH_MAX || hasSign) {
    const hint = itemAt === undefined ? "" : ": give the column a name with AS";
    throw new SqlError(`invalid column name '${name.text}'${hint}`, name.at, SQLSTATE.invalidName, { caret: itemAt });
  }
  const fault = hiddenCharacterFault(name.text);
  if (fault !== undefined) throw new SqlError(fault, name.at, SQLSTATE.invalidName);
}

/** On a table with WAL, a statement can change only one column. */
export function checkOneColumn(schema: TableSchema, columns: readonly Name[]): void {
  if (schema.wal && columns.length > 1) {
    throw new SqlError(
      "on a table with WAL a statement can change only one column",
      columns[1]!.at,
      SQLSTATE.featureNotSupported,
    );
  }
}

/** @throws {SqlError} at `at` for the name of a table that only the server makes. */
export function refuseOwn({ context: { ownTables } }: Binding, { text }: Name, at: number): void {
  if (ownTables?.has(text.toLowerCase()) !== true) return;
  throw new SqlError(`${text} is the name of a table of the server`, at, SQLSTATE.reservedName);
}
