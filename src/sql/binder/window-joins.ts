/** WINDOW JOIN: its window and keys, and the aggregates of the query over its rows. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { FrameBound, Join } from "../ast.ts";
import type { AggregateCall, Expr, Plan, WindowBound, WindowJoinNode } from "../plan.ts";
import { type Binding, type Names, typeMismatch } from "./context.ts";
import { fold } from "./convert.ts";
import { wordDuration } from "./durations.ts";
import { combined, joinKeys, sidesByTime } from "./join-sides.ts";
import { and, columnsRead, remap, rewrite, walk } from "./plans.ts";
import type { OrderKey, OutputItem, Queries } from "./query.ts";
import type { Relation, ScopeColumn, WindowJoin } from "./scope.ts";
import { displayName, isInteger, isTextOrChar } from "./types.ts";

/** The right columns of a WINDOW JOIN have such indices until its node is made, as columns are still added to the left side. */
const RIGHT_COLUMNS = 1_000_000;

export function windowJoin(queries: Queries, join: Join, left: Relation, right: Relation, names: Names): Relation {
  const before = left.windowJoins ?? [], first = RIGHT_COLUMNS * (before.length + 1);
  const isOfLeft = ({ index }: ScopeColumn) => index < RIGHT_COLUMNS;
  // The right sides of other WINDOW JOINs cannot be used in ON.
  const base: Relation = { ...left, columns: left.columns.filter(isOfLeft) };
  const { columns: ofBoth } = combined(base, right, join.type);
  const { left: plan, ...sides } = sidesByTime(queries, join, base, right);
  const keys = joinKeys(queries.expressions, join.on, base, right, { columns: ofBoth, names }, "window");
  const ofRight = ofBoth.slice(base.columns.length)
    .map((column) => ({ ...column, index: column.index - plan.columns.length + first }));
  const columns = [...left.columns, ...ofRight], { start, end, includesPrevailing } = join.window!;
  const bounds = new Bounds(queries, { columns, names }, plan.columns[plan.timestamp]!.type, sides.leftTime.type);
  const node: WindowJoin["node"] = {
    node: "windowJoin",
    ...sides,
    leftKeys: keys.left,
    rightKeys: keys.right,
    ...bounds.window(start, end),
    includesPrevailing,
    residual: and(keys.residual),
  };
  const windowJoins = [...before, { node, leftCount: plan.columns.length, first }];
  return { ...left, plan, columns, windowJoins, isTable: false, unfiltered: { first: RIGHT_COLUMNS, end: Infinity } };
}

class Bounds {
  /** `type`: of the left side's time. `comparedType`: of the times that are compared. */
  constructor(
    private readonly queries: Queries,
    private readonly scope: { columns: ScopeColumn[]; names: Names },
    private readonly type: string,
    private readonly comparedType: string,
  ) {}

  window(start: FrameBound, end: FrameBound): Pick<WindowJoinNode, "start" | "end"> {
    const [low, high] = [this.bound(start), this.bound(end)];
    if (start.kind === "following" && end.kind === "preceding") {
      throw new SqlError("a window that starts FOLLOWING cannot end PRECEDING", end.wordAt);
    }
    const from = distanceOf(low), to = distanceOf(high);
    if (from !== undefined && to !== undefined && from > to) {
      const at = end.kind === "current row" ? start.at : end.at;
      throw new SqlError("the window ends before it starts", at, SQLSTATE.invalidParameter);
    }
    return { start: low, end: high };
  }

  private bound(bound: FrameBound): WindowBound {
    switch (bound.kind) {
      case "current row":
        return { offset: { kind: "constant", value: 0n, type: "LONG" }, unit: 1n, direction: "following" };
      case "unbounded preceding":
      case "unbounded following":
        throw notSupported("an UNBOUNDED window of a WINDOW JOIN", bound.wordAt);
    }
    const nanos = bound.unit === undefined ? undefined : wordDuration(bound.unit.text, "TIMESTAMP_NS");
    if (bound.unit !== undefined && nanos === undefined) {
      throw new SqlError(`invalid unit ${bound.unit.text} in a window`, bound.unit.at);
    }
    const offset = this.offset(bound), { kind: direction } = bound, { queries, type, comparedType } = this;
    const nanosOfUnit = nanos ?? (type === "TIMESTAMP_NS" ? 1n : 1_000n);
    if (comparedType === "TIMESTAMP_NS") return { offset, unit: nanosOfUnit, direction };
    if (nanosOfUnit >= 1_000n) return { offset, unit: nanosOfUnit / 1_000n, direction };
    const thousand: Expr = { kind: "constant", value: 1_000n, type: "LONG" };
    const micros = queries.expressions.function("/", [offset, thousand], bound.offset.at);
    return { offset: fold(micros, queries.binding) ?? micros, unit: 1n, direction };
  }

  private offset({ offset }: FrameBound & { kind: "preceding" | "following" }): Expr {
    const { expressions, binding } = this.queries, { at } = offset;
    const expr = expressions.settle(expressions.bind(offset, this.scope), "LONG");
    for (const index of columnsRead(expr)) {
      if (index >= RIGHT_COLUMNS) throw new SqlError("a bound of the window cannot use columns of the right side", at);
    }
    const constant = fold(expr, binding), value = constant?.value;
    const isDigits = typeof value === "string" && /^\d+$/.test(value);
    if (!isInteger(expr.type) && !(constant !== undefined && isTextOrChar(expr.type) && (value === null || isDigits))) {
      throw typeMismatch(`a bound of the window has type ${displayName(expr.type)}: expected a whole number`, at);
    }
    if (value !== undefined && value !== null && BigInt(value as string | number | bigint) < 0n) {
      throw new SqlError("a bound of the window must not be negative", at, SQLSTATE.invalidParameter);
    }
    const long = expressions.cast(constant ?? expr, "LONG", at);
    return fold(long, binding) ?? long;
  }
}

/** From the left row's time; undefined if it differs between rows. */
function distanceOf({ offset, unit, direction }: WindowBound): bigint | undefined {
  if (offset.kind !== "constant" || offset.value === null) return undefined;
  const distance = BigInt(offset.value as bigint) * unit;
  return direction === "preceding" ? -distance : distance;
}

/** @throws at the first column of a right side: these can only be used in aggregates. */
function refuseRightColumns(expr: Expr, binding: Binding): void {
  walk(expr, (e) => {
    if (e.kind !== "column" || e.index < RIGHT_COLUMNS) return;
    throw new SqlError(
      "a column of the right side of a WINDOW JOIN can only be used in an aggregate",
      binding.positionOf(e),
      SQLSTATE.grouping,
    );
  });
}

/** Adds the nodes of the joins to a plan, with the aggregates of the query, and rewrites items and order keys over them. */
export function windowJoinPlan(
  binding: Binding,
  input: Plan,
  joins: readonly WindowJoin[],
  items: OutputItem[],
  orders: OrderKey[],
  aggregates: readonly AggregateCall[],
): Plan {
  const owners = aggregates.map((call) => ownerOf(call, joins)), columns: number[] = [];
  let plan = input;
  joins.forEach(({ node, leftCount, first }, k) => {
    const width = plan.columns.length, calls: AggregateCall[] = [];
    const place = (index: number) => index < RIGHT_COLUMNS ? index : index - first + width;
    aggregates.forEach((call, i) => {
      if (owners[i] !== k) return;
      columns[i] = width + calls.length;
      calls.push({ ...call, args: call.args.map((arg) => remap(arg, place)) });
    });
    // Without aggregates it has no effect.
    if (calls.length === 0) return;
    const residual = node.residual &&
      remap(node.residual, (index) => index < leftCount ? index : index - leftCount + width);
    plan = {
      ...node,
      left: plan,
      residual,
      aggregates: calls,
      columns: [...plan.columns, ...calls.map((call) => ({ name: call.function, type: call.type }))],
      timestamp: plan.timestamp,
      order: plan.order,
    };
  });
  const placed = (expr: Expr): Expr => {
    refuseRightColumns(expr, binding);
    return rewrite(
      expr,
      (e) =>
        e.kind === "placeholder" && e.of === "aggregate"
          ? { kind: "column", index: columns[e.index]!, type: e.type }
          : undefined,
    );
  };
  for (const item of items) item.expr = binding.at(placed(item.expr), binding.positionOf(item.expr));
  for (const order of orders) if (order.expr !== undefined) order.expr = placed(order.expr);
  return plan;
}

/** The join of an aggregate: the one whose columns it reads, or the first. */
function ownerOf(call: AggregateCall, joins: readonly WindowJoin[]): number {
  const owners = new Set<number>();
  for (const arg of call.args) {
    for (const index of columnsRead(arg)) {
      if (index >= RIGHT_COLUMNS) owners.add(joins.findLastIndex(({ first }) => index >= first));
    }
  }
  if (owners.size > 1) throw notSupported("an aggregate over the right sides of several WINDOW JOINs", call.at);
  return [...owners][0] ?? 0;
}
