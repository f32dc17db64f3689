/** Merges sorted rows on disk. Rows that are equal in all keys are in the order of their runs. */
import type { SharedHeap } from "../../storage/heap.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { isNullAt, OutputColumns, TextArena, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type QueryContext, type Vector } from "../contract.ts";
import { compareRows, type Ordering } from "../order.ts";
import { blockBytesOf, dictionaryOfRuns, RowsReader, RowsWriter, type SpilledRows } from "./spilled-rows.ts";

/** A column of the runs by which they are sorted. */
export interface RunKey extends Ordering {
  column: number;
}

interface Cursor {
  /** Index of the run. */
  run: number;
  reader: RowsReader;
  batch: Batch;
  row: number;
}

type Compare = (a: readonly Vector[], rowA: number, b: readonly Vector[], rowB: number) => number;

/** Compares rows in the order that `sortedRows` gives. */
function compareBy(types: readonly string[], keys: readonly RunKey[], heap: SharedHeap): Compare {
  const compares = keys.map(({ column, descending, nulls }): Compare => {
    const type = types[column], sign = descending ? -1 : 1;
    const values: Compare = layoutOf(type) === "i64" && typeOf(type).order === "signed"
      ? (a, rowA, b, rowB) => {
        const { i32, u32 } = heap, p = (a[column].address >>> 2) + 2 * rowA, q = (b[column].address >>> 2) + 2 * rowB;
        return sign * (i32[p + 1] - i32[q + 1] || u32[p] - u32[q]);
      }
      : (a, rowA, b, rowB) => sign * compareRows(heap, a[column], rowA, b[column], rowB);
    if (nulls === undefined || !typeOf(type).nullable) return values;
    const nullSign = nulls === "first" ? -1 : 1;
    return (a, rowA, b, rowB) => {
      const nullA = isNullAt(heap, type, a[column].address, rowA);
      const nullB = isNullAt(heap, type, b[column].address, rowB);
      if (nullA || nullB) return nullA && nullB ? 0 : nullA ? nullSign : -nullSign;
      return values(a, rowA, b, rowB);
    };
  });
  const [first] = compares;
  if (compares.length === 1) return first;
  return (a, rowA, b, rowB) => {
    for (const compare of compares) {
      const order = compare(a, rowA, b, rowB);
      if (order !== 0) return order;
    }
    return 0;
  };
}

/** Part of the query's memory for the blocks of the runs that are merged together. */
const MERGE_SHARE = 4;
const RUNS_MIN = 4;

/** Merges neighbouring runs until so few are left that a block of each fits into the memory. */
export function fewRuns(
  runs: readonly SpilledRows[],
  keys: readonly RunKey[],
  context: QueryContext,
  operator: string,
): SpilledRows[] {
  const { memory, heap } = context;
  // The heap's blocks are powers of two.
  const atOnce = Math.floor((memory.limitBytes || heap.sizeBytes()) / MERGE_SHARE / (2 * blockBytesOf(context)));
  const most = Math.max(RUNS_MIN, atOnce);
  let left = [...runs];
  while (left.length > most) {
    const next: SpilledRows[] = [];
    for (let from = 0; from < left.length; from += most) {
      const some = left.slice(from, from + most);
      next.push(some.length === 1 ? some[0] : merge(some, keys, context, operator));
    }
    left = next;
  }
  return left;
}

function merge(runs: SpilledRows[], keys: readonly RunKey[], context: QueryContext, operator: string): SpilledRows {
  const writer = new RowsWriter(runs[0].types, context, operator);
  const merged = new MergedRows(runs, keys, runs[0].types.length, context, operator);
  try {
    for (let batch = merged.next(); batch !== undefined; batch = merged.next()) {
      writer.append(batch.columns, batch.rowCount);
    }
    return writer.finish();
  } finally {
    merged.close();
    writer.close();
  }
}

export class MergedRows {
  private readonly space: Workspace;
  /** A binary heap by the next rows. */
  private readonly cursors: Cursor[] = [];
  private readonly readers: RowsReader[] = [];
  private readonly compare: Compare;
  private readonly types: readonly string[];
  private readonly arena: TextArena;
  private output?: OutputColumns;

  /** Outputs the first `columnCount` columns of the runs. */
  constructor(
    private readonly runs: readonly SpilledRows[],
    keys: readonly RunKey[],
    columnCount: number,
    private readonly context: QueryContext,
    operator: string,
  ) {
    this.space = Workspace.of(context, operator);
    this.arena = new TextArena(this.space);
    const types = runs[0]?.types ?? [];
    this.types = types.slice(0, columnCount);
    this.compare = compareBy(types, keys, context.heap);
    runs.forEach((rows, run) => {
      const reader = new RowsReader(rows, context, operator);
      this.readers.push(reader);
      const batch = reader.next();
      if (batch !== undefined) this.push({ run, reader, batch, row: 0 });
    });
  }

  /** Batches of MORSEL_ROWS rows, but for the last one, valid until the next call. */
  next(): Batch | undefined {
    const { cursors, context, arena, types } = this;
    context.poll();
    arena.release();
    if (cursors.length === 0) return undefined;
    const left = cursors.reduce((sum, { run }) => sum + this.runs[run].rowCount, 0);
    this.output ??= new OutputColumns(types, this.space, Math.min(MORSEL_ROWS, left));
    const { vectors, capacity } = this.output;
    let rowCount = 0;
    while (cursors.length > 0 && rowCount < capacity) {
      // Rows of one run that follow one another are copied together.
      const cursor = cursors[0],
        start = cursor.row,
        room = Math.min(cursor.batch.rowCount, start + capacity - rowCount);
      let end = start + 1;
      while (end < room && this.staysFirst(cursor, end)) end++;
      for (let c = 0; c < types.length; c++) this.copy(c, cursor.batch.columns[c], start, end, vectors[c], rowCount);
      rowCount += end - start;
      cursor.row = end;
      if (end < cursor.batch.rowCount) this.sink();
      else this.advance(cursor);
    }
    vectors.forEach((vector, c) => vector.dictionary = dictionaryOfRuns(this.runs, c));
    return { rowCount, columns: vectors };
  }

  /** True if row `row` of the first cursor comes before the next rows of all others. */
  private staysFirst(first: Cursor, row: number): boolean {
    const { cursors } = this;
    for (let child = 1; child <= 2 && child < cursors.length; child++) {
      if (this.isBefore(cursors[child], first, row)) return false;
    }
    return true;
  }

  /** True if a cursor's next row comes before row `row` of another cursor. */
  private isBefore(a: Cursor, b: Cursor, row = b.row): boolean {
    const order = this.compare(a.batch.columns, a.row, b.batch.columns, row);
    return order === 0 ? a.run < b.run : order < 0;
  }

  private copy(c: number, { address: source }: Vector, from: number, to: number, target: Vector, row: number): void {
    const { heap } = this.context, { width } = typeOf(this.types[c]);
    const at = target.address + row * width;
    heap.u8.copyWithin(at, source + from * width, source + to * width);
    if (layoutOf(this.types[c]) === "text") this.arena.adopt(at, to - from);
  }

  private advance(cursor: Cursor): void {
    const { cursors } = this, batch = cursor.reader.next();
    if (batch !== undefined) Object.assign(cursor, { batch, row: 0 });
    else {
      cursor.reader.close();
      const last = cursors.pop()!;
      if (cursors.length === 0) return;
      cursors[0] = last;
    }
    this.sink();
  }

  private push(cursor: Cursor): void {
    const { cursors } = this;
    let k = cursors.push(cursor) - 1;
    for (let parent; k > 0 && this.isBefore(cursor, cursors[parent = (k - 1) >> 1]); k = parent) {
      cursors[k] = cursors[parent];
    }
    cursors[k] = cursor;
  }

  /** Moves the first cursor to its place. */
  private sink(): void {
    const { cursors } = this, cursor = cursors[0];
    let k = 0;
    for (;;) {
      let child = 2 * k + 1;
      if (child >= cursors.length) break;
      if (child + 1 < cursors.length && this.isBefore(cursors[child + 1], cursors[child])) child++;
      if (!this.isBefore(cursors[child], cursor)) break;
      cursors[k] = cursors[child];
      k = child;
    }
    cursors[k] = cursor;
  }

  close(): void {
    for (const reader of this.readers) reader.close();
    this.space.release();
  }
}
