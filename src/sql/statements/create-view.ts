/** CREATE VIEW and ALTER VIEW. The text of the query is kept, and bound whenever the view is read. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Name, Query, Statement } from "../ast.ts";
import { NO_NAMES } from "../binder/context.ts";
import type { BoundStatement } from "../plan.ts";
import { at, endOf, given, matched, newName, type Node } from "../tree-nodes.ts";
import { checkTableName, onlyName } from "./names.ts";
import { done, type StatementKind } from "./statement.ts";

interface CreateView extends Statement {
  kind: "createView";
  action: "create" | "replace" | "alter";
  name: Name;
  ifNotExists: boolean;
  query: Query;
  text: string;
}

interface BoundCreateView extends BoundStatement<never> {
  kind: "createView";
  action: CreateView["action"];
  name: string;
  at: number;
  ifNotExists: boolean;
  text: string;
}

export const createView: StatementKind<CreateView, BoundCreateView> = {
  kind: "createView",
  form: {
    words: ["CREATE VIEW", "CREATE OR", "ALTER VIEW"],
    grammar: String.raw`
  createView = "CREATE" "VIEW" ifNotExists? tableName viewBody          -- create
             | "CREATE" "OR" "REPLACE" "VIEW" tableName viewBody        -- replace
             | "ALTER" "VIEW" tableName viewBody                        -- alter
  viewBody = "AS" "(" query ")"                                         -- nested
           | "AS" query                                                 -- plain`,
    actions: {
      createView_create: (create, _view, ifNotExists, table, body) =>
        viewOf(at(create), "create", newName(onlyName(table.tree())), body, given(ifNotExists)),
      createView_replace: (create, _or, _replace, _view, table, body) =>
        viewOf(at(create), "replace", newName(onlyName(table.tree())), body),
      createView_alter: (alter, _view, table, body) => viewOf(at(alter), "alter", onlyName(table.tree()), body),
      viewBody_nested: (_as, _open, query, _close) => bodyOf(query),
      viewBody_plain: (_as, query) => bodyOf(query),
    },
  },
  reference: {
    syntax: `CREATE VIEW [IF NOT EXISTS] view AS (query)
CREATE OR REPLACE VIEW view AS (query)
ALTER VIEW view AS (query)`,
    summary:
      "Gives a query a name, under which it can be read like a table. Its text is stored, and compiled by each statement that reads the view. Variables that it declares OVERRIDABLE get " +
      "the values that the reader declares.",
  },
  category: "ddl",
  requires: ["CREATE VIEW", "ALTER VIEW"],
  notInTransaction: "CREATE VIEW",

  bind({ at, action, name, ifNotExists, query, text }, queries) {
    const { binding } = queries, { catalogue, views } = binding.context, existing = views?.view(name.text);
    checkTableName(name);
    binding.requires.add(action === "alter" ? "ALTER VIEW" : "CREATE VIEW", at);
    if (action === "alter" && existing === undefined) throw binding.noView(name);
    if (catalogue.table(name.text) !== undefined) {
      throw new SqlError(`a table called ${name.text} exists already`, name.at, SQLSTATE.duplicateTable);
    }
    const bound: BoundCreateView = { kind: "createView", action, name: name.text, at: name.at, ifNotExists, text };
    if (existing !== undefined && action === "create") {
      if (ifNotExists) return bound;
      throw new SqlError(`view ${name.text} exists already`, name.at, SQLSTATE.duplicateTable);
    }
    // Finds its mistakes, and whether it reads itself.
    binding.insideView(name.text, name.at, NO_NAMES, () => queries.bind(query, NO_NAMES));
    return bound;
  },

  async execute({ action, name, at, ifNotExists, text }, run) {
    const { views } = run.services, tag = action === "alter" ? "ALTER VIEW" : "CREATE VIEW";
    if (ifNotExists && views.view(name) !== undefined) return done("ddl", tag);
    await views.set({ name, text }, action, at);
    return run.defined(tag);
  },
};

/** A query with its text. */
export function bodyOf(query: Node): Pick<CreateView, "query" | "text"> {
  return { query: query.tree(), text: matched.source.text.slice(at(query), endOf(query)) };
}

function viewOf(at: number, action: CreateView["action"], name: Name, body: Node, ifNotExists = false): CreateView {
  return { kind: "createView", at, action, name, ifNotExists, ...body.tree() as Pick<CreateView, "query" | "text"> };
}
