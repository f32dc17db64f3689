/** Joins: the equality keys and the remaining condition of ON; joins by time. */
import { notSupported, SqlError } from "../../errors.ts";
import type { Join } from "../ast.ts";
import type { JoinNode, TimeJoinNode } from "../plan.ts";
import type { Names } from "./context.ts";
import { durationText } from "./sampling.ts";
import { fixedDuration } from "./durations.ts";
import { horizonJoin } from "./horizon-joins.ts";
import { aliasPlace, checkAliases, combined, joinKeys, sidesByTime } from "./join-sides.ts";
import { noRows } from "./no-rows.ts";
import { and } from "./plans.ts";
import type { Queries } from "./query.ts";
import { partialTimestamp, type Relation, type ScopeColumn } from "./scope.ts";
import { nameKey } from "../../types/names.ts";
import { tolerant } from "./tolerant.ts";
import { windowJoin } from "./window-joins.ts";

export function joinRelation(queries: Queries, join: Join, left: Relation, right: Relation, names: Names): Relation {
  checkAliases(join, left, right);
  switch (join.type) {
    case "window":
      return windowJoin(queries, join, left, right, names);
    case "horizon":
      return horizonJoin(queries, join, left, right, names);
    case "asof":
    case "lt":
    case "splice":
      return timeJoin(queries, join, left, right, names);
    default:
      return plainJoin(queries, join, left, right, names);
  }
}

function misplacedTolerance(at: number): SqlError {
  return new SqlError("TOLERANCE is only for ASOF and LT joins", at);
}

function plainJoin(queries: Queries, join: Join, left: Relation, right: Relation, names: Names): Relation {
  const { columns: all, planColumns } = combined(left, right, join.type);
  const type = join.type as JoinNode["type"];
  const columns = join.merges === true ? merged(all, join, left.columns.length) : all;
  if (type !== "cross" && join.on === undefined) {
    throw new SqlError("the join needs ON", join.nextAt ?? aliasPlace(join.right));
  }
  if (join.tolerance !== undefined) throw misplacedTolerance(join.tolerance.wordAt);
  const bindKeys = () => joinKeys(queries.expressions, join.on, left, right, { columns, names }, "plain");
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
  const timestamp = keepsOrder ? left.timestamp : -1;
  return { plan, columns, isTable: false, timestamp, partialTimestamp: partialTimestamp(left) };
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
  const type = join.type as TimeJoinNode["type"];
  const sides = sidesByTime(queries, join, left, right);
  if (join.tolerance !== undefined && type === "splice") throw misplacedTolerance(join.tolerance.wordAt);
  const keys = joinKeys(queries.expressions, join.on, left, right, { columns, names }, "time");
  let tolerance: bigint | undefined;
  if (join.tolerance !== undefined) {
    const { value, at } = join.tolerance;
    const text = join.tolerance.text ?? durationText(queries.expressions, value!, names, "TOLERANCE") ?? "";
    tolerance = fixedDuration(text, sides.leftTime.type);
    if (tolerance === undefined) {
      // If the unit is missing, report the error after the number.
      const digits = value === undefined ? /^\d+(?![a-zA-Z])/.exec(text)?.[0].length ?? 0 : 0;
      throw new SqlError(`invalid tolerance '${text}': expected a number and one of n U T s m h d w`, at + digits);
    }
    if (/^0+[a-zA-Z]$/.test(text)) throw new SqlError("the tolerance must be above zero", at);
  }
  const splice = type === "splice";
  const plan: TimeJoinNode = {
    node: "timeJoin",
    type,
    ...sides,
    leftKeys: keys.left,
    rightKeys: keys.right,
    tolerance,
    columns: planColumns,
    timestamp: splice ? -1 : left.timestamp,
    order: splice ? "none" : "asc",
  };
  const timestamp = splice ? -1 : left.timestamp;
  return { plan, columns, isTable: false, timestamp, partialTimestamp: partialTimestamp(left) };
}
