/**
 * Expressions over batches, with an optional filter. Everything with a kernel form is fused into one kernel over the rows; functions
 * that only have a `batch` form run over whole columns between kernels.
 *
 *     rows → filter by kernel conditions → (arguments → batch calls)… → one kernel: the rest of the filter, and all results
 */
import type { Expr } from "../sql/plan.ts";
import type { Dictionary } from "../storage/contract.ts";
import type { Workspace } from "./columns.ts";
import { flushKernelRows } from "./compiler/binding.ts";
import type { ExpressionCompiler } from "./compiler/expression.ts";
import type { IrNode } from "./compiler/ir.ts";
import type { Batch, Changes, QueryContext } from "./contract.ts";
import { compilerFor } from "./expressions/entry-tables.ts";
import type { CompiledExpressions, CompileOptions, ScanBatch } from "./expressions/options.ts";
import { allOf, conjuncts } from "./expressions/rules.ts";
import { Stages } from "./expressions/stages.ts";

export type { CompiledExpressions, CompileOptions, ScanBatch } from "./expressions/options.ts";
export { conjuncts, dictionaryOf, isFusable } from "./expressions/rules.ts";

export function compileExpressions(
  exprs: readonly Expr[],
  /** All of them must be true. */
  predicate: Expr | readonly Expr[] | undefined,
  inputTypes: readonly string[],
  context: QueryContext,
  options: CompileOptions = {},
): CompiledExpressions {
  const all = predicate === undefined ? [] : "kind" in predicate ? [predicate] : predicate;
  return new Compiled(exprs, all.flatMap((p) => conjuncts(p, context)), inputTypes, context, options);
}

const evaluated = new WeakMap<readonly Expr[], { context: QueryContext; compiled: CompiledExpressions }>();

/**
 * Evaluates expressions over one batch. Kernels are cached for the same list. Valid until the next call with that list.
 */
export function evaluate(exprs: readonly Expr[], batch: Batch, context: QueryContext): Batch {
  let known = evaluated.get(exprs);
  if (known?.context !== context) {
    const types = batch.columns.map((column) => column.type);
    evaluated.set(exprs, known = { context, compiled: compileExpressions(exprs, undefined, types, context) });
  }
  return known.compiled.run(batch);
}

class Compiled implements CompiledExpressions {
  private stages?: Stages;

  constructor(
    private exprs: readonly Expr[],
    private predicates: readonly Expr[],
    private readonly inputTypes: readonly string[],
    private readonly context: QueryContext,
    private readonly options: CompileOptions,
  ) {}

  run(batch: ScanBatch): Batch {
    if (this.stages === undefined || !this.stages.fits(batch.columns)) {
      this.stages?.release();
      const dictionaries = batch.columns.map((column) => column.dictionary);
      const expectedRows = Math.max(batch.rowCount, this.options.expectedRows ?? 0);
      this.stages = new Stages(this.exprs, this.predicates, this.inputTypes, dictionaries, this.context, {
        ...this.options,
        expectedRows,
      }, compileExpressions);
    }
    return this.stages.run(batch);
  }

  change(predicates: readonly Expr[], changes: Changes, exprs = this.exprs): void {
    this.exprs = exprs;
    this.predicates = predicates.flatMap((p) => conjuncts(p, this.context));
    if (this.stages?.change(changes) !== false) return;
    this.stages.release();
    this.stages = undefined;
  }

  close(): void {
    this.stages?.release();
    this.stages = undefined;
    flushKernelRows(this.context.heap.i64);
  }
}

/** A compiler for a caller's own kernel over fusable expressions, and the IR of its predicates. */
export function fuse(
  predicates: readonly Expr[],
  types: readonly string[],
  dictionaries: readonly (Dictionary | undefined)[],
  context: QueryContext,
  space: Workspace,
  options: CompileOptions,
): { compiler: ExpressionCompiler; predicate: IrNode | undefined } {
  const compiler = compilerFor(types, dictionaries, context, space, options, compileExpressions);
  const nodes = predicates.flatMap((p) => conjuncts(p, context)).map((p) => compiler.lower(p));
  return { compiler, predicate: nodes.length === 0 ? undefined : allOf(nodes) };
}
