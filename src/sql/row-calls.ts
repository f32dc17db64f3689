/**
 * cancel_query() with an argument of each row. The server evaluates it, which has no part in the work of the engine: a first query gives the
 * arguments of the rows of the result, and then the second one has their results in the place of the call.
 */
import { notSupported } from "../errors.ts";
import type { Value } from "../types/mod.ts";
import { AND, and, columnOf, conjuncts, filter, OR, project, rewrite } from "./binder/plans.ts";
import {
  childrenOf,
  type Expr,
  type FilterNode,
  inputsOf,
  type LimitNode,
  type Plan,
  type ProjectNode,
  type SortNode,
} from "./plan.ts";
import { callOfRow, servedName } from "./parameters.ts";
import { mapExpressions, nodeExpressions, visitPlan } from "./planner/nodes.ts";

export interface RowCalls {
  name: string;
  at: number;
  /** A query of one LONG column: the arguments. */
  arguments: Plan;
  /** The query with the results. `accepted`: the arguments for which the call is true. */
  answered(accepted: readonly Value[]): Plan;
}

type Call = Extract<Expr, { kind: "call" }>;

/** Undefined if there is no such call. @throws {SqlError} beside another call to the server, or if its rows are not known. */
export function rowCalls(plan: Plan): RowCalls | undefined {
  const calls: Call[] = [];
  let isConditional = false;
  visitPlan(plan, (node) => {
    for (const expr of nodeExpressions(node).flatMap((e) => node.node === "filter" ? conjuncts(e) : [e])) {
      rewrite(expr, (e) => {
        if (e.kind !== "call" || servedName(e.function) === undefined) return undefined;
        calls.push(e);
        isConditional ||= !isAlwaysMade(e, expr);
        return undefined;
      });
    }
  });
  const call = calls.find((call) => callOfRow(call) !== undefined);
  if (call === undefined) return undefined;
  const name = callOfRow(call)!,
    given = calls.length > 1 || isConditional ? undefined : argumentsInList(plan, call) ?? argumentsOf(plan, call);
  if (given === undefined) {
    throw notSupported(
      `${name}() of a column beside other calls to the server, under a condition or below LIMIT`,
      call.at,
    );
  }
  const [argument] = call.args as [Expr];
  return {
    name,
    at: call.at,
    arguments: given,
    answered(accepted) {
      const result: Expr = accepted.length === 0
        ? NEVER
        : { kind: "in", operand: argument, values: [...accepted], type: "BOOLEAN" };
      return inPlaceOf(call, plan, result);
    },
  };
}

const NEVER: Expr = { kind: "constant", value: false, type: "BOOLEAN" };

const inPlaceOf = (call: Call, plan: Plan, result: Expr) =>
  mapExpressions(plan, (expr) => rewrite(expr, (e) => e === call ? result : undefined));

/** Of a call in the select list of the outermost query: the arguments of the rows of the result. */
function argumentsInList(plan: Plan, call: Call): Plan | undefined {
  // The nodes above the one with the call, which keep its columns or some of them.
  const above: (LimitNode | SortNode | ProjectNode)[] = [];
  let list = plan;
  while (list.node === "limit" || list.node === "sort" || (list.node === "project" && !isIn(call, list.expressions))) {
    above.push(list);
    list = list.input;
  }
  if (list.node !== "project") return undefined;
  // The argument is another column at the end.
  const [argument] = call.args as [Expr], column = { name: "argument", type: argument.type };
  const without = inPlaceOf(call, list, NEVER) as ProjectNode;
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
  return project(wider, [columnOf(wider, wider.columns.length - 1)], [column.name]);
}

/** Of a call in WHERE, in a list that is made distinct, and in what is grouped: the arguments of the rows that pass the other conditions. */
function argumentsOf(plan: Plan, call: Call): Plan | undefined {
  if (plan.node === "limit") return undefined;
  if (!isIn(call, nodeExpressions(plan))) {
    return inputsOf(plan).map((input) => argumentsOf(input, call)).find((found) => found !== undefined);
  }
  const rows = plan.node === "filter"
    ? others(plan, call)
    : plan.node === "aggregate" || plan.node === "project"
    ? plan.input
    : undefined;
  return rows && project(rows, call.args, ["argument"]);
}

function others({ input, predicate }: FilterNode, call: Call): Plan {
  const passed = and(conjuncts(predicate).filter((part) => !isIn(call, [part])));
  return passed === undefined ? input : filter(input, passed);
}

/** False if a condition in `expr`, of CASE, AND or OR, decides about the call. */
function isAlwaysMade(call: Call, expr: Expr): boolean {
  if (expr === call) return true;
  const parts = childrenOf(expr), place = parts.findIndex((part) => isIn(call, [part]));
  const decides = expr.kind === "case" || (expr.kind === "call" && (expr.function === AND || expr.function === OR));
  return (place === 0 || !decides) && isAlwaysMade(call, parts[place]!);
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
