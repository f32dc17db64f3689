import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, name } from "../tree-nodes.ts";
import { checkOneColumn, findColumn, onlyName } from "./names.ts";
import type { StatementKind } from "./statement.ts";

interface DropColumns extends Statement {
  kind: "dropColumns";
  table: Name;
  columns: Name[];
}

export interface BoundDropColumns extends BoundStatement<never> {
  kind: "dropColumns";
  tableId: number;
  columnIds: number[];
}

export const dropColumns: StatementKind<DropColumns, BoundDropColumns> = {
  kind: "dropColumns",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  dropColumns = "ALTER" "TABLE" tableName "DROP" "COLUMN" columnName ("," columnName)*`,
    actions: {
      dropColumns(alter, _table, table, _drop, _column, first, _commas, rest): DropColumns {
        const columns = [first, ...rest.children].map(name);
        return { kind: "dropColumns", at: at(alter), table: onlyName(table.tree()), columns };
      },
    },
  },
  reference: {
    syntax: "ALTER TABLE table DROP COLUMN column, …",
    summary: "Removes columns. More than one only if the table has no WAL.",
  },
  category: "ddl",
  requires: ["DROP COLUMN"],

  bind({ table, columns }, { binding }) {
    const { schema } = binding.table(table);
    const dropped = binding.requires.ofColumns("DROP COLUMN", table.at, schema);
    checkOneColumn(schema, columns);
    const columnIds = columns.map((name) => {
      const column = findColumn(schema, name);
      dropped.use(column.id, name.text, name.at);
      if (column.id === schema.timestampId) {
        throw new SqlError("the designated timestamp cannot be dropped", 0, SQLSTATE.invalidParameter);
      }
      return column.id;
    });
    return { kind: "dropColumns", tableId: schema.id, columnIds };
  },

  async execute({ tableId, columnIds }, run) {
    await run.define({ kind: "dropColumns", tableId, columnIds });
    return run.defined("ALTER TABLE");
  },
};
