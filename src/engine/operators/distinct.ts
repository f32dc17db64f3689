/** DISTINCT: groups by all columns, without aggregates. */
import type { DistinctNode, Expr } from "../../sql/plan.ts";
import type { Operator, QueryContext } from "../contract.ts";
import { createAggregate } from "./aggregate.ts";

export function createDistinct(node: DistinctNode, input: Operator, context: QueryContext): Operator {
  const keys = input.columns.map((column, index): Expr => ({ kind: "column", index, type: column.type }));
  return createAggregate({ ...node, node: "aggregate", keys, aggregates: [] }, input, context);
}
