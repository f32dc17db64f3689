/** Rows of a scan at known places, in the order of the table. */
import type { ScanNode } from "../../sql/plan.ts";
import { layoutOf } from "../../types/mod.ts";
import { ColumnStore, NO_DICTIONARY, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type QueryContext, type Vector } from "../contract.ts";
import { scanDictionaries } from "../physical/facts.ts";
import { ScanReader } from "./scan.ts";

const SEGMENT = 2 ** 32;

export function placeOf(segment: number, row: number): number {
  return segment * SEGMENT + row;
}

export class PlacedRows {
  private readonly space: Workspace;
  private readonly reader: ScanReader;
  private readonly store: ColumnStore;
  private places = new Float64Array();
  private position = 0;

  /** Columns that are not `needed` have address 0. */
  constructor(
    private node: ScanNode,
    private readonly needed: ReadonlySet<number>,
    private readonly context: QueryContext,
    operator: string,
  ) {
    this.space = Workspace.of(context, operator);
    this.reader = new ScanReader(node, needed, context);
    this.store = new ColumnStore([...needed].map((column) => node.columns[column]!.type), this.space);
  }

  /** `places`: see `placeOf`, in ascending order. */
  start(places: Float64Array<ArrayBuffer>): void {
    this.places = places;
    this.position = 0;
    this.store.clear();
    this.reader.rewind();
  }

  next(): Batch | undefined {
    const { places, store, reader } = this, columns = [...this.needed];
    const rowCount = Math.min(MORSEL_ROWS, places.length - this.position), until = this.position + rowCount;
    if (rowCount <= 0) return undefined;
    const rows = new Int32Array(rowCount);
    store.clear();
    while (this.position < until) {
      this.context.poll();
      const segment = Math.floor(places[this.position]! / SEGMENT), end = placeOf(segment + 1, 0);
      let n = 0;
      for (; this.position < until && places[this.position]! < end; this.position++) {
        rows[n++] = places[this.position]! % SEGMENT;
      }
      reader.count(reader.source.segments.at(segment)!.rowCount);
      reader.appendRows(store, columns, segment, rows.subarray(0, n));
      reader.rewind();
    }
    const dictionaries = scanDictionaries(this.node, reader.source);
    const place = new Map(columns.map((column, k) => [
      column,
      { ...store.vectors[k]!, dictionary: dictionaries[column] },
    ]));
    return {
      rowCount,
      columns: this.node.columns.map(({ type }, k): Vector =>
        place.get(k) ?? { type, address: 0, dictionary: layoutOf(type) === "symbol" ? NO_DICTIONARY : undefined }
      ),
    };
  }

  rebind(node: ScanNode): void {
    this.node = node;
    this.reader.rebind(node);
  }

  close(): void {
    this.reader.close();
    this.space.release();
  }
}
