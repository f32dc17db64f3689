/** The sides of time joins that are merged in order. */
import type { Expr } from "../../sql/plan.ts";
import type { Operator, QueryContext } from "../contract.ts";
import { columnAt, readingOf, typesOf, unnamedColumns } from "../physical/reading.ts";
import { dividedInput } from "./hash-parts.ts";
import { sliceTextBytes, spareBytesOf } from "./input.ts";
import { Pipeline } from "./pipeline.ts";
import { roomOf, type SpilledRows } from "./spilled-rows.ts";

/** An input in time order, and its columns of the time and of the keys. */
export interface Side {
  input: Operator;
  time: number;
  keys: readonly number[];
}

/** The given columns of an input come first, then its time and its keys, unless they are among them. */
export function narrowed(
  input: Operator,
  needed: readonly number[],
  time: Expr,
  keys: readonly Expr[],
  context: QueryContext,
): Side {
  const exprs: Expr[] = needed.map((index) => columnAt(index, input.columns[index].type));
  const placeOf = (expr: Expr) => {
    const known = expr.kind === "column" ? needed.indexOf(expr.index) : -1;
    return known >= 0 ? known : exprs.push(expr) - 1;
  };
  const places = { time: placeOf(time), keys: keys.map(placeOf) };
  const reading = { ...readingOf(input.columns), exprs, columns: unnamedColumns(typesOf(exprs)) };
  return { input: new Pipeline({ kind: "operator", input }, reading, context), ...places };
}

/** Both sides, divided on disk by the hashes of their keys and closed. The rows' numbers are the last column of each. */
export function dividedSides(
  left: Side,
  right: Side,
  context: QueryContext,
  operator: string,
): [left: SpilledRows[], right: SpilledRows[]] {
  const divided = ({ input, keys }: Side) => dividedInput(input, keys, context, operator);
  let ofLeft: SpilledRows[];
  try {
    ofLeft = divided(left);
  } catch (error) {
    right.input.close();
    throw error;
  }
  return [ofLeft, divided(right)];
}

/** Bytes of texts of the rows that are read at a time; less if the query has little memory. */
const READ_TEXT_BYTES = 1 << 20;

export function stepTextBytesOf(context: QueryContext): number {
  return Math.min(READ_TEXT_BYTES, sliceTextBytes(context));
}

/**
 * Memory that a join in order leaves to the operators above, though it could use it: with less, it starts again on disk, where its inputs take
 * less as well.
 */
export class SpareMemory {
  private readonly bytes: number;

  /** `canRestart`: otherwise the join goes on as long as there is memory. */
  constructor(private readonly operator: string, canRestart: boolean, private readonly context: QueryContext) {
    this.bytes = canRestart ? spareBytesOf(context) : 0;
  }

  /** Throws if less would be left after the join has taken this many bytes. Without a limit, the shared memory may still have free blocks. */
  check(bytesToTake = 0): void {
    const { bytes, operator, context } = this;
    if (bytes > 0 && roomOf(context) < bytesToTake + bytes) context.memory.need(bytesToTake + bytes, operator);
  }
}
