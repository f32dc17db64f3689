/** Conditions that allow only some values in symbol columns. */
import type { Expr } from "../../sql/plan.ts";
import { conjuncts } from "../expressions.ts";
import { type AllowedSymbols, symbolsAllowedBy } from "../symbol-codes.ts";
import type { PlanFacts } from "./facts.ts";

/** Those of conditions that were asked for: a statement that is run again has the same ones. */
const ofConditions = new WeakMap<Expr, readonly AllowedSymbols[]>();

/** By the `=` and IN of an AND. */
export function allowedSymbols(predicate: Expr, facts: Pick<PlanFacts, "functions">): readonly AllowedSymbols[] {
  const known = ofConditions.get(predicate);
  if (known !== undefined) return known;
  const allowed = conjuncts(predicate, facts).flatMap((part) => symbolsAllowedBy(part, facts) ?? []);
  ofConditions.set(predicate, allowed);
  return allowed;
}
