/** Determines which parts of expressions kernels compute, and which run over whole batches between kernels. */
import type { Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import { NO_DICTIONARY } from "../columns.ts";
import { formOf, isEmittable } from "../compiler/expression.ts";
import { isFusable, isPerEntry } from "../expressions.ts";
import type { FunctionRegistry } from "../contract.ts";

/** The parts of an operator's expressions that its kernels do not compute. */
export interface Calls {
  /** Functions without a kernel form, which run over whole batches between two kernels. */
  batch: string[];
  /** Functions that run once for each entry of a symbol's dictionary. */
  perSymbol: string[];
}

export interface CallFacts {
  functions: FunctionRegistry;
  /** Dictionaries of the input's columns; undefined before its rows are available. */
  dictionaries?: readonly (Dictionary | undefined)[];
  expectedRows: number;
}

export function callsOf(exprs: readonly Expr[], types: readonly string[], facts: CallFacts): Calls {
  const batch = new Set<string>(), perSymbol = new Set<string>();
  const { dictionaries = [], expectedRows } = facts;
  const perEntry = (expr: Expr) => isPerEntry(expr, types, dictionaries, facts, { expectedRows });
  const visit = (expr: Expr, inEntry: boolean): void => {
    const isEntry = inEntry || perEntry(expr);
    if (!isEntry && isEmittable(expr, types, facts, perEntry) && isEmittable(expr, types, facts, () => false)) return;
    switch (expr.kind) {
      case "call": {
        const { entry, types: argTypes } = facts.functions.resolve(expr.function);
        const hasKernel = entry.emit !== undefined && formOf(expr.type) !== undefined &&
          argTypes.every((type) => formOf(type) !== undefined);
        if (!hasKernel) (isEntry ? perSymbol : batch).add(entry.name);
        for (const arg of expr.args) visit(arg, isEntry);
        return;
      }
      case "case":
        for (const { when, then } of expr.branches) {
          visit(when, isEntry);
          visit(then, isEntry);
        }
        return visit(expr.otherwise, isEntry);
      case "in":
        return visit(expr.operand, isEntry);
    }
  };
  for (const expr of exprs) visit(expr, false);
  return { batch: [...batch], perSymbol: [...perSymbol] };
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
  return can(types.map((type) => layoutOf(type) === "symbol" ? NO_DICTIONARY : undefined)) ? "measured" : true;
}
