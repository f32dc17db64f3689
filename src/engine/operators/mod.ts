/** From plan to operators, as the physical pass has chosen them. */
import { notSupported } from "../../errors.ts";
import type { LatestNode, Plan, ScanNode } from "../../sql/plan.ts";
import type { Operator, QueryContext } from "../contract.ts";
import { type PhysicalPlan, physicalPlan } from "../physical/mod.ts";
import { createAggregate } from "./aggregate.ts";
import { createDistinct } from "./distinct.ts";
import { createFilter, createProject } from "./filter-project.ts";
import { createJoin } from "./join.ts";
import { createLatest } from "./latest.ts";
import { createLimit } from "./limit.ts";
import { createParquet } from "./parquet.ts";
import { createRecursion, createWorking } from "./recursion.ts";
import { createSample } from "./sample.ts";
import { createSequence } from "./sequence.ts";
import { createSet } from "./set.ts";
import { createSort } from "./sort.ts";
import { createTimeJoin } from "./time-join.ts";
import { createUnnest } from "./unnest.ts";
import { createValues } from "./values.ts";
import { createWindow } from "./window.ts";
import { rowsWithin } from "./morsels.ts";
import { createScan } from "./pipeline.ts";
import { sourceOf } from "./scan.ts";

/** The operator of a whole plan. Close it in every case; if this throws, nothing is left open. */
export function createOperator(plan: Plan, context: QueryContext): Operator {
  return create(physicalPlan(plan, context), context);
}

function create(plan: PhysicalPlan, context: QueryContext): Operator {
  const { analysis } = context;
  if (analysis === undefined) return createNode(plan, context, context);
  return analysis.measured(plan.id, createNode(plan, analysis.contextOf(plan.id, context), context));
}

/** `context` is that of the operator itself, `whole` that of the query. */
function createNode(plan: PhysicalPlan, context: QueryContext, whole: QueryContext): Operator {
  if (plan.node.node === "latest") return latest(plan.node, plan.inputs[0], context, whole);
  if (plan.node.node === "recursion") {
    const [left, right] = plan.inputs;
    return createRecursion(plan.node, context, {
      first: () => create(left, whole),
      step: (working) => create(right, { ...whole, working: new Map([...whole.working ?? [], working]) }),
    });
  }
  const opened: Operator[] = [];
  try {
    for (const input of plan.inputs) opened.push(create(input, whole));
    return createOver(plan, opened, context);
  } catch (error) {
    for (const operator of opened) operator.close();
    throw error;
  }
}

function createOver(plan: PhysicalPlan, [first, second]: readonly Operator[], context: QueryContext): Operator {
  if (plan.operator === "limit") return createLimit(plan.way, first, context);
  if (plan.operator === "window") return createWindow(plan.node, plan.way, first, context);
  const { node } = plan;
  switch (node.node) {
    case "scan":
      context.countToRead?.(rowsWithin(node, sourceOf(node, context)));
      return createScan(node, context);
    case "parquet":
      return createParquet(node, context);
    case "values":
      return createValues(node, context);
    case "metadata":
      throw notSupported("Metadata that were not made into rows before the query", node.at);
    case "sequence":
      return createSequence(node, context);
    case "filter":
      return createFilter(node, first, context);
    case "project":
      return createProject(node, first, context);
    case "aggregate":
      return createAggregate(node, first, context);
    case "sample":
      return createSample(node, first, context);
    case "sort":
      return createSort(node, first, context);
    case "distinct":
      return createDistinct(node, first, context);
    case "join":
      return createJoin(node, first, second, context);
    case "timeJoin":
      return createTimeJoin(node, first, second, context);
    case "set":
      return createSet(node, first, second, context);
    case "unnest":
      return createUnnest(node, first, context);
    case "working":
      return createWorking(node, context);
    case "latest":
    case "recursion":
      throw new Error(`${node.node} opens its inputs itself`);
  }
}

/** Its input is opened in the direction that it wants. */
function latest(plan: LatestNode, input: PhysicalPlan, context: QueryContext, whole: QueryContext): Operator {
  const { node } = input;
  if (node.node !== "scan") return createLatest(plan, undefined, () => create(input, whole), context);
  const source = sourceOf(node, context);
  context.countToRead?.(rowsWithin(node, source));
  const open = (reverse: boolean) => {
    const ordered: ScanNode = reverse ? { ...node, reverse: true, order: "desc" } : node;
    const scan = createScan(ordered, context);
    return context.analysis?.measured(input.id, scan) ?? scan;
  };
  return createLatest(plan, { node, source }, open, context);
}
