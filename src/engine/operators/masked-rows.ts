/**
 * Groups the rows of segments that pass conditions on single columns: they are marked by the codes of packed chunks, and only the vectors that have
 * some of them are read. The columns of the conditions are not decoded for it, but for vectors that have no codes. Segments whose conditions are on
 * columns that cannot be kept packed are left to the reader of rows. The way depends on the values of a range of segments and on how chunks are
 * stored, not on what is in memory.
 */
import { assert } from "../../assert.ts";
import type { ScanNode } from "../../sql/plan.ts";
import { type RowRange, SUMMARY_ROWS } from "../../storage/contract.ts";
import { Workspace } from "../columns.ts";
import { columnsOf } from "../compiler/expression.ts";
import { input } from "../compiler/ir.ts";
import { MORSEL_ROWS, type QueryContext, type Vector } from "../contract.ts";
import type { GroupSpec } from "../physical/plan.ts";
import type { FusedShape, Grouper, GroupTable } from "./group-table.ts";
import type { Morsel } from "./morsel.ts";
import { RowConditions } from "./row-conditions.ts";
import { ScanReader } from "./scan.ts";

const OPERATOR = "GROUP BY";
/** A kernel without keys tests conditions for several rows at once, and is faster if more of the rows pass than this share. */
const SINGLE_SHARE_MAX = 5 / 8;
/** After a segment of which more pass, so many are left to it without a test. */
const UNTESTED_SEGMENTS = 15;
/** Words of a vector's bits. */
const VECTOR_WORDS = SUMMARY_ROWS / 32;
/** More runs of vectors are read as one. */
const RUNS_MAX = 4;

export class MaskedRows {
  private readonly reader: ScanReader;
  /** Address of the bits of a segment's rows. */
  private readonly masks: number;
  /** Groups the rows of a mask, which is the last column. If no column is read, any rows, as all are alike. */
  private readonly grouper: Grouper;
  private readonly readsNothing: boolean;
  private readonly shareMax: number;
  private untested = 0;

  /** `shape`: of the grouper. Undefined if a condition is of another kind. */
  static of(
    spec: GroupSpec,
    shape: FusedShape | undefined,
    grouper: Grouper,
    node: ScanNode,
    context: QueryContext,
  ): MaskedRows | undefined {
    const { segments, predicates } = spec;
    if (shape === undefined || (segments !== "masks" && segments !== "codes") || predicates.length === 0) {
      return undefined;
    }
    const space = Workspace.of(context, OPERATOR);
    const conditions = RowConditions.of(predicates, node, context, space, true);
    if (conditions !== undefined) return new MaskedRows(spec, shape, grouper, node, conditions, context, space);
    space.release();
    return undefined;
  }

  private constructor(
    { keys, calls }: GroupSpec,
    shape: FusedShape,
    grouper: Grouper,
    private readonly node: ScanNode,
    private readonly conditions: RowConditions,
    private readonly context: QueryContext,
    private readonly space: Workspace,
  ) {
    const needed = new Set<number>();
    for (const expr of [...keys, ...calls.flatMap(({ args }) => args)]) columnsOf(expr, needed);
    this.reader = new ScanReader(node, needed, context);
    this.masks = space.allocate(MORSEL_ROWS / 8);
    this.readsNothing = needed.size === 0;
    this.shareMax = shape.kind === "single" && !this.readsNothing ? SINGLE_SHARE_MAX : 1;
    const inputs = [...shape.inputs], { length: column } = node.columns;
    const predicate = this.readsNothing ? undefined : input(inputs.push({ kind: "mask", column }) - 1, "i32");
    this.grouper = grouper.withShape({ ...shape, inputs, predicate }, context);
  }

  /** Forgets the segments before. Call it where another thread could begin. */
  restart(): void {
    this.untested = 0;
  }

  /** Adds rows of a segment that pass to the table. False if all of them have to be read. */
  consume(table: GroupTable, { segment, start, end }: Morsel): boolean {
    if (this.untested > 0) {
      this.untested--;
      return false;
    }
    const { reader, context, masks, grouper, conditions, node } = this, { pool, analysis } = context;
    const count = pool.maskRows(reader.source, segment, conditions.list, { from: start, to: end }, masks);
    reader.countFrames();
    if (count === undefined) return false;
    if (count > (end - start) * this.shareMax) {
      this.untested = UNTESTED_SEGMENTS;
      return false;
    }
    reader.count(end - start);
    analysis?.countSelected(node.id, count, pool.vectorCounts());
    if (count === 0) return true;
    if (this.readsNothing) {
      grouper.consume(table, reader.open(segment, { from: 0, to: 0 }, { isAgain: true }), 0, count, 0n);
      return true;
    }
    for (const rows of this.runsOf(start, end)) {
      const columns = reader.open(segment, rows, { isAgain: true });
      const mask: Vector = { type: "BOOLEAN", address: masks, dictionary: undefined };
      grouper.consume(table, [...columns, mask], rows.from, rows.to, reader.rowBase(segment));
    }
    return true;
  }

  /** The rows of vectors that have marked ones, of which there are some. */
  private runsOf(start: number, end: number): RowRange[] {
    const { context: { heap: { i32 } }, masks } = this, runs: { from: number; to: number }[] = [];
    const isEmpty = (vector: number) => {
      const first = masks / 4 + vector * VECTOR_WORDS;
      for (let k = 0; k < VECTOR_WORDS; k++) if (i32[first + k] !== 0) return false;
      return true;
    };
    for (let vector = Math.floor(start / SUMMARY_ROWS); vector * SUMMARY_ROWS < end; vector++) {
      if (isEmpty(vector)) continue;
      const from = Math.max(start, vector * SUMMARY_ROWS), to = Math.min(end, (vector + 1) * SUMMARY_ROWS);
      if (runs.at(-1)?.to === from) runs.at(-1)!.to = to;
      else runs.push({ from, to });
    }
    assert(runs.length > 0, "a marked row is in a vector");
    return runs.length <= RUNS_MAX ? runs : [{ from: runs[0]!.from, to: runs.at(-1)!.to }];
  }

  close(): void {
    this.reader.close();
    this.grouper.close();
    this.space.release();
  }
}
