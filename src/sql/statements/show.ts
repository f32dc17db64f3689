/** Common parts of all kinds of SHOW. They are queries and may also stand in FROM: `SELECT … FROM (SHOW TABLES)`. */
import type { PostedPlan } from "../../engine/contract.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { TableSnapshot } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";
import type { Name, Statement } from "../ast.ts";
import { type Binding, NO_NAMES } from "../binder/context.ts";
import type { BoundQuery, Queries } from "../binder/query.ts";
import { boundView } from "../binder/views.ts";
import type { BoundStatement, Column, MetadataNode, Plan } from "../plan.ts";
import { at } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import type { Form, SourceServices, StatementKind } from "./statement.ts";

interface BoundShow<P = PostedPlan> extends BoundStatement<P> {
  plan: P;
}

type Kind<Tree extends Statement> = StatementKind<Tree, BoundShow>;

type ShowKind<Tree extends Statement> =
  & Pick<Kind<Tree>, "kind" | "form" | "reference">
  & Partial<Pick<Kind<Tree>, "requires" | "source">>
  & { plan(tree: Tree, queries: Queries): Plan };

export function showKind<Tree extends Statement>({ plan, ...kind }: ShowKind<Tree>): Kind<Tree> {
  return {
    requires: [],
    ...kind,
    category: "query",
    bind: (tree, queries) => ({ kind: kind.kind, plan: plan(tree, queries) }),
    rows: ({ plan }) => plan,
    execute: ({ plan }, run) => run.query(plan),
  };
}

interface ShowSource extends Pick<Kind<Statement>, "kind" | "reference"> {
  /** In the grammar: `"SHOW" "TABLES"`. */
  words: string;
  columns: Column[];
}

/** SHOW without an operand: the words alone. */
export function showAll(
  { kind, words, reference, columns, rows, requires = [] }: ShowSource & Partial<Pick<Kind<Statement>, "requires">> & {
    rows(services: SourceServices): Value[][];
  },
): Kind<Statement> {
  return showKind<Statement>({
    kind,
    form: {
      words: ["SHOW"],
      grammar: `\n  ${kind} = ${kind}Words\n  ${kind}Words = ${words}`,
      actions: { [kind]: (words) => ({ kind, at: at(words) }) },
    },
    reference,
    requires,
    source: { rows },
    plan({ at }, { binding }) {
      for (const permission of requires) binding.requires.add(permission, at);
      return sourcePlan(kind, columns, [], at);
    },
  });
}

export interface ShowOfTable extends Statement {
  table: Name;
}

/** SHOW of something about a table: the words, then its name. */
export function showOfTable(
  { kind, words, reference, columns, rows, ofView, reader, find = (binding, name) => binding.table(name) }:
    & Omit<ShowSource, "columns">
    & Pick<Form, "reader">
    & {
      columns(table: TableSnapshot["schema"]): Column[];
      rows(table: TableSnapshot): Value[][];
      /** The plan for a view. Absent if it takes tables only. */
      ofView?: (view: BoundQuery) => Plan;
      /** Finds the table. Any table by default. @throws at the name */
      find?: (binding: Binding, name: Name) => TableSnapshot;
    },
): Kind<ShowOfTable> {
  return showKind<ShowOfTable>({
    kind,
    form: {
      words: ["SHOW"],
      grammar: `\n  ${kind} = ${kind}Words tableName\n  ${kind}Words = ${words}`,
      actions: { [kind]: (words, table) => ({ kind, at: at(words), table: onlyName(table.tree()) }) },
      reader,
    },
    reference,
    source: {
      rows: ({ catalogue }, { args: [name], at }) => rows(tableOf(catalogue.table(`${name}`), name!, at)),
    },
    plan({ table }, queries) {
      const { binding } = queries, view = ofView && binding.context.views?.view(table.text);
      if (view !== undefined) {
        return ofView!(boundView(queries, view, table.at, NO_NAMES));
      }
      const { schema } = find(binding, table);
      binding.requires.ofColumns("SELECT", table.at, schema).useTable();
      return sourcePlan(kind, columns(schema), [schema.name], table.at);
    },
  });
}

function tableOf(table: TableSnapshot | undefined, name: Value, at: number): TableSnapshot {
  if (table === undefined) throw new SqlError(`table ${name} does not exist`, at, SQLSTATE.undefinedTable);
  return table;
}

export const sourcePlan = (source: string, columns: Column[], args: Value[], at: number): MetadataNode => ({
  node: "metadata",
  source,
  args,
  at,
  columns,
  timestamp: -1,
  order: "none",
});
