import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, given } from "../tree-nodes.ts";
import { bareName } from "./names.ts";
import type { StatementKind } from "./statement.ts";

interface DropTable extends Statement {
  kind: "dropTable";
  /** Undefined means all tables. */
  name?: Name;
  ifExists: boolean;
  /** CASCADE PERMISSIONS: grants on the table are removed too. */
  cascades: boolean;
}

export interface BoundDropTable extends BoundStatement<never> {
  kind: "dropTable";
  names: { name: string; at: number }[];
  ifExists: boolean;
  cascades: boolean;
}

export const dropTable: StatementKind<DropTable, BoundDropTable> = {
  kind: "dropTable",
  form: {
    words: ["DROP"],
    grammar: String.raw`
  dropTable = "DROP" "ALL" ("TABLES")?                     -- all
            | "DROP" "TABLE" ifExists? tableName cascade?  -- one
  cascade = "CASCADE" "PERMISSIONS"`,
    actions: {
      dropTable_all(drop, _all, _tables): DropTable {
        return { kind: "dropTable", at: at(drop), ifExists: false, cascades: false };
      },
      dropTable_one(drop, _table, ifExists, table, cascade): DropTable {
        const name = bareName(table.tree());
        return { kind: "dropTable", at: at(drop), name, ifExists: given(ifExists), cascades: given(cascade) };
      },
    },
  },
  reference: {
    syntax: `DROP TABLE [IF EXISTS] table [CASCADE PERMISSIONS]
DROP ALL TABLES`,
    summary: "Removes a table, or all of them. CASCADE PERMISSIONS removes what was granted on the table, too.",
  },
  category: "ddl",
  requires: ["DROP TABLE", "DROP MATERIALIZED VIEW"],

  bind({ name, ifExists, cascades, at }, { binding }) {
    const { catalogue, views, ownTables } = binding.context;
    if (name === undefined) {
      const tables = catalogue.tables().filter(({ schema }) => ownTables?.has(schema.name.toLowerCase()) !== true);
      for (const { schema } of tables) {
        binding.requires.add(schema.materialized === undefined ? "DROP TABLE" : "DROP MATERIALIZED VIEW", at, schema);
      }
      const names = tables.map(({ schema }) => ({ name: schema.name, at }));
      return { kind: "dropTable", names, ifExists: true, cascades };
    }
    const table = ifExists && views?.view(name.text) === undefined ? catalogue.table(name.text) : binding.table(name);
    if (table === undefined) return { kind: "dropTable", names: [], ifExists, cascades };
    binding.requires.add("DROP TABLE", name.at, table.schema);
    return { kind: "dropTable", names: [{ name: table.schema.name, at: name.at }], ifExists, cascades };
  },

  async execute({ names, ifExists, cascades }, run) {
    for (const { name, at } of names) {
      const table = run.catalogue.table(name);
      if (!table && !ifExists) {
        throw new SqlError(`Cannot drop table ${name}: it does not exist`, at, SQLSTATE.undefinedTable);
      }
      if (table) await run.define({ kind: "dropTable", tableId: table.schema.id, permissions: cascades });
    }
    return run.defined("DROP TABLE");
  },
};
