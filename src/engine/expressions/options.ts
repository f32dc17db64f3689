/** Options for compiling the expressions of an operator, and the batches that these take. */
import type { Expr } from "../../sql/plan.ts";
import type { Batch, Changes } from "../contract.ts";

export interface CompiledExpressions {
  /** Valid until the next call, and as long as the batch. Without a filter, plain columns are not copied. */
  run(batch: Batch): Batch;
  /** Before another run, with other constants. `predicates`, `exprs`: those that are used now; without the latter the same as before. */
  change(predicates: readonly Expr[], changes: Changes, exprs?: readonly Expr[]): void;
  close(): void;
}

export interface CompileOptions {
  /** Name of the operator in memory errors. */
  operator?: string;
  /** Approximate total number of rows, which decides whether tables over a dictionary pay off. */
  expectedRows?: number;
  /** The column whose values are `batch.rowBase + row` instead of being in memory. */
  rowIdColumn?: number;
  /** Do not precompute expressions over one symbol column for each dictionary entry. */
  rowByRow?: boolean;
}

/** A batch of a scan: rows `start` … of the columns, and the base of row ids. */
export interface ScanBatch extends Batch {
  rowBase?: bigint;
}
