import type { Named } from "../../access/mod.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import { sameName } from "../../types/names.ts";
import type { Name, Statement } from "../ast.ts";
import { typeMismatch } from "../binder/context.ts";
import { displayName } from "../binder/types.ts";
import type { BoundStatement, NewColumn } from "../plan.ts";
import { at, given, list, optional } from "../tree-nodes.ts";
import { ownerOf } from "./access/owned-by.ts";
import { type ColumnDefinition, newColumn } from "./columns.ts";
import { checkIncluded } from "./index-option.ts";
import { checkOneColumn, onlyName } from "./names.ts";
import type { StatementKind } from "./statement.ts";

interface AddColumns extends Statement {
  kind: "addColumns";
  table: Name;
  ifNotExists: boolean;
  columns: ColumnDefinition[];
  ownedBy?: Named;
}

export interface BoundAddColumns extends BoundStatement<never> {
  kind: "addColumns";
  tableId: number;
  columns: NewColumn[];
  ownedBy?: Named;
}

export const addColumns: StatementKind<AddColumns, BoundAddColumns> = {
  kind: "addColumns",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  addColumns = "ALTER" "TABLE" tableName "ADD" "COLUMN"? ifNotExists? columnDefinition ("," columnDefinition)* ownedBy?`,
    actions: {
      addColumns(alter, _table, table, _add, _column, ifNotExists, first, _commas, rest, ownedBy): AddColumns {
        return {
          kind: "addColumns",
          at: at(alter),
          table: onlyName(table.tree()),
          ifNotExists: given(ifNotExists),
          columns: list(first, rest),
          ownedBy: optional(ownedBy),
        };
      },
    },
  },
  reference: {
    syntax: "ALTER TABLE table ADD COLUMN [IF NOT EXISTS] column type, … [OWNED BY name]",
    summary:
      "Adds columns. In existing rows they are NULL, or 0 or false in types without NULL. More than one only if the table has no WAL. " +
      "OWNED BY names the principal that gets all permissions on them, instead of the user.",
  },
  category: "ddl",
  requires: ["ADD COLUMN"],

  bind({ table, ifNotExists, columns: definitions, ownedBy }, { binding }) {
    const { schema } = binding.table(table);
    binding.requires.add("ADD COLUMN", table.at, schema);
    checkOneColumn(schema, definitions.map(({ name }) => name));
    const columns: NewColumn[] = [];
    for (const definition of definitions) {
      const column = newColumn(definition);
      const known = schema.columns.find((candidate) => sameName(candidate.name, column.name));
      if (known !== undefined) {
        if (!ifNotExists) {
          throw new SqlError(`column ${column.name} already exists`, definition.name.at, SQLSTATE.duplicateColumn);
        }
        if (known.type !== column.type) {
          throw typeMismatch(
            `column ${column.name} already exists with type ${displayName(known.type)}`,
            definition.type.at,
          );
        }
        continue;
      }
      if (columns.some((other) => sameName(other.name, column.name))) {
        throw new SqlError(`column ${column.name} is defined twice`, definition.name.at, SQLSTATE.duplicateColumn);
      }
      columns.push(column);
    }
    for (const { index } of definitions) if (index !== undefined) checkIncluded(index, [...schema.columns, ...columns]);
    return { kind: "addColumns", tableId: schema.id, columns, ownedBy };
  },

  async execute({ tableId, columns, ownedBy }, run) {
    await run.define({ kind: "addColumns", tableId, columns, creator: ownerOf(ownedBy, run) });
    return run.defined("ALTER TABLE");
  },
};
