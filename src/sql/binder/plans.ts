/** Builders of plan nodes. They derive columns, designated timestamp and order from the input. */
import {
  childrenOf,
  type Column,
  type Expr,
  type FilterNode,
  type JoinNode,
  type Placeholder,
  type Plan,
  type ProjectNode,
  type SortKey,
  type SortNode,
} from "../plan.ts";
import { registry } from "../functions/mod.ts";
import { remembered } from "../remembered.ts";
import { isTimestamp } from "./types.ts";

export function columnOf(plan: Plan, index: number): Expr {
  return { kind: "column", index, type: plan.columns[index]!.type };
}

export function columnsOf(plan: Plan): Expr[] {
  return plan.columns.map((_, index) => columnOf(plan, index));
}

/** The designated timestamp is kept if it is among the expressions, or else moved by constants. */
export function project(input: Plan, expressions: Expr[], names: string[]): ProjectNode {
  const columns: Column[] = expressions.map((expression, i) => ({ name: names[i]!, type: expression.type }));
  return { node: "project", input, expressions, columns, ...timeAmong(expressions, input) };
}

/** The designated timestamp among expressions over `input`, and the order of the rows by it. */
export function timeAmong(expressions: readonly Expr[], input: Plan): Pick<Plan, "timestamp" | "order"> {
  const isTime = (e: Expr | undefined) => e?.kind === "column" && e.index === input.timestamp;
  const timestamp = expressions.findIndex(isTime);
  if (timestamp >= 0) return { timestamp, order: input.order };
  for (const [index, e] of expressions.entries()) {
    if (e.kind !== "call" || !isTime(e.args[0])) continue;
    const { movesTime } = registry.resolve(e.function).entry;
    if (movesTime === undefined || !e.args.slice(1).every((arg) => arg.kind === "constant" && arg.value !== null)) {
      continue;
    }
    return { timestamp: index, order: movesTime.keepsOrder ? input.order : "none" };
  }
  return { timestamp: -1, order: "none" };
}

export function filter(input: Plan, predicate: Expr): FilterNode {
  return { node: "filter", input, predicate, columns: input.columns, timestamp: input.timestamp, order: input.order };
}

/** Combines each row of `left` with each row of `right`, in the order of `left`. */
export function crossJoin(left: Plan, right: Plan): JoinNode {
  return {
    node: "join",
    type: "cross",
    left,
    right,
    leftKeys: [],
    rightKeys: [],
    columns: [...left.columns, ...right.columns],
    timestamp: left.timestamp,
    order: left.order,
  };
}

/** The timestamp by which rows are in order for enclosing joins by time and SAMPLE BY, or -1. */
export function timeOf([first]: readonly SortKey[]): number {
  const { expression, descending } = first!;
  return expression.kind === "column" && !descending && isTimestamp(expression.type) ? expression.index : -1;
}

/** Sorting by anything other than the designated timestamp loses it. */
export function sort(input: Plan, keys: SortKey[]): SortNode {
  const first = keys[0]?.expression;
  const byTime = first?.kind === "column" && first.index === input.timestamp && input.timestamp >= 0;
  return {
    node: "sort",
    input,
    keys,
    columns: input.columns,
    timestamp: byTime ? input.timestamp : -1,
    order: byTime ? (keys[0]!.descending ? "desc" : "asc") : "none",
  };
}

/** True if `plan` is known to give exactly one row. */
export function isOneRow(plan: Plan): boolean {
  switch (plan.node) {
    case "values":
      return plan.rows.length === 1;
    case "aggregate":
      return plan.keys.length === 0;
    case "project":
    case "sort":
      return isOneRow(plan.input);
    default:
      return false;
  }
}

/** Calls `visit` for `expr` and all its sub-expressions, in pre-order. */
export function walk(expr: Expr, visit: (expr: Expr) => void): void {
  visit(expr);
  for (const child of childrenOf(expr)) walk(child, visit);
}

/**
 * Rebuilds an expression. An expression that `replace` returns takes the place of the whole sub-expression. Unchanged
 * parts remain the same objects.
 */
export function rewrite(expr: Expr, replace: (expr: Expr) => Expr | undefined): Expr {
  const replaced = replace(expr);
  if (replaced !== undefined) return replaced;
  switch (expr.kind) {
    case "call": {
      const args = expr.args.map((arg) => rewrite(arg, replace));
      return args.every((arg, i) => arg === expr.args[i]) ? expr : { ...expr, args };
    }
    case "case":
      return {
        ...expr,
        branches: expr.branches.map((b) => ({ when: rewrite(b.when, replace), then: rewrite(b.then, replace) })),
        otherwise: rewrite(expr.otherwise, replace),
      };
    case "in": {
      const operand = rewrite(expr.operand, replace);
      return operand === expr.operand ? expr : { ...expr, operand };
    }
    default:
      return expr;
  }
}

/** Adds the input columns that the expression reads to `into`. */
export function columnsRead(expr: Expr, into = new Set<number>()): Set<number> {
  walk(expr, (e) => {
    if (e.kind === "column") into.add(e.index);
  });
  return into;
}

export function hasPlaceholder(expr: Expr, of: Placeholder["of"]): boolean {
  let found = false;
  walk(expr, (e) => {
    if (e.kind === "placeholder" && e.of === of) found = true;
  });
  return found;
}

/** Replaces the placeholders of one kind by columns, from index `first` on. */
export function placed(expr: Expr, of: Placeholder["of"], first: number): Expr {
  return rewrite(
    expr,
    (e) =>
      e.kind === "placeholder" && e.of === of ? { kind: "column", index: first + e.index, type: e.type } : undefined,
  );
}

/** Replaces every column index by `map(index)`. */
export function remap(expr: Expr, map: (index: number) => number): Expr {
  return rewrite(expr, (e) => {
    if (e.kind !== "column") return undefined;
    const index = map(e.index);
    return index === e.index ? e : { ...e, index };
  });
}

/** The size of the expression as a tree: shared sub-expressions count each time. */
export const sizeOf: (e: Expr) => number = remembered((e) =>
  childrenOf(e).reduce((sum, child) => sum + sizeOf(child), 1)
);

const hashes = new WeakMap<Expr, number>();

/** Equal for expressions that `sameExpr` considers equal. Rules out most candidates among thousands. */
export function hashExpr(e: Expr): number {
  let hash = hashes.get(e);
  if (hash !== undefined) return hash;
  const own = e.kind === "call"
    ? e.function
    : e.kind === "constant"
    ? String(e.value)
    : e.kind === "case" || e.kind === "in"
    ? ""
    : e.kind === "placeholder"
    ? e.of + e.index
    : e.index;
  hash = 17;
  for (const character of `${e.kind}${own}`) hash = Math.imul(hash ^ character.codePointAt(0)!, 0x01000193);
  for (const child of childrenOf(e)) hash = Math.imul(hash, 31) + hashExpr(child) | 0;
  hashes.set(e, hash);
  return hash;
}

/** True if both compute the same. Positions are ignored. */
export function sameExpr(a: Expr, b: Expr): boolean {
  if (a === b) return true;
  if (a.kind !== b.kind || a.type !== b.type) return false;
  switch (a.kind) {
    case "column":
      return a.index === (b as typeof a).index;
    case "placeholder":
      return a.of === (b as typeof a).of && a.index === (b as typeof a).index;
    case "constant":
      return Object.is(a.value, (b as typeof a).value);
    case "parameter":
      return a.index === (b as typeof a).index;
    case "call": {
      const other = b as typeof a;
      return a.function === other.function && a.args.length === other.args.length &&
        a.args.every((arg, i) => sameExpr(arg, other.args[i]!));
    }
    case "case": {
      const other = b as typeof a;
      return a.branches.length === other.branches.length && sameExpr(a.otherwise, other.otherwise) &&
        a.branches.every((x, i) =>
          sameExpr(x.when, other.branches[i]!.when) && sameExpr(x.then, other.branches[i]!.then)
        );
    }
    case "in": {
      const other = b as typeof a;
      return sameExpr(a.operand, other.operand) && a.values.length === other.values.length &&
        a.values.every((value, i) => Object.is(value, other.values[i]));
    }
  }
}

/** The operands of AND, or the expression itself. */
export function conjuncts(expr: Expr): Expr[] {
  return expr.kind === "call" && expr.function === AND ? expr.args.flatMap(conjuncts) : [expr];
}

export const AND = "and(BOOLEAN,BOOLEAN)";
export const OR = "or(BOOLEAN,BOOLEAN)";
const NOT = "not(BOOLEAN)";

export function and(parts: Expr[]): Expr | undefined {
  return joined(AND, parts);
}

export function or(parts: Expr[]): Expr | undefined {
  return joined(OR, parts);
}

/** A balanced tree, because trees are walked recursively. */
function joined(operator: string, parts: Expr[]): Expr | undefined {
  if (parts.length <= 1) return parts[0];
  const middle = parts.length >> 1;
  const args = [parts.slice(0, middle), parts.slice(middle)].map((half) => joined(operator, half)!);
  return { kind: "call", function: operator, args, type: "BOOLEAN", at: 0 };
}

export function not(operand: Expr, at = 0): Expr {
  return { kind: "call", function: NOT, args: [operand], type: "BOOLEAN", at };
}

export function hasParameter(expr: Expr): boolean {
  let found = false;
  walk(expr, (e) => {
    if (e.kind === "parameter") found = true;
  });
  return found;
}
