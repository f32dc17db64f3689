/** Properties of expressions before they are compiled: their operands, their dictionaries, and how they can be computed. */
import { childrenOf, type Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import { NO_DICTIONARY } from "../columns.ts";
import { isEmittable, perEntryColumn } from "../compiler/expression.ts";
import { i32, type IrNode } from "../compiler/ir.ts";
import type { QueryContext } from "../contract.ts";
import type { CompileOptions } from "./options.ts";

/** The operands of an AND. */
export function conjuncts(predicate: Expr, context: Pick<QueryContext, "functions">): Expr[] {
  if (predicate.kind === "call" && context.functions.resolve(predicate.function).entry.name === "and") {
    return predicate.args.flatMap((arg) => conjuncts(arg, context));
  }
  return [predicate];
}

/** The dictionary of an expression of type SYMBOL. */
export function dictionaryOf(expr: Expr, dictionaries: readonly (Dictionary | undefined)[]): Dictionary | undefined {
  if (layoutOf(expr.type) !== "symbol") return undefined;
  if (expr.kind === "column") return dictionaries[expr.index];
  for (const child of childrenOf(expr)) {
    const found = dictionaryOf(child, dictionaries);
    if (found !== undefined) return found;
  }
  return NO_DICTIONARY;
}

/** A balanced tree, as trees are processed recursively. */
export function allOf(nodes: IrNode[]): IrNode {
  if (nodes.length === 1) return nodes[0];
  const middle = nodes.length >> 1;
  return i32.and(allOf(nodes.slice(0, middle)), allOf(nodes.slice(middle)));
}

/** True if it is precomputed once for each entry of a symbol's dictionary. */
export function isPerEntry(
  expr: Expr,
  types: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  context: Pick<QueryContext, "functions">,
  options: CompileOptions,
): boolean {
  if (options.rowByRow) return false;
  const column = perEntryColumn(expr, types, dictionaries, context);
  return column !== undefined && dictionaries[column]!.count <= Math.max(256, 2 * (options.expectedRows ?? 0));
}

/** True if one kernel can compute all predicates and expressions, or output them unchanged (columns of 128 bits). */
export function isFusable(
  exprs: readonly Expr[],
  predicates: readonly Expr[],
  types: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  context: Pick<QueryContext, "functions">,
  options: CompileOptions,
): boolean {
  const emittable = (expr: Expr) =>
    isEmittable(expr, types, context, (e) => isPerEntry(e, types, dictionaries, context, options));
  return predicates.every(emittable) && exprs.every((expr) => expr.kind === "column" || emittable(expr));
}
