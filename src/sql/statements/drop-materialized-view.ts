import type { Name, Statement } from "../ast.ts";
import type { BoundStatement } from "../plan.ts";
import { at, given } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import { done, type StatementKind } from "./statement.ts";

interface DropMaterializedView extends Statement {
  kind: "dropMaterializedView";
  name: Name;
  ifExists: boolean;
}

interface BoundDropMaterializedView extends BoundStatement<never> {
  kind: "dropMaterializedView";
  /** Undefined if there is none. */
  tableId?: number;
}

const TAG = "DROP MATERIALIZED VIEW";

export const dropMaterializedView: StatementKind<DropMaterializedView, BoundDropMaterializedView> = {
  kind: "dropMaterializedView",
  form: {
    words: ["DROP MATERIALIZED"],
    grammar: String.raw`
  dropMaterializedView = "DROP" "MATERIALIZED" "VIEW" ifExists? tableName`,
    actions: {
      dropMaterializedView: (drop, _materialized, _view, ifExists, table): DropMaterializedView => ({
        kind: "dropMaterializedView",
        at: at(drop),
        name: onlyName(table.tree()),
        ifExists: given(ifExists),
      }),
    },
  },
  reference: { syntax: `${TAG} [IF EXISTS] view`, summary: "Removes a materialized view and its rows." },
  category: "ddl",
  requires: [TAG],
  notInTransaction: TAG,

  bind({ name, ifExists }, { binding }) {
    const { catalogue, views } = binding.context;
    const isThere = catalogue.table(name.text) !== undefined || views?.view(name.text) !== undefined;
    if (ifExists && !isThere) return { kind: "dropMaterializedView" };
    const { schema } = binding.materialized(name);
    binding.requires.add(TAG, name.at, schema);
    return { kind: "dropMaterializedView", tableId: schema.id };
  },

  async execute({ tableId }, run) {
    if (tableId === undefined) return done("ddl", TAG);
    await run.define({ kind: "dropTable", tableId });
    return run.defined(TAG);
  },
};
