/** Rule: turns projections of constants over one row, and unions of known rows, into one list of rows. */
import type { Value } from "../../types/mod.ts";
import type { Plan } from "../plan.ts";
import { evaluate, type EvaluationContext } from "./evaluate.ts";

export function collapseRows(plan: Plan, context: EvaluationContext = {}): Plan {
  const parts = unionParts(plan);
  const rows: Value[][] = [];
  for (const part of parts) {
    const known = knownRows(part, context);
    if (known === undefined) return plan;
    for (const row of known) rows.push(row);
  }
  if (parts.length === 1 && parts[0].node === "values") return plan;
  return { node: "values", columns: plan.columns, rows, timestamp: plan.timestamp, order: plan.order };
}

/** The operands of UNION ALL, in order. */
function unionParts(plan: Plan): Plan[] {
  const parts: Plan[] = [];
  const pending = [plan];
  while (pending.length > 0) {
    const next = pending.pop()!;
    if (next.node === "set" && next.operator === "union all") pending.push(next.right, next.left);
    else parts.push(next);
  }
  return parts;
}

function knownRows(plan: Plan, context: EvaluationContext): Value[][] | undefined {
  if (plan.node === "values") return plan.rows;
  if (plan.node !== "project" || plan.input.node !== "values" || plan.input.columns.length > 0) return undefined;
  const row: Value[] = [];
  for (const expression of plan.expressions) {
    const value = evaluate(expression, context);
    if (value === undefined) return undefined;
    row.push(value.value);
  }
  return plan.input.rows.map(() => row);
}
