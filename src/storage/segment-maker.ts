/**
 * Makes segments of a table: of rows, of other segments, and of new values of their columns. It does not know which segments the table
 * has. Segments are never changed.
 */
import { type ConvertedValues, convertValues } from "../types/conversion.ts";
import { LAYOUT_WIDTH, layoutOf } from "../types/mod.ts";
import type { Chunk, ChunkMaker } from "./chunks.ts";
import type { AppendColumn, TableColumn, TableSchema } from "./contract.ts";
import type { DataFiles } from "./datafile.ts";
import type { SymbolTable } from "./dictionary.ts";
import { HeapFullError, type SharedHeap } from "./heap.ts";
import { addedKey, keyColumns, keyReader, missingKey } from "./keys.ts";
import type { MemoryBlock } from "./memory.ts";
import { cut, insertedRows, mergedRuns, partSizes, rowCountOf, type Run, textBytesOf } from "./merge.ts";
import type { MergedStats, MergeOrder, SharedColumn } from "./mergers.ts";
import type { Piece } from "./moves.ts";
import { firstNotBelow, halvesOf, type RowColumn, type Rows, timeAt, toCodes } from "./rows.ts";
import { columnById } from "./schema.ts";
import type { Segment } from "./segment.ts";

/**
 * A segment has fewer rows if its columns would take more than this many bytes, but at least the minimum. Texts count
 * separately.
 */
const SEGMENT_VALUE_BYTES_MAX = 64 << 20;
const SEGMENT_ROWS_MIN = 256;

/** New values of columns, by the order of the rows that get them. */
export type NewValues = readonly { readonly column: TableColumn; readonly rows: RowColumn }[];

/** The table whose segments are made. */
export interface SegmentOwner {
  readonly schema: TableSchema;
  readonly directory: string;
  newUid(): number;
  dictionary(columnId: number): SymbolTable;
}

/** What another thread needs for a merge, and what the table makes of its result. */
export interface PreparedMerge {
  readonly order: MergeOrder;
  readonly reads: readonly MemoryBlock[];
  /** New memory. */
  readonly writes: readonly MemoryBlock[];
  finish(stats: MergedStats): Segment[];
}

export class SegmentMaker {
  constructor(
    private readonly table: SegmentOwner,
    private readonly data: DataFiles,
    private readonly make: ChunkMaker,
    private readonly heap: SharedHeap,
  ) {}

  /** A copy of the rows of a segment that is on disk. */
  rowsOf({ chunks, rowCount }: Segment): Rows {
    const columns = chunks.map((chunk, id) => chunk && this.make.rowsOf(this.typeOf(id), chunk, rowCount, this.data));
    const time = columns[this.table.schema.timestampId];
    return { rowCount, columns, times: time && halvesOf(time.values, rowCount) };
  }

  /** A copy of the designated timestamps of a segment that is on disk. */
  timesOf({ chunks, rowCount }: Segment): Int32Array {
    const id = this.table.schema.timestampId;
    return halvesOf(this.make.rowsOf(this.typeOf(id), chunks[id]!, rowCount, this.data).values, rowCount);
  }

  /** `tail` with rows [from, until) behind its own; without it, a new segment. */
  extended(partition: bigint, tail: Segment | undefined, rows: Rows, from: number, until: number): Segment {
    const rowsBefore = tail?.rowCount ?? 0, { times } = rows;
    const chunks: (Chunk | undefined)[] = [];
    for (const { id, type } of this.table.schema.columns) {
      chunks[id] = this.make.append(type, tail?.chunks[id], rowsBefore, rows.columns[id], from, until, this.data);
    }
    return {
      uid: tail?.uid ?? this.table.newUid(),
      partition,
      rowCount: rowsBefore + until - from,
      timestampMin: tail?.timestampMin ?? (times === undefined ? 0n : timeAt(times, from)),
      timestampMax: times === undefined ? 0n : timeAt(times, until - 1),
      chunks,
    };
  }

  /** Maximum number of rows of a segment with the columns of both. */
  rowsMaxOf(segment: Segment | undefined, rows?: Rows): number {
    let width = 0;
    for (const { id, type } of this.table.schema.columns) {
      if (segment?.chunks[id] !== undefined || rows?.columns[id] !== undefined) width += LAYOUT_WIDTH[layoutOf(type)];
    }
    const fitting = Math.max(SEGMENT_ROWS_MIN, Math.floor(SEGMENT_VALUE_BYTES_MAX / Math.max(1, width)));
    return Math.min(this.make.segmentRowsMax, fitting);
  }

  /** The rows of a segment that rows [from, to), which are in time order, replace. */
  sameKeysIn(segment: Segment, rows: Rows, from: number, to: number): number[] {
    const keys = keyColumns(this.table.schema);
    const resident = (id: number) =>
      segment.chunks[id] && this.make.resident(this.typeOf(id), segment.chunks[id], segment.rowCount, this.data);
    const times = resident(this.table.schema.timestampId)!;
    const columns = keys.map((column) => resident(column.id));
    const { heap } = this;
    const stored = keys.map(({ type }, k) =>
      columns[k] === undefined ? missingKey(type) : keyReader(type, heap.u8, columns[k]!.address, heap.u8)
    );
    const added = keys.map(({ id, type }) => addedKey(type, rows.columns[id]));
    const found: number[] = [];
    for (let row = from; row < to;) {
      const high = rows.times![2 * row + 1], low = rows.times![2 * row];
      const end = firstNotBelow(rows.times!, 0, row, to, high, low, true);
      const first = firstNotBelow(heap.i32, times.address / 4, 0, segment.rowCount, high, low, false);
      const last = firstNotBelow(heap.i32, times.address / 4, first, segment.rowCount, high, low, true);
      if (first < last) {
        const wanted = new Set<string>();
        for (; row < end; row++) wanted.add(added.map((key) => key(row)).join("|"));
        for (let k = first; k < last; k++) if (wanted.has(stored.map((key) => key(k)).join("|"))) found.push(k);
      }
      row = end;
    }
    times.release();
    for (const column of columns) column?.release();
    return found;
  }

  /** New values of columns, as they are stored. */
  newValues(rowCount: number, columns: readonly AppendColumn[]): NewValues {
    return columns.map((given) => {
      const column = columnById(this.table.schema, given.columnId)!;
      const values = column.type === "SYMBOL"
        ? toCodes(given, rowCount, this.table.dictionary(column.id))
        : given.values.slice();
      return { column, rows: { values, heap: given.heap } };
    });
  }

  /** The segment with the new values from number `from` on in these of its rows. */
  updated(segment: Segment, values: NewValues, rows: Uint32Array, from: number): Segment {
    const { rowCount } = segment;
    const chunks = segment.chunks.slice();
    for (const { column: { id, type }, rows: added } of values) {
      chunks[id] = this.make.update(type, chunks[id], rowCount, added, rows, from, this.data);
    }
    return { ...segment, uid: this.table.newUid(), chunks, words: undefined };
  }

  /** What is left of a segment if only these runs of rows stay. */
  left(segment: Segment, runs: Run[]): Segment | undefined {
    return runs.length === 0 ? undefined : this.segmentOf(segment.partition, segment, undefined, runs);
  }

  /** The values of a column in a segment as those of another type; undefined if all are null. */
  convertedRows({ chunks, rowCount }: Segment, { id, type }: TableColumn, to: string): ConvertedValues | undefined {
    const chunk = chunks[id];
    if (chunk === undefined) return undefined;
    const { heap: { u8, i32 }, make } = this;
    const { address, texts, release } = make.resident(type, chunk, rowCount, this.data);
    const values = u8.subarray(address, address + rowCount * LAYOUT_WIDTH[layoutOf(type)]);
    let symbols: Int32Array | undefined;
    if (type === "SYMBOL") {
      const { entries, count } = this.table.dictionary(id), at = entries.address / 4;
      symbols = i32.subarray(at, at + 2 * count);
    }
    try {
      return convertValues(type, to, { values, rowCount, bytes: u8, symbols });
    } finally {
      release();
      if (chunk.plain.address === 0) make.discard(texts);
    }
  }

  /** A new segment of one column alone, which has these values. */
  segmentOfColumn(columnId: number, given: ConvertedValues, rowCount: number): Segment {
    const type = this.typeOf(columnId), values = type === "SYMBOL" ? this.codesOf(columnId, given) : given;
    const chunks: (Chunk | undefined)[] = [];
    chunks[columnId] = this.make.append(type, undefined, 0, values, 0, rowCount, this.data);
    return { uid: this.table.newUid(), partition: 0n, rowCount, timestampMin: 0n, timestampMax: 0n, chunks };
  }

  private codesOf(columnId: number, { values, heap = new Uint8Array(0) }: ConvertedValues): RowColumn {
    const pairs = new Int32Array(values.buffer, values.byteOffset, values.byteLength / 4);
    const codes = new Int32Array(pairs.length / 2), dictionary = this.table.dictionary(columnId);
    for (let row = 0; row < codes.length; row++) {
      const length = pairs[2 * row + 1];
      codes[row] = length < 0 ? -1 : dictionary.intern(heap, pairs[2 * row], length);
    }
    return { values: new Uint8Array(codes.buffer) };
  }

  /** Allocates the memory for a merge. `shared`: the rows in shared memory, by column id. Undefined if there is too little memory. */
  prepareMerge(
    segment: Segment,
    rows: Rows,
    shared: readonly (SharedColumn | undefined)[],
    from: number,
    to: number,
  ): PreparedMerge | undefined {
    const { make, table: { directory, schema: { columns, timestampId } } } = this;
    const partRows = partSizes(segment.rowCount + to - from, this.rowsMaxOf(segment, rows));
    const reads = new Set<MemoryBlock>(), writes: MemoryBlock[] = [];
    try {
      const prepared = columns.toSorted((a, b) => a.id - b.id).flatMap(({ id, type }) => {
        const chunk = segment.chunks[id], added = rows.columns[id];
        if (chunk === undefined && added === undefined) return [];
        for (const block of [chunk?.values, ...chunk?.texts ?? []]) if (block !== undefined) reads.add(block);
        const textBytes = added !== undefined && layoutOf(type) === "text" ? textBytesOf(added, from, to) : 0;
        return [{ id, type, ...make.prepare(type, chunk, partRows, textBytes, writes) }];
      });
      const order: MergeOrder = {
        segment,
        directory,
        timestampId,
        from,
        to,
        partRows,
        columns: prepared.map(({ id, type, values, textsAt, loadAt }) => (
          { columnId: id, type, added: shared[id], to: values.map(({ address }) => address), textsAt, loadAt }
        )),
      };
      const finish = (stats: MergedStats) => {
        this.heap.addCounter("rewrittenSegments", 1);
        return partRows.map((rowCount, k) => {
          const chunks: (Chunk | undefined)[] = [];
          for (const { id } of columns) chunks[id] = undefined;
          prepared.forEach(({ id, type, values, texts, textBytes }, c) => {
            chunks[id] = make.newChunk(type, rowCount, stats[k][c], values[k], texts, textBytes);
          });
          return this.newSegment(segment.partition, rowCount, chunks);
        });
      };
      return { order, reads: [...reads], writes, finish };
    } catch (error) {
      make.discard(writes);
      if (error instanceof HeapFullError) return undefined;
      throw error;
    }
  }

  /** The order in time of rows [at, end) of a segment and of rows [from, to). Of equal times, those of the segment come first. */
  mergedRuns(segment: Segment, at: number, end: number, rows: Rows, from: number, to: number): Run[] {
    const chunk = segment.chunks[this.table.schema.timestampId]!;
    const loaded = this.make.resident(this.typeOf(this.table.schema.timestampId), chunk, segment.rowCount, this.data);
    const runs = mergedRuns(this.heap, loaded.address, at, end, rows.times!, from, to);
    loaded.release();
    return runs;
  }

  /** New segments, with these runs of rows of a segment and of `rows`. */
  assembled(segment: Segment, rows: Rows | undefined, runs: Run[]): { segments: Segment[]; pieces: Piece[] } {
    this.heap.addCounter("rewrittenSegments", 1);
    const parts = cut(runs, partSizes(rowCountOf(runs), this.rowsMaxOf(segment, rows)));
    const segments = parts.map((part) => this.segmentOf(segment.partition, segment, rows, part));
    return { segments, pieces: segments.map(({ uid }, k) => ({ uid, runs: parts[k] })) };
  }

  private segmentOf(partition: bigint, old: Segment, rows: Rows | undefined, runs: Run[]): Segment {
    const chunks: (Chunk | undefined)[] = [];
    const inserted = insertedRows(runs);
    for (const { id, type } of this.table.schema.columns) {
      chunks[id] = this.make.assemble(type, old.chunks[id], old.rowCount, rows?.columns[id], runs, inserted, this.data);
    }
    return this.newSegment(partition, rowCountOf(runs), chunks);
  }

  private newSegment(partition: bigint, rowCount: number, chunks: readonly (Chunk | undefined)[]): Segment {
    const stats = this.table.schema.timestampId < 0 ? undefined : chunks[this.table.schema.timestampId]!.plain.stats;
    const timestampMin = (stats?.min as bigint) ?? 0n, timestampMax = (stats?.max as bigint) ?? 0n;
    return { uid: this.table.newUid(), partition, rowCount, timestampMin, timestampMax, chunks };
  }

  private typeOf(columnId: number): string {
    return columnById(this.table.schema, columnId)!.type;
  }
}
