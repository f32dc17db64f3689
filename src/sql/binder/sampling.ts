/** SAMPLE BY: buckets of time, FILL and ALIGN TO. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Expression, Name, SampleBy } from "../ast.ts";
import type { AggregateCall, Expr, Fill, Plan, Sampling } from "../plan.ts";
import { findVariable, type Names, typeMismatch } from "./context.ts";
import { convertConstant, fold, foldAtNow } from "./convert.ts";
import { parseBucketOffset } from "../../types/calendar.ts";
import { parseSampling } from "./durations.ts";
import type { Expressions } from "./expressions.ts";
import { Grouping, isAggregated, outputColumns, placeAggregates } from "./grouping.ts";
import { constant } from "./literals.ts";
import { columnOf, columnsRead, hasParameter, placed, rewrite, sameExpr, walk } from "./plans.ts";
import { markTimestampUsed, type Relation } from "./scope.ts";
import type { OrderKey, OutputItem } from "./query.ts";
import { displayName, isInteger, isNumber, isTextOrChar } from "./types.ts";
import { notOf } from "../../types/parse/values.ts";

export function samplePlan(
  expressions: Expressions,
  relation: Relation,
  sample: SampleBy,
  items: OutputItem[],
  orders: OrderKey[],
  aggregates: AggregateCall[],
  names: Names,
): Plan {
  const { binding } = expressions;
  if (relation.timestamp < 0) throw withoutTimestamp(relation, sample);
  markTimestampUsed(relation, sample.at);
  const input = relation.plan;
  const time = columnOf(input, relation.timestamp);
  const sampling = bindSampling(expressions, sample, time.type, names);
  const fillOf = bindFill(expressions, sample, items, aggregates, names, relation.timestamp);

  // The bucket replaces the timestamp in the select list; its index in the node's output is 0.
  const grouping = new Grouping(binding, true, 1);
  const keyOf = new Map<OutputItem, Expr>();
  for (const item of items) {
    const read = columnsRead(item.expr);
    if (!isAggregated(item.expr) && read.size > 0 && !read.has(relation.timestamp)) {
      keyOf.set(item, { kind: "column", index: 1 + grouping.add(item.expr), type: item.expr.type });
    }
  }
  // Inside an expression, the timestamp means the bucket too. A placeholder prevents it from becoming a key.
  const overBuckets = (expr: Expr): Expr => {
    const marked = rewrite(
      expr,
      (e) => sameExpr(e, time) ? { kind: "placeholder", of: "bucket", index: 0, type: time.type } : undefined,
    );
    if (marked !== expr) expressions.binding.at(marked, expressions.binding.positionOf(expr));
    return placed(grouping.over(marked), "bucket", 0);
  };
  for (const item of items) item.expr = keyOf.get(item) ?? overBuckets(item.expr);
  grouping.close();
  for (const order of orders) if (order.expr !== undefined) order.expr = overBuckets(order.expr);
  const first = 1 + grouping.keys.length;
  placeAggregates(items, orders, first);
  return {
    node: "sample",
    input,
    time,
    sampling,
    keys: grouping.keys,
    aggregates,
    fills: fillOf,
    columns: [
      { name: input.columns[relation.timestamp]!.name, type: time.type },
      ...outputColumns(grouping.keys, aggregates),
    ],
    timestamp: 0,
    order: "asc",
  };
}

/** After RIGHT, FULL and SPLICE JOIN: rows without the first source are a bucket of their own. */
export function withPartialTimestamp(relation: Relation, { fill, align, from, to }: SampleBy): Relation {
  const { plan, timestamp, partialTimestamp } = relation;
  const isPlain = fill === undefined && align?.to !== "first observation" && from === undefined && to === undefined;
  if (timestamp >= 0 || partialTimestamp === undefined || !isPlain) return relation;
  return { ...relation, plan: { ...plan, timestamp: partialTimestamp, order: "none" }, timestamp: partialTimestamp };
}

function withoutTimestamp({ partialTimestamp }: Relation, { fill, align, from, to }: SampleBy): SqlError {
  if (partialTimestamp === undefined) {
    const message = "SAMPLE BY needs a designated timestamp: name one by timestamp(column)";
    return new SqlError(message, 0, SQLSTATE.grouping);
  }
  const message =
    "after this join, the timestamp is null in some rows, which FILL, FROM, TO and ALIGN TO FIRST OBSERVATION do not allow: " +
    "use a sub-query with timestamp(column)";
  const at = from?.at ?? to?.at ?? fill?.at ?? align?.at ?? 0;
  return new SqlError(message, at, SQLSTATE.grouping);
}

function bindSampling(expressions: Expressions, sample: SampleBy, timeType: string, names: Names): Sampling {
  const { interval, align } = sample;
  const text = intervalText(expressions, interval, names);
  const parsed = parseSampling(text ?? "");
  if (parsed === undefined) {
    // In that form a missing unit is reported after the number.
    const digits = align?.to === "first observation" ? /^\d*$/.exec(text ?? "")?.[0].length ?? 0 : 0;
    throw new SqlError(
      `invalid bucket size '${text}': expected a number and one of n U T s m h d w M y`,
      interval.at + digits,
      SQLSTATE.invalidParameter,
    );
  }
  const sampling: Sampling = { ...parsed, align: align?.to ?? "calendar", timeZone: "", offset: 0n };
  if (sample.from !== undefined) sampling.from = instantOf(expressions, sample.from, timeType, names);
  if (sample.to !== undefined) sampling.to = instantOf(expressions, sample.to, timeType, names);
  if (align?.to === "first observation" && (sample.from !== undefined || sample.to !== undefined)) {
    throw new SqlError(
      "FROM and TO cannot be combined with ALIGN TO FIRST OBSERVATION",
      align.end ?? align.at,
      SQLSTATE.syntax,
    );
  }
  if (align?.timeZone !== undefined) {
    const zone = constantText(expressions, align.timeZone, names, "TIME ZONE", "UTC");
    const known = zone === undefined ? undefined : zoneName(zone);
    if (known === undefined) {
      throw new SqlError(`there is no time zone '${zone ?? "null"}'`, align.timeZone.at, SQLSTATE.invalidParameter);
    }
    sampling.timeZone = known;
  }
  if (align?.offset !== undefined) {
    const written = constantText(expressions, align.offset, names, "WITH OFFSET", "00:00");
    const offset = written === undefined ? undefined : parseBucketOffset(written, timeType);
    if (offset === undefined) {
      throw new SqlError(
        `invalid offset '${written ?? "null"}': expected [+-]HH:mm`,
        align.offset.at,
        SQLSTATE.invalidParameter,
      );
    }
    // With FILL and FROM, the buckets begin at FROM, also with FILL(NONE).
    sampling.offset = sample.fill !== undefined && sampling.from !== undefined ? 0n : offset;
  }
  return sampling;
}

/** `15m`, or a DECLARE variable with such a value. */
function intervalText(expressions: Expressions, interval: SampleBy["interval"], names: Names): string | undefined {
  return "kind" in interval ? durationText(expressions, interval, names, "SAMPLE BY") : interval.text;
}

/** The text of a duration that a variable or a parameter has. `what`: the clause, for messages. Returns undefined for null. */
export function durationText(
  expressions: Expressions,
  duration: Expression,
  names: Names,
  what: string,
): string | undefined {
  const value = duration.kind === "variable" ? findVariable(names, duration.name)?.value ?? duration : duration;
  return value.kind === "number" ? value.text : constantText(expressions, value, names, what, "1h");
}

/** Returns undefined for null. `standIn`: the value for a parameter that has none yet. */
function constantText(
  expressions: Expressions,
  e: Expression,
  names: Names,
  what: string,
  standIn: string,
): string | undefined {
  const value = expressions.constantOf(expressions.bind(e, { columns: [], names }), constant(standIn, "STRING"));
  if (value === undefined || !(isTextOrChar(value.type) || value.value === null)) {
    throw typeMismatch(`${what} needs a constant text`, e.at);
  }
  return value.value === null ? undefined : value.value as string;
}

/** Abbreviations that are not names in zone databases, but in common use. */
const ABBREVIATIONS: Record<string, string> = {
  pst: "America/Los_Angeles",
  pdt: "America/Los_Angeles",
  est: "America/New_York",
  edt: "America/New_York",
  cst: "America/Chicago",
  cdt: "America/Chicago",
  mst: "America/Denver",
  mdt: "America/Denver",
  bst: "Europe/London",
  ist: "Asia/Kolkata",
  jst: "Asia/Tokyo",
  utc: "UTC",
  gmt: "UTC",
  z: "UTC",
};

/** The name of the zone for the runtime, `±hh:mm`, or undefined. */
function zoneName(text: string): string | undefined {
  const offset = /^(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?$/i.exec(text);
  if (offset !== null) {
    const hours = Number(offset[2]), minutes = Number(offset[3] ?? "0");
    if (hours > 18 || minutes > 59) return undefined;
    return `${offset[1]}${String(hours).padStart(2, "0")}:${String(minutes).padStart(2, "0")}`;
  }
  if (text === "") return undefined;
  const abbreviation = ABBREVIATIONS[text.toLowerCase()];
  if (abbreviation !== undefined) return abbreviation === "UTC" ? "" : abbreviation;
  try {
    return new Intl.DateTimeFormat("en", { timeZone: text }).resolvedOptions().timeZone;
  } catch {
    return undefined;
  }
}

function instantOf(expressions: Expressions, e: Expression, timeType: string, names: Names): bigint {
  const bound = expressions.settle(expressions.bind(e, { columns: [], names }), timeType);
  if (hasParameter(bound)) return expressions.constantOf(bound, constant(0n, timeType))!.value as bigint;
  const value = foldAtNow(bound, expressions.binding) ??
    foldAtNow(expressions.cast(bound, timeType, e.at), expressions.binding);
  const converted = value === undefined || value.value === null
    ? undefined
    : convertConstant(value.value, value.type, timeType);
  if (typeof converted === "bigint") return converted;
  const cast = value === undefined || value.value === null
    ? undefined
    : foldAtNow(expressions.cast(value, timeType, e.at), expressions.binding);
  if (typeof cast?.value !== "bigint") throw typeMismatch(`expected a constant ${displayName(timeType)}`, e.at);
  return cast.value;
}

/** Types that LINEAR can interpolate. */
const LINEAR_TYPES = new Set(["BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE"]);
const WHOLE_TYPES = new Set(["BYTE", "SHORT", "INT", "LONG", "DATE", "TIMESTAMP", "TIMESTAMP_NS"]);

/**
 * The fill of each aggregate. A single word applies to all; a list follows the order of their first appearance in the
 * select list.
 */
function bindFill(
  expressions: Expressions,
  sample: SampleBy,
  items: OutputItem[],
  aggregates: AggregateCall[],
  names: Names,
  time: number,
): Fill[] {
  const { fill } = sample;
  if (fill === undefined) return [];
  const [only] = fill.items;
  if (fill.items.length === 1 && only !== undefined && only.kind !== "value" && only.of === undefined) {
    const { kind } = only;
    if (kind === "none") return [];
    return aggregates.map((call) => wordFill(kind, call));
  }
  // A repeated aggregate counts once.
  const indices: number[] = [];
  const isSame = (a: AggregateCall, b: AggregateCall) =>
    a.function === b.function && a.distinct === b.distinct && a.args.every((arg, i) => sameExpr(arg, b.args[i]!));
  for (const { expr } of items) {
    walk(expr, (e) => {
      if (e.kind !== "placeholder" || e.of !== "aggregate") return;
      const call = aggregates[e.index]!;
      if (!indices.some((index) => isSame(aggregates[index]!, call))) indices.push(e.index);
    });
  }
  // The dialect finds the error of a single value only at run time.
  const isPlain = fill.items.length === 1 && sample.align?.timeZone === undefined &&
    sample.align?.to !== "first observation";
  const isKeyed = items.some(({ expr }) =>
    !isAggregated(expr) && [...columnsRead(expr)].some((index) => index !== time)
  );
  if (fill.items.length < indices.length) {
    for (const item of fill.items) if (item.kind === "value") expressions.bind(item.value, { columns: [], names });
    throw new SqlError(
      `FILL has ${fill.items.length} values: expected one for each of ${indices.length} aggregates`,
      isPlain && !isKeyed ? -1 : fill.items.at(-1)!.at,
      SQLSTATE.grouping,
    );
  }
  const given = indices.map((index, i): Fill => {
    const item = fill.items[i]!;
    if (item.kind === "none") {
      throw new SqlError("FILL(NONE) cannot be combined with other values", item.at, SQLSTATE.grouping);
    }
    return item.kind === "value"
      ? valueFill(expressions, item.value, aggregates[index]!.type, item.at, isPlain ? 0 : item.at, names)
      : item.of === undefined
      ? wordFill(item.kind, aggregates[index]!)
      : { kind: "prev", from: otherAggregate(item.of, items, aggregates, aggregates[index]!.type) };
  });
  return aggregates.map((call) =>
    given[indices.findIndex((index) => isSame(aggregates[index]!, call))] ?? { kind: "null" }
  );
}

/** Of the aggregate that the select list has under this name. */
function otherAggregate(of: Name, items: OutputItem[], aggregates: AggregateCall[], type: string): number {
  const item = items.find(({ name }) => name.toLowerCase() === of.text.toLowerCase());
  if (item === undefined) {
    throw new SqlError(`PREV: the select list has no column ${of.text}`, of.at, SQLSTATE.undefinedColumn);
  }
  const { expr } = item;
  if (expr.kind !== "placeholder" || expr.of !== "aggregate") {
    throw new SqlError(`PREV needs an aggregate, which ${of.text} is not`, of.at, SQLSTATE.grouping);
  }
  const found = aggregates[expr.index]!.type;
  if (found !== type) {
    throw typeMismatch(`PREV: ${of.text} is a ${displayName(found)}, which cannot fill a ${displayName(type)}`, of.at);
  }
  if (type === "SYMBOL") throw notSupported("FILL of a SYMBOL with a value of another column", of.at);
  return expr.index;
}

function wordFill(kind: "null" | "prev" | "linear", call: AggregateCall): Fill {
  if (kind === "linear" && !LINEAR_TYPES.has(call.type)) {
    throw typeMismatch(`FILL(LINEAR) needs numbers, not ${displayName(call.type)}`, call.at);
  }
  return { kind };
}

/** `unfit`: the position of the error if the column cannot hold the value. */
function valueFill(
  expressions: Expressions,
  written: Expression,
  type: string,
  at: number,
  unfit: number,
  names: Names,
): Fill {
  const bound = expressions.settle(expressions.bind(written, { columns: [], names }), type);
  if (WHOLE_TYPES.has(type) && (bound.type === "DOUBLE" || bound.type === "FLOAT")) {
    throw typeMismatch(`a ${displayName(bound.type)} cannot fill a ${displayName(type)}`, unfit);
  }
  // A SYMBOL is a code of the dictionary, and a text that no row has is not in it.
  if (type === "SYMBOL") throw notSupported("FILL of a SYMBOL with a value other than NULL or PREV", at);
  const value = expressions.constantOf(expressions.cast(bound, type, at), expressions.nullOf(type));
  const given = fold(bound, expressions.binding)?.value;
  const isCut = isInteger(bound.type) && type === "INT" && given !== null && given !== undefined &&
    BigInt.asIntN(32, BigInt(given as number | bigint)) !== BigInt(given as number | bigint);
  if (isCut) throw new SqlError(`${given} is out of the range of INT`, unfit, SQLSTATE.outOfRange);
  if (isTextOrChar(bound.type) && isNumber(type) && value?.value === null) {
    throw new SqlError(notOf(given, displayName(type)), unfit, SQLSTATE.invalidText);
  }
  if (value === undefined) throw typeMismatch(`FILL needs a constant of type ${displayName(type)}`, unfit);
  return { kind: "value", value: value.value };
}
