/** What all kinds of joins do with their sides: names, columns, keys of ON, and the order of time. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Expression, Join, Source } from "../ast.ts";
import type { Expr, Plan, TimeJoinNode } from "../plan.ts";
import { bindComparison } from "./comparison.ts";
import { typeMismatch, unknownColumn } from "./context.ts";
import type { Scope } from "./expression-binder.ts";
import type { Expressions } from "./expressions.ts";
import { columnOf, columnsRead, remap, sort } from "./plans.ts";
import type { Queries } from "./query.ts";
import { candidates, markTimestampUsed, markUsed, type Relation, type ScopeColumn } from "./scope.ts";
import { displayName, isText, isTimestamp } from "./types.ts";

interface Keys {
  left: Expr[];
  right: Expr[];
  residual: Expr[];
}

export function checkAliases(join: Join, left: Relation, right: Relation): void {
  const taken = new Set(left.columns.map((column) => column.qualifier));
  const qualifier = right.columns[0]?.qualifier;
  if (qualifier === undefined || !taken.has(qualifier)) return;
  throw new SqlError(
    `two tables are called ${qualifier}: give one an alias`,
    aliasPlace(join.right),
    SQLSTATE.duplicateTable,
  );
}

/** The position of the source's name. */
export function aliasPlace(source: Source): number {
  return source.kind !== "join" && source.alias !== undefined ? source.alias.at : source.at;
}

/** Left columns, then right columns, including the hidden ones. */
export function combined(
  left: Relation,
  right: Relation,
  type: Join["type"],
): { columns: ScopeColumn[]; planColumns: Plan["columns"] } {
  const offset = left.plan.columns.length;
  // In rows without a match, the columns of the other side are NULL.
  const side = (columns: ScopeColumn[], isKept: boolean) =>
    isKept ? columns : columns.map((column) => ({ ...column, known: column.known === null ? null : undefined }));
  const columns = [
    ...side(left.columns, type !== "right" && type !== "full" && type !== "splice"),
    ...side(right.columns, type === "inner" || type === "cross" || type === "right")
      .map((column) => ({ ...column, index: column.index + offset })),
  ];
  return {
    columns,
    planColumns: [...left.plan.columns, ...right.plan.columns],
  };
}

/** What all joins by time have in common: both sides in time order, and their times in the same unit. */
export function sidesByTime(
  queries: Queries,
  join: Join,
  left: Relation,
  right: Relation,
): Pick<TimeJoinNode, "left" | "right" | "leftTime" | "rightTime"> {
  if (left.timestamp < 0) {
    throw new SqlError("the left side of the join has no designated timestamp", join.at, SQLSTATE.grouping);
  }
  if (right.timestamp < 0) {
    throw new SqlError("the right side of the join has no designated timestamp", join.at, SQLSTATE.grouping);
  }
  for (const side of [left, right]) markTimestampUsed(side, join.at);
  const leftPlan = inTimeOrder(left, "left", join.at);
  const rightPlan = inTimeOrder(right, "right", join.at);
  let leftTime = columnOf(left.plan, left.timestamp);
  let rightTime = columnOf(right.plan, right.timestamp);
  if (leftTime.type !== rightTime.type) {
    leftTime = queries.expressions.coerce(leftTime, "TIMESTAMP_NS", join.at);
    rightTime = queries.expressions.coerce(rightTime, "TIMESTAMP_NS", join.at);
  }
  return { left: leftPlan, right: rightPlan, leftTime, rightTime };
}

function inTimeOrder(relation: Relation, side: string, at: number): Plan {
  const { plan, timestamp } = relation;
  if (plan.timestamp === timestamp && plan.order === "asc") return plan;
  if (plan.timestamp === timestamp && plan.order === "desc") {
    throw new SqlError(
      `the ${side} side of the join is in descending order of time: expected ascending order`,
      at,
      SQLSTATE.grouping,
    );
  }
  const sorted = sort(plan, [{ expression: columnOf(plan, timestamp), descending: false }]);
  return { ...sorted, timestamp, order: "asc" };
}

/**
 * Splits ON into equality keys and the remaining condition. Joins by time only allow keys. Those of a WINDOW JOIN need not have the same type:
 * then they are a condition.
 */
export function joinKeys(
  expressions: Expressions,
  on: Expression | undefined,
  left: Relation,
  right: Relation,
  scope: Scope,
  kind: "plain" | "time" | "window",
): Keys {
  const keys: Keys = { left: [], right: [], residual: [] };
  if (on === undefined) return keys;
  const shared = on.kind === "list" ? on.items : on.kind === "column" && on.path.length === 1 ? [on] : undefined;
  if (shared !== undefined) {
    for (const item of shared) addShared(expressions, keys, item, left, right);
    return keys;
  }
  const offset = left.plan.columns.length;
  for (const part of andParts(on)) {
    if (part.kind === "binary" && part.operator === "=") {
      const a = expressions.bind(part.left, scope);
      const b = expressions.bind(part.right, scope);
      const sides = [sideOf(a, offset), sideOf(b, offset)];
      if (sides[0] !== sides[1] && !sides.includes("none") && !sides.includes("both")) {
        const [l, r] = sides[0] === "left" ? [a, b] : [b, a];
        const canDiffer = kind === "window" || (kind === "plain" && (l.kind !== "column" || r.kind !== "column"));
        if (canDiffer && l.type !== r.type && !(isText(l.type) && isText(r.type))) {
          keys.residual.push(bindComparison(expressions, "=", a, b, part.at));
          continue;
        }
        addKey(expressions, keys, l, remap(r, (index) => index - offset), part.right.at);
        continue;
      }
      if (kind === "time") {
        throw new SqlError(
          "a join by time accepts only equations between columns of both sides",
          part.at,
          SQLSTATE.syntax,
        );
      }
      keys.residual.push(bindComparison(expressions, "=", a, b, part.at));
      continue;
    }
    if (kind === "time") {
      throw new SqlError(
        "a join by time accepts only equations between columns of both sides",
        part.at,
        SQLSTATE.syntax,
      );
    }
    keys.residual.push(expressions.condition(part, scope));
  }
  return keys;
}

export function andParts(e: Expression): Expression[] {
  return e.kind === "binary" && e.operator === "and" ? [...andParts(e.left), ...andParts(e.right)] : [e];
}

function sideOf(expr: Expr, offset: number): "left" | "right" | "both" | "none" {
  const read = [...columnsRead(expr)];
  if (read.length === 0) return "none";
  if (read.every((index) => index < offset)) return "left";
  return read.every((index) => index >= offset) ? "right" : "both";
}

function addShared(expressions: Expressions, keys: Keys, item: Expression, left: Relation, right: Relation): void {
  if (item.kind !== "column") throw new SqlError("ON (…) must list column names", item.at);
  // If several tables on the left have the column, the first one is used.
  const [l] = candidates(left.columns, item.path);
  const [r] = candidates(right.columns, item.path);
  if (l === undefined || r === undefined) {
    const { columns } = l === undefined ? left : right;
    throw unknownColumn(item.path.at(-1)!.text, item.at, columns);
  }
  for (const column of [l, r]) markUsed(column, item.at);
  addKey(expressions, keys, { kind: "column", index: l.index, type: l.type }, {
    kind: "column",
    index: r.index,
    type: r.type,
  }, item.at);
}

/** Adds a pair of keys. Both must have the same type, or both must be texts or timestamps. */
function addKey(expressions: Expressions, keys: Keys, left: Expr, right: Expr, at: number): void {
  let [l, r] = [left, right];
  if (l.type !== r.type && isTimestamp(l.type) && isTimestamp(r.type)) {
    [l, r] = [l, r].map((side) => expressions.coerce(side, "TIMESTAMP_NS", at)) as [Expr, Expr];
  } else if (l.type !== r.type) {
    if (!isText(l.type) || !isText(r.type)) {
      throw typeMismatch(`the keys of the join differ: ${displayName(l.type)} and ${displayName(r.type)}`, at);
    }
    // Dictionary codes can only be compared if both sides are symbols.
    if (l.type === "SYMBOL") l = expressions.cast(l, "STRING", at);
    if (r.type === "SYMBOL") r = expressions.cast(r, "STRING", at);
  }
  keys.left.push(l);
  keys.right.push(r);
}
