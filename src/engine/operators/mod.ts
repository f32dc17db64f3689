/** From plan to operators. */
import { notSupported } from "../../errors.ts";
import type { Expr, Plan, ScanNode } from "../../sql/plan.ts";
import type { Operator, QueryContext } from "../contract.ts";
import { countNodes } from "../analysis.ts";
import { createAggregate } from "./aggregate.ts";
import { createDistinct } from "./distinct.ts";
import { createFilter, createProject } from "./filter-project.ts";
import { createJoin } from "./join.ts";
import { createLatest } from "./latest.ts";
import { createLimit, LastOfReversed, lastRowsWanted } from "./limit.ts";
import { createParquet } from "./parquet.ts";
import { createSample } from "./sample.ts";
import { createSequence } from "./sequence.ts";
import { createSet } from "./set.ts";
import { createSort } from "./sort.ts";
import { createTimeJoin } from "./time-join.ts";
import { createValues } from "./values.ts";
import { createWindow } from "./window.ts";
import { rowsWithin } from "./morsels.ts";
import { createScan } from "./pipeline.ts";
import { sourceOf } from "./scan.ts";

/** The operator of a whole plan. Close it in every case; if this throws, nothing is left open. */
export function createOperator(plan: Plan, context: QueryContext): Operator {
  return create(plan, context, 0);
}

/** `node`: the number of the plan's root, as analyses count them. */
function create(plan: Plan, context: QueryContext, node: number): Operator {
  const { analysis } = context;
  if (analysis === undefined) return createNode(plan, context, context, node);
  return analysis.measured(node, createNode(plan, analysis.contextOf(node, context), context, node));
}

/** `context` is that of the operator itself, `whole` that of the query. */
function createNode(plan: Plan, context: QueryContext, whole: QueryContext, node: number): Operator {
  if (plan.node === "latest") return latest(plan, context, whole, node);
  const opened: Operator[] = [];
  const open = (input: Plan, number = node + 1) => {
    const operator = create(input, whole, number);
    opened.push(operator);
    return operator;
  };
  try {
    switch (plan.node) {
      case "scan":
        context.countToRead?.(rowsWithin(plan, sourceOf(plan, context)));
        return createScan(plan, context);
      case "parquet":
        return createParquet(plan, context);
      case "values":
        return createValues(plan, context);
      case "metadata":
        throw notSupported("Metadata that were not made into rows before the query", plan.at);
      case "sequence":
        return createSequence(plan, context);
      case "filter":
        return createFilter(plan, open(plan.input), context);
      case "project":
        return createProject(plan, open(plan.input), context);
      case "aggregate":
        return createAggregate(plan, open(plan.input), context);
      case "sample":
        return createSample(plan, open(plan.input), context);
      case "sort":
        return createSort(plan, open(plan.input), context);
      case "limit": {
        const last = lastRowsWanted(plan), backwards = last === undefined ? undefined : reversed(plan.input, context);
        if (last !== undefined && backwards !== undefined) {
          return new LastOfReversed(open(backwards), last, context);
        }
        return createLimit(plan, open(plan.input), context);
      }
      case "distinct":
        return createDistinct(plan, open(plan.input), context);
      case "window":
        return createWindow(plan, open(plan.input), context);
      case "join":
      case "timeJoin":
      case "set": {
        const left = open(plan.left);
        const right = open(plan.right, node + 1 + (context.analysis === undefined ? 0 : countNodes(plan.left)));
        if (plan.node === "join") return createJoin(plan, left, right, context);
        return plan.node === "set" ? createSet(plan, left, right, context) : createTimeJoin(plan, left, right, context);
      }
    }
  } catch (error) {
    for (const operator of opened) operator.close();
    throw error;
  }
}

/** The same rows with the last one first, where that costs nothing: a scan below filters and projections. */
function reversed(plan: Plan, context: QueryContext): Plan | undefined {
  if (plan.node === "scan") return { ...plan, reverse: !plan.reverse };
  const expressions = plan.node === "filter"
    ? [plan.predicate]
    : plan.node === "project"
    ? plan.expressions
    : undefined;
  if (expressions === undefined || (plan.node !== "filter" && plan.node !== "project")) return undefined;
  // What depends on the rows that came before would be something else.
  if (expressions.some((expression) => isVolatile(expression, context))) return undefined;
  const input = reversed(plan.input, context);
  return input && { ...plan, input };
}

function isVolatile(expression: Expr, context: QueryContext): boolean {
  if (expression.kind === "call") {
    const { volatility } = context.functions.resolve(expression.function).entry;
    return volatility === "volatile" || expression.args.some((arg) => isVolatile(arg, context));
  }
  if (expression.kind === "case") {
    return [expression.otherwise, ...expression.branches.flatMap(({ when, then }) => [when, then])].some((part) =>
      isVolatile(part, context)
    );
  }
  return expression.kind === "in" && isVolatile(expression.operand, context);
}

function latest(
  plan: Plan & { node: "latest" },
  context: QueryContext,
  whole: QueryContext,
  node: number,
): Operator {
  const { input } = plan;
  if (input.node !== "scan") {
    return createLatest(plan, undefined, () => create(input, whole, node + 1), context);
  }
  const source = sourceOf(input, context), number = node + 1;
  context.countToRead?.(rowsWithin(input, source));
  const open = (reverse: boolean) => {
    const ordered: ScanNode = reverse ? { ...input, reverse: true, order: "desc" } : input;
    const scan = createScan(ordered, context);
    return context.analysis?.measured(number, scan) ?? scan;
  };
  return createLatest(plan, { node: input, source }, open, context);
}
