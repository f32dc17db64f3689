/** Expressions and values in EXPLAIN. */
import { formatValue } from "../types/format/mod.ts";
import { typeOf, type Value } from "../types/mod.ts";
import type { Expr, Interval } from "./plan.ts";

/** Maximum number of intervals shown. The others are counted. */
const INTERVALS_SHOWN = 4;

export function intervalsText(intervals: readonly Interval[], type: string): string {
  const edge = 9223372036854775000n;
  const shown = intervals.slice(0, INTERVALS_SHOWN).map(([low, high]) =>
    `${low < -edge ? "" : valueText(low, type)} … ${high > edge ? "" : valueText(high, type)}`.trim()
  );
  if (intervals.length > INTERVALS_SHOWN) shown.push(`and ${intervals.length - INTERVALS_SHOWN} more`);
  return shown.join("; ") || "none";
}

function valueText(value: Value, type: string): string {
  if (value === null) return "null";
  if (typeOf(type).layout === "text" || type === "CHAR" || type === "SYMBOL") return `'${value}'`;
  return formatValue(value, type) ?? "null";
}

const INFIX = new Set([
  "+",
  "-",
  "*",
  "/",
  "%",
  "=",
  "!=",
  "<",
  "<=",
  ">",
  ">=",
  "and",
  "or",
  "&",
  "|",
  "^",
  "like",
  "ilike",
  "~",
]);

export function exprText(e: Expr, names: readonly string[]): string {
  const text = (inner: Expr): string => exprText(inner, names);
  switch (e.kind) {
    case "column":
      return names[e.index] ?? `#${e.index}`;
    case "constant":
      return valueText(e.value, e.type);
    case "parameter":
      return `$${e.index + 1}`;
    case "placeholder":
      throw new Error("a finished plan has no placeholders");
    case "in":
      return `${text(e.operand)} in (${e.values.map((value) => valueText(value, e.operand.type)).join(", ")})`;
    case "case":
      return `case ${e.branches.map((b) => `when ${text(b.when)} then ${text(b.then)} `).join("")}else ${
        text(e.otherwise)
      } end`;
    case "call": {
      const name = e.function.slice(0, e.function.indexOf("("));
      const args = e.args.map(text);
      if (INFIX.has(name) && args.length === 2) return `(${args[0]} ${name} ${args[1]})`;
      if (/^(?:cast|nearest)_/.test(name)) return `${args[0]}::${typeOf(e.type).name}`;
      if (name === "between") return `(${args[0]} between ${args[1]} and ${args[2]})`;
      if (name === "is_null") return `(${args[0]} is null)`;
      return `${name}(${args.join(", ")})`;
    }
  }
}
