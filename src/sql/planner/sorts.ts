/**
 * Rules for ORDER BY: removes a sort if the rows already have the order, turns newest-first into a reverse scan, and
 * leaves it out below an aggregate that does not depend on it, and limits a sort to the rows that a LIMIT above needs.
 */
import { registry } from "../functions/mod.ts";
import type { AggregateNode, Expr, Plan, SortNode } from "../plan.ts";
import { mapPlan, withInputs } from "./nodes.ts";

export function dropSorts(plan: Plan): Plan {
  return mapPlan(plan, (node) => {
    if (node.node === "aggregate" && isAnyOrder(node)) return withInputs(node, [unsorted(node.input)]);
    if (node.node !== "sort" || node.keys.length !== 1) return node;
    const key = node.keys[0]!;
    const { input } = node;
    if (key.expression.kind !== "column" || input.timestamp < 0 || key.expression.index !== input.timestamp) {
      return node;
    }
    const wanted = key.descending ? "desc" : "asc";
    if (input.order === wanted) return input;
    return (key.descending ? reversed(input) : undefined) ?? node;
  });
}

/** True if the order of its rows does not matter: it makes one row, as clients do that count the rows of any statement. */
function isAnyOrder({ keys, aggregates }: AggregateNode): boolean {
  return keys.length === 0 &&
    aggregates.every((call) => registry.resolve(call.function).entry.aggregate?.ordered !== true);
}

/** The same rows in another order, if a sort can be left out. */
function unsorted(plan: Plan): Plan {
  if (plan.node === "sort" && plan.limit === undefined) return unsorted(plan.input);
  return plan.node === "project" || plan.node === "filter" ? withInputs(plan, [unsorted(plan.input)]) : plan;
}

/**
 * Returns the same rows newest first, if no node between here and the scan depends on the order. Rows with equal
 * timestamps are reversed too.
 */
function reversed(plan: Plan): Plan | undefined {
  switch (plan.node) {
    case "scan":
      return plan.order === "asc" && !plan.reverse ? { ...plan, reverse: true, order: "desc" } : undefined;
    case "filter":
    case "project": {
      const input = reversed(plan.input);
      return input === undefined ? undefined : { ...withInputs(plan, [input]), order: "desc" };
    }
    default:
      return undefined;
  }
}

/** LIMIT over ORDER BY: the sort keeps only as many rows as the limit can reach. */
export function limitSorts(plan: Plan): Plan {
  return mapPlan(plan, (node) => {
    if (node.node !== "limit") return node;
    const high = positive(node.high);
    if (high === undefined || (node.low !== undefined && positive(node.low) === undefined)) return node;
    return withInputs(node, [limitSort(node.input, high)]);
  });
}

function limitSort(plan: Plan, limit: number): Plan {
  if (plan.node === "project") return withInputs(plan, [limitSort(plan.input, limit)]);
  if (plan.node !== "sort") return plan;
  return { ...plan, limit: Math.min(limit, plan.limit ?? limit) } satisfies SortNode;
}

function positive(e: Expr): number | undefined {
  if (e.kind !== "constant" || typeof e.value !== "bigint" || e.value < 0n || e.value > 4294967295n) return undefined;
  return Number(e.value);
}
