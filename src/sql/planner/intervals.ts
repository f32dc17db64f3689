/**
 * Rule: turns conditions on the designated timestamp in a scan's predicate into intervals, by which segments are
 * pruned.
 */
import { and, conjuncts } from "../binder/plans.ts";
import type { Expr, Interval, Plan } from "../plan.ts";
import { mapPlan } from "./nodes.ts";

export const LOWEST_TIME = -9223372036854775807n;
export const HIGHEST_TIME = 9223372036854775807n;

export function extractIntervals(plan: Plan): Plan {
  return mapPlan(plan, (node) => {
    if (node.node !== "scan" || node.predicate === undefined || node.timestamp < 0) return node;
    const rest: Expr[] = [];
    let intervals = node.intervals;
    for (const part of conjuncts(node.predicate)) {
      const found = intervalsOf(part, node.timestamp);
      if (found === undefined) rest.push(part);
      else intervals = intervals === undefined ? found : intersect(intervals, found);
    }
    return { ...node, predicate: and(rest), intervals };
  });
}

/**
 * The exact set of timestamps for which the condition holds; undefined if the condition depends on more than the
 * timestamp. A designated timestamp is never null.
 */
export function intervalsOf(e: Expr, timestamp: number): Interval[] | undefined {
  if (e.kind === "constant" && e.type === "BOOLEAN") return e.value === true ? [[LOWEST_TIME, HIGHEST_TIME]] : [];
  if (e.kind === "in") {
    if (!isTimestamp(e.operand, timestamp)) return undefined;
    const points = e.values.filter((value) => value !== null).map((
      value,
    ): Interval => [value as bigint, value as bigint]);
    return normalize(points);
  }
  if (e.kind !== "call") return undefined;
  const name = e.function.slice(0, e.function.indexOf("("));
  switch (name) {
    case "and":
    case "or": {
      const [a, b] = e.args.map((arg) => intervalsOf(arg, timestamp));
      if (a === undefined || b === undefined) return undefined;
      return name === "and" ? intersect(a, b) : normalize([...a, ...b]);
    }
    case "not": {
      const inner = intervalsOf(e.args[0]!, timestamp);
      return inner === undefined ? undefined : complement(inner);
    }
    case "in": {
      // `t in today()`: the halves of an INTERVAL are its first and last instant (inclusive), in microseconds.
      const [operand, interval] = e.args as [Expr, Expr];
      const value = valueOf(interval);
      if (
        !isTimestamp(operand, timestamp) || value === undefined || interval.type !== "INTERVAL" ||
        operand.type !== "TIMESTAMP"
      ) return undefined;
      const low = BigInt.asIntN(64, value), high = BigInt.asIntN(64, value >> 64n);
      return low <= high ? [[low, high]] : [];
    }
    case "between": {
      const [low, high] = [valueOf(e.args[1]!), valueOf(e.args[2]!)];
      if (!isTimestamp(e.args[0]!, timestamp) || low === undefined || high === undefined) return undefined;
      return [low <= high ? [low, high] : [high, low]];
    }
    case "=":
    case "!=":
    case "<":
    case "<=":
    case ">":
    case ">=":
      return comparison(name, e.args as [Expr, Expr], timestamp);
  }
  return undefined;
}

const TURNED: Record<string, string> = { "=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=" };

function comparison(operator: string, [a, b]: [Expr, Expr], timestamp: number): Interval[] | undefined {
  if (isTimestamp(b, timestamp)) {
    return isTimestamp(a, timestamp) ? undefined : comparison(TURNED[operator]!, [b, a], timestamp);
  }
  const value = valueOf(b);
  if (!isTimestamp(a, timestamp) || value === undefined) return undefined;
  switch (operator) {
    case "=":
      return [[value, value]];
    case "!=":
      return complement([[value, value]]);
    case "<":
      return value <= LOWEST_TIME ? [] : [[LOWEST_TIME, value - 1n]];
    case "<=":
      return [[LOWEST_TIME, value]];
    case ">":
      return value >= HIGHEST_TIME ? [] : [[value + 1n, HIGHEST_TIME]];
    default:
      return [[value, HIGHEST_TIME]];
  }
}

function isTimestamp(e: Expr, timestamp: number): boolean {
  return e.kind === "column" && e.index === timestamp;
}

function valueOf(e: Expr): bigint | undefined {
  return e.kind === "constant" && typeof e.value === "bigint" ? e.value : undefined;
}

/** Sorts and merges overlapping and adjacent intervals. */
export function normalize(intervals: readonly Interval[]): Interval[] {
  const sorted = [...intervals].sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  const merged: Interval[] = [];
  for (const [low, high] of sorted) {
    const last = merged.at(-1);
    if (last !== undefined && low <= last[1] + 1n) {
      if (high > last[1]) last[1] = high;
    } else merged.push([low, high]);
  }
  return merged;
}

export function intersect(a: readonly Interval[], b: readonly Interval[]): Interval[] {
  const result: Interval[] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    const low = a[i]![0] > b[j]![0] ? a[i]![0] : b[j]![0];
    const high = a[i]![1] < b[j]![1] ? a[i]![1] : b[j]![1];
    if (low <= high) result.push([low, high]);
    if (a[i]![1] < b[j]![1]) i++;
    else j++;
  }
  return result;
}

export function complement(intervals: readonly Interval[]): Interval[] {
  const result: Interval[] = [];
  let from = LOWEST_TIME;
  for (const [low, high] of intervals) {
    if (low > from) result.push([from, low - 1n]);
    if (high >= HIGHEST_TIME) return result;
    from = high + 1n;
  }
  result.push([from, HIGHEST_TIME]);
  return result;
}
