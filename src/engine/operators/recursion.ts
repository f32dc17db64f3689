/** WITH RECURSIVE: the rows of one query, then in rounds those that another query makes of the previous round. */
import { assert } from "../../assert.ts";
import type { RecursionNode, WorkingNode } from "../../sql/plan.ts";
import { typeOf } from "../../types/mod.ts";
import { ColumnStore, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext, type WorkingRows } from "../contract.ts";
import { KeyTable } from "../keys.ts";
import { typesOf } from "../physical/reading.ts";
import { pickNew } from "./set.ts";

/** Open the two queries. `step` runs over the rows of the previous round. */
interface Rounds {
  first(): Operator;
  step(working: [id: number, rows: WorkingRows]): Operator;
}

export function createRecursion(plan: RecursionNode, context: QueryContext, rounds: Rounds): Operator {
  return new Recursion(plan, context, rounds);
}

export function createWorking({ id, columns }: WorkingNode, context: QueryContext): Operator {
  const rows = context.working?.get(id);
  assert(rows !== undefined, "rows of a round are read only within their recursion");
  const batches = slices(rows);
  return { columns, next: () => batches.next().value ?? undefined, close() {} };
}

function* slices({ rowCount, columns }: WorkingRows): Generator<Batch, undefined> {
  for (let from = 0; from < rowCount; from += MORSEL_ROWS) {
    yield {
      rowCount: Math.min(MORSEL_ROWS, rowCount - from),
      columns: columns.map((vector) => ({ ...vector, address: vector.address + from * typeOf(vector.type).width })),
    };
  }
}

class Recursion implements Operator {
  readonly columns;
  private readonly id: number;
  /** The rows of the last round. */
  private round?: { space: Workspace; rows: WorkingRows };
  private batches: Iterator<Batch, undefined> = slices({ rowCount: 0, columns: [] });
  private isOver = false;
  /** UNION: the rows of all rounds. */
  private readonly seen?: { space: Workspace; table: KeyTable };

  constructor(plan: RecursionNode, private readonly context: QueryContext, private readonly rounds: Rounds) {
    this.id = plan.id;
    this.columns = plan.columns;
    if (plan.distinct) {
      const space = Workspace.of(context, "recursion");
      this.seen = { space, table: new KeyTable(typesOf(plan.columns), space, () => context.poll()) };
    }
  }

  next(): Batch | undefined {
    for (;;) {
      const { done, value } = this.batches.next();
      if (!done) return value;
      if (this.isOver) return undefined;
      this.nextRound();
    }
  }

  private nextRound(): void {
    const { round, rounds, context } = this;
    context.poll();
    const input = round === undefined ? rounds.first() : rounds.step([this.id, round.rows]);
    const space = Workspace.of(context, "recursion");
    let store: ColumnStore;
    try {
      store = this.kept(input, space);
    } catch (error) {
      space.release();
      throw error;
    } finally {
      input.close();
    }
    round?.space.release();
    this.round = { space, rows: { rowCount: store.rowCount, columns: store.vectors } };
    this.batches = slices(this.round.rows);
    this.isOver = store.rowCount === 0;
  }

  private kept(input: Operator, space: Workspace): ColumnStore {
    const { context, seen } = this;
    const store = new ColumnStore(typesOf(this.columns), space);
    const picked = seen && space.words(MORSEL_ROWS);
    for (let batch = input.next(); batch !== undefined; batch = input.next()) {
      context.poll();
      if (seen === undefined) store.append(batch.columns, batch.rowCount);
      else store.appendRows(batch.columns, picked!, pickNew(seen.table, batch, picked!));
    }
    return store;
  }

  close(): void {
    this.round?.space.release();
    this.seen?.space.release();
  }
}
