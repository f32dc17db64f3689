/** ORDER BY of more rows than the memory holds: sorted runs of rows on disk, which are merged when they are output. */
import type { Column, SortKey } from "../../sql/plan.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { ColumnStore, Workspace } from "../columns.ts";
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
  private runs: SpilledRows[] = [];
  /** With a limit: the last wanted row of a part of the rows, so that those behind it are not wanted. */
  private bound?: { row: ColumnStore; space: Workspace };
  private readonly runKeys: RunKey[];
  private readonly hasTexts: boolean;

  constructor(
    private readonly columns: readonly Column[],
    private readonly keys: readonly SortKey[],
    private readonly context: QueryContext,
    private readonly operator: string,
    /** Only this many rows are wanted in the end. */
    private readonly limit = Infinity,
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
    const { context } = this;
    let { bytesPerRow } = this;
    if (this.hasTexts) bytesPerRow += RANKED_TEXT_BYTES + 2 * store.textBytes / Math.max(1, store.rowCount);
    let portion = Math.max(
      PORTION_ROWS_MIN,
      Math.floor((SORT_SHARE * (roomOf(context) - SORT_BYTES)) / bytesPerRow),
    );
    for (let from = 0; from < store.rowCount;) {
      const { columns, rowCount } = store.slice(from, Math.min(portion, store.rowCount - from));
      try {
        this.runs.push(this.sorted(columns, rowCount));
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
    const { context, keys, runKeys, operator, limit } = this, space = Workspace.of(context, operator);
    const writer = new RowsWriter(columns.map(({ type }) => type), context, operator);
    try {
      const vectors = runKeys.map(({ column }) => columns[column]);
      const order = sortedRows(vectors, keys, rowCount, space, () => context.poll(), context.parallel);
      writer.appendRows(columns, order, Math.min(rowCount, limit));
      return writer.finish();
    } finally {
      writer.close();
      space.release();
    }
  }

  /** The columns of a row, the first of each, that comes before or equals all rows that are not wanted. */
  get last(): readonly Vector[] | undefined {
    return this.bound?.row.vectors;
  }

  /** Reduces the runs to the wanted rows, if there are twice as many. */
  cut(): void {
    const { runs, limit, runKeys, context, operator } = this;
    if (runs.length < 2 || runs.reduce((sum, { rowCount }) => sum + rowCount, 0) < 2 * limit) return;
    const types = runs[0].types, space = Workspace.of(context, operator), row = new ColumnStore(types, space);
    const opened: { close(): void }[] = [];
    try {
      const merged = new MergedRows(
        fewRuns(runs, runKeys, context, operator),
        runKeys,
        types.length,
        context,
        operator,
      );
      opened.push(merged);
      const writer = new RowsWriter(types, context, operator);
      opened.push(writer);
      for (let left = limit; left > 0;) {
        const { rowCount, columns } = merged.next()!, n = Math.min(left, rowCount);
        writer.append(columns, n);
        left -= n;
        if (left === 0) row.append(columns, 1, n - 1);
      }
      this.runs = [writer.finish()];
      this.bound?.space.release();
      this.bound = { row, space };
    } catch (error) {
      space.release();
      // More rows than necessary stay.
      if (!isOutOfMemory(error)) throw error;
    } finally {
      for (const each of opened) each.close();
    }
  }

  close(): void {
    this.bound?.space.release();
  }

  /** Outputs the first `columnCount` columns. */
  merged(columnCount = this.columns.length): MergedRows {
    const { runKeys, context, operator } = this;
    const runs = fewRuns(this.runs, runKeys, context, operator);
    return new MergedRows(runs, runKeys, columnCount, context, operator);
  }
}

function wordBytes(type: string): number {
  return layoutOf(type) === "text" ? 8 : Math.max(4, typeOf(type).width);
}
