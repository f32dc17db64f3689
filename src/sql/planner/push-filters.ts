/**
 * Rule: pushes filters down as far as the result stays the same, finally into scans. Equations over a cross join become
 * its keys.
 */
import { and, columnsRead, conjuncts, remap, rewrite, sizeOf } from "../binder/plans.ts";
import { registry } from "../functions/mod.ts";
import {
  childrenOf,
  type Expr,
  inputsOf,
  type Interval,
  isEquality,
  type JoinNode,
  type Plan,
  type SampleNode,
} from "../plan.ts";
import { TimeBuckets } from "../../engine/mod.ts";
import { nanosOf } from "../../types/calendar.ts";
import { layoutOf } from "../../types/mod.ts";
import { HIGHEST_TIME, intersect, intervalsOf, LOWEST_TIME } from "./intervals.ts";
import { withInputs } from "./nodes.ts";

/** Maximum growth of a plan, in expressions, by duplicating filters below projections and into several queries. */
const GROWTH_MAX = 10_000;

export function pushFilters(plan: Plan): Plan {
  return push(plan, [], new Growth());
}

/** The remaining growth allowed for pushing filters down. Filters that exceed it stay where they are. */
class Growth {
  private left = GROWTH_MAX;

  take(size: number): boolean {
    if (size > this.left) return false;
    this.left -= size;
    return true;
  }

  /** True if `e` may be rewritten over `expressions` instead of their columns. */
  substitutes(e: Expr, expressions: readonly Expr[]): boolean {
    let size = 0;
    const walked = (inner: Expr): void => {
      if (inner.kind === "column") size += sizeOf(expressions[inner.index]!) - 1;
      else childrenOf(inner).forEach(walked);
    };
    walked(e);
    return this.take(size);
  }
}

/** Returns the plan with `predicates` (over its columns) applied. */
function push(plan: Plan, given: Expr[], growth: Growth): Plan {
  const predicates = given.filter((e) => !isConstant(e, true));
  if (predicates.some((e) => isConstant(e, false))) return noRows(plan);
  switch (plan.node) {
    case "filter":
      return push(plan.input, [...conjuncts(plan.predicate), ...predicates], growth);
    case "scan": {
      const all = [...(plan.predicate === undefined ? [] : conjuncts(plan.predicate)), ...predicates];
      // The row id is not a column of the table, and generators depend on the order of the rows they are evaluated
      // over.
      const [inside, outside] = split(
        all,
        (e) => !isVolatile(e) && !(plan.rowId && columnsRead(e).has(plan.columns.length - 1)),
      );
      return above({ ...plan, predicate: and(inside) }, outside);
    }
    case "project": {
      const [below, here] = split(
        predicates,
        (e) =>
          ![...columnsRead(e)].some((index) => isVolatile(plan.expressions[index]!)) && !isVolatile(e) &&
          growth.substitutes(e, plan.expressions),
      );
      const input = push(plan.input, below.map((e) => substitute(e, plan.expressions)), growth);
      return above(withInputs(plan, [input]), here);
    }
    case "sort":
      if (plan.limit !== undefined) return above(withInputs(plan, [push(plan.input, [], growth)]), predicates);
      return withInputs(plan, [push(plan.input, predicates, growth)]);
    case "distinct":
      return withInputs(plan, [push(plan.input, predicates, growth)]);
    case "aggregate": {
      // A condition on keys may filter rows instead of groups. Without keys there is always one row, so the condition
      // must stay.
      const [below, here] = plan.keys.length === 0
        ? [[], predicates]
        : split(predicates, (e) =>
          [...columnsRead(e)].every((index) =>
            index < plan.keys.length && !isVolatile(plan.keys[index]!)
          ) &&
          growth.substitutes(e, plan.keys));
      return above(withInputs(plan, [push(plan.input, below.map((e) => substitute(e, plan.keys)), growth)]), here);
    }
    case "sample":
      return pushSample(plan, predicates, growth);
    case "latest": {
      const isKey = (index: number): boolean => plan.keys.some((key) => key.kind === "column" && key.index === index);
      const [below, here] = split(predicates, (e) => columnsRead(e).size > 0 && [...columnsRead(e)].every(isKey));
      return above(withInputs(plan, [push(plan.input, below, growth)]), here);
    }
    case "join":
      return pushJoin(plan, predicates, growth);
    case "timeJoin": {
      const width = plan.left.columns.length;
      const ofLeft = plan.type !== "splice";
      const [left, here] = split(
        predicates,
        (e) => ofLeft && columnsRead(e).size > 0 && [...columnsRead(e)].every((index) => index < width),
      );
      return above(withInputs(plan, [push(plan.left, left, growth), push(plan.right, [], growth)]), here);
    }
    case "windowJoin":
    case "horizonJoin": {
      const width = plan.left.columns.length;
      const [left, here] = split(
        predicates,
        (e) => columnsRead(e).size > 0 && [...columnsRead(e)].every((index) => index < width) && !isVolatile(e),
      );
      // Conditions on the right side alone filter it: its other rows do not exist for any left row.
      const conditions = plan.node === "windowJoin" && plan.residual !== undefined ? conjuncts(plan.residual) : [];
      const [right, residual] = split(
        conditions,
        (e) => columnsRead(e).size > 0 && [...columnsRead(e)].every((index) => index >= width) && !isVolatile(e),
      );
      const ofRight = right.map((e) => remap(e, (index) => index - width));
      const joined = withInputs(plan, [push(plan.left, left, growth), push(plan.right, ofRight, growth)]);
      return above(joined.node === "windowJoin" ? { ...joined, residual: and(residual) } : joined, here);
    }
    case "set":
      if (plan.operator === "union all" || plan.operator === "union") {
        const [below, here] = split(predicates, (e) => growth.take(sizeOf(e)));
        return above(withInputs(plan, [push(plan.left, below, growth), push(plan.right, below, growth)]), here);
      }
      return above(withInputs(plan, [push(plan.left, [], growth), push(plan.right, [], growth)]), predicates);
    case "unnest": {
      const width = plan.input.columns.length;
      const [below, here] = split(
        predicates,
        (e) => columnsRead(e).size > 0 && [...columnsRead(e)].every((index) => index < width) && !isVolatile(e),
      );
      return above(withInputs(plan, [push(plan.input, below, growth)]), here);
    }
    default:
      return above(withInputs(plan, inputsOf(plan).map((input) => push(input, [], growth))), predicates);
  }
}

function isConstant(e: Expr, value: boolean): boolean {
  return e.kind === "constant" && e.value === value;
}

function noRows(plan: Plan): Plan {
  return { node: "values", columns: plan.columns, rows: [], timestamp: plan.timestamp, order: plan.order };
}

function above(plan: Plan, predicates: Expr[]): Plan {
  const predicate = and(predicates);
  if (predicate === undefined) return plan;
  return {
    node: "filter",
    input: plan,
    predicate,
    columns: plan.columns,
    timestamp: plan.timestamp,
    order: plan.order,
  };
}

function split(predicates: Expr[], goes: (e: Expr) => boolean): [Expr[], Expr[]] {
  const yes: Expr[] = [], no: Expr[] = [];
  for (const e of predicates) (goes(e) ? yes : no).push(e);
  return [yes, no];
}

export function substitute(e: Expr, expressions: Expr[]): Expr {
  return rewrite(e, (inner) => inner.kind === "column" ? expressions[inner.index] : undefined);
}

/** True if each evaluation may give a different value. */
export function isVolatile(e: Expr): boolean {
  if (e.kind === "call" && registry.resolve(e.function).entry.volatility === "volatile") return true;
  return childrenOf(e).some(isVolatile);
}

/**
 * Without FILL, a condition on keys may filter rows instead of groups, and rows outside of the buckets that a condition asks for are not read. The
 * latter stays, as the first and the last of these buckets may be wrong. First observations depend on all rows.
 */
function pushSample(plan: SampleNode, predicates: Expr[], growth: Growth): Plan {
  if (plan.fills.length > 0 || plan.sampling.align !== "calendar") {
    return above(withInputs(plan, [push(plan.input, [], growth)]), predicates);
  }
  const outputs = [plan.time, ...plan.keys];
  const [ofKeys, here] = split(predicates, (e) => {
    const read = [...columnsRead(e)];
    const isOfKeys = read.length > 0 && read.every((k) => k > 0 && k < outputs.length && !isVolatile(outputs[k]!));
    return isOfKeys && !isVolatile(e) && growth.substitutes(e, outputs);
  });
  const below = ofKeys.map((e) => substitute(e, outputs));
  const asked = here.reduce((left: Interval[] | undefined, e) => {
    const found = isVolatile(e) ? undefined : intervalsOf(e, 0);
    return left === undefined || found === undefined ? left ?? found : intersect(left, found);
  }, undefined);
  if (asked !== undefined && asked.length > 0 && !isVolatile(plan.time)) below.push(...rowsOfBuckets(plan, asked));
  return above(withInputs(plan, [push(plan.input, below, growth)]), here);
}

/** Clocks that are turned back return to a bucket within this time. */
const TURNED_BACK_DAYS = 2n;

/**
 * Conditions that all rows of the buckets that begin within the intervals pass. A bucket begins with or before its rows,
 * but for the first one after FROM.
 */
function rowsOfBuckets({ time, sampling }: SampleNode, asked: readonly Interval[]): Expr[] {
  const conditions: Expr[] = [], { type } = time, at = "at" in time ? time.at : 0;
  const compared = (operator: string, value: bigint) =>
    conditions.push({
      kind: "call",
      function: `${operator}(${type},${type})`,
      args: [time, { kind: "constant", value, type }],
      type: "BOOLEAN",
      at,
    });
  const low = asked[0]![0], high = asked.at(-1)![1], buckets = new TimeBuckets(sampling, type, 0n);
  if (low > (buckets.first ?? LOWEST_TIME)) compared(">=", low);
  if (high < HIGHEST_TIME) {
    const ticksADay = 86_400_000_000_000n / nanosOf(type), { end } = buckets.of(high);
    const last = end + (sampling.timeZone === "" ? 0n : TURNED_BACK_DAYS * ticksADay);
    if (last < HIGHEST_TIME) compared("<", last);
  }
  return conditions;
}

function pushJoin(plan: JoinNode, predicates: Expr[], growth: Growth): Plan {
  const width = plan.left.columns.length;
  const side = (e: Expr): "left" | "right" | "both" => {
    const read = [...columnsRead(e)];
    if (read.length > 0 && read.every((index) => index < width)) return "left";
    return read.length > 0 && read.every((index) => index >= width) ? "right" : "both";
  };
  // A marker column of the right side that must be true excludes rows without a match, so the join becomes an inner
  // join.
  const isMark = (e: Expr): boolean => e.kind === "column" && e.index >= width;
  const joinType = plan.type === "left" && predicates.some(isMark) ? "inner" : plan.type;
  const inner = joinType === "inner" || joinType === "cross";
  const intoLeft: Expr[] = [], intoRight: Expr[] = [], here: Expr[] = [];
  const leftKeys = [...plan.leftKeys], rightKeys = [...plan.rightKeys];
  const residual: Expr[] = [];
  const place = (e: Expr, ofOn: boolean): void => {
    const where = isVolatile(e) ? "both" : side(e);
    // A condition of ON filters the side that is not preserved; one in WHERE filters the preserved side.
    if (where === "left" && (inner || (ofOn ? joinType === "right" : joinType === "left"))) intoLeft.push(e);
    else if (where === "right" && (inner || (ofOn ? joinType === "left" : joinType === "right"))) {
      intoRight.push(remap(e, (index) => index - width));
    } else if (inner) {
      const key = equation(e, width);
      if (key === undefined) residual.push(e);
      else {
        leftKeys.push(key.left);
        rightKeys.push(key.right);
      }
    } else (ofOn ? residual : here).push(e);
  };
  for (const e of plan.residual === undefined ? [] : conjuncts(plan.residual)) place(e, true);
  for (const e of predicates) place(e, false);
  const type = joinType === "cross" && (leftKeys.length > 0 || residual.length > 0) ? "inner" : joinType;
  const join: JoinNode = {
    ...plan,
    type,
    left: push(plan.left, intoLeft, growth),
    right: push(plan.right, intoRight, growth),
    leftKeys,
    rightKeys,
    residual: and(residual),
  };
  return above(join, here);
}

/** An equation `left = right` with one side from each input. */
function equation(e: Expr, width: number): { left: Expr; right: Expr } | undefined {
  if (!isEquality(e) || e.args.length !== 2) return undefined;
  // DOUBLE equality has a tolerance in WHERE, but join keys compare bits.
  if (e.args.some((arg) => arg.type === "DOUBLE" || arg.type === "FLOAT")) return undefined;
  const sides = e.args.map((arg) => {
    const read = [...columnsRead(arg)];
    if (read.length === 0) return "none";
    if (read.every((index) => index < width)) return "left";
    return read.every((index) => index >= width) ? "right" : "both";
  });
  let left: Expr, right: Expr;
  if (sides[0] === "left" && sides[1] === "right") [left, right] = e.args as [Expr, Expr];
  else if (sides[0] === "right" && sides[1] === "left") [right, left] = e.args as [Expr, Expr];
  else return undefined;
  right = remap(right, (index) => index - width);
  if (left.type !== right.type) {
    const asText = (key: Expr): Expr =>
      key.type === "SYMBOL"
        ? { kind: "call", function: "cast_STRING(SYMBOL)", args: [key], type: "STRING", at: e.at }
        : key;
    [left, right] = [asText(left), asText(right)];
    if (layoutOf(left.type) !== layoutOf(right.type)) return undefined;
  }
  return { left, right };
}
