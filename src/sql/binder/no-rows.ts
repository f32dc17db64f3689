/**
 * Relations known to be empty, such as catalogue tables of objects that this database does not have. Nothing is
 * computed over them, so a query over them may use functions and types that do not exist here. Names of columns are
 * still checked.
 */
import type { Expression, Select } from "../ast.ts";
import type { Column, ValuesNode } from "../plan.ts";
import { aggregateKind } from "./calls.ts";

export function noRows(columns: Column[]): ValuesNode {
  return { node: "values", columns, rows: [], timestamp: -1, order: "none" };
}

/** Aggregates of PostgreSQL that are not implemented here. */
const OTHER_AGGREGATES = new Set(["array_agg", "json_agg", "jsonb_agg", "json_object_agg", "every", "xmlagg"]);

/** True if a select over an empty relation is empty. An aggregate without GROUP BY gives one row. */
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
