/** Computes expressions over batches by the steps of a plan, for the dictionaries of the batches' symbols. */
import type { Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import { Workspace } from "../columns.ts";
import type { Batch, Changes, QueryContext, Vector } from "../contract.ts";
import { type Slot, type StagePlan, stagePlan, type StageStep } from "../physical/stages.ts";
import { batchStep } from "./batch-step.ts";
import type { Compile } from "./entry-tables.ts";
import { kernelStep } from "./kernel-step.ts";
import type { CompileOptions, ScanBatch } from "./options.ts";
import { caseStep, wideMembershipStep } from "./row-steps.ts";
import type { Stage, State, Step } from "./slots.ts";

export class Stages implements Stage {
  readonly plan: StagePlan;
  readonly space: Workspace;
  rowOffset = 0;
  private readonly steps: readonly Step[];
  private readonly state: State = { vectors: [], rowCount: 0, rowBase: 0n };
  private readonly columns: Vector[] = [];

  constructor(
    exprs: readonly Expr[],
    predicates: readonly Expr[],
    types: readonly string[],
    private readonly inputDictionaries: readonly (Dictionary | undefined)[],
    readonly context: QueryContext,
    readonly options: CompileOptions,
    readonly compile: Compile,
  ) {
    this.plan = stagePlan(exprs, predicates, types, inputDictionaries, context.functions, options);
    if (!options.rowByRow) {
      const hasBatch = this.plan.steps.some((step) => step.kind === "batch");
      context.chose?.(hasBatch ? "functions between kernels" : "functions once for each symbol");
    }
    this.space = Workspace.of(context, options.operator ?? "project");
    this.steps = this.plan.steps.map((step) => stepOf(this, step));
  }

  fits(columns: readonly Vector[]): boolean {
    return columns.every(({ dictionary }, k) => {
      const mine = this.inputDictionaries[k];
      return dictionary === mine ||
        (dictionary !== undefined && mine !== undefined && dictionary.entries === mine.entries &&
          dictionary.count === mine.count);
    });
  }

  run(batch: ScanBatch): Batch {
    const { state, columns } = this;
    for (let k = 0; k < batch.columns.length; k++) state.vectors[k] = batch.columns[k];
    state.rowCount = batch.rowCount;
    state.rowBase = batch.rowBase ?? 0n;
    for (const step of this.steps) {
      if (state.rowCount === 0) break;
      step.run(state);
    }
    this.rowOffset += batch.rowCount;
    const { results } = this.plan;
    if (state.rowCount === 0) return { rowCount: 0, columns: results.map((slot) => this.vectorOf(slot, 0)) };
    for (let k = 0; k < results.length; k++) columns[k] = state.vectors[results[k]]!;
    return { rowCount: state.rowCount, columns };
  }

  /** For a run with other constants in conditions. False if it has to be made anew. */
  change(changes: Changes): boolean {
    return this.steps.every((step) => step.change?.(changes) === true);
  }

  release(): void {
    this.space.release();
  }

  vectorOf(slot: Slot, address: number): Vector {
    const { types, dictionaries } = this.plan, type = types[slot];
    return { type, address, dictionary: layoutOf(type) === "symbol" ? dictionaries[slot] : undefined };
  }
}

function stepOf(stage: Stage, step: StageStep): Step {
  switch (step.kind) {
    case "kernel":
      return kernelStep(stage, step);
    case "batch":
      return batchStep(stage, step);
    case "case":
      return caseStep(stage, step);
    case "in":
      return wideMembershipStep(stage, step);
  }
}
