/** GROUP BY, explicit or implicit: makes an aggregate node and rewrites the select list over its output. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { AggregateCall, Column, Expr, Plan } from "../plan.ts";
import type { Binding } from "./context.ts";
import { columnsRead, filter, hashExpr, hasPlaceholder, placed, rewrite, sameExpr } from "./plans.ts";
import type { OrderKey, OutputItem } from "./query.ts";

/** True if the expression contains an aggregate call. */
export function isAggregated(expr: Expr): boolean {
  return hasPlaceholder(expr, "aggregate");
}

/** The keys of a grouping with their positions in its output; rewrites expressions over that output. */
export class Grouping {
  readonly keys: Expr[] = [];
  /** Ordinals of keys by their hashes. */
  private readonly ordinals = new Map<number, number[]>();

  /** `growing`: whether a column that is not a key yet becomes one. Otherwise such a column is an error. */
  constructor(private readonly binding: Binding, private growing: boolean, private readonly keyOffset: number) {}

  /** After this call, ORDER BY and HAVING cannot add keys. */
  close(): void {
    this.growing = false;
  }

  add(key: Expr): number {
    const known = this.find(key);
    if (known !== undefined) return known;
    const index = this.keys.push(key) - 1;
    const hash = hashExpr(key);
    this.ordinals.set(hash, [...this.ordinals.get(hash) ?? [], index]);
    return index;
  }

  private find(e: Expr): number | undefined {
    return this.ordinals.get(hashExpr(e))?.find((index) => sameExpr(this.keys[index]!, e));
  }

  /**
   * Rewrites an expression over the output. Aggregates keep their placeholders until all keys are known, because they
   * follow the keys.
   */
  over(expr: Expr): Expr {
    return rewrite(expr, (e) => {
      const key = this.find(e);
      if (key !== undefined) return { kind: "column", index: this.keyOffset + key, type: e.type };
      if (e.kind !== "column") return undefined;
      if (!this.growing) {
        throw new SqlError(
          "the column must be a key of the grouping or inside an aggregate",
          this.binding.positionOf(e),
          SQLSTATE.grouping,
        );
      }
      return { kind: "column", index: this.keyOffset + this.add(e), type: e.type };
    });
  }
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
  // Constant keys do not affect grouping. Keep one if it is the only key, so that empty input yields no group.
  const varied = (written ?? []).filter(({ expr }) => expr.kind !== "constant");
  for (const { expr } of varied.length > 0 ? varied : (written ?? []).slice(0, 1)) grouping.add(expr);
  if (written === undefined) {
    for (const { expr } of items) {
      // An item without an aggregate is a key as a whole, unless it is constant.
      if (!isAggregated(expr) && columnsRead(expr).size > 0) grouping.add(expr);
    }
  }
  for (const item of items) item.expr = binding.at(grouping.over(item.expr), binding.positionOf(item.expr));
  grouping.close();
  for (const order of orders) if (order.expr !== undefined) order.expr = grouping.over(order.expr);
  const condition = having === undefined ? undefined : grouping.over(having);
  const first = grouping.keys.length;
  placeAggregates(items, orders, first);
  const plan: Plan = {
    node: "aggregate",
    input,
    keys: grouping.keys,
    aggregates,
    columns: outputColumns(grouping.keys, aggregates),
    timestamp: -1,
    order: "none",
  };
  return condition === undefined ? plan : filter(plan, placed(condition, "aggregate", first));
}

/** Replaces the placeholders of aggregates by columns of the grouping's output. */
export function placeAggregates(items: OutputItem[], orders: OrderKey[], first: number): void {
  for (const item of items) item.expr = placed(item.expr, "aggregate", first);
  for (const order of orders) if (order.expr !== undefined) order.expr = placed(order.expr, "aggregate", first);
}

export function outputColumns(keys: Expr[], aggregates: AggregateCall[]): Column[] {
  return [
    ...keys.map((key, i) => ({ name: `key ${i + 1}`, type: key.type })),
    ...aggregates.map((call) => ({ name: call.function, type: call.type })),
  ];
}
