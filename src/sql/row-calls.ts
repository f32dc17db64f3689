/**
 * cancel_query() with an argument of each row. The server evaluates it, which has no part in the work of the engine: a first query gives the
 * arguments of the rows of the result, and then the second one has their results in the place of the call.
 */
import { notSupported } from "../errors.ts";
import type { Value } from "../types/mod.ts";
import { columnOf, project, rewrite } from "./binder/plans.ts";
import type { Expr, LimitNode, Plan, ProjectNode, SortNode } from "./plan.ts";
import { callOfRow } from "./parameters.ts";
import { nodeExpressions, visitPlan } from "./planner/nodes.ts";

export interface RowCalls {
  name: string;
  at: number;
  /** A query of one LONG column: the arguments. */
  arguments: Plan;
  /** The query with the results. `accepted`: the arguments for which the call is true. */
  answered(accepted: readonly Value[]): Plan;
}

type Call = Extract<Expr, { kind: "call" }>;

/** Undefined if there is no such call. @throws {SqlError} if it is not in the select list of the outermost query, or there are several. */
export function rowCalls(plan: Plan): RowCalls | undefined {
  const calls: Call[] = [];
  visitPlan(plan, (node) => {
    for (const expr of nodeExpressions(node)) {
      rewrite(expr, (e) => {
        if (callOfRow(e) !== undefined) calls.push(e as Call);
        return undefined;
      });
    }
  });
  const [call] = calls;
  if (call === undefined) return undefined;
  // The nodes above the one with the call, which keep its columns or some of them.
  const above: (LimitNode | SortNode | ProjectNode)[] = [];
  let list = plan;
  while (list.node === "limit" || list.node === "sort" || (list.node === "project" && !isIn(call, list.expressions))) {
    above.push(list);
    list = list.input;
  }
  const name = callOfRow(call)!;
  if (calls.length > 1 || list.node !== "project") {
    throw notSupported(`${name}() of a column, except once in the select list of the outermost query`, call.at);
  }
  const [argument] = call.args as [Expr];
  const inPlace = (input: ProjectNode, result: Expr): ProjectNode => ({
    ...input,
    expressions: input.expressions.map((expr) => rewrite(expr, (e) => e === call ? result : undefined)),
  });
  const never: Expr = { kind: "constant", value: false, type: "BOOLEAN" };
  const column = { name: "argument", type: argument.type };
  // The argument is another column at the end.
  const without = inPlace(list, never);
  let wider: Plan = {
    ...without,
    expressions: [...without.expressions, argument],
    columns: [...without.columns, column],
  };
  for (const node of above.toReversed()) {
    const last = columnOf(wider, wider.columns.length - 1);
    wider = node.node === "project"
      ? { ...node, input: wider, expressions: [...node.expressions, last], columns: [...node.columns, column] }
      : { ...node, input: wider, columns: wider.columns };
  }
  return {
    name,
    at: call.at,
    arguments: project(wider, [columnOf(wider, wider.columns.length - 1)], [column.name]),
    answered(accepted) {
      const result: Expr = accepted.length === 0
        ? never
        : { kind: "in", operand: argument, values: [...accepted], type: "BOOLEAN" };
      let answered: Plan = inPlace(list as ProjectNode, result);
      for (const node of above.toReversed()) answered = { ...node, input: answered };
      return answered;
    },
  };
}

function isIn(call: Expr, expressions: readonly Expr[]): boolean {
  let found = false;
  for (const expression of expressions) {
    rewrite(expression, (e) => {
      if (e === call) found = true;
      return undefined;
    });
  }
  return found;
}
