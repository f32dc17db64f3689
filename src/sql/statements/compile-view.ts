import type { Name, Statement } from "../ast.ts";
import { NO_NAMES } from "../binder/context.ts";
import { boundView } from "../binder/views.ts";
import type { BoundStatement } from "../plan.ts";
import { at } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import { done, type StatementKind } from "./statement.ts";

interface CompileView extends Statement {
  kind: "compileView";
  name: Name;
}

export const compileView: StatementKind<CompileView, BoundStatement<never> & { kind: "compileView" }> = {
  kind: "compileView",
  form: {
    words: ["COMPILE VIEW"],
    grammar: String.raw`
  compileView = "COMPILE" "VIEW" tableName`,
    actions: {
      compileView: (compile, _view, table): CompileView => (
        { kind: "compileView", at: at(compile), name: onlyName(table.tree()) }
      ),
    },
  },
  reference: {
    syntax: "COMPILE VIEW view",
    summary:
      "Fails if the view cannot be read. Nothing else has to be done: each statement that reads a view compiles it.",
  },
  category: "ddl",
  requires: ["COMPILE VIEW"],

  bind({ at, name }, queries) {
    const { binding } = queries, view = binding.context.views?.view(name.text);
    binding.requires.add("COMPILE VIEW", at);
    if (view === undefined) throw binding.noView(name);
    boundView(queries, view, name.at, NO_NAMES);
    return { kind: "compileView" };
  },

  execute: () => done("ddl", "COMPILE VIEW"),
};
