/** Combines the columns of operators that have the same groups in the same order. */
import { assert } from "../../assert.ts";
import type { Column } from "../../sql/plan.ts";
import type { Batch, Changes, Operator } from "../contract.ts";
import { advance } from "./scan.ts";

/** The batch of an operator, and its next row. The batches of the parts may differ in size: some groups may be on disk. */
interface Part {
  operator: Operator;
  batch?: Batch;
  row: number;
}

export class SideBySide implements Operator {
  private readonly parts: Part[];

  constructor(
    readonly columns: readonly Column[],
    operators: readonly Operator[],
    /** The source of each column. */
    private readonly places: readonly { part: number; column: number }[],
  ) {
    this.parts = operators.map((operator) => ({ operator, row: 0 }));
  }

  next(): Batch | undefined {
    const { parts } = this;
    for (const part of parts) {
      if (part.batch !== undefined && part.row < part.batch.rowCount) continue;
      part.batch = part.operator.next();
      part.row = 0;
    }
    const rows = parts.map(({ batch, row }) => (batch?.rowCount ?? 0) - row), rowCount = Math.min(...rows);
    assert(rowCount > 0 || rows.every((count) => count === 0), "all parts have the same groups");
    if (rowCount === 0) return undefined;
    const columns = parts.map(({ batch, row }) => advance(batch!.columns, row));
    for (const part of parts) part.row += rowCount;
    return { rowCount, columns: this.places.map(({ part, column }) => columns[part][column]) };
  }

  rewind(): boolean {
    for (const part of this.parts) Object.assign(part, { batch: undefined, row: 0 });
    return this.parts.every(({ operator }) => operator.rewind?.() === true);
  }

  rebind(changes: Changes): boolean {
    return this.parts.every(({ operator }) => operator.rebind?.(changes) === true);
  }

  close(): void {
    for (const { operator } of this.parts) operator.close();
  }
}
