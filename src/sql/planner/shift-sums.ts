/**
 * Rule: `sum(x + c)` becomes `sum(x) + c * count(x)` for a constant c, where x + c cannot overflow: x has a type with fewer bits. So sums of one
 * column read it once, as a plain column, and statistics or summaries may give them.
 */
import type { AggregateCall, AggregateNode, Expr, Plan } from "../plan.ts";
import { mapPlan } from "./nodes.ts";

const BITS: Readonly<Record<string, number>> = { BYTE: 8, SHORT: 16, INT: 32, LONG: 64 };
const SHIFTS = ["INT", "LONG"].flatMap((type) => [
  { id: `+(${type},${type})`, type, sign: 1n },
  { id: `-(${type},${type})`, type, sign: -1n },
]);
/** Of greater constants and many rows, c * count(x) could be the value that stands for NULL. */
const SHIFT_MAX = 2n ** 31n;

export function shiftSums(plan: Plan): Plan {
  return mapPlan(plan, (node) => node.node === "aggregate" ? shifted(node) : node);
}

function shifted(node: AggregateNode): Plan {
  const { keys, aggregates, columns } = node;
  if (!aggregates.some((call) => shiftOf(call) !== undefined)) return node;
  const calls: AggregateCall[] = [], ofColumns = new Map<string, Expr>();
  const add = (call: AggregateCall): Expr => ({
    kind: "column",
    index: keys.length + calls.push(call) - 1,
    type: call.type,
  });
  /** The output column of a call, which equal ones of a column share. */
  const columnOf = (call: AggregateCall): Expr => {
    const [arg, ...others] = call.args;
    if (arg?.kind !== "column" || others.length > 0 || call.distinct) return add(call);
    const name = `${call.function} ${arg.index}`, known = ofColumns.get(name) ?? add(call);
    ofColumns.set(name, known);
    return known;
  };
  const results = aggregates.map((call): Expr => {
    const shift = shiftOf(call);
    if (shift === undefined) return columnOf(call);
    const { value, by } = shift, { at } = call, { type } = value;
    const aggregateOf = (name: string) =>
      columnOf({ function: `${name}(${type})`, args: [value], distinct: false, type: "LONG", at });
    const long = (name: string, args: Expr[]): Expr => ({
      kind: "call",
      function: `${name}(LONG,LONG)`,
      args,
      type: "LONG",
      at,
    });
    const sum = aggregateOf("sum"), count = aggregateOf("count");
    return long("+", [sum, long("*", [{ kind: "constant", value: by, type: "LONG" }, count])]);
  });
  const keyColumns = columns.slice(0, keys.length);
  const sums: AggregateNode = {
    ...node,
    aggregates: calls,
    columns: [...keyColumns, ...calls.map((call) => ({ name: call.function, type: call.type }))],
  };
  const expressions = [...keyColumns.map(({ type }, index): Expr => ({ kind: "column", index, type })), ...results];
  return { node: "project", input: sums, expressions, columns, timestamp: node.timestamp, order: node.order };
}

/** The column that a sum adds up, and the constant that is added to each of its values. */
function shiftOf(
  { function: id, args: [arg], distinct, type }: AggregateCall,
): { value: Expr; by: bigint } | undefined {
  if (distinct || type !== "LONG" || arg?.kind !== "call" || id !== `sum(${arg.type})`) return undefined;
  const shift = SHIFTS.find((shift) => shift.id === arg.function);
  if (shift === undefined) return undefined;
  const [left, right] = arg.args, isFirst = left!.kind === "constant" && shift.sign > 0n;
  const constant = isFirst ? left! : right!, value = narrowColumn(isFirst ? right! : left!);
  if (value === undefined || constant.kind !== "constant" || constant.value === null) return undefined;
  const by = shift.sign * BigInt(constant.value as number | bigint), size = by < 0n ? -by : by;
  const greatest = size + 2n ** BigInt(BITS[value.type]! - 1);
  return size < SHIFT_MAX && greatest < 2n ** BigInt(BITS[shift.type]! - 1) ? { value, by } : undefined;
}

/** The column of an integer type under casts to wider ones, of which there is at least one. */
function narrowColumn(expr: Expr): Extract<Expr, { kind: "column" }> | undefined {
  let inner = expr;
  while (isWidening(inner)) inner = inner.args[0]!;
  return inner.kind === "column" && inner !== expr ? inner : undefined;
}

function isWidening(expr: Expr): expr is Extract<Expr, { kind: "call" }> {
  if (expr.kind !== "call" || expr.args.length !== 1) return false;
  const from = BITS[expr.args[0]!.type], to = BITS[expr.type];
  return from !== undefined && to !== undefined && from < to &&
    expr.function === `cast_${expr.type}(${expr.args[0]!.type})`;
}
