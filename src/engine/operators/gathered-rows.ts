/** Copies of the columns of some rows of a segment, so that their values are neighbours. */
import type { ScanNode } from "../../sql/plan.ts";
import { typeOf } from "../../types/mod.ts";
import type { Workspace } from "../columns.ts";
import { gather } from "../columns/gather.ts";
import type { QueryContext, Vector } from "../contract.ts";
import { scanDictionaries } from "../physical/facts.ts";
import type { ScanReader } from "./scan.ts";

/** Columns have space for at least this many rows. */
const CAPACITY_MIN = 256;

export class GatheredRows {
  private vectors: Vector[] = [];
  private capacity = 0;

  /** `needed`: the columns that are copied. */
  constructor(
    private readonly needed: ReadonlySet<number>,
    private readonly context: QueryContext,
    private readonly space: Workspace,
  ) {}

  /** The columns of `count` rows of a segment, whose numbers ascend (i32 at `rows`). They are valid until the next call. */
  read(node: ScanNode, reader: ScanReader, segment: number, rows: number, count: number): Vector[] {
    this.reserve(count, node, reader);
    reader.rewind();
    const { context: { pool, heap } } = this, numbers = heap.i32.subarray(rows / 4, rows / 4 + count);
    for (const column of this.needed) {
      const { type, address } = this.vectors[column]!;
      if (pool.gatherRows(reader.source, segment, column, rows, count, address)) continue;
      gather(heap, type, reader.column(segment, column), numbers, count, address, false);
    }
    reader.rewind();
    reader.countFrames();
    return this.vectors;
  }

  private reserve(count: number, node: ScanNode, { source }: ScanReader): void {
    if (count <= this.capacity) return;
    const { needed, space } = this, dictionaries = scanDictionaries(node, source);
    for (const { address } of this.vectors) if (address !== 0) space.free(address);
    this.capacity = Math.max(CAPACITY_MIN, 2 ** Math.ceil(Math.log2(count)));
    this.vectors = node.columns.map(({ type }, column): Vector => ({
      type,
      address: needed.has(column) ? space.allocate(this.capacity * typeOf(type).width) : 0,
      dictionary: dictionaries[column],
    }));
  }
}
