/** Determines which parts of expressions kernels compute, and which run over whole batches between kernels. */
import { childrenOf, type Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import { NO_DICTIONARY } from "../columns.ts";
import type { FunctionRegistry } from "../contract.ts";
import { isFusable, isPerEntry } from "../expressions/rules.ts";
import { hasKernel } from "./functions.ts";
import { stagePlan } from "./stages.ts";

/** The functions in an operator's expressions that its kernels do not compute. */
export interface Calls {
  /** They run over whole batches between two kernels. */
  batch: string[];
  /** They run once for each entry of a symbol's dictionary. */
  perSymbol: string[];
  /** One or the other, depending on dictionaries that come with the rows. */
  measured: string[];
}

export interface CallFacts {
  functions: FunctionRegistry;
  /** Dictionaries of the input's columns; undefined before its rows are available. */
  dictionaries?: readonly (Dictionary | undefined)[];
  expectedRows: number;
}

export function callsOf(
  exprs: readonly Expr[],
  predicates: readonly Expr[],
  types: readonly string[],
  facts: CallFacts,
): Calls {
  const callsWith = (dictionaries: readonly (Dictionary | undefined)[]) =>
    callsFor(exprs, predicates, types, dictionaries, facts);
  if (facts.dictionaries !== undefined) return { ...callsWith(facts.dictionaries), measured: [] };
  const { batch, perSymbol } = callsWith([]), small = callsWith(smallDictionaries(types));
  const measured = batch.filter((name) => !small.batch.includes(name));
  return { batch: batch.filter((name) => small.batch.includes(name)), perSymbol, measured };
}

function callsFor(
  exprs: readonly Expr[],
  predicates: readonly Expr[],
  types: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  { functions, expectedRows }: CallFacts,
): Pick<Calls, "batch" | "perSymbol"> {
  const batch = new Set<string>(), perSymbol = new Set<string>();
  const plan = stagePlan(exprs, predicates, types, dictionaries, functions, { expectedRows });
  const visit = (expr: Expr, inEntry: boolean): void => {
    const isEntry = inEntry ||
      isPerEntry(expr, plan.types, plan.dictionaries, { functions }, { expectedRows });
    if (isEntry && expr.kind === "call" && !hasKernel(expr, { functions })) perSymbol.add(nameOf(expr, functions));
    for (const child of childrenOf(expr)) visit(child, isEntry);
  };
  for (const step of plan.steps) {
    if (step.kind === "batch") batch.add(nameOf(step.call, functions));
    if (step.kind === "kernel") {
      for (const expr of [...step.predicates, ...step.outputs.map((output) => output.expr)]) visit(expr, false);
    }
  }
  return { batch: [...batch], perSymbol: [...perSymbol] };
}

function nameOf({ function: id }: Expr & { kind: "call" }, functions: FunctionRegistry): string {
  return functions.resolve(id).entry.name;
}

/** Dictionaries for which tables by entry always pay off. */
function smallDictionaries(types: readonly string[]): (Dictionary | undefined)[] {
  return types.map((type) => layoutOf(type) === "symbol" ? NO_DICTIONARY : undefined);
}

/**
 * True if `exprs` must become columns before a kernel uses them. "measured": depends on dictionaries that come with the
 * rows.
 */
export function stagingOf(
  exprs: readonly Expr[],
  predicates: readonly Expr[],
  types: readonly string[],
  { functions, dictionaries, expectedRows }: CallFacts,
): boolean | "measured" {
  const can = (known: readonly (Dictionary | undefined)[]) =>
    isFusable(exprs, predicates, types, known, { functions }, { expectedRows });
  if (dictionaries !== undefined) return !can(dictionaries);
  if (can([])) return false;
  return can(smallDictionaries(types)) ? "measured" : true;
}
