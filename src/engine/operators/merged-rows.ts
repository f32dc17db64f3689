/**
 * Merges sorted rows on disk. Rows that are equal in all keys are in the order of their runs. A step takes from each run the next rows
 * up to a common bound, and sorts these together: a binary heap would compare and copy row by row.
 */
import type { Dictionary } from "../../storage/contract.ts";
import { SharedHeap } from "../../storage/heap.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { isNullAt, OutputColumns, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type QueryContext, type Vector } from "../contract.ts";
import { compareRows, type Ordering, sortedRows } from "../order.ts";
import { elementBytes, KEYS_MAX } from "../wasm/sort.ts";
import { advance } from "./scan.ts";
import { dictionaryOfRuns, RowsReader, RowsWriter, type SpilledRows, widthOf } from "./spilled-rows.ts";

/** A column of the runs by which they are sorted. */
export interface RunKey extends Ordering {
  column: number;
}

interface Cursor {
  reader: RowsReader;
  batch: Batch;
  row: number;
}

/** Rows from … to-1 of a cursor's batch. */
interface Range {
  columns: readonly Vector[];
  from: number;
  to: number;
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
  const bytes = (memory.limitBytes || heap.sizeBytes()) / MERGE_SHARE;
  const largest = runs.reduce((most, run) => Math.max(most, RowsReader.bufferBytes(run)), 1);
  const most = Math.max(RUNS_MIN, Math.floor(bytes / SharedHeap.blockBytes(largest)));
  const left = [...runs];
  for (let at = 0; left.length > most; at = at + 1 < left.length ? at + 1 : 0) {
    // No more runs than necessary: the others are read once only.
    const count = Math.min(most, left.length - most + 1, left.length - at);
    if (count > 1) left.splice(at, count, merge(left.slice(at, at + count), keys, context, operator));
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

/** Part of the query's memory for the rows of a step. */
const STEP_SHARE = 32;
const STEP_ROWS_MIN = 256;

function stepRowsOf(types: readonly string[], keyCount: number, { memory, heap }: QueryContext): number {
  const rowBytes = 2 * widthOf(types) + 2 * elementBytes(Math.min(KEYS_MAX, keyCount)) + 8 * keyCount;
  const rows = Math.floor((memory.limitBytes || heap.sizeBytes()) / STEP_SHARE / rowBytes);
  return Math.max(STEP_ROWS_MIN, Math.min(MORSEL_ROWS, rows));
}

export class MergedRows {
  private readonly space: Workspace;
  /** In the order of their runs. */
  private readonly cursors: Cursor[] = [];
  private readonly readers: RowsReader[];
  private readonly compare: Compare;
  private readonly types: readonly string[];
  private readonly dictionaries: (Dictionary | undefined)[];
  /** Maximum number of rows of a step. */
  private readonly stepRows: number;
  /** The rows of a step by their runs, and in their order. */
  private step?: { all: OutputColumns; output: OutputColumns };

  /** Outputs the first `columnCount` columns of the runs. */
  constructor(
    runs: readonly SpilledRows[],
    private readonly keys: readonly RunKey[],
    private readonly columnCount: number,
    private readonly context: QueryContext,
    private readonly operator: string,
  ) {
    this.space = Workspace.of(context, operator);
    this.types = runs[0]?.types ?? [];
    this.dictionaries = this.types.map((_, c) => dictionaryOfRuns(runs, c));
    // Without runs nothing is known of the types, and nothing is compared.
    this.compare = runs.length === 0 ? () => 0 : compareBy(this.types, keys, context.heap);
    this.stepRows = stepRowsOf(this.types, keys.length, context);
    this.readers = runs.map((rows) => new RowsReader(rows, context, operator));
    for (const reader of this.readers) {
      const batch = reader.next();
      if (batch !== undefined) this.cursors.push({ reader, batch, row: 0 });
    }
  }

  /** At most MORSEL_ROWS rows, valid until the next call. */
  next(): Batch | undefined {
    this.context.poll();
    this.readOn();
    if (this.cursors.length === 0) return undefined;
    const ranges = this.nextRanges();
    return ranges.length === 1 ? this.batchOf(ranges[0]) : this.sorted(ranges);
  }

  /** Reads the next blocks of runs whose blocks have been output. */
  private readOn(): void {
    for (let k = this.cursors.length - 1; k >= 0; k--) {
      const cursor = this.cursors[k];
      if (cursor.row < cursor.batch.rowCount) continue;
      const batch = cursor.reader.next();
      if (batch !== undefined) Object.assign(cursor, { batch, row: 0 });
      else {
        cursor.reader.close();
        this.cursors.splice(k, 1);
      }
    }
  }

  /** Takes the rows that come before all others. */
  private nextRanges(): Range[] {
    const { cursors, compare } = this, window = Math.max(1, Math.floor(this.stepRows / cursors.length));
    const lastOf = ({ row, batch }: Cursor) => Math.min(row + window, batch.rowCount) - 1;
    // All rows up to the least of the windows' last rows are in the windows.
    let least = 0;
    for (let k = 1; k < cursors.length; k++) {
      const [a, b] = [cursors[k], cursors[least]];
      if (compare(a.batch.columns, lastOf(a), b.batch.columns, lastOf(b)) < 0) least = k;
    }
    const bound = cursors[least], boundRow = lastOf(bound), ranges: Range[] = [];
    cursors.forEach((cursor, k) => {
      const { batch: { columns }, row: from } = cursor, equal = k < least ? 0 : -1;
      const isTaken = (row: number) => compare(columns, row, bound.batch.columns, boundRow) <= equal;
      const to = k === least ? boundRow + 1 : endOf(isTaken, from, lastOf(cursor) + 1);
      if (to === from) return;
      cursor.row = to;
      ranges.push({ columns, from, to });
    });
    if (ranges.length === 1) this.extend(ranges[0], bound);
    return ranges;
  }

  /** Takes all rows of the batch, if they come before all other batches. */
  private extend(range: Range, cursor: Cursor): void {
    const { cursors, compare } = this, { batch: { columns, rowCount } } = cursor, at = cursors.indexOf(cursor);
    const end = Math.min(rowCount, range.from + MORSEL_ROWS);
    const isFirst = cursors.every((other, k) =>
      k === at || compare(columns, end - 1, other.batch.columns, other.row) <= (at < k ? 0 : -1)
    );
    if (isFirst) range.to = cursor.row = end;
  }

  private batchOf({ columns, from, to }: Range): Batch {
    const { dictionaries } = this;
    const output = advance(columns.slice(0, this.columnCount), from).map((vector, c) => ({
      ...vector,
      dictionary: dictionaries[c],
    }));
    return { rowCount: to - from, columns: output };
  }

  private sorted(ranges: readonly Range[]): Batch {
    const { context, types, dictionaries, columnCount, stepRows } = this, { u8 } = context.heap;
    const { all, output } = this.step ??= {
      all: new OutputColumns(types, this.space, stepRows),
      output: new OutputColumns(types.slice(0, columnCount), this.space, stepRows),
    };
    let rowCount = 0;
    for (const { columns, from, to } of ranges) {
      all.vectors.forEach(({ type, address }, c) => {
        const { width } = typeOf(type), source = columns[c].address;
        u8.copyWithin(address + rowCount * width, source + from * width, source + to * width);
      });
      rowCount += to - from;
    }
    all.vectors.forEach((vector, c) => vector.dictionary = dictionaries[c]);
    const space = Workspace.of(context, this.operator);
    try {
      const keys = this.keys.map(({ column }) => sortable(all.vectors[column], rowCount, space));
      const order = sortedRows(keys, this.keys, rowCount, space, () => context.poll());
      output.vectors.forEach((_, c) => output.gather(c, all.vectors[c], order, rowCount, false));
    } finally {
      space.release();
    }
    return { rowCount, columns: output.vectors };
  }

  close(): void {
    for (const reader of this.readers) reader.close();
    this.space.release();
  }
}

/** The first of `from … to` that does not hold; all before it do. */
function endOf(holds: (row: number) => boolean, from: number, to: number): number {
  if (from < to && !holds(from)) return from;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (holds(middle)) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Symbols of a dictionary with more entries than there are rows are sorted as texts: a sort of symbols ranks all entries. */
function sortable(vector: Vector, rowCount: number, space: Workspace): Vector {
  const { type, address, dictionary } = vector;
  if (layoutOf(type) !== "symbol" || dictionary === undefined || dictionary.count <= rowCount) return vector;
  const { i32 } = space.heap, pairs = space.words(2 * rowCount), entries = dictionary.entries >>> 2;
  for (let row = 0, at = address >>> 2; row < rowCount; row++) {
    const code = i32[at + row];
    pairs[2 * row] = code < 0 ? 0 : i32[entries + 2 * code];
    pairs[2 * row + 1] = code < 0 ? -1 : i32[entries + 2 * code + 1];
  }
  return { type: "VARCHAR", address: pairs.byteOffset };
}
