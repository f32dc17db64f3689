import { SqlError, SQLSTATE } from "../../errors.ts";
import { sameName } from "../../types/names.ts";
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, list, name } from "../tree-nodes.ts";
import { checkColumnName, checkOneColumn, findColumn, onlyName } from "./names.ts";
import type { StatementKind } from "./statement.ts";

interface RenameColumn extends Statement {
  kind: "renameColumn";
  table: Name;
  renames: { from: Name; to: Name }[];
}

export interface BoundRenameColumn extends BoundStatement<never> {
  kind: "renameColumn";
  tableId: number;
  renames: { columnId: number; to: string }[];
}

export const renameColumn: StatementKind<RenameColumn, BoundRenameColumn> = {
  kind: "renameColumn",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  renameColumn = "ALTER" "TABLE" tableName "RENAME" "COLUMN" renaming ("," renaming)*
  renaming = columnName "TO" columnName`,
    actions: {
      renameColumn(alter, _table, table, _rename, _column, first, _commas, rest): RenameColumn {
        return {
          kind: "renameColumn",
          at: at(alter),
          table: onlyName(table.tree()),
          renames: list(first, rest),
        };
      },
      renaming(from, _to, to) {
        return { from: name(from), to: name(to) };
      },
    },
  },
  reference: {
    syntax: "ALTER TABLE table RENAME COLUMN column TO name, …",
    summary: "Renames columns. More than one only if the table has no WAL.",
  },
  category: "ddl",
  requires: ["RENAME COLUMN"],

  bind({ table, renames }, { binding }) {
    const { schema } = binding.table(table);
    const renamed = binding.requires.ofColumns("RENAME COLUMN", table.at, schema);
    checkOneColumn(schema, renames.map(({ from }) => from));
    // One after the other: a name that was given up is free.
    const taken = new Map(schema.columns.map(({ id, name }) => [id, name]));
    const bound = renames.map(({ from, to }) => {
      const column = findColumn(schema, from);
      renamed.use(column.id, from.text, from.at);
      if (column.id === schema.timestampId) {
        throw new SqlError("the designated timestamp cannot be renamed", 0, SQLSTATE.invalidParameter);
      }
      checkColumnName(to);
      if ([...taken.values()].some((other) => sameName(other, to.text))) {
        throw new SqlError(`column ${to.text} already exists`, to.at, SQLSTATE.duplicateColumn);
      }
      taken.set(column.id, to.text);
      return { columnId: column.id, to: to.text };
    });
    return { kind: "renameColumn", tableId: schema.id, renames: bound };
  },

  async execute({ tableId, renames }, run) {
    for (const { columnId, to } of renames) await run.define({ kind: "renameColumn", tableId, columnId, to });
    return run.defined("ALTER TABLE");
  },
};
