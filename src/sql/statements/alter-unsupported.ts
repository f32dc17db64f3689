/** Forms of ALTER TABLE that the grammar accepts but that are not implemented. */
import { notSupported } from "../../errors.ts";
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, written } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import type { StatementKind } from "./statement.ts";

interface UnsupportedAlteration extends Statement {
  kind: "unsupportedAlteration";
  table: Name;
  change: { at: number; text: string };
}

export const unsupportedAlteration: StatementKind<
  UnsupportedAlteration,
  BoundStatement<never> & { kind: "unsupportedAlteration" }
> = {
  kind: "unsupportedAlteration",
  form: {
    words: ["ALTER"],
    grammar: String.raw`
  unsupportedAlteration = "ALTER" "TABLE" tableName alteration
  alteration = "SUSPEND" "WAL"`,
    actions: {
      unsupportedAlteration(alter, _table, table, alteration): UnsupportedAlteration {
        return {
          kind: "unsupportedAlteration",
          at: at(alter),
          table: onlyName(table.tree()),
          change: { at: at(alteration), text: `ALTER TABLE … ${written(alteration)}` },
        };
      },
    },
  },
  category: "ddl",
  requires: [],

  bind({ table, change }, { binding }) {
    binding.table(table);
    throw notSupported(change.text, change.at);
  },

  execute() {
    throw new Error("nothing to execute");
  },
};
