/** Joins: the equality keys and the remaining condition of ON; joins by time. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Expression, Join, Source } from "../ast.ts";
import type { Expr, JoinNode, Plan, TimeJoinNode } from "../plan.ts";
import { bindComparison } from "./comparison.ts";
import { type Names, typeMismatch, unknownColumn } from "./context.ts";
import { fixedDuration } from "./durations.ts";
import type { Scope } from "./expression-binder.ts";
import type { Expressions } from "./expressions.ts";
import { noRows } from "./no-rows.ts";
import { tolerant } from "./tolerant.ts";
import { and, columnOf, columnsRead, remap, sort } from "./plans.ts";
import { candidates, markTimestampUsed, markUsed, type Relation, type ScopeColumn } from "./scope.ts";
import type { Queries } from "./query.ts";
import { nameKey } from "../../types/names.ts";
import { displayName, isText } from "./types.ts";

interface Keys {
  left: Expr[];
  right: Expr[];
  residual: Expr[];
}

export function joinRelation(queries: Queries, join: Join, left: Relation, right: Relation, names: Names): Relation {
  checkAliases(join, left, right);
  switch (join.type) {
    case "window":
    case "horizon":
      throw notSupported(`${join.type.toUpperCase()} JOIN`, join.at);
    case "asof":
    case "lt":
    case "splice":
      return timeJoin(queries, join, left, right, names);
    default:
      return plainJoin(queries, join, left, right, names);
  }
}

function checkAliases(join: Join, left: Relation, right: Relation): void {
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
function aliasPlace(source: Source): number {
  return source.kind !== "join" && source.alias !== undefined ? source.alias.at : source.at;
}

function misplacedTolerance(at: number): SqlError {
  return new SqlError("TOLERANCE is only for ASOF and LT joins", at);
}

/** Left columns, then right columns, including the hidden ones. */
function combined(
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

function plainJoin(queries: Queries, join: Join, left: Relation, right: Relation, names: Names): Relation {
  const { columns: all, planColumns } = combined(left, right, join.type);
  const type = join.type as JoinNode["type"];
  const columns = join.merges === true ? merged(all, join, left.columns.length) : all;
  if (type !== "cross" && join.on === undefined) {
    throw new SqlError("the join needs ON", join.nextAt ?? aliasPlace(join.right));
  }
  if (join.tolerance !== undefined) throw misplacedTolerance(join.tolerance.wordAt);
  const bindKeys = () => joinKeys(queries.expressions, join.on, left, right, { columns, names }, false);
  if (hasNoRows(type, left, right)) {
    tolerant(bindKeys);
    return { plan: noRows(planColumns), columns, isTable: false, isEmpty: true, timestamp: -1 };
  }
  const keys = bindKeys();
  // Rows are in the order of the left side; with RIGHT and FULL they have no order.
  const keepsOrder = type !== "right" && type !== "full";
  const plan: JoinNode = {
    node: "join",
    type,
    left: left.plan,
    right: right.plan,
    leftKeys: keys.left,
    rightKeys: keys.right,
    residual: and(keys.residual),
    columns: planColumns,
    timestamp: keepsOrder ? left.plan.timestamp : -1,
    order: keepsOrder ? left.plan.order : "none",
  };
  return { plan, columns, isTable: false, timestamp: keepsOrder ? left.timestamp : -1 };
}

/** After USING, the columns of the right side can only be referred to with their table's name. */
function merged(columns: ScopeColumn[], join: Join, leftCount: number): ScopeColumn[] {
  if (join.type === "right" || join.type === "full") throw notSupported("USING of RIGHT and FULL joins", join.on!.at);
  const names = new Set(
    join.on!.kind === "list" ? join.on!.items.map((e) => e.kind === "column" ? nameKey(e.path[0]!.text) : "") : [],
  );
  return columns.map((column, i) =>
    i >= leftCount && names.has(nameKey(column.name)) ? { ...column, isMerged: true } : column
  );
}

function hasNoRows(type: JoinNode["type"], left: Relation, right: Relation): boolean {
  const [l, r] = [left.isEmpty === true, right.isEmpty === true];
  switch (type) {
    case "left":
      return l;
    case "right":
      return r;
    case "full":
      return l && r;
    default:
      return l || r;
  }
}

function timeJoin(queries: Queries, join: Join, left: Relation, right: Relation, names: Names): Relation {
  const { columns, planColumns } = combined(left, right, join.type);
  if (join.merges === true) throw notSupported("USING of a join by time", join.on!.at);
  if (left.timestamp < 0) {
    throw new SqlError("the left side of the join has no designated timestamp", join.at, SQLSTATE.grouping);
  }
  if (right.timestamp < 0) {
    throw new SqlError("the right side of the join has no designated timestamp", join.at, SQLSTATE.grouping);
  }
  for (const side of [left, right]) markTimestampUsed(side, join.at);
  const type = join.type as TimeJoinNode["type"];
  if (join.tolerance !== undefined && type === "splice") throw misplacedTolerance(join.tolerance.wordAt);
  const keys = joinKeys(queries.expressions, join.on, left, right, { columns, names }, true);
  const leftPlan = inTimeOrder(left, "left", join.at);
  const rightPlan = inTimeOrder(right, "right", join.at);
  let leftTime = columnOf(left.plan, left.timestamp);
  let rightTime = columnOf(right.plan, right.timestamp);
  if (leftTime.type !== rightTime.type) {
    leftTime = queries.expressions.cast(leftTime, "TIMESTAMP_NS", join.at);
    rightTime = queries.expressions.cast(rightTime, "TIMESTAMP_NS", join.at);
  }
  let tolerance: bigint | undefined;
  if (join.tolerance !== undefined) {
    tolerance = fixedDuration(join.tolerance.text, leftTime.type);
    const { text, at } = join.tolerance;
    if (tolerance === undefined) {
      // If the unit is missing, report the error after the number.
      const digits = /^\d+(?![a-zA-Z])/.exec(text)?.[0].length ?? 0;
      throw new SqlError(`invalid tolerance '${text}': expected a number and one of n U T s m h d w`, at + digits);
    }
    if (/^0+[a-zA-Z]$/.test(text)) throw new SqlError("the tolerance must be above zero", at);
  }
  const splice = type === "splice";
  const plan: TimeJoinNode = {
    node: "timeJoin",
    type,
    left: leftPlan,
    right: rightPlan,
    leftTime,
    rightTime,
    leftKeys: keys.left,
    rightKeys: keys.right,
    tolerance,
    columns: planColumns,
    timestamp: splice ? -1 : left.timestamp,
    order: splice ? "none" : "asc",
  };
  return { plan, columns, isTable: false, timestamp: splice ? -1 : left.timestamp };
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

/** Splits ON into equality keys and the remaining condition. Joins by time only allow keys. */
function joinKeys(
  expressions: Expressions,
  on: Expression | undefined,
  left: Relation,
  right: Relation,
  scope: Scope,
  byTime: boolean,
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
        const isComputed = l.kind !== "column" || r.kind !== "column";
        if (!byTime && isComputed && l.type !== r.type && !(isText(l.type) && isText(r.type))) {
          keys.residual.push(bindComparison(expressions, "=", a, b, part.at));
          continue;
        }
        addKey(expressions, keys, l, remap(r, (index) => index - offset), part.right.at);
        continue;
      }
      if (byTime) {
        throw new SqlError(
          "a join by time accepts only equations between columns of both sides",
          part.at,
          SQLSTATE.syntax,
        );
      }
      keys.residual.push(bindComparison(expressions, "=", a, b, part.at));
      continue;
    }
    if (byTime) {
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

function andParts(e: Expression): Expression[] {
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

/** Adds a pair of keys. Both must have the same type, or both must be texts. */
function addKey(expressions: Expressions, keys: Keys, left: Expr, right: Expr, at: number): void {
  let [l, r] = [left, right];
  if (l.type !== r.type) {
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
