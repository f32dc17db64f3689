/**
 * ASOF and LT joins over rows of a scan. Read by morsels, the join keeps all right rows with their groups, and each thread finds the last
 * rows for its left rows. If the memory does not hold them, or rows are read in order, the two sides are merged (`time-join.ts`): this keeps
 * few rows, and the first output needs only the first right rows.
 */
import { assert } from "../../assert.ts";
import type { Column, Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { Workspace } from "../columns.ts";
import { flushKernelRows } from "../compiler/binding.ts";
import type { Batch, Changes, Operator, QueryContext } from "../contract.ts";
import type { PhysicalLastRows } from "../physical/plan.ts";
import { columnAt, typesOf, unnamedColumns } from "../physical/reading.ts";
import {
  closeBase,
  dictionariesOf,
  dictionariesOfBase,
  openBase,
  planOf,
  readSameRows,
  reboundBase,
  rewindBase,
  rowsOfBatch,
  scanOf,
} from "./base.ts";
import type { BasePlan, JoinBase, JoinProbe, LastRowsIndex, PipelineBase, RowReader, Rows } from "./base-plan.ts";
import { allOrNone, isTooMany, keepAll, spareBytesOf, TooManyRows } from "./input.ts";
import { IndexBuilder, keyModes, probeOf } from "./join-index.ts";
import { JoinReader, readerBytesOf } from "./join-probe.ts";
import { snapshotsOf } from "./last-rows.ts";
import { mergedTimeJoin } from "./merged-time-join.ts";
import { Pipeline } from "./pipeline.ts";
import { roomOf, widthOf } from "./spilled-rows.ts";

/** `openRight`: the right side, again after it has been read in part. `openBoth`: the same for both sides. */
export function createLastRowsJoin(
  plan: PhysicalLastRows,
  left: PipelineBase,
  openRight: () => Operator,
  openBoth: () => [PipelineBase, Operator],
  context: QueryContext,
): JoinBase {
  return new LastRowsJoin(plan, left, openRight, openBoth, context);
}

/** Besides its columns, each right row has a group, and as much for snapshots and the index. */
const BYTES_PER_ROW = 3 * 4;

interface Built {
  probe: JoinProbe;
  /** Later right rows are missing. */
  until: bigint | undefined;
}

class LastRowsJoin implements JoinBase {
  readonly columns: readonly Column[];
  private readonly operator: string;
  private readonly space: Workspace;
  private right: Operator;
  /** Of the conditions of this run on left rows. */
  private leftPredicates: readonly Expr[];
  private built?: Built;
  private isTooLarge = false;
  /** Of an earlier run. */
  private reader?: JoinReader;
  private merged?: MergedSides;

  constructor(
    private readonly physical: PhysicalLastRows,
    private left: PipelineBase,
    private readonly openRight: () => Operator,
    private readonly openBoth: () => [PipelineBase, Operator],
    private readonly context: QueryContext,
  ) {
    this.columns = physical.columns;
    this.leftPredicates = physical.left.predicates;
    this.operator = `${physical.node.type} join`;
    this.space = Workspace.of(context, this.operator);
    this.right = openRight();
  }

  plan(): BasePlan | undefined {
    const left = planOf(this.left);
    if (left === undefined) return undefined;
    const built = this.build(left);
    return built && { kind: "join", left, predicates: this.leftPredicates, bounds: [], probe: built.probe };
  }

  dictionaries(): (Dictionary | undefined)[] | undefined {
    const left = dictionariesOfBase(this.left);
    const ofRight = (k: number) => this.built?.probe.columns[k]?.dictionary;
    return left && this.columns.map((_, index) => index < left.length ? left[index] : ofRight(index - left.length));
  }

  open(needed: ReadonlySet<number>): RowReader {
    const { left, leftPredicates: predicates, context, built } = this;
    if (built === undefined) return this.merge(needed);
    const { probe } = built;
    const rows = openBase(left, predicates, [], JoinReader.leftColumns(probe, predicates, needed), context);
    const { reader } = this;
    this.reader = undefined;
    if (reader?.probe === probe) return reader.reopen(rows, predicates);
    reader?.close();
    return new JoinReader(probe, predicates, rows, needed, context);
  }

  /** Undefined if the memory does not hold the right rows. */
  private build(left: BasePlan): Built | undefined {
    const { context, physical: { leftTime } } = this, until = lastTimeOf(left, leftTime, context);
    if (this.built !== undefined && !isBefore(this.built.until, until)) return this.built;
    this.release();
    if (this.isTooLarge) return undefined;
    const { rowsAtMost = 0, columns } = this.right;
    if (rowsAtMost * (widthOf(typesOf(columns)) + BYTES_PER_ROW) + spareBytesOf(context) <= roomOf(context)) {
      try {
        return this.built = { probe: this.buildNow(left, until), until };
      } catch (error) {
        if (!isTooMany(error)) throw error;
        this.release();
        this.right.close();
        this.right = this.openRight();
      }
    }
    this.isTooLarge = true;
    return undefined;
  }

  private buildNow(left: BasePlan, until: bigint | undefined): JoinProbe {
    const { physical, right, space, operator, context } = this, { node } = physical;
    const input = until === undefined ? right : new RowsUntil(right, physical.rightTime, until, context);
    const kept = keepAll(input, node.rightKeys, space, context, allOrNone(BYTES_PER_ROW, context)), { rowCount } = kept;
    const dictionaries = dictionariesOf(left, context), modes = keyModes(physical, kept, dictionaries, context);
    const builder = new IndexBuilder(kept, modes, space, context, operator);
    try {
      const { index, groups, groupCount } = builder.groups(), times = kept.columns[physical.rightTime];
      const lastRows: LastRowsIndex = {
        leftTime: physical.leftTime,
        times: times.address,
        groups: groups.byteOffset,
        groupCount,
        ...snapshotsOf(times, rowCount, groups, groupCount, space, context),
        isStrict: node.type === "lt",
        tolerance: node.tolerance,
      };
      const rows = { type: "left", marks: 0, lastRows } as const;
      const probe = probeOf(physical, kept, modes, index, dictionaries, rows, space, context);
      const readers = Math.max(1, context.parallel?.workerCount ?? 1);
      if (readers * readerBytesOf(probe.columns) + spareBytesOf(context) > roomOf(context)) throw new TooManyRows();
      context.chose?.("all right rows");
      return probe;
    } finally {
      builder.close();
    }
  }

  private merge(needed: ReadonlySet<number>): RowReader {
    this.context.chose?.("last right rows");
    const { physical, left, leftPredicates, right, openBoth, context } = this;
    return this.merged ??= new MergedSides(physical, [left, right], leftPredicates, openBoth, needed, context);
  }

  rewind(reader?: RowReader): boolean {
    if (this.merged !== undefined) return this.merged.rewind();
    if (reader instanceof JoinReader) {
      reader.suspend();
      this.reader = reader;
    } else reader?.close();
    return rewindBase(this.left) && this.right.rewind?.() === true;
  }

  rebind(changes: Changes): "kept" | "anew" | undefined {
    if (this.merged !== undefined) return this.merged.rebind(changes) ? "kept" : undefined;
    const left = reboundBase(this.left, changes, this.context, true);
    if (left === undefined) return undefined;
    this.left = left;
    this.leftPredicates = changes.take(this.leftPredicates);
    const { takenCount } = changes, { node } = this.physical;
    if (this.right.rebind?.(changes) !== true) return undefined;
    if (readSameRows([node.right], changes, takenCount)) return "kept";
    this.release();
    return "anew";
  }

  private release(): void {
    this.built = undefined;
    this.space.release();
  }

  close(): void {
    this.reader?.close();
    this.space.release();
    if (this.merged !== undefined) this.merged.end();
    else {
      closeBase(this.left);
      this.right.close();
    }
    flushKernelRows(this.context.heap.i64);
  }
}

/** The greatest time of left rows; undefined if it is not known before they are read. */
function lastTimeOf(plan: BasePlan, column: number, context: QueryContext): bigint | undefined {
  const scan = scanOf(plan, context);
  assert(scan !== undefined, "the physical pass chooses left sides that lead down to a scan");
  const { node, source } = scan;
  if (column !== node.timestamp) return undefined;
  let last: bigint | undefined;
  for (const { timestampMax } of source.segments) if (last === undefined || timestampMax > last) last = timestampMax;
  const high = node.intervals?.reduce((most, [, high]) => high > most ? high : most, -(1n << 63n));
  return high !== undefined && last !== undefined && high < last ? high : last;
}

/** An unknown time is after all others. */
function isBefore(time: bigint | undefined, other: bigint | undefined): boolean {
  return time !== undefined && (other === undefined || time < other);
}

/** The batches of an input in time order up to the first one that ends after a time. */
class RowsUntil implements Operator {
  readonly columns;
  readonly rowsAtMost;
  private isPast = false;

  constructor(
    private readonly input: Operator,
    private readonly time: number,
    private readonly until: bigint,
    private readonly context: QueryContext,
  ) {
    this.columns = input.columns;
    this.rowsAtMost = input.rowsAtMost;
  }

  next(): Batch | undefined {
    if (this.isPast) return undefined;
    const batch = this.input.next();
    if (batch !== undefined && batch.rowCount > 0) {
      const last = this.context.heap.i64[batch.columns[this.time].address / 8 + batch.rowCount - 1];
      this.isPast = last > this.until;
    }
    return batch;
  }

  /** The join closes the input. */
  close(): void {}
}

/** The join of both sides in order, with the columns of the base. */
class MergedSides implements RowReader {
  private readonly operator: Operator;
  /** The column of the base for each one of the operator. */
  private readonly output: number[];

  constructor(
    private readonly physical: PhysicalLastRows,
    [left, right]: [PipelineBase, Operator],
    predicates: readonly Expr[],
    openBoth: () => [PipelineBase, Operator],
    needed: ReadonlySet<number>,
    private readonly context: QueryContext,
  ) {
    const { left: { baseColumns }, leftKeys, leftTime, node } = physical, leftCount = baseColumns.length;
    const ofLeft = [...needed].filter((index) => index < leftCount);
    const ofRight = [...needed].filter((index) => index >= leftCount);
    // Besides the needed columns, the join reads the time and the keys.
    const exprs = [...ofLeft, leftTime].map((index) => columnAt(index, baseColumns[index].type)).concat(leftKeys);
    const reading = { ...physical.left, predicates, exprs, columns: unnamedColumns(typesOf(exprs)) };
    const sides = (base: PipelineBase, right: Operator): [Operator, Operator] => [
      new Pipeline(base, reading, context),
      right,
    ];
    this.output = [...ofLeft, ...ofRight];
    const plan = {
      ...node,
      leftTime: columnAt(ofLeft.length, exprs[ofLeft.length].type),
      leftKeys: leftKeys.map(({ type }, k) => columnAt(ofLeft.length + 1 + k, type)),
      columns: this.output.map((index) => physical.columns[index]),
    };
    const from = [...ofLeft.keys(), ...ofRight.map((index) => exprs.length + index - leftCount)];
    this.operator = mergedTimeJoin(plan, from, physical, sides(left, right), () => sides(...openBoth()), context);
    if (predicates.length > 0) context.analysis?.countPassed(physical.id, 0);
  }

  next(): Rows | undefined {
    const { physical, output, operator, context } = this, batch = operator.next();
    if (batch === undefined) return undefined;
    const { rowCount } = batch;
    context.analysis?.countPairs(physical.id, rowCount);
    if (physical.left.predicates.length > 0) context.analysis?.countPassed(physical.id, rowCount);
    return rowsOfBatch(physical.columns, output, batch);
  }

  rewind(): boolean {
    return this.operator.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    return this.operator.rebind?.(changes) === true;
  }

  /** The join ends it. */
  close(): void {}

  end(): void {
    this.operator.close();
  }
}
