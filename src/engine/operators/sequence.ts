/** long_sequence and generate_series: equidistant 64-bit numbers. */
import { assert } from "../../assert.ts";
import type { SequenceNode } from "../../sql/plan.ts";
import { layoutOf } from "../../types/mod.ts";
import { OutputColumns, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext } from "../contract.ts";

export function createSequence(plan: SequenceNode, context: QueryContext): Operator {
  return new Sequence(plan, context);
}

class Sequence implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private output?: OutputColumns;
  private position = 0;
  /** The next number, as two words. */
  private low = 0;
  private high = 0;

  constructor(private readonly plan: SequenceNode, private readonly context: QueryContext) {
    assert(
      plan.columns.length === 1 && layoutOf(plan.columns[0].type) === "i64",
      "a sequence is one column of 64-bit integers",
    );
    this.columns = plan.columns;
    context.countToRead?.(plan.count);
    this.space = Workspace.of(context, "sequence");
    this.rewind();
  }

  next(): Batch | undefined {
    const { count, step } = this.plan;
    const rowCount = Math.min(MORSEL_ROWS, count - this.position);
    if (rowCount <= 0) return undefined;
    this.context.poll();
    this.output ??= new OutputColumns([this.plan.columns[0].type], this.space, rowCount);
    const stepLow = Number(BigInt.asUintN(32, step)), stepHigh = Number(BigInt.asIntN(32, step >> 32n));
    const { i32 } = this.context.heap;
    // Adds words: adding BigInts takes ten times as long.
    let { low, high } = this, at = this.output.vectors[0].address >>> 2;
    for (let row = 0; row < rowCount; row++, at += 2) {
      i32[at] = low;
      i32[at + 1] = high;
      low += stepLow;
      high = (high + stepHigh) | 0;
      if (low >= 4294967296) {
        low -= 4294967296;
        high = (high + 1) | 0;
      }
    }
    this.low = low;
    this.high = high;
    this.position += rowCount;
    this.context.countRead?.(rowCount);
    return { rowCount, columns: this.output.vectors };
  }

  rewind(): boolean {
    const { start } = this.plan;
    this.position = 0;
    this.low = Number(BigInt.asUintN(32, start));
    this.high = Number(BigInt.asIntN(32, start >> 32n));
    return true;
  }

  rebind(): boolean {
    return true;
  }

  close(): void {
    this.space.release();
  }
}
