/** WHERE and the select list: joined into the pipeline below where there is one. */
import type { Expr, FilterNode, ProjectNode } from "../../sql/plan.ts";
import type { Operator, QueryContext } from "../contract.ts";
import { Pipeline } from "./pipeline.ts";

export function createFilter(node: FilterNode, input: Operator, context: QueryContext): Operator {
  return pipelineOver(input, context, (pipeline) => pipeline.then(node.predicate, undefined, node.columns));
}

export function createProject(node: ProjectNode, input: Operator, context: QueryContext): Operator {
  return pipelineOver(input, context, (pipeline) => pipeline.then(undefined, node.expressions, node.columns));
}

function pipelineOver(
  input: Operator,
  context: QueryContext,
  extend: (pipeline: Pipeline) => Pipeline | undefined,
): Operator {
  const extended = input instanceof Pipeline ? extend(input) : undefined;
  return extended ?? extend(asPipeline(input, context, true))!;
}

/** Any operator as one that filters and expressions can be added to. */
export function asPipeline(input: Operator, context: QueryContext, anew = false): Pipeline {
  if (input instanceof Pipeline && !anew) return input;
  const exprs: Expr[] = input.columns.map((column, index) => ({ kind: "column", index, type: column.type }));
  return new Pipeline({ kind: "operator", input }, [], exprs, input.columns, context);
}
