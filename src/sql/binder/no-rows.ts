/**
 * Relations that are known to have no rows, as catalogue tables of what this database lacks. Nothing over them is ever
 * computed, so a query over them may use functions and types that do not exist here. Names of columns are still checked.
 */
import type { Expression, Select } from "../ast.ts";
import type { Column, ValuesNode } from "../plan.ts";
import { aggregateKind } from "./calls.ts";

export function noRows(columns: Column[]): ValuesNode {
  return { node: "values", columns, rows: [], timestamp: -1, order: "none" };
}

/** PostgreSQL's aggregates that are not here. */
const OTHER_AGGREGATES = new Set(["array_agg", "json_agg", "jsonb_agg", "json_object_agg", "every", "xmlagg"]);

/** Has a select over no rows no rows? An aggregate without GROUP BY has one. */
export function givesNoRows(select: Select): boolean {
  if (select.sampleBy !== undefined || select.latestOn !== undefined) return false;
  if (select.groupBy !== undefined) return select.groupBy.items.length > 0;
  return select.having === undefined && !select.items.some(({ expression }) => hasAggregate(expression));
}

function hasAggregate(part: unknown): boolean {
  if (Array.isArray(part)) return part.some(hasAggregate);
  if (part === null || typeof part !== "object") return false;
  const e = part as Expression;
  if (e.kind === "query" || e.kind === "exists") return false;
  if (e.kind === "column" && e.path.at(-1)!.text.toLowerCase() === "count") return true;
  if (e.kind === "call" && e.over === undefined) {
    const name = e.name.toLowerCase();
    if (aggregateKind(name) === "aggregate" || OTHER_AGGREGATES.has(name)) return true;
  }
  return Object.values(e).some(hasAggregate);
}
