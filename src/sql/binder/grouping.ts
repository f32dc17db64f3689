/**
 * GROUP BY, written or implied: an aggregate node, and the select list said over its output.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { AggregateCall, Column, Expr, Plan } from "../plan.ts";
import type { Binding } from "./context.ts";
import { AGGREGATE_BASE, WINDOW_BASE } from "./expressions.ts";
import { columnsRead, filter, hashExpr, rewrite, sameExpr, walk } from "./plans.ts";
import type { OrderKey, OutputItem } from "./select.ts";

/** Does the expression hold an aggregate call? */
export function isAggregated(expr: Expr): boolean {
  let found = false;
  walk(expr, (e) => {
    if (e.kind === "column" && e.index >= AGGREGATE_BASE && e.index < WINDOW_BASE) found = true;
  });
  return found;
}

/** Keys of a grouping with their place in its output, and how expressions are said over that output. */
export class Grouping {
  readonly keys: Expr[] = [];
  /** Indices of keys by their hash. */
  private readonly places = new Map<number, number[]>();

  /** `growing`: a column that is no key becomes one; otherwise it is an error. */
  constructor(private readonly binding: Binding, private growing: boolean, private readonly keyOffset: number) {}

  /** From here on the keys are known: ORDER BY and HAVING add none. */
  close(): void {
    this.growing = false;
  }

  add(key: Expr): number {
    const known = this.find(key);
    if (known !== undefined) return known;
    const index = this.keys.push(key) - 1;
    const hash = hashExpr(key);
    this.places.set(hash, [...this.places.get(hash) ?? [], index]);
    return index;
  }

  private find(e: Expr): number | undefined {
    return this.places.get(hashExpr(e))?.find((index) => sameExpr(this.keys[index], e));
  }

  /** Aggregates are placed behind the keys only once all keys are known: until then they keep their placeholder. */
  over(expr: Expr): Expr {
    return rewrite(expr, (e) => {
      if (e.kind === "column" && e.index >= AGGREGATE_BASE) return e;
      const key = this.find(e);
      if (key !== undefined) return { kind: "column", index: this.keyOffset + key, type: e.type };
      if (e.kind !== "column") return undefined;
      if (!this.growing) {
        throw new SqlError(
          "a column is neither a key of the grouping nor inside an aggregate",
          this.binding.positionOf(e),
          SQLSTATE.grouping,
        );
      }
      return { kind: "column", index: this.keyOffset + this.add(e), type: e.type };
    });
  }
}

/** Puts aggregate placeholders to their place in the output. */
export function placeAggregates(expr: Expr, firstAggregate: number): Expr {
  return rewrite(expr, (e) => {
    if (e.kind !== "column" || e.index < AGGREGATE_BASE) return undefined;
    return { ...e, index: firstAggregate + e.index - AGGREGATE_BASE };
  });
}

export function groupPlan(
  binding: Binding,
  input: Plan,
  items: OutputItem[],
  orders: OrderKey[],
  aggregates: AggregateCall[],
  written: { expr: Expr; at: number }[] | undefined,
  having: Expr | undefined,
): Plan {
  const grouping = new Grouping(binding, written === undefined, 0);
  // Constants divide nothing; one stays where there are no others, as no rows make no group of it.
  const varied = (written ?? []).filter(({ expr }) => expr.kind !== "constant");
  for (const { expr } of varied.length > 0 ? varied : (written ?? []).slice(0, 1)) grouping.add(expr);
  if (written === undefined) {
    for (const { expr } of items) {
      // What holds no aggregate is a key as a whole; constants are none.
      if (!isAggregated(expr) && columnsRead(expr).size > 0) grouping.add(expr);
    }
  }
  for (const item of items) item.expr = binding.at(grouping.over(item.expr), binding.positionOf(item.expr));
  grouping.close();
  for (const order of orders) if (order.expr !== undefined) order.expr = grouping.over(order.expr);
  const condition = having === undefined ? undefined : grouping.over(having);
  const first = grouping.keys.length;
  for (const item of items) item.expr = placeAggregates(item.expr, first);
  for (const order of orders) if (order.expr !== undefined) order.expr = placeAggregates(order.expr, first);
  const plan: Plan = {
    node: "aggregate",
    input,
    keys: grouping.keys,
    aggregates,
    columns: outputColumns(grouping.keys, aggregates),
    timestamp: -1,
    order: "none",
  };
  return condition === undefined ? plan : filter(plan, placeAggregates(condition, first));
}

export function outputColumns(keys: Expr[], aggregates: AggregateCall[]): Column[] {
  return [
    ...keys.map((key, i) => ({ name: `key ${i + 1}`, type: key.type })),
    ...aggregates.map((call) => ({ name: call.function, type: call.type })),
  ];
}
