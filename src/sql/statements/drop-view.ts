import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, given } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import { done, type StatementKind } from "./statement.ts";

interface DropView extends Statement {
  kind: "dropView";
  name: Name;
  ifExists: boolean;
}

interface BoundDropView extends BoundStatement<never> {
  kind: "dropView";
  /** Undefined if there is none. */
  name?: string;
  at: number;
}

export const dropView: StatementKind<DropView, BoundDropView> = {
  kind: "dropView",
  form: {
    words: ["DROP VIEW"],
    grammar: String.raw`
  dropView = "DROP" "VIEW" ifExists? tableName`,
    actions: {
      dropView: (drop, _view, ifExists, table): DropView => (
        { kind: "dropView", at: at(drop), name: onlyName(table.tree()), ifExists: given(ifExists) }
      ),
    },
  },
  reference: { syntax: "DROP VIEW [IF EXISTS] view", summary: "Removes a view. Views that read it become invalid." },
  category: "ddl",
  requires: ["DROP VIEW"],
  notInTransaction: "DROP VIEW",

  bind({ at, name, ifExists }, { binding }) {
    binding.requires.add("DROP VIEW", at);
    const view = binding.context.views?.view(name.text);
    if (view === undefined && !ifExists) throw binding.noView(name);
    return { kind: "dropView", name: view?.name, at: name.at };
  },

  async execute({ name, at }, run) {
    if (name === undefined) return done("ddl", "DROP VIEW");
    await run.services.views.drop(name, at);
    return run.defined("DROP VIEW");
  },
};
