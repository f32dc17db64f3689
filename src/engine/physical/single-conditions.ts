/** Conditions on the values of single columns, which can be tested by the codes of packed chunks. */
import type { Expr, ScanNode } from "../../sql/plan.ts";
import { type Bound, boundsOf } from "../bounds.ts";
import { columnsOf } from "../compiler/expression.ts";
import type { PlanFacts } from "./facts.ts";
import { isVolatile } from "./functions.ts";

/** A comparison of a column with constants, or any condition on the symbols of a column. */
export type SingleCondition = { kind: "bounds"; bound: Bound } | { kind: "symbols"; column: number };

/** `part`: of an AND, over the scan's columns. Undefined if it is of another kind. */
export function conditionOf(
  part: Expr,
  { columns, columnIds }: Pick<ScanNode, "columns" | "columnIds">,
  facts: Pick<PlanFacts, "functions">,
): SingleCondition | undefined {
  const [bound, ...others] = boundsOf([part], facts);
  if (bound !== undefined && others.length === 0) {
    return bound.column < columnIds.length ? { kind: "bounds", bound } : undefined;
  }
  const [column, ...further] = columnsOf(part);
  if (column === undefined || further.length > 0 || column >= columnIds.length) return undefined;
  const isOfSymbols = part.kind === "call" && columns[column]!.type === "SYMBOL" && !isVolatile(part, facts);
  return isOfSymbols ? { kind: "symbols", column } : undefined;
}
