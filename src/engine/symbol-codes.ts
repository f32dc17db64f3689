/** Comparisons of a symbol column with constants, as codes of its dictionary. */
import type { Expr } from "../sql/plan.ts";
import type { Dictionary } from "../storage/contract.ts";
import type { SharedHeap } from "../storage/heap.ts";
import { layoutOf } from "../types/mod.ts";
import type { FunctionRegistry } from "./contract.ts";

export interface AllowedSymbols {
  column: number;
  values: readonly (string | null)[];
}

/** The values that `=` or IN allows in a symbol column. Undefined for other conditions. */
export function symbolsAllowedBy(
  part: Expr,
  { functions }: { functions: FunctionRegistry },
): AllowedSymbols | undefined {
  if (part.kind === "in") {
    const column = symbolColumn(part.operand);
    return column === undefined || !part.values.every(isSymbolValue) ? undefined : { column, values: part.values };
  }
  if (part.kind !== "call" || part.args.length !== 2 || functions.resolve(part.function).entry.name !== "=") {
    return undefined;
  }
  const column = part.args.map(symbolColumn).find((index) => index !== undefined);
  const value = part.args.find((arg) => arg.kind === "constant")?.value;
  return column === undefined || typeof value !== "string" ? undefined : { column, values: [value] };
}

function symbolColumn(expr: Expr): number | undefined {
  return expr.kind === "column" && layoutOf(expr.type) === "symbol" ? expr.index : undefined;
}

function isSymbolValue(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}

/** The codes of those values that the dictionary has, ascending. NULL is -1. */
export function codesOfValues(
  heap: SharedHeap,
  dictionary: Dictionary,
  values: readonly (string | null)[],
): number[] {
  const codes = values.flatMap((value) => value === null ? -1 : codeOf(heap, dictionary, value) ?? []);
  return [...new Set(codes)].sort((a, b) => a - b);
}

/** Codes that this thread has looked up: a dictionary is searched entry by entry. */
const known = new Map<string, number>();
const KNOWN_MAX = 4_096, KNOWN_CHARACTERS_MAX = 256;

/** The code of a text, or undefined if the dictionary does not have it. */
function codeOf(heap: SharedHeap, { tableId, columnId, entries, count }: Dictionary, text: string): number | undefined {
  const bytes = new TextEncoder().encode(text), { i32, u32, u8 } = heap, first = entries / 4;
  const isAt = (code: number) => {
    if (i32[first + 2 * code + 1] !== bytes.length) return false;
    const at = u32[first + 2 * code];
    for (let k = 0; k < bytes.length; k++) if (u8[at + k] !== bytes[k]) return false;
    return true;
  };
  const key = `${tableId}.${columnId}.${text}`, before = known.get(key);
  if (before !== undefined && before < count && isAt(before)) return before;
  for (let code = 0; code < count; code++) {
    if (!isAt(code)) continue;
    if (known.size >= KNOWN_MAX) known.clear();
    if (text.length <= KNOWN_CHARACTERS_MAX) known.set(key, code);
    return code;
  }
  return undefined;
}
