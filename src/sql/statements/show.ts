/** What all kinds of SHOW share: they are queries, also in FROM: `SELECT … FROM (SHOW TABLES)`. */
import type { PostedPlan } from "../../engine/contract.ts";
import type { Name, Statement } from "../ast.ts";
import { metadataPlan } from "../binder/metadata.ts";
import type { Queries } from "../binder/query.ts";
import type { BoundStatement, Plan } from "../plan.ts";
import { onlyName } from "./names.ts";
import type { StatementKind } from "./statement.ts";
import { at, type Node } from "../tree-nodes.ts";

interface BoundShow<P = PostedPlan> extends BoundStatement<P> {
  plan: P;
}

type ShowKind<Tree extends Statement> =
  & Pick<StatementKind<Tree, BoundShow>, "kind" | "form" | "reference">
  & Partial<Pick<StatementKind<Tree, BoundShow>, "requires">>
  & { plan(tree: Tree, queries: Queries): Plan };

export function showKind<Tree extends Statement>({ plan, ...kind }: ShowKind<Tree>): StatementKind<Tree, BoundShow> {
  return {
    requires: [],
    ...kind,
    category: "query",
    bind: (tree, queries) => ({ kind: kind.kind, plan: plan(tree, queries) }),
    rows: ({ plan }) => plan,
    execute: ({ plan }, run) => run.query(plan),
  };
}

export interface ShowOfTable extends Statement {
  table: Name;
}

export const showOfTable = (kind: string, show: Node, table: Node): ShowOfTable => ({
  kind,
  at: at(show),
  table: onlyName(table.tree()),
});

/** The rows of a source about one table: `binder/metadata.ts` names its columns. */
export function planOfTable(source: string, { table }: ShowOfTable, { binding }: Queries): Plan {
  const { schema } = binding.table(table);
  binding.requires.ofColumns("SELECT", table.at, schema).useTable();
  return metadataPlan(source, [schema.name], table.at);
}
