/**
 * Joins: the right side (build side) is kept with an index over its keys, and rows of the left side (probe side) look up their matches.
 * Without keys every right row matches, so cross joins and joins on inequalities are the same. Rows are ordered by left row, then by
 * right row; right rows without a match come last.
 *
 * A join is not an operator itself but the base of a pipeline: filters and expressions over it read the columns of both sides, and
 * only columns that are read are fetched.
 */
import { assert } from "../../assert.ts";
import type { Column, Expr, JoinNode } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { Workspace } from "../columns.ts";
import { flushKernelRows } from "../compiler/binding.ts";
import type { Changes, Operator, QueryContext } from "../contract.ts";
import type { PhysicalJoin } from "../physical/plan.ts";
import { closeBase, dictionariesOfBase, openBase, planOf, readSameRows, reboundBase, rewindBase } from "./base.ts";
import { ApartJoin, BuildParts, type BuiltApart, type JoinInMemory } from "./apart-join.ts";
import { isOutOfMemory } from "../memory.ts";
import { keepAll, type KeptRows, leavesRoom } from "./input.ts";
import { IndexBuilder, keyModes, probeOf } from "./join-index.ts";
import { JoinReader, keepsLeftRows } from "./join-probe.ts";
import type { BasePlan, JoinBase, JoinIndex, JoinProbe, KeyMode, PipelineBase, RowReader, Rows } from "./base-plan.ts";
import { type Bound, BOUNDED } from "../bounds.ts";
import { UnmatchedRows } from "./unmatched-rows.ts";

export function createJoin(plan: PhysicalJoin, left: PipelineBase, right: Operator, context: QueryContext): JoinBase {
  return new Join(plan, left, right, context);
}

interface Built {
  kept: KeptRows;
  probe: JoinProbe;
  /** Bounds for the left side's key columns. */
  bounds: Bound[];
}

class Join implements JoinBase {
  readonly columns: readonly Column[];
  private readonly space: Workspace;
  private readonly keptSpace: Workspace;
  private readonly operator: string;
  private readonly node: JoinNode;
  private built?: Built | BuiltApart;
  /** Of the conditions of this run on left rows. */
  private leftPredicates: readonly Expr[];
  /** Of an earlier run. */
  private reader?: JoinReader;

  constructor(
    private readonly physical: PhysicalJoin,
    private left: PipelineBase,
    private readonly right: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = physical.columns;
    this.leftPredicates = physical.left.predicates;
    this.node = physical.node;
    this.operator = this.node.type === "cross" ? "cross join" : "join";
    this.space = Workspace.of(context, this.operator);
    this.keptSpace = Workspace.of(context, this.operator);
  }

  /** Undefined for a join with an empty build side, which has no rows, and for one whose build side is on disk. */
  plan(): BasePlan | undefined {
    assert(this.physical.byMorsels, "the physical pass determines which bases are read by morsels");
    const left = planOf(this.left);
    if (left === undefined) return undefined;
    const built = this.build();
    if ("parts" in built) return undefined;
    const { probe, bounds } = built;
    if (probe.rowCount === 0 && !keepsLeftRows(this.node.type)) return undefined;
    return { kind: "join", left, predicates: this.leftPredicates, bounds, probe };
  }

  dictionaries(): (Dictionary | undefined)[] | undefined {
    const built = this.build(), left = dictionariesOfBase(this.left);
    return "parts" in built ? left : left && [...left, ...built.probe.columns.map((column) => column.dictionary)];
  }

  open(needed: ReadonlySet<number>): RowReader {
    const { left, node, context, leftPredicates: predicates } = this, built = this.build();
    if ("parts" in built) return this.openApart(built, needed);
    const { probe, bounds } = built;
    // Nothing can match, so the left side need not be read.
    if (probe.rowCount === 0 && !keepsLeftRows(node.type)) return { next: () => undefined, close: () => {} };
    const ofLeft = JoinReader.leftColumns(probe, predicates, needed);
    const rows = openBase(left, predicates, bounds, ofLeft, context);
    const reader = this.readerAgain(probe, rows) ?? new JoinReader(probe, predicates, rows, needed, context);
    return probe.marks === 0 ? reader : new WithUnmatched(reader, probe, needed, context);
  }

  private readerAgain(probe: JoinProbe, rows: RowReader): JoinReader | undefined {
    const { reader } = this;
    this.reader = undefined;
    if (reader?.probe === probe) return reader.reopen(rows, this.leftPredicates);
    reader?.close();
  }

  rewind(reader?: RowReader): boolean {
    const { built } = this;
    if (reader instanceof JoinReader) {
      reader.suspend();
      this.reader = reader;
    } else reader?.close();
    // Marks of rows that have a match are those of one run.
    if (built !== undefined && ("parts" in built || built.probe.marks !== 0)) return false;
    return rewindBase(this.left) && this.right.rewind?.() === true;
  }

  rebind(changes: Changes): "kept" | "anew" | undefined {
    const left = reboundBase(this.left, changes, this.context, true);
    if (left === undefined) return undefined;
    this.left = left;
    this.leftPredicates = changes.take(this.leftPredicates);
    const { takenCount } = changes;
    if (this.right.rebind?.(changes) !== true) return undefined;
    if (readSameRows([this.node.right], changes, takenCount)) return "kept";
    this.built = undefined;
    this.space.release();
    this.keptSpace.release();
    return "anew";
  }

  private build(): Built | BuiltApart {
    return this.built ??= this.buildNow();
  }

  private buildNow(): Built | BuiltApart {
    const { node, right, keptSpace, context, physical: { spill } } = this;
    const apart = spill && new BuildParts(right.columns, node.rightKeys, context, this.operator);
    try {
      const kept = keepAll(right, node.rightKeys, keptSpace, context, apart);
      if (apart?.hasRows !== true) {
        try {
          const built = this.buildOver(kept);
          if (apart === undefined || leavesRoom(context)) return built;
        } catch (error) {
          if (apart === undefined || !isOutOfMemory(error)) throw error;
        }
        // The index does not fit, or leaves too little to readers and to operators above.
        this.space.release();
      }
      apart!.take(kept.store);
      keptSpace.release();
      return apart!.finish();
    } finally {
      apart?.close();
    }
  }

  private openApart(built: BuiltApart, needed: ReadonlySet<number>): RowReader {
    const { physical, left, context } = this;
    const read = (columns: ReadonlySet<number>) => openBase(left, this.leftPredicates, [], columns, context);
    const inMemory: JoinInMemory = (plan, left, right) =>
      new Join(plan, { kind: "operator", input: left }, right, context);
    return new ApartJoin(physical, built, needed, read, inMemory, context);
  }

  private buildOver(kept: KeptRows): Built {
    const { node, left, space, context, physical } = this;
    const dictionaries = dictionariesOfBase(left);
    const modes = keyModes(physical, kept, dictionaries, context);
    const { index, bounds } = this.index(kept, physical.leftKeys, modes);
    const keepsRight = node.type === "right" || node.type === "full";
    const kind = {
      type: node.type,
      marks: keepsRight ? space.bytes(Math.max(1, kept.rowCount)).fill(0).byteOffset : 0,
      residual: physical.residual,
    };
    return { kept, probe: probeOf(physical, kept, modes, index, dictionaries, kind, space, context), bounds };
  }

  private index(
    kept: KeptRows,
    leftKeys: readonly Expr[],
    modes: KeyMode[],
  ): { index: JoinIndex; bounds: Bound[] } {
    const builder = new IndexBuilder(kept, modes, this.space, this.context, this.operator);
    try {
      const bounds: Bound[] = [];
      builder.ranges.forEach((range, k) => {
        const key = leftKeys[k];
        if (range === undefined || range.high < range.low || range.nulls > 0 || keepsLeftRows(this.node.type)) return;
        if (modes[k].kind !== "value" || key.kind !== "column" || !BOUNDED.has(key.type)) return;
        bounds.push({ column: key.index, low: range.low, high: range.high });
      });
      return { index: builder.rows(), bounds };
    } finally {
      builder.close();
    }
  }

  close(): void {
    this.reader?.close();
    this.space.release();
    this.keptSpace.release();
    closeBase(this.left);
    this.right.close();
    flushKernelRows(this.context.heap.i64);
  }
}

/** After the pairs, outputs the right rows without a match. */
class WithUnmatched implements RowReader {
  private unmatched?: UnmatchedRows;

  constructor(
    private readonly pairs: RowReader,
    private readonly probe: JoinProbe,
    private readonly needed: ReadonlySet<number>,
    private readonly context: QueryContext,
  ) {}

  next(): Rows | undefined {
    if (this.unmatched === undefined) {
      const pairs = this.pairs.next();
      if (pairs !== undefined) return pairs;
      // Frees its memory.
      this.pairs.close();
      this.unmatched = new UnmatchedRows(this.probe, this.needed, this.context);
      this.unmatched.start(0, this.probe.rowCount);
    }
    return this.unmatched.next();
  }

  close(): void {
    if (this.unmatched === undefined) this.pairs.close();
    else this.unmatched.close();
  }
}
