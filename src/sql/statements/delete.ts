import type { PostedPlan } from "../../engine/contract.ts";
import type { Expression, Name, Statement } from "../ast.ts";
import { ChangedRows } from "../binder/changed-rows.ts";
import { NO_NAMES } from "../binder/context.ts";
import { columnOf, project } from "../binder/plans.ts";
import type { Queries } from "../binder/query.ts";
import { changedRelation, scanOf } from "../binder/sources.ts";
import type { BoundStatement, Plan } from "../plan.ts";
import { at, optional } from "../tree-nodes.ts";
import { onlyName } from "./names.ts";
import { done, type StatementKind } from "./statement.ts";

interface Delete extends Statement {
  kind: "delete";
  table: Name;
  where?: Expression;
}

/** The plan returns the row ids. */
export interface BoundDelete<P = PostedPlan> extends BoundStatement<P> {
  kind: "delete";
  tableId: number;
  columnIds: [];
  plan: P;
  at: number;
}

export const deleteRows: StatementKind<Delete, BoundDelete> = {
  kind: "delete",
  form: {
    words: ["DELETE"],
    grammar: String.raw`
  delete = "DELETE" "FROM" tableName where?`,
    actions: {
      delete(deleteNode, _from, table, where): Delete {
        return { kind: "delete", at: at(deleteNode), table: onlyName(table.tree()), where: optional(where) };
      },
    },
  },
  reference: {
    syntax: "DELETE FROM table [WHERE condition]",
    summary: "Removes the rows for which the condition holds.",
  },
  category: "dml",
  requires: ["TRUNCATE TABLE"],

  bind: bindDelete,
  explain: () => "Delete",

  async execute(bound, run) {
    const rows = await run.changeRows(bound, "delete");
    return done("dml", `DELETE ${rows}`, rows);
  },
};

function bindDelete(statement: Delete, queries: Queries): BoundDelete<Plan> {
  const { binding } = queries;
  const table = binding.table(statement.table);
  binding.requires.add("TRUNCATE TABLE", statement.table.at, table.schema);
  const scan = scanOf(table, true);
  const relation = changedRelation(queries, scan, statement.table);
  const rows = new ChangedRows(queries, relation, NO_NAMES);
  if (statement.where !== undefined) rows.keep(statement.where);
  const plan = rows.inOrder(project(rows.plan, [columnOf(scan, scan.columns.length - 1)], ["row id"]));
  return { kind: "delete", tableId: table.schema.id, columnIds: [], plan, at: statement.table.at };
}
