/** Conditions that allow only some values in a symbol column. */
import type { Expr } from "../../sql/plan.ts";
import { layoutOf } from "../../types/mod.ts";
import { conjuncts } from "../expressions.ts";
import type { PlanFacts } from "./facts.ts";

export interface AllowedSymbols {
  column: number;
  values: readonly (string | null)[];
}

/** By the `=` and IN of an AND. */
export function allowedSymbols(predicate: Expr, facts: Pick<PlanFacts, "functions">): AllowedSymbols[] {
  return conjuncts(predicate, facts).flatMap((part) => allowedBy(part, facts) ?? []);
}

function allowedBy(part: Expr, { functions }: Pick<PlanFacts, "functions">): AllowedSymbols | undefined {
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
