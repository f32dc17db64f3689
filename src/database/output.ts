/**
 * Converts result batches to the output of the engine: encoded rows for a client, or packed rows for a table. Runs
 * where the batches are made: in the leading worker, or on the main thread for small queries.
 */
import type { Encoding, ResultColumn } from "../api.ts";
import { endOfTexts, packAppendBatch, toAppendBatch } from "../engine/mod.ts";
import type { Batch, QueryMemory } from "../engine/contract.ts";
import type { SharedHeap } from "../storage/heap.ts";
import { layoutOf, typeOf } from "../types/mod.ts";
import { createEncoder } from "../wire/encode/mod.ts";

/** Plain data, so that it can be posted to a worker. */
export type OutputOptions =
  | {
    kind: "rows";
    encoding: Encoding;
    window?: { first: number; count: number };
    countAll?: boolean;
    /** Approximate size of a piece. Undefined: PIECE_BYTES. */
    pieceBytes?: number;
  }
  /** `targets`: the table columns' type tags. */
  | { kind: "append"; targets: string[] }
  /** For EXPLAIN ANALYZE: rows are only counted. */
  | { kind: "nothing" };

export interface Output {
  /**
   * Begins to encode the requested rows of the batch in pieces of some megabytes, each made on demand, because a batch of long
   * texts or many columns may exceed the memory for data in flight. The batch must stay valid until the last piece.
   */
  begin(batch: Batch): void;
  /**
   * The next piece of the batch; undefined after the last one. `lends`: the bytes may be those of a buffer that the next run of the
   * output overwrites. `isShort`: about a mebibyte, also of row groups and many texts.
   */
  next(lends?: boolean, isShort?: boolean): Piece | undefined;
  /** About the size of the next piece: that of one without long texts if it is not known yet. */
  nextBytes(isShort: boolean): number;
  /** True if pieces that follow each other may be joined to one. Rows for a table and row groups are units of their own. */
  readonly joinable: boolean;
  /** True if no further batch is needed, so that the query can stop. */
  readonly finished: boolean;
  /** Rows seen so far. */
  readonly totalRows: number;
  /** Prepares the output of another run. */
  rewind(): void;
}

export interface Piece {
  bytes: Uint8Array;
  rows: number;
}

/** In bytes of text. A longer value is a piece of its own. */
const PIECE_BYTES = 1 << 20;
/** Rows for a table are sent in larger pieces. */
const APPENDED_BYTES = 32 << 20;
/** Approximate size of a value without text. */
const VALUE_BYTES = 16;
/** Of a row group. Those of 65,536 rows and 1,000 columns took more than a GiB. */
const GROUP_VALUES_MAX = 1 << 20;
/** Maximum bytes that encoding makes from a byte of text, in a buffer and its copy. */
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

/** Reserves memory for texts before they are encoded. */
function needTexts(memory: QueryMemory, bytes: number): void {
  if (bytes > PIECE_BYTES) memory.need(ENCODED_BYTES_A_BYTE * bytes, OPERATOR);
}

/** Of the texts in rows [from, to). */
function textBytes(heap: SharedHeap, batch: Batch, from: number, to: number): number {
  let bytes = 0;
  for (const { type, address } of batch.columns) {
    if (layoutOf(type) !== "text") continue;
    for (let row = from, at = (address >>> 2) + 1; row < to; row++) bytes += Math.max(0, heap.i32[at + 2 * row]!);
  }
  return bytes;
}

class NoOutput implements Output {
  readonly joinable = true;
  readonly finished = false;
  totalRows = 0;

  rewind(): void {
    this.totalRows = 0;
  }

  begin({ rowCount }: Batch): void {
    this.totalRows += rowCount;
  }

  next(): undefined {}

  nextBytes(): number {
    return 0;
  }
}

class AppendOutput implements Output {
  readonly joinable = false;
  readonly finished = false;
  totalRows = 0;
  private readonly columnIds: number[];
  private batch: Batch | undefined;
  private from = 0;

  constructor(
    private readonly targets: string[],
    private readonly heap: SharedHeap,
    private readonly memory: QueryMemory,
  ) {
    this.columnIds = targets.map((_, i) => i);
  }

  rewind(): void {
    this.totalRows = 0;
  }

  begin(batch: Batch): void {
    this.batch = batch;
    this.from = 0;
    this.totalRows += batch.rowCount;
  }

  next(): Piece | undefined {
    const { heap, memory, targets, columnIds, batch, from } = this;
    if (batch === undefined || from >= batch.rowCount) return undefined;
    const to = this.from = endOfTexts(heap, batch.columns, from, batch.rowCount, APPENDED_BYTES);
    needTexts(memory, textBytes(heap, batch, from, to));
    const rows = to - from;
    const part = rows === batch.rowCount ? batch : {
      rowCount: rows,
      columns: batch.columns.map((vector) => ({
        ...vector,
        address: vector.address + from * typeOf(vector.type).width,
      })),
    };
    return { bytes: packAppendBatch(toAppendBatch(part, columnIds, targets, heap)), rows };
  }

  /** Rows for a table never wait for readers. */
  nextBytes(): number {
    return PIECE_BYTES;
  }
}

interface NextPiece {
  isShort: boolean;
  /** The row after its last one. */
  to: number;
  textBytes: number;
}

class RowsOutput implements Output {
  readonly joinable: boolean;
  totalRows = 0;
  finished = false;
  private encoded = 0;
  private batch: Batch | undefined;
  /** The rows of the batch that are still to be encoded. */
  private from = 0;
  private to = 0;
  /** Once its size was asked for. */
  private nextPiece: NextPiece | undefined;
  /** Its bytes are those of the encoder. */
  private lent: Piece | undefined;
  private readonly encoder: ReturnType<typeof createEncoder>;
  private readonly first: number;
  private readonly end: number;
  private readonly pieceBytes: number;
  private readonly rowsMax: number;
  /** Of a row of a row group, without texts; 0 if rows do not form groups. */
  private readonly groupRowBytes: number;

  constructor(
    private readonly options: Extract<OutputOptions, { kind: "rows" }>,
    columns: readonly ResultColumn[],
    private readonly heap: SharedHeap,
    private readonly memory: QueryMemory,
  ) {
    this.pieceBytes = options.pieceBytes ?? PIECE_BYTES;
    // The rows passed together to a Parquet file form a row group.
    const isParquet = options.encoding.name === "parquet";
    this.groupRowBytes = isParquet ? columns.reduce((sum, { type }) => sum + typeOf(type).width, 0) : 0;
    const valuesMax = isParquet ? GROUP_VALUES_MAX : this.pieceBytes / VALUE_BYTES;
    this.rowsMax = Math.max(1, Math.floor(valuesMax / Math.max(1, columns.length)));
    this.encoder = createEncoder(options.encoding, [...columns], heap);
    this.joinable = this.encoder.joinable;
    this.first = options.window?.first ?? 0;
    this.end = options.window ? options.window.first + options.window.count : Infinity;
  }

  rewind(): void {
    this.totalRows = this.encoded = 0;
    this.finished = false;
    this.batch = this.lent = this.nextPiece = undefined;
  }

  begin(batch: Batch): void {
    this.batch = batch;
    this.nextPiece = undefined;
    this.from = Math.max(0, this.first - this.totalRows);
    this.to = Math.min(batch.rowCount, this.end - this.totalRows);
    this.totalRows += batch.rowCount;
    if (this.totalRows >= this.end && !this.options.countAll) this.finished = true;
  }

  nextBytes(isShort: boolean): number {
    const { batch, from, to, pieceBytes } = this;
    if (batch === undefined || from >= to) return pieceBytes;
    const piece = this.pieceFrom(batch, isShort);
    return Math.max(pieceBytes, (piece.to - from) * this.groupRowBytes + piece.textBytes);
  }

  /** The next piece, which must have rows. */
  private pieceFrom(batch: Batch, isShort: boolean): NextPiece {
    if (this.nextPiece?.isShort === isShort) return this.nextPiece;
    const { heap, from, rowsMax, groupRowBytes, pieceBytes } = this;
    const isShortGroup = isShort && groupRowBytes > 0;
    const rows = isShortGroup ? Math.max(1, Math.min(rowsMax, PIECE_BYTES / groupRowBytes | 0)) : rowsMax;
    const texts = isShort ? batch.columns.filter(({ type }) => layoutOf(type) === "text").length : 1;
    const to = endOfTexts(heap, batch.columns, from, Math.min(this.to, from + rows), pieceBytes / Math.max(1, texts));
    return this.nextPiece = { isShort, to, textBytes: textBytes(heap, batch, from, to) };
  }

  next(lends = false, isShort = false): Piece | undefined {
    const { memory, batch, from, encoder } = this;
    if (batch === undefined || from >= this.to) return undefined;
    const { to, textBytes } = this.pieceFrom(batch, isShort);
    this.nextPiece = undefined;
    this.from = to;
    needTexts(memory, textBytes);
    const rows = to - from, isFirst = this.encoded === 0;
    this.encoded += rows;
    if (this.lent !== undefined) {
      this.lent.bytes = this.lent.bytes.slice();
      this.lent = undefined;
    }
    if (!lends) return { bytes: encoder.encode(batch, from, rows, isFirst), rows };
    return this.lent = { bytes: encoder.lend(batch, from, rows, isFirst), rows };
  }
}
