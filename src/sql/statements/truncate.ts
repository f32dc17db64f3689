import { SqlError } from "../../errors.ts";
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, given, list, type Path } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import type { StatementKind } from "./statement.ts";

interface Truncate extends Statement {
  kind: "truncate";
  tables: Name[];
  ifExists: boolean;
}

export interface BoundTruncate extends BoundStatement<never> {
  kind: "truncate";
  tableIds: number[];
}

export const truncate: StatementKind<Truncate, BoundTruncate> = {
  kind: "truncate",
  form: {
    words: ["TRUNCATE"],
    grammar: String.raw`
  truncate = "TRUNCATE" "TABLE"? ifExists? tableName ("," tableName)* keepMaps?
  keepMaps = "KEEP" "SYMBOL" "MAPS"`,
    actions: {
      truncate(truncate, table, ifExists, first, _commas, rest, _keepMaps): Truncate {
        if (!given(table)) throw new SqlError("TRUNCATE needs the word TABLE", at(first));
        const tables = list<Path>(first, rest).map(onlyName);
        return { kind: "truncate", at: at(truncate), tables, ifExists: given(ifExists) };
      },
    },
  },
  reference: {
    syntax: "TRUNCATE TABLE [IF EXISTS] table, … [KEEP SYMBOL MAPS]",
    summary: "Removes all rows of the tables.",
  },
  category: "ddl",
  requires: ["TRUNCATE TABLE"],

  bind({ tables, ifExists }, { binding }) {
    const tableIds: number[] = [];
    for (const name of tables) {
      const table = binding.context.catalogue.table(name.text);
      if (table === undefined) {
        if (ifExists) continue;
        throw binding.table(name);
      }
      binding.requires.add("TRUNCATE TABLE", name.at, table.schema);
      tableIds.push(table.schema.id);
    }
    return { kind: "truncate", tableIds };
  },

  async execute({ tableIds }, run) {
    for (const tableId of tableIds) await run.define({ kind: "truncate", tableId });
    return run.defined("TRUNCATE TABLE");
  },
};
