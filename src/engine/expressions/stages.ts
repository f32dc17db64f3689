/** The steps that compute expressions over a batch: which parts become columns, and in which order. */
import type { Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import { Workspace } from "../columns.ts";
import { columnsOf, exprKey, formOf, isEmittable } from "../compiler/expression.ts";
import type { Batch, QueryContext, Vector } from "../contract.ts";
import { batchStep } from "./batch-step.ts";
import type { Compile } from "./entry-tables.ts";
import { kernelStep } from "./kernel-step.ts";
import type { CompileOptions, ScanBatch } from "./options.ts";
import { caseStep, wideMembershipStep } from "./row-steps.ts";
import { dictionaryOf, isPerEntry, isRepeatable } from "./rules.ts";
import type { Slot, Stage, State, Step } from "./slots.ts";

/** The steps for each batch, compiled for the dictionaries of the batch's symbols. */
export class Stages implements Stage {
  readonly types: string[];
  readonly dictionaries: (Dictionary | undefined)[];
  readonly steps: Step[] = [];
  readonly space: Workspace;
  private readonly results: Slot[] = [];
  rowOffset = 0;
  private readonly made = new Map<string, Slot>();
  /** Slots that the last kernel fills. */
  private readonly computed: { slot: Slot; expr: Expr }[] = [];
  /** As in the options until a filter has moved rows; from then on it is in memory like other columns. */
  rowIdColumn: number | undefined;
  /** Columns with the same value in all rows. */
  readonly constantSlots = new Set<Slot>();

  constructor(
    exprs: readonly Expr[],
    predicates: readonly Expr[],
    private readonly inputTypes: readonly string[],
    private readonly inputDictionaries: readonly (Dictionary | undefined)[],
    readonly context: QueryContext,
    readonly options: CompileOptions,
    readonly compile: Compile,
  ) {
    this.types = [...inputTypes];
    this.dictionaries = [...inputDictionaries];
    this.rowIdColumn = options.rowIdColumn;
    this.space = Workspace.of(context, options.operator ?? "project");
    const emittable = (expr: Expr) => this.emittable(expr);
    const simple = predicates.filter(emittable), complex = predicates.filter((p) => !emittable(p));
    const plainResult = (expr: Expr) => expr.kind === "column" || emittable(expr);
    const staged = complex.length > 0 || !exprs.every(plainResult);
    const needed = new Set<number>();
    for (const expr of [...complex, ...exprs]) columnsOf(expr, needed);
    // Drop rows that do not pass before the slow calls.
    if (staged && simple.length > 0) this.filterStep(simple, [...needed].sort((a, b) => a - b));
    const lastPredicates = (staged ? complex : simple).map((p) => (emittable(p) ? p : this.materialise(p)));
    const outputs = exprs.map((expr) => this.materialise(expr));
    this.finalStep(lastPredicates, outputs);
  }

  fits(dictionaries: readonly (Dictionary | undefined)[]): boolean {
    return dictionaries.every((dictionary, k) => {
      const mine = this.inputDictionaries[k];
      return dictionary === mine ||
        (dictionary !== undefined && mine !== undefined && dictionary.entries === mine.entries &&
          dictionary.count === mine.count);
    });
  }

  run(batch: ScanBatch): Batch {
    const state: State = { vectors: [...batch.columns], rowCount: batch.rowCount, rowBase: batch.rowBase ?? 0n };
    for (const step of this.steps) {
      if (state.rowCount === 0) break;
      step.run(state);
    }
    this.rowOffset += batch.rowCount;
    if (state.rowCount === 0) return { rowCount: 0, columns: this.results.map((slot) => this.vectorOf(slot, 0)) };
    return { rowCount: state.rowCount, columns: this.results.map((slot) => state.vectors[slot]!) };
  }

  release(): void {
    this.space.release();
  }

  vectorOf(slot: Slot, address: number): Vector {
    const type = this.types[slot];
    return { type, address, dictionary: layoutOf(type) === "symbol" ? this.dictionaries[slot] : undefined };
  }

  private emittable(expr: Expr): boolean {
    return isEmittable(expr, this.types, this.context, (e) => this.isPerEntry(e));
  }

  private isPerEntry(expr: Expr): boolean {
    return isPerEntry(expr, this.types, this.dictionaries, this.context, this.options);
  }

  slot(type: string, dictionary?: Dictionary): Slot {
    this.dictionaries.push(dictionary);
    return this.types.push(type) - 1;
  }

  private column(slot: Slot): Expr {
    return { kind: "column", index: slot, type: this.types[slot] };
  }

  /** Replaces every part without a kernel form by a column that a step makes. */
  materialise(expr: Expr): Expr {
    if (expr.kind === "column" || expr.kind === "constant" || this.emittable(expr)) return expr;
    const key = exprKey(expr);
    const known = isRepeatable(expr, this.context) ? this.made.get(key) : undefined;
    if (known !== undefined) return this.column(known);
    let result: Expr;
    if (expr.kind === "call") {
      const { entry, types } = this.context.functions.resolve(expr.function);
      if (
        entry.emit !== undefined && formOf(expr.type) !== undefined && types.every((type) => formOf(type) !== undefined)
      ) {
        result = { ...expr, args: expr.args.map((arg) => this.materialise(arg)) };
        if (this.emittable(result)) return result;
      }
      result = this.column(batchStep(this, expr, entry, types));
    } else if (expr.kind === "case") {
      const parts = expr.branches.map(({ when, then }) => ({
        when: this.materialise(when),
        then: this.materialise(then),
      }));
      const otherwise = this.materialise(expr.otherwise);
      const fused: Expr = { ...expr, branches: parts, otherwise };
      if (this.emittable(fused)) return fused;
      result = this.column(caseStep(this, parts, otherwise, expr.type));
    } else if (expr.kind === "in") {
      const operand = this.materialise(expr.operand);
      const fused: Expr = { ...expr, operand };
      if (this.emittable(fused)) return fused;
      result = this.column(wideMembershipStep(this, operand, expr.values));
    } else throw new Error("a parameter is replaced before its plan runs");
    if (result.kind === "column") this.made.set(key, result.index);
    return result;
  }

  /** Drops rows and moves the columns `keep` together. */
  private filterStep(predicates: Expr[], keep: number[]): void {
    const outputs = keep.map((slot) => ({ slot, expr: this.column(slot) }));
    kernelStep(this, predicates, outputs);
    this.rowIdColumn = undefined;
  }

  private finalStep(predicates: Expr[], outputs: Expr[]): void {
    const bySlot = new Map<string, Slot>();
    outputs.forEach((expr, k) => {
      // Without a filter, input columns and results of batch calls are output directly.
      const isRowId = expr.kind === "column" && expr.index === this.rowIdColumn;
      if (predicates.length === 0 && expr.kind === "column" && !isRowId) {
        this.results[k] = expr.index;
        return;
      }
      const key = isRepeatable(expr, this.context) ? exprKey(expr) : `#${k}`;
      let slot = bySlot.get(key);
      if (slot === undefined) {
        slot = this.slot(expr.type, dictionaryOf(expr, this.dictionaries));
        bySlot.set(key, slot);
        this.computed.push({ slot, expr });
      }
      this.results[k] = slot;
    });
    if (this.computed.length > 0 || predicates.length > 0) kernelStep(this, predicates, this.computed);
  }
}
