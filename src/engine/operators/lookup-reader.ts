/** Reads morsels whose rows are looked up in the postings of segments. */
import type { ScanNode } from "../../sql/plan.ts";
import { ColumnStore, Workspace } from "../columns.ts";
import type { QueryContext, Vector } from "../contract.ts";
import { scanDictionaries } from "../physical/facts.ts";
import { LOOKUP_ROWS_SHARE } from "../physical/thresholds.ts";
import type { Rows } from "./base-plan.ts";
import type { Lookup, Morsel } from "./morsel.ts";
import { ScanReader } from "./scan.ts";

/** Rows of the first batch. Each following one has more. */
const FIRST_BATCH_ROWS = 32, BATCH_ROWS_MAX = 16_384;

/** `isForward`: rows of a segment that had to be read, in the order of the table even if the others are reversed. */
export type LookedUpRows = Rows & { isForward?: true };

/** Reads morsels that are looked up: batches of rows of many segments. */
export class LookupReader {
  private readonly space: Workspace;
  private readonly reader: ScanReader;
  /** For segments that have to be read. */
  private whole?: ScanReader;
  /** The columns that are read, except the one that is looked up. */
  private readonly columns: number[];
  private readonly store: ColumnStore;
  private readonly vectors: Vector[];
  private codes: Int32Array;
  private lookup: Lookup | undefined;
  /** Of the lookup's pieces. */
  private position = 0;
  private batchRows = FIRST_BATCH_ROWS;

  /** `isReversed`: the last rows come first. */
  constructor(
    private readonly node: ScanNode,
    private readonly needed: ReadonlySet<number>,
    column: number,
    private readonly isReversed: boolean,
    private readonly context: QueryContext,
  ) {
    this.space = Workspace.of(context, "scan");
    this.columns = [...needed].filter((index) => index !== column);
    this.reader = new ScanReader(node, new Set(this.columns), context);
    this.store = new ColumnStore(this.columns.map((index) => node.columns[index]!.type), this.space);
    this.codes = this.space.words(BATCH_ROWS_MAX);
    const dictionaries = scanDictionaries(node, this.reader.source);
    this.vectors = node.columns.map(({ type }, k): Vector => ({ type, address: 0, dictionary: dictionaries[k] }));
  }

  start(lookup: Lookup): void {
    this.lookup = lookup;
    this.position = 0;
  }

  /** Undefined at the end of the morsel. */
  next(): LookedUpRows | undefined {
    const { lookup, store } = this;
    if (lookup === undefined) return undefined;
    const { pieces, column } = lookup;
    store.clear();
    while (this.position < pieces.length && store.rowCount < this.batchRows) {
      this.context.poll();
      const piece = pieces[this.isReversed ? pieces.length - 1 - this.position : this.position]!;
      if (!this.take(piece, lookup)) {
        if (store.rowCount > 0) break;
        this.position++;
        return this.read(piece);
      }
      this.position++;
    }
    if (store.rowCount === 0) return undefined;
    this.batchRows = Math.min(BATCH_ROWS_MAX, 4 * this.batchRows);
    this.columns.forEach((index, k) => this.vectors[index]!.address = store.vectors[k]!.address);
    this.vectors[column]!.address = this.codes.byteOffset;
    return { columns: this.vectors, start: 0, end: store.rowCount, rowBase: 0n };
  }

  private read({ segment, start, end }: Morsel): LookedUpRows {
    this.whole ??= new ScanReader(this.node, this.needed, this.context);
    return { columns: this.whole.open(segment, { from: start, to: end }), start, end, rowBase: 0n, isForward: true };
  }

  /** Adds the rows of a segment that are found. False if it has to be read. */
  private take({ segment, start, end }: Morsel, { column, codes }: Lookup): boolean {
    const { context, reader, store, isReversed } = this, { source } = reader;
    const rowCount = source.segments.at(segment)!.rowCount;
    const rowsMax = Math.min(BATCH_ROWS_MAX / 2, rowCount / LOOKUP_ROWS_SHARE);
    const found = context.pool.find(source, segment, column, codes, rowsMax);
    if (found === undefined) return false;
    context.analysis?.countLookup(this.node.id, found.count === 0);
    let from = 0, to = found.count;
    while (from < to && found.rows[from]! < start) from++;
    while (from < to && found.rows[to - 1]! >= end) to--;
    if (from === to) return true;
    const rows = found.rows.subarray(from, to), before = store.rowCount;
    const rowCodes = found.codes.subarray(from, to);
    if (isReversed) rows.reverse(), rowCodes.reverse();
    if (before + rows.length > this.codes.length) this.codes = this.space.grow(this.codes, before + rows.length);
    this.codes.set(rowCodes, before);
    reader.appendRows(store, this.columns, segment, rows);
    reader.rewind();
    reader.count(rows.length);
    return true;
  }

  close(): void {
    this.reader.close();
    this.whole?.close();
    this.space.release();
  }
}
