/** Conditions that allow only some values in symbol columns. */
import type { Expr } from "../../sql/plan.ts";
import { conjuncts } from "../expressions.ts";
import { type AllowedSymbols, symbolsAllowedBy } from "../symbol-codes.ts";
import type { PlanFacts } from "./facts.ts";

/** By the `=` and IN of an AND. */
export function allowedSymbols(predicate: Expr, facts: Pick<PlanFacts, "functions">): AllowedSymbols[] {
  return conjuncts(predicate, facts).flatMap((part) => symbolsAllowedBy(part, facts) ?? []);
}
