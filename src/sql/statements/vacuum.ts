/** VACUUM TABLE has nothing to do: files are removed as soon as no snapshot needs them. */
import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, type Path } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import { done, type StatementKind } from "./statement.ts";

interface Vacuum extends Statement {
  kind: "vacuum";
  table: Name;
}

export const vacuum: StatementKind<Vacuum, BoundStatement<never> & { kind: "vacuum" }> = {
  kind: "vacuum",
  form: {
    words: ["VACUUM"],
    grammar: String.raw`
  vacuum = "VACUUM" ("TABLE" | "PARTITIONS") tableName`,
    actions: {
      vacuum(vacuum, _what, table): Vacuum {
        return { kind: "vacuum", at: at(vacuum), table: onlyName(table.tree() as Path) };
      },
    },
  },
  reference: {
    syntax: "VACUUM TABLE | PARTITIONS table",
    summary: "Accepted without effect: unneeded files are removed at once.",
  },
  category: "ddl",
  requires: ["VACUUM TABLE"],

  bind({ table }, { binding }) {
    binding.requires.add("VACUUM TABLE", table.at, binding.table(table).schema);
    return { kind: "vacuum" };
  },

  execute: () => done("ddl", "VACUUM"),
};
