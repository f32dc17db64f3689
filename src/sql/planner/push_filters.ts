/**
 * Rule: filters go down as far as they mean the same, into scans at last; equations over a cross join become its keys.
 */
import { and, columnsRead, conjuncts, remap, rewrite } from "../binder/plans.ts";
import { createRegistry } from "../functions/mod.ts";
import { childrenOf, type Expr, type JoinNode, type Plan } from "../plan.ts";
import { layoutOf } from "../../types/mod.ts";
import { inputsOf, withInputs } from "./nodes.ts";

const registry = createRegistry();

export function pushFilters(plan: Plan): Plan {
  return push(plan, []);
}

/** The plan with `predicates` (over its columns) applied. */
function push(plan: Plan, given: Expr[]): Plan {
  const predicates = given.filter((e) => !isConstant(e, true));
  if (predicates.some((e) => isConstant(e, false))) return noRows(plan);
  switch (plan.node) {
    case "filter":
      return push(plan.input, [...conjuncts(plan.predicate), ...predicates]);
    case "scan": {
      const all = [...(plan.predicate === undefined ? [] : conjuncts(plan.predicate)), ...predicates];
      // The row id is no column of the table, and generators keep the order of rows that they were written over.
      const [inside, outside] = split(
        all,
        (e) => !isVolatile(e) && !(plan.rowId && columnsRead(e).has(plan.columns.length - 1)),
      );
      return above({ ...plan, predicate: and(inside) }, outside);
    }
    case "project": {
      const [below, here] = split(
        predicates,
        (e) => ![...columnsRead(e)].some((index) => isVolatile(plan.expressions[index])) && !isVolatile(e),
      );
      const input = push(plan.input, below.map((e) => substitute(e, plan.expressions)));
      return above(withInputs(plan, [input]), here);
    }
    case "sort":
      if (plan.limit !== undefined) return above(withInputs(plan, [push(plan.input, [])]), predicates);
      return withInputs(plan, [push(plan.input, predicates)]);
    case "distinct":
      return withInputs(plan, [push(plan.input, predicates)]);
    case "aggregate": {
      // Groups are left out as well by leaving out their rows; without keys the one row always comes.
      const [below, here] = plan.keys.length === 0
        ? [[], predicates]
        : split(predicates, (e) =>
          [...columnsRead(e)].every((index) => index < plan.keys.length && !isVolatile(plan.keys[index])));
      return above(withInputs(plan, [push(plan.input, below.map((e) => substitute(e, plan.keys)))]), here);
    }
    case "latest": {
      const isKey = (index: number): boolean => plan.keys.some((key) => key.kind === "column" && key.index === index);
      const [below, here] = split(predicates, (e) => columnsRead(e).size > 0 && [...columnsRead(e)].every(isKey));
      return above(withInputs(plan, [push(plan.input, below)]), here);
    }
    case "join":
      return pushJoin(plan, predicates);
    case "timeJoin": {
      const width = plan.left.columns.length;
      const ofLeft = plan.type !== "splice";
      const [left, here] = split(
        predicates,
        (e) => ofLeft && columnsRead(e).size > 0 && [...columnsRead(e)].every((index) => index < width),
      );
      return above(withInputs(plan, [push(plan.left, left), push(plan.right, [])]), here);
    }
    case "set":
      if (plan.operator === "union all" || plan.operator === "union") {
        return withInputs(plan, [push(plan.left, predicates), push(plan.right, predicates)]);
      }
      return above(withInputs(plan, [push(plan.left, []), push(plan.right, [])]), predicates);
    default:
      return above(withInputs(plan, inputsOf(plan).map((input) => push(input, []))), predicates);
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

function substitute(e: Expr, expressions: Expr[]): Expr {
  return rewrite(e, (inner) => inner.kind === "column" ? expressions[inner.index] : undefined);
}

/** Does it give another value each time that it is worked out? */
export function isVolatile(e: Expr): boolean {
  if (e.kind === "call" && registry.resolve(e.function).entry.volatility === "volatile") return true;
  return childrenOf(e).some(isVolatile);
}

function pushJoin(plan: JoinNode, predicates: Expr[]): Plan {
  const width = plan.left.columns.length;
  const side = (e: Expr): "left" | "right" | "both" => {
    const read = [...columnsRead(e)];
    if (read.length > 0 && read.every((index) => index < width)) return "left";
    return read.length > 0 && read.every((index) => index >= width) ? "right" : "both";
  };
  // A mark of the right side that must be true leaves out the rows without a match: the same as an inner join.
  const isMark = (e: Expr): boolean => e.kind === "column" && e.index >= width;
  const joinType = plan.type === "left" && predicates.some(isMark) ? "inner" : plan.type;
  const inner = joinType === "inner" || joinType === "cross";
  const intoLeft: Expr[] = [], intoRight: Expr[] = [], here: Expr[] = [];
  const leftKeys = [...plan.leftKeys], rightKeys = [...plan.rightKeys];
  const residual: Expr[] = [];
  const place = (e: Expr, ofOn: boolean): void => {
    const where = isVolatile(e) ? "both" : side(e);
    // A condition of ON leaves out rows of the side that need not be kept; one behind the join those of the side that is kept.
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
    left: push(plan.left, intoLeft),
    right: push(plan.right, intoRight),
    leftKeys,
    rightKeys,
    residual: and(residual),
  };
  return above(join, here);
}

/** `left = right` over columns of either side. */
function equation(e: Expr, width: number): { left: Expr; right: Expr } | undefined {
  if (e.kind !== "call" || !e.function.startsWith("=(") || e.args.length !== 2) return undefined;
  // Doubles are equal within a tolerance in WHERE, but by their bits as keys.
  if (e.args.some((arg) => arg.type === "DOUBLE" || arg.type === "FLOAT")) return undefined;
  const sides = e.args.map((arg) => {
    const read = [...columnsRead(arg)];
    if (read.length === 0) return "none";
    if (read.every((index) => index < width)) return "left";
    return read.every((index) => index >= width) ? "right" : "both";
  });
  let left: Expr, right: Expr;
  if (sides[0] === "left" && sides[1] === "right") [left, right] = e.args;
  else if (sides[0] === "right" && sides[1] === "left") [right, left] = e.args;
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
