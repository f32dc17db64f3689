/**
 * UNION, EXCEPT and INTERSECT. UNION ALL streams; the others hash whole rows. EXCEPT ALL and INTERSECT ALL keep every left row that
 * does not, or does, occur on the right at all (the dialect does not compare numbers of copies).
 */
import { assert } from "../../assert.ts";
import type { SetNode } from "../../sql/plan.ts";
import { OutputColumns, Workspace } from "../columns.ts";
import type { Batch, Changes, Operator, QueryContext } from "../contract.ts";
import { KeyTable } from "../keys.ts";
import { dividedInput } from "./hash-parts.ts";
import type { SpilledRows } from "./spilled-rows.ts";
import { spillingSet } from "./spilled-set.ts";
import type { PhysicalSet } from "../physical/plan.ts";
import { typesOf } from "../physical/reading.ts";

/** `again` makes both inputs anew. */
export function createSet(
  { node: plan, way, spill, canRestart }: PhysicalSet,
  left: Operator,
  right: Operator,
  context: QueryContext,
  again: () => [left: Operator, right: Operator],
): Operator {
  const inMemory = createInMemory(plan, way, left, right, context);
  if (spill === undefined) return inMemory;
  return spillingSet(plan, canRestart, inMemory, {
    divide: () => {
      const [left, right] = again(), keys = left.columns.map((_, c) => c), operator = operatorOf(plan);
      if (way === "new rows") return [dividedInput(new Chain(plan, [left, right]), keys, context, operator)];
      let ofLeft: SpilledRows[];
      try {
        ofLeft = dividedInput(left, keys, context, operator);
      } catch (error) {
        right.close();
        throw error;
      }
      return [ofLeft, dividedInput(right, keys, context, operator)];
    },
    make: (inputs) => {
      const numbered = { ...plan, columns: [...inputs[0].columns] };
      if (way === "new rows") return new Union(numbered, inputs[0], context, plan.columns.length);
      return new AgainstRight(numbered, inputs[0], inputs[1], context, plan.columns.length);
    },
  }, context);
}

function operatorOf({ operator }: SetNode): string {
  return operator.split(" ")[0];
}

function createInMemory(
  plan: SetNode,
  way: PhysicalSet["way"],
  left: Operator,
  right: Operator,
  context: QueryContext,
): Operator {
  const rightTypes = typesOf(right.columns);
  assert(
    typesOf(left.columns).every((type, c) => type === rightTypes[c]),
    "the sides of a set operation have the same types",
  );
  switch (way) {
    case "chain":
      return new Chain(plan, [left, right]);
    case "new rows":
      return new Union(plan, new Chain(plan, [left, right]), context);
    case "against right":
      return new AgainstRight(plan, left, right, context);
  }
}

/** The rows of the inputs, one input after the other. */
class Chain implements Operator {
  readonly columns;
  private current = 0;

  constructor(plan: SetNode, private readonly inputs: readonly Operator[]) {
    this.columns = plan.columns;
  }

  next(): Batch | undefined {
    for (; this.current < this.inputs.length; this.current++) {
      const batch = this.inputs[this.current].next();
      if (batch !== undefined) return batch;
    }
    return undefined;
  }

  rewind(): boolean {
    this.current = 0;
    return this.inputs.every((input) => input.rewind?.() === true);
  }

  rebind(changes: Changes): boolean {
    return this.inputs.every((input) => input.rebind?.(changes) === true);
  }

  close(): void {
    for (const input of this.inputs) input.close();
  }
}

/** Selects rows of batches by hashing. */
abstract class Hashed implements Operator {
  readonly columns;
  protected readonly space: Workspace;
  protected readonly types: string[];
  private output?: OutputColumns;
  private picked?: Int32Array;

  /** `keyCount`: number of columns that are compared; the others go with them. */
  constructor(
    plan: SetNode,
    protected readonly left: Operator,
    protected readonly context: QueryContext,
    protected readonly keyCount = left.columns.length,
  ) {
    this.columns = plan.columns;
    this.types = typesOf(left.columns);
    this.space = Workspace.of(context, operatorOf(plan));
  }

  protected table(): KeyTable {
    return new KeyTable(this.types.slice(0, this.keyCount), this.space, () => this.context.poll());
  }

  /** The columns that are compared. */
  protected keysOf({ rowCount, columns }: Batch): Batch {
    return { rowCount, columns: columns.slice(0, this.keyCount) };
  }

  /** Writes the numbers of the selected rows to `out` and returns their count. */
  protected abstract pick(batch: Batch, out: Int32Array): number;

  next(): Batch | undefined {
    for (let batch = this.left.next(); batch !== undefined; batch = this.left.next()) {
      this.context.poll();
      if (this.picked === undefined || this.picked.length < batch.rowCount) {
        this.picked = this.space.words(Math.max(65_536, batch.rowCount));
      }
      const n = this.pick(batch, this.picked);
      if (n === 0) continue;
      if (n === batch.rowCount) return batch;
      this.output ??= new OutputColumns(this.types, this.space);
      for (let c = 0; c < this.types.length; c++) this.output.gather(c, batch.columns[c], this.picked, n, false);
      return { rowCount: n, columns: this.output.vectors };
    }
    return undefined;
  }

  /** Keeps the inputs only: tables of many rows take much memory. */
  rewind(): boolean {
    this.space.release();
    this.output = this.picked = undefined;
    return this.left.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    return this.left.rebind?.(changes) === true;
  }

  close(): void {
    this.space.release();
    this.left.close();
  }
}

/** Rows that are new in `table`, among those that pass `keep`. */
export function pickNew(table: KeyTable, batch: Batch, out: Int32Array, keep?: (row: number) => boolean): number {
  let seen = table.count, n = 0;
  const groups = table.groups(batch.columns, batch.rowCount, true);
  for (let row = 0; row < batch.rowCount; row++) {
    if (groups[row] !== seen) continue;
    seen++;
    if (keep === undefined || keep(row)) out[n++] = row;
  }
  return n;
}

class Union extends Hashed {
  private seen?: KeyTable;

  protected pick(batch: Batch, out: Int32Array): number {
    return pickNew(this.seen ??= this.table(), this.keysOf(batch), out);
  }

  override rewind(): boolean {
    this.seen = undefined;
    return super.rewind();
  }
}

class AgainstRight extends Hashed {
  private onRight?: KeyTable;
  private seen?: KeyTable;
  private readonly wanted: boolean;
  /** Equal rows are one. */
  private readonly isDistinct: boolean;

  constructor(
    plan: SetNode,
    left: Operator,
    private readonly right: Operator,
    context: QueryContext,
    keyCount?: number,
  ) {
    super(plan, left, context, keyCount);
    this.wanted = plan.operator.startsWith("intersect");
    this.isDistinct = !plan.operator.endsWith("all");
  }

  protected pick(all: Batch, out: Int32Array): number {
    const batch = this.keysOf(all);
    if (this.onRight === undefined) {
      // `batch` stays valid, because the right side has its own batches.
      this.onRight = this.table();
      for (let right = this.right.next(); right !== undefined; right = this.right.next()) {
        this.onRight.groups(this.keysOf(right).columns, right.rowCount, true);
      }
    }
    const found = this.onRight.groups(batch.columns, batch.rowCount, false);
    if (this.isDistinct) {
      return pickNew(this.seen ??= this.table(), batch, out, (row) => (found[row] >= 0) === this.wanted);
    }
    let n = 0;
    for (let row = 0; row < batch.rowCount; row++) if ((found[row] >= 0) === this.wanted) out[n++] = row;
    return n;
  }

  override rewind(): boolean {
    this.onRight = this.seen = undefined;
    return super.rewind() && this.right.rewind?.() === true;
  }

  override rebind(changes: Changes): boolean {
    return super.rebind(changes) && this.right.rebind?.(changes) === true;
  }

  override close(): void {
    super.close();
    this.right.close();
  }
}
