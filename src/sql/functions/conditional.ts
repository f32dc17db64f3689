/** Choosing between values: coalesce, nullif, greatest, least. (CASE is a node of the plan.) */
import { bind, f64, i32, i64, type IrNode, select, text } from "../../engine/compiler/ir.ts";
import { typeOf } from "../../types/mod.ts";
import type { BatchFunction, FunctionEntry } from "./entry.ts";
import { DOUBLE_TOLERANCE, isWide, notNull, nullOf, NUMBERS, TIMES } from "./nodes.ts";

function coalesce(args: IrNode[], type: string): IrNode {
  return args.slice(0, -1).reduceRight((rest, arg) => {
    if (notNull(arg, type) === undefined) return arg;
    return bind(arg, (value) => select(notNull(value, type)!, value, rest));
  }, args.at(-1)!);
}

const coalesceWide: BatchFunction = (args, out, rowCount) => {
  for (let row = 0; row < rowCount; row++) {
    const found = args.find((arg) => !arg.isNull(row)) ?? args[0];
    out.values[2 * row] = found.values[2 * row];
    out.values[2 * row + 1] = found.values[2 * row + 1];
  }
};

/** The greater (or smaller) of two values. If one is null, the other. */
function better(type: string, greatest: boolean): (a: IrNode, b: IrNode) => IrNode {
  return (left, right) =>
    bind(left, (a) =>
      bind(right, (b) => {
        const wins = a.type === "i32"
          ? (greatest ? i32.gtS(a, b) : i32.ltS(a, b))
          : a.type === "i64"
          ? (greatest ? i64.gtS(a, b) : i64.ltS(a, b))
          : a.type === "f64"
          ? (greatest ? f64.gt(a, b) : f64.lt(a, b))
          : (greatest ? f64.gt(f64.promote(a), f64.promote(b)) : f64.lt(f64.promote(a), f64.promote(b)));
        const chosen = select(wins, a, b);
        const hasA = notNull(a, type), hasB = notNull(b, type);
        return hasA === undefined || hasB === undefined ? chosen : select(hasA, select(hasB, chosen, a), b);
      }));
}

const entries: FunctionEntry[] = [];
const base = { nulls: "custom", volatility: "immutable" } as const;

for (const name of ["coalesce", "nvl"]) {
  const summary = "The first argument that is not null.";
  const args = (
    type: string,
  ) => [{ name: "first", type }, { name: "next", type, ...(name === "coalesce" ? { variadic: true } : {}) }];
  entries.push(
    { ...base, name, args: args("UUID"), returns: "UUID", summary, examples: [], batch: coalesceWide },
    {
      ...base,
      name,
      args: args("IPv4"),
      returns: "IPv4",
      summary,
      examples: [],
      emit: (values) => coalesce(values, "IPv4"),
    },
    {
      ...base,
      name,
      args: args("same"),
      returns: ([type]) => type === "SYMBOL_TEXT" ? "STRING" : type,
      summary,
      examples: [{ sql: `${name}(cast(null as int), 5)`, gives: 5 }],
      check: (_, types) =>
        isWide(types[0]) || types[0] === "INTERVAL"
          ? { argument: 0, message: `${name} of ${typeOf(types[0]).name} is not supported` }
          : undefined,
      emit: (values, types) => coalesce(values, types[0]),
    },
  );
}

const EQUAL: [type: string, equal: (a: IrNode, b: IrNode) => IrNode][] = [
  ["INT", i32.eq],
  ["LONG", i64.eq],
  ["DOUBLE", (a, b) => f64.le(f64.abs(f64.sub(a, b)), f64.const(DOUBLE_TOLERANCE))],
  ["TIMESTAMP", i64.eq],
  ["TIMESTAMP_NS", i64.eq],
  ["DATE", i64.eq],
  ["CHAR", i32.eq],
  ["IPv4", i32.eq],
  ["VARCHAR", text.eq],
  ["text", text.eq],
];
/** As in QuestDB, a VARCHAR and a SYMBOL give a VARCHAR, and other texts a STRING. */
const nullifText = (types: string[]) =>
  types.includes("VARCHAR") && types.every((type) => type !== "STRING" && type !== "CHAR") ? "VARCHAR" : "STRING";

for (const [type, equal] of EQUAL) {
  const returns = type === "text" ? nullifText : type;
  entries.push({
    ...base,
    name: "nullif",
    args: [{ name: "value", type }, { name: "unwanted", type }],
    returns,
    summary: "Null if both are equal, else the first.",
    examples: type === "INT" ? [{ sql: "nullif(10, 10)", gives: null }, { sql: "nullif(10, 9)", gives: 10 }] : [],
    emit: ([a, b]) => bind(a, (value) => select(equal(value, b), nullOf(type === "text" ? "STRING" : type), value)),
  });
}

const ORDERED: readonly string[] = [...NUMBERS, ...TIMES];
for (const name of ["greatest", "least"]) {
  entries.push({
    ...base,
    name,
    args: [{ name: "value", type: "same", variadic: true }],
    returns: (types) => types[0],
    summary: `The ${name === "greatest" ? "greatest" : "smallest"} argument that is not null.`,
    examples: [{ sql: `${name}(1, 5, 3)`, gives: name === "greatest" ? 5 : 1 }],
    check: (
      _,
      types,
    ) => (ORDERED.includes(types[0])
      ? undefined
      : { argument: 0, message: `${name} accepts numbers or times: found ${types[0]}` }),
    emit: (values, types) => values.reduce(better(types[0], name === "greatest")),
  });
}

export const conditionalFunctions = entries;
