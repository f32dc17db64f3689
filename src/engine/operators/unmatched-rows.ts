/** Right rows of a RIGHT or FULL join that have no match. They are known when all left rows have been read. */
import type { Dictionary } from "../../storage/contract.ts";
import { fillNull, typeOf } from "../../types/mod.ts";
import { gather, NO_DICTIONARY, Workspace } from "../columns.ts";
import type { QueryContext, Vector } from "../contract.ts";
import type { JoinProbe, Rows } from "./base-plan.ts";
import { advance } from "./scan.ts";

/** Most rows of a batch. */
const BATCH_ROWS = 16_384;

export class UnmatchedRows {
  private readonly space: Workspace;
  private readonly rows: Int32Array;
  /** Of columns that are read: nulls on the left side, and room for rows on the right side. */
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
    this.rows = this.space.words(BATCH_ROWS);
    for (const index of needed) {
      const type = leftTypes[index] ?? columns[index - leftTypes.length].type;
      const address = this.space.allocate(BATCH_ROWS * typeOf(type).width + 16); // lanes may read beyond the last row
      if (index < leftTypes.length) fillNull(heap, type, address, 0, BATCH_ROWS);
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
      const to = Math.min(this.end, from + BATCH_ROWS);
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
