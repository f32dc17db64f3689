/** Combines the columns of operators that have the same groups in the same order. */
import { assert } from "../../errors.ts";
import type { Column } from "../../sql/plan.ts";
import type { Batch, Operator } from "../contract.ts";

export class SideBySide implements Operator {
  constructor(
    readonly columns: readonly Column[],
    private readonly parts: readonly Operator[],
    /** The source of each column. */
    private readonly places: readonly { part: number; column: number }[],
  ) {}

  next(): Batch | undefined {
    const batches = this.parts.map((part) => part.next()), [first] = batches;
    assert(
      batches.every((batch) => batch?.rowCount === first?.rowCount),
      "all parts have the same groups",
    );
    if (first === undefined) return undefined;
    return {
      rowCount: first.rowCount,
      columns: this.places.map(({ part, column }) => batches[part]!.columns[column]),
    };
  }

  close(): void {
    for (const part of this.parts) part.close();
  }
}
