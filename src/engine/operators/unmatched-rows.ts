/** Right rows of a RIGHT or FULL join that have no match. They are known when all left rows have been read. */
import type { Dictionary } from "../../storage/contract.ts";
import { fillNull, typeOf } from "../../types/mod.ts";
import { gather, NO_DICTIONARY, Workspace } from "../columns.ts";
import type { QueryContext, Vector } from "../contract.ts";
import type { JoinProbe, Rows } from "./base-plan.ts";
import { advance } from "./scan.ts";
import { roomOf, widthOf } from "./spilled-rows.ts";

/** Rows of a batch: this many, or as many as fit into a share of the query's free memory. */
const BATCH_ROWS_MAX = 16_384, BATCH_ROWS_MIN = 256, MEMORY_SHARE = 1 / 4;

export class UnmatchedRows {
  private readonly space: Workspace;
  private readonly rows: Int32Array;
  private readonly batchRows: number;
  /** Of columns that are read: nulls on the left side, and memory for rows on the right side. */
  private readonly addresses = new Map<number, number>();
  private row = 0;
  private end = 0;

  /** `leftDictionaries`: of the left base's columns, if known. */
  constructor(
    private readonly probe: JoinProbe,
    needed: ReadonlySet<number>,
    private readonly context: QueryContext,
    private readonly leftDictionaries: readonly (Dictionary | undefined)[] = [],
  ) {
    const { leftTypes, columns } = probe, { heap } = context;
    this.space = Workspace.of(context, probe.operator);
    const typeAt = (index: number) => leftTypes[index] ?? columns[index - leftTypes.length].type;
    const rowBytes = 4 + widthOf([...needed].map(typeAt)),
      rowsMax = Math.floor(roomOf(context) * MEMORY_SHARE / rowBytes);
    const batchRows = this.batchRows = Math.max(BATCH_ROWS_MIN, Math.min(BATCH_ROWS_MAX, rowsMax));
    this.rows = this.space.words(batchRows);
    for (const index of needed) {
      const type = typeAt(index);
      const address = this.space.allocate(batchRows * typeOf(type).width + 16); // lanes may read beyond the last row
      if (index < leftTypes.length) fillNull(heap, type, address, 0, batchRows);
      this.addresses.set(index, address);
    }
  }

  /** Reads the right rows `start … end-1`. */
  start(start: number, end: number): void {
    this.row = start;
    this.end = end;
  }

  next(): Rows | undefined {
    const { probe, rows, context } = this, { u8 } = context.heap;
    let n = 0, from = this.row;
    while (n === 0 && this.row < this.end) {
      context.poll();
      from = this.row;
      const to = Math.min(this.end, from + this.batchRows);
      for (; this.row < to; this.row++) if (u8[probe.marks + this.row] === 0) rows[n++] = this.row;
    }
    if (n === 0) return undefined;
    context.analysis?.countPairs(probe.id, n);
    const isWhole = n === this.row - from, whole = isWhole ? advance([...probe.columns], from) : [];
    const left = probe.leftTypes.map((type, k): Vector => ({
      type,
      address: this.addresses.get(k) ?? 0,
      dictionary: type === "SYMBOL" ? this.leftDictionaries[k] ?? NO_DICTIONARY : undefined,
    }));
    const right = probe.columns.map((column, k): Vector => {
      const address = this.addresses.get(left.length + k);
      if (address === undefined) return { ...column, address: 0 };
      if (isWhole) return whole[k];
      gather(context.heap, column.type, column.address, rows, n, address, false);
      return { ...column, address };
    });
    return { columns: [...left, ...right], start: 0, end: n, rowBase: 0n };
  }

  close(): void {
    this.space.release();
  }
}
