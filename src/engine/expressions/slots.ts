/** The columns of a batch while its expressions are computed: inputs, and those that steps make. */
import type { Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import type { Workspace } from "../columns.ts";
import type { QueryContext, Vector } from "../contract.ts";
import type { Compile } from "./entry-tables.ts";
import type { CompileOptions } from "./options.ts";
import { dictionaryOf } from "./rules.ts";

/** A column: an input, or (numbered after the inputs) the result of a stage. */
export type Slot = number;

export interface Step {
  run(state: State): void;
}

export interface State {
  vectors: (Vector | undefined)[];
  rowCount: number;
  rowBase: bigint;
}

/** A column that a kernel fills; symbols become text if `asText`. */
export interface Output {
  slot: Slot;
  expr: Expr;
  asText?: boolean;
}

/** What the steps are made for. */
export interface Stage {
  readonly context: QueryContext;
  readonly space: Workspace;
  readonly options: CompileOptions;
  readonly compile: Compile;
  readonly types: readonly string[];
  readonly dictionaries: readonly (Dictionary | undefined)[];
  readonly steps: Step[];
  /** As in the options until a filter has moved rows; from then on it is in memory like other columns. */
  readonly rowIdColumn: number | undefined;
  /** Rows of the batches before. */
  readonly rowOffset: number;
  /** Columns with the same value in all rows. */
  readonly constantSlots: Set<Slot>;
  slot(type: string, dictionary?: Dictionary): Slot;
  vectorOf(slot: Slot, address: number): Vector;
  /** Replaces every part without a kernel form by a column that a step makes. */
  materialise(expr: Expr): Expr;
}

export interface Argument {
  slot: Slot;
  constant?: Expr & { kind: "constant" };
  dictionary?: Dictionary;
}

/** The column of an argument: a slot, or a constant. Symbols become text. */
export function argument(
  stage: Stage,
  expr: Expr,
  pending: Output[],
): Argument {
  const symbol = layoutOf(expr.type) === "symbol";
  if (expr.kind === "constant") {
    return { slot: stage.slot(symbol ? "STRING" : expr.type), constant: symbol ? { ...expr, type: "STRING" } : expr };
  }
  const whole = stage.materialise(expr);
  if (whole.kind === "column" && !symbol && whole.index !== stage.rowIdColumn) return { slot: whole.index };
  const slot = stage.slot(symbol ? "STRING" : expr.type);
  pending.push({ slot, expr: whole, asText: symbol });
  return { slot, dictionary: symbol ? dictionaryOf(whole, stage.dictionaries) : undefined };
}
