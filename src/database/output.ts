/**
 * From result batches to what leaves the engine: encoded rows for a wire, or rows on their way into a table.
 * Runs where the batches are made: in the leading worker, or on main for small queries.
 */
import type { Encoding, ResultColumn } from "../api.ts";
import { endOfTexts, packAppendBatch, toAppendBatch } from "../engine/mod.ts";
import type { Batch, QueryMemory } from "../engine/contract.ts";
import type { SharedHeap } from "../storage/heap.ts";
import { layoutOf, typeOf } from "../types/mod.ts";
import { createEncoder } from "../wire/encode/mod.ts";

/** Plain data, so that it can be posted to a worker. */
export type OutputOptions =
  | { kind: "rows"; encoding: Encoding; window?: { first: number; count: number }; countAll?: boolean }
  /** `targets`: the table columns' type tags. */
  | { kind: "append"; targets: string[] }
  /** For EXPLAIN ANALYZE: rows are counted. */
  | { kind: "nothing" };

export interface Output {
  /**
   * The batch's rows that are wanted, in pieces of some megabytes, each made when it is asked for: a batch of long texts or of
   * many columns is larger than what may be on its way to a reader. The batch must stay until the last piece.
   */
  encode(batch: Batch): Iterator<Piece, undefined>;
  /** No later batch changes anything: the query may stop. */
  readonly finished: boolean;
  /** Rows seen so far. */
  readonly totalRows: number;
}

export interface Piece {
  bytes: Uint8Array;
  rows: number;
}

/** In bytes of text; a value that is longer is a piece of its own. */
const PIECE_BYTES = 4 << 20;
/** Rows that a table takes are best left together. */
const APPENDED_BYTES = 32 << 20;
/** About what a value without text takes. */
const VALUE_BYTES = 16;
/** Encoding makes of a byte of text up to so many, in a buffer and its copy. */
const ENCODED_BYTES_A_BYTE = 4;

const OPERATOR = "the result";

export function createOutput(
  options: OutputOptions,
  columns: readonly ResultColumn[],
  heap: SharedHeap,
  memory: QueryMemory,
): Output {
  if (options.kind === "nothing") return new NoOutput();
  return options.kind === "append"
    ? new AppendOutput(options.targets, heap, memory)
    : new RowsOutput(options, columns, heap, memory);
}

/** Bytes of texts in rows [from, to), asked for before they are made again. */
function needTexts(heap: SharedHeap, memory: QueryMemory, batch: Batch, from: number, to: number): void {
  let bytes = 0;
  for (const { type, address } of batch.columns) {
    if (layoutOf(type) !== "text") continue;
    for (let row = from, at = (address >>> 2) + 1; row < to; row++) bytes += Math.max(0, heap.i32[at + 2 * row]);
  }
  if (bytes > PIECE_BYTES) memory.need(ENCODED_BYTES_A_BYTE * bytes, OPERATOR);
}

class NoOutput implements Output {
  readonly finished = false;
  totalRows = 0;

  // deno-lint-ignore require-yield -- there are no pieces
  *encode({ rowCount }: Batch): Generator<Piece, undefined> {
    this.totalRows += rowCount;
    return undefined;
  }
}

class AppendOutput implements Output {
  readonly finished = false;
  totalRows = 0;
  private readonly columnIds: number[];

  constructor(
    private readonly targets: string[],
    private readonly heap: SharedHeap,
    private readonly memory: QueryMemory,
  ) {
    this.columnIds = targets.map((_, i) => i);
  }

  *encode(batch: Batch): Generator<Piece, undefined> {
    const { heap, memory, targets, columnIds } = this;
    this.totalRows += batch.rowCount;
    for (let from = 0, to; from < batch.rowCount; from = to) {
      to = endOfTexts(heap, batch.columns, from, batch.rowCount, APPENDED_BYTES);
      needTexts(heap, memory, batch, from, to);
      const rows = to - from;
      const part = rows === batch.rowCount ? batch : {
        rowCount: rows,
        columns: batch.columns.map((vector) => ({
          ...vector,
          address: vector.address + from * typeOf(vector.type).width,
        })),
      };
      yield { bytes: packAppendBatch(toAppendBatch(part, columnIds, targets, heap)), rows };
    }
    return undefined;
  }
}

class RowsOutput implements Output {
  totalRows = 0;
  finished = false;
  private encoded = 0;
  private readonly encoder: ReturnType<typeof createEncoder>;
  private readonly first: number;
  private readonly end: number;
  private readonly rowsMax: number;

  constructor(
    private readonly options: Extract<OutputOptions, { kind: "rows" }>,
    columns: readonly ResultColumn[],
    private readonly heap: SharedHeap,
    private readonly memory: QueryMemory,
  ) {
    // What a Parquet file gets at once is a row group.
    this.rowsMax = options.encoding.name === "parquet"
      ? Infinity
      : Math.ceil(PIECE_BYTES / VALUE_BYTES / Math.max(1, columns.length));
    this.encoder = createEncoder(options.encoding, [...columns], heap);
    this.first = options.window?.first ?? 0;
    this.end = options.window ? options.window.first + options.window.count : Infinity;
  }

  *encode(batch: Batch): Generator<Piece, undefined> {
    const { heap, memory } = this;
    const first = Math.max(0, this.first - this.totalRows);
    const end = Math.min(batch.rowCount, this.end - this.totalRows);
    this.totalRows += batch.rowCount;
    if (this.totalRows >= this.end && !this.options.countAll) this.finished = true;
    for (let from = first, to; from < end; from = to) {
      to = endOfTexts(heap, batch.columns, from, Math.min(end, from + this.rowsMax), PIECE_BYTES);
      needTexts(heap, memory, batch, from, to);
      const bytes = this.encoder.encode(batch, from, to - from, this.encoded === 0);
      this.encoded += to - from;
      yield { bytes, rows: to - from };
    }
    return undefined;
  }
}
