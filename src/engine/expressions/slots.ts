/** The columns of a batch while its expressions are computed: inputs, and those that steps make. */
import type { Workspace } from "../columns.ts";
import type { Changes, QueryContext, Vector } from "../contract.ts";
import type { Slot, StagePlan } from "../physical/stages.ts";
import type { Compile } from "./entry-tables.ts";
import type { CompileOptions } from "./options.ts";

export interface Step {
  run(state: State): void;
  /** For a run with other constants in conditions. False if it has to be made anew. */
  change?(changes: Changes): boolean;
}

export interface State {
  vectors: (Vector | undefined)[];
  rowCount: number;
  rowBase: bigint;
}

/** The context that the steps of one compilation share. */
export interface Stage {
  readonly context: QueryContext;
  readonly space: Workspace;
  readonly options: CompileOptions;
  readonly compile: Compile;
  readonly plan: StagePlan;
  /** Rows of the batches before. */
  readonly rowOffset: number;
  vectorOf(slot: Slot, address: number): Vector;
}
