/** HORIZON JOIN: its offsets, and the columns of their alias. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Horizon, HorizonOffset, Join } from "../ast.ts";
import type { HorizonJoinNode } from "../plan.ts";
import type { Names } from "./context.ts";
import { fixedDuration } from "./durations.ts";
import { aliasPlace, combined, joinKeys, sidesByTime } from "./join-sides.ts";
import { columnOf } from "./plans.ts";
import type { Queries } from "./query.ts";
import type { Relation, ScopeColumn } from "./scope.ts";

const OFFSETS_MAX = 10_000;

export function horizonJoin(queries: Queries, join: Join, left: Relation, right: Relation, names: Names): Relation {
  if (join.left.kind === "join") throw notSupported("a HORIZON JOIN after another join", join.at);
  const { alias, offsets } = join.horizon!, qualifier = alias.text.toLowerCase();
  const both = combined(left, right, join.type);
  const isTaken = ({ columns }: Relation) => columns.some((column) => column.qualifier === qualifier);
  if (isTaken(left) || isTaken(right)) {
    const at = isTaken(left) ? alias.at : aliasPlace(join.right);
    throw new SqlError(`two tables are called ${alias.text}`, at, SQLSTATE.duplicateTable);
  }
  const sides = sidesByTime(queries, join, left, right);
  const keys = joinKeys(queries.expressions, join.on, left, right, { columns: both.columns, names }, "time");
  const time = columnOf(left.plan, left.timestamp), width = left.plan.columns.length;
  const own = [{ name: "offset", type: "LONG" }, { name: "timestamp", type: time.type }];
  const plan: HorizonJoinNode = {
    node: "horizonJoin",
    ...sides,
    leftKeys: keys.left,
    rightKeys: keys.right,
    time,
    offsets: offsetsOf(offsets, time.type),
    columns: [...left.plan.columns, ...own, ...right.plan.columns],
    timestamp: -1,
    order: "none",
  };
  const columns: ScopeColumn[] = [
    ...both.columns.slice(0, left.columns.length),
    ...own.map((column, k) => ({ ...column, qualifier, index: width + k })),
    ...both.columns.slice(left.columns.length).map((column) => ({ ...column, index: column.index + own.length })),
  ];
  const unfiltered = { first: width, end: plan.columns.length };
  return { plan, columns, isTable: false, isHorizon: true, unfiltered, timestamp: -1 };
}

function offsetsOf(offsets: Horizon["offsets"], type: string): bigint[] {
  if (offsets.kind === "list") {
    const { items } = offsets;
    if (items.length > OFFSETS_MAX) throw tooMany(items.length, items[0]!.at);
    const values = items.map((item) => offsetOf(item, type));
    values.forEach((value, k) => {
      if (k > 0 && value <= values[k - 1]!) throw new SqlError("the offsets of LIST must ascend", items[k]!.at);
    });
    return values;
  }
  const [from, to, step] = [offsets.from, offsets.to, offsets.step].map((offset) => offsetOf(offset, type));
  if (step! <= 0n) throw new SqlError("STEP must be above zero", offsets.step.at);
  if (from! > to!) throw new SqlError("the range ends before it starts: FROM is greater than TO", offsets.from.at);
  const count = (to! - from!) / step! + 1n;
  if (count > OFFSETS_MAX) throw tooMany(count, offsets.from.at);
  return Array.from({ length: Number(count) }, (_, k) => from! + BigInt(k) * step!);
}

function tooMany(count: number | bigint, at: number): SqlError {
  return new SqlError(
    `the HORIZON JOIN has ${count} offsets: at most ${OFFSETS_MAX} are allowed`,
    at,
    SQLSTATE.programLimitExceeded,
  );
}

function offsetOf({ text, at }: HorizonOffset, type: string): bigint {
  const isNegative = text.startsWith("-"), digits = isNegative ? text.slice(1) : text;
  const value = digits === "0" ? 0n : digits.endsWith("w") ? undefined : fixedDuration(digits, type);
  if (value === undefined || value >= 1n << 62n) {
    // Without a unit of one letter, the error is after the number.
    const [number] = /^-?\d+/.exec(text) ?? [""], hasUnit = text.length === number.length + 1;
    const place = hasUnit ? at : at + number.length;
    throw new SqlError(`invalid offset '${text}': expected 0, or a number and one of n U T s m h d`, place);
  }
  return isNegative ? -value : value;
}
