/** ORDER BY of more rows than the memory holds: sorted runs of rows on disk, which are merged when they are output. */
import type { Column, SortKey } from "../../sql/plan.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { type ColumnStore, Workspace } from "../columns.ts";
import type { QueryContext, Vector } from "../contract.ts";
import { sortedRows } from "../order.ts";
import { isOutOfMemory } from "../memory.ts";
import { elementBytes } from "../wasm/sort.ts";
import type { Overflow } from "./input.ts";
import { fewRuns, MergedRows, type RunKey } from "./merged-rows.ts";
import { roomOf, RowsWriter, type SpilledRows } from "./spilled-rows.ts";

/** A run is sorted in portions of at least this many rows. */
const PORTION_ROWS_MIN = 1_024;
/** Memory for each different text while texts are ranked, besides the text. */
const RANKED_TEXT_BYTES = 64;
/** Part of the free memory that the rows of a portion may take while they are sorted. */
const SORT_SHARE = 0.6;
/** Memory for sorting and for writing a run, whatever the number of its rows. */
const SORT_BYTES = 2 << 20;

export class SortedRuns implements Overflow {
  /** Row numbers, elements twice, and the words of keys. */
  readonly bytesPerRow: number;
  readonly bytesBesides = SORT_BYTES;
  private readonly runs: SpilledRows[] = [];
  private readonly runKeys: RunKey[];
  private readonly hasTexts: boolean;

  constructor(
    private readonly columns: readonly Column[],
    private readonly keys: readonly SortKey[],
    private readonly context: QueryContext,
    private readonly operator: string,
  ) {
    let next = columns.length;
    this.runKeys = keys.map(({ expression, descending, nulls }) => ({
      column: expression.kind === "column" ? expression.index : next++,
      descending,
      nulls,
    }));
    const types = keys.map(({ expression }) => expression.type);
    this.hasTexts = types.some((type) => layoutOf(type) === "text");
    this.bytesPerRow = 4 + 2 * elementBytes(1) + types.reduce((sum, type) => sum + wordBytes(type), 0);
  }

  get isEmpty(): boolean {
    return this.runs.length === 0;
  }

  take(store: ColumnStore): void {
    const { context, runs } = this;
    let { bytesPerRow } = this;
    if (this.hasTexts) bytesPerRow += RANKED_TEXT_BYTES + 2 * store.textBytes / Math.max(1, store.rowCount);
    let portion = Math.max(
      PORTION_ROWS_MIN,
      Math.floor((SORT_SHARE * (roomOf(context) - SORT_BYTES)) / bytesPerRow),
    );
    for (let from = 0; from < store.rowCount;) {
      const { columns, rowCount } = store.slice(from, Math.min(portion, store.rowCount - from));
      try {
        runs.push(this.sorted(columns, rowCount));
      } catch (error) {
        // Blocks of the heap may be twice as large as needed.
        if (!isOutOfMemory(error) || portion <= PORTION_ROWS_MIN) throw error;
        portion = Math.max(PORTION_ROWS_MIN, portion >> 1);
        continue;
      }
      context.spill!.countPart();
      from += rowCount;
    }
    store.clear();
  }

  private sorted(columns: readonly Vector[], rowCount: number): SpilledRows {
    const { context, keys, runKeys, operator } = this, space = Workspace.of(context, operator);
    const writer = new RowsWriter(columns.map(({ type }) => type), context, operator);
    try {
      const vectors = runKeys.map(({ column }) => columns[column]);
      const order = sortedRows(vectors, keys, rowCount, space, () => context.poll(), context.parallel);
      writer.appendRows(columns, order, rowCount);
      return writer.finish();
    } finally {
      writer.close();
      space.release();
    }
  }

  merged(): MergedRows {
    const { runKeys, context, operator } = this;
    const runs = fewRuns(this.runs, runKeys, context, operator);
    return new MergedRows(runs, runKeys, this.columns.length, context, operator);
  }
}

function wordBytes(type: string): number {
  return layoutOf(type) === "text" ? 8 : Math.max(4, typeOf(type).width);
}
