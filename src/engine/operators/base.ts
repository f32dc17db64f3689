/**
 * The input of filters and projections: the rows of a scan, of any operator, or of a join over one of these. Rows of a scan, and of
 * joins whose left sides lead down to one, can be read by the scan's morsels on any thread, by a plan that is plain data.
 */
import { assert } from "../../assert.ts";
import type { Column, Expr, Plan, ScanNode } from "../../sql/plan.ts";
import type { Dictionary, ScanSource } from "../../storage/contract.ts";
import { NO_DICTIONARY } from "../columns.ts";
import type { Batch, Changes, Operator, QueryContext, Vector } from "../contract.ts";
import { scansOf } from "../packed-plan.ts";
import { scanDictionaries, sourceOf } from "../physical/facts.ts";
import { typesOf } from "../physical/reading.ts";
import { JoinReader } from "./join-probe.ts";
import { LookupReader } from "./lookup-reader.ts";
import { ScanReader } from "./scan.ts";
import { SelectedRows } from "./selected-rows.ts";
import { splicedMorsels, SpliceReader } from "./splice-reader.ts";
import type { BasePlan, MorselReader, PipelineBase, RowReader, Rows, SplicedRows } from "./base-plan.ts";
import type { Morsel } from "./morsel.ts";
import type { Bound } from "../bounds.ts";
import { morselsOf, unmatchedMorsels } from "./morsels.ts";

export function columnsOfBase(base: PipelineBase): readonly Column[] {
  return base.kind === "scan" ? base.node.columns : base.kind === "join" ? base.join.columns : base.input.columns;
}

/** The base as a plan that any thread can read; undefined for a join with an empty build side, which has no rows. */
export function planOf(base: PipelineBase): BasePlan | undefined {
  assert(base.kind !== "operator", "the physical pass determines which bases are read by morsels");
  if (base.kind === "join") return base.join.plan();
  return { kind: "scan", node: base.node, reader: base.reader };
}

/** Takes morsels before their rows are read. */
export interface Taker {
  /** It is asked before rows are selected by codes, which it may do better. */
  isFirst: boolean;
  /** True if it has taken the rows of the morsel that pass. */
  takes(morsel: Morsel): boolean;
}

class ScanMorsels implements MorselReader {
  private readonly reader: ScanReader;
  private finder?: LookupReader;
  private readonly selected: SelectedRows;
  private morsel?: Morsel;

  /** Rows that do not pass the `predicates` may be left out. */
  constructor(
    private node: ScanNode,
    private readonly counter: number | undefined,
    private readonly needed: ReadonlySet<number>,
    private readonly context: QueryContext,
    predicates: readonly Expr[],
    private readonly taker: Taker | undefined,
  ) {
    this.reader = new ScanReader(node, needed, context);
    this.selected = new SelectedRows(node, needed, predicates, context);
  }

  restart(): void {
    this.selected.restart();
  }

  rewind(): boolean {
    if (this.finder !== undefined) return false;
    this.reader.rewind();
    return true;
  }

  rebind(plan: BasePlan, predicates: readonly Expr[]): boolean {
    if (plan.kind !== "scan" || this.finder !== undefined) return false;
    this.node = plan.node;
    this.reader.rebind(plan.node);
    this.selected.rebind(plan.node, predicates);
    return true;
  }

  start(morsel: Morsel): void {
    this.morsel = morsel;
    const { lookup } = morsel;
    if (lookup === undefined) return;
    this.finder ??= new LookupReader(this.node, this.needed, lookup.column, false, this.context);
    this.finder.start(lookup);
  }

  next(): Rows | undefined {
    const rows = this.morsel?.lookup === undefined ? this.readNext() : this.finder!.next();
    if (rows !== undefined && this.counter !== undefined) {
      this.context.analysis?.countTaken(this.counter, rows.end - rows.start);
    }
    return rows;
  }

  private readNext(): Rows | undefined {
    if (this.morsel === undefined) return undefined;
    const { morsel, taker } = this, { segment, start, end } = morsel;
    this.morsel = undefined;
    if (taker?.isFirst === true && this.isTaken(morsel)) return undefined;
    const selected = this.selected.read(morsel);
    if (selected !== undefined) return selected.end > 0 ? selected : undefined;
    if (taker?.isFirst === false && this.isTaken(morsel)) return undefined;
    return {
      columns: this.reader.open(segment, { from: start, to: end }),
      start,
      end,
      rowBase: this.reader.rowBase(segment),
    };
  }

  private isTaken(morsel: Morsel): boolean {
    const isTaken = this.taker!.takes(morsel);
    if (isTaken && this.counter !== undefined) {
      this.context.analysis?.countTaken(this.counter, morsel.end - morsel.start);
    }
    return isTaken;
  }

  close(): void {
    this.reader.close();
    this.finder?.close();
    this.selected.close();
  }
}

/** The scan at the bottom of a plan, if there is one. */
export function scanOf(plan: BasePlan, context: QueryContext): { node: ScanNode; source: ScanSource } | undefined {
  if (plan.kind === "join") return scanOf(plan.left, context);
  return plan.kind === "splice" ? undefined : { node: plan.node, source: sourceOf(plan.node, context) };
}

/** Rows at the bottom of a plan. */
export function rowCountOf(plan: BasePlan, context: QueryContext): number {
  switch (plan.kind) {
    case "join":
      return rowCountOf(plan.left, context);
    case "splice":
      return plan.rows.left.rowCount + plan.rows.right.rowCount;
    case "scan":
      return sourceOf(plan.node, context).rowCount;
  }
}

/**
 * Rows of a scan that do not pass the `conditions` may be left out; others have to be tested by the caller.
 */
export function openMorsels(
  plan: BasePlan,
  needed: ReadonlySet<number>,
  context: QueryContext,
  conditions: readonly Expr[] = [],
  taker?: Taker,
): MorselReader {
  if (plan.kind === "scan") return new ScanMorsels(plan.node, plan.reader, needed, context, conditions, taker);
  if (plan.kind === "splice") return new SpliceReader(plan.rows, needed, context);
  const { probe, predicates } = plan;
  const left = openMorsels(plan.left, JoinReader.leftColumns(probe, predicates, needed), context, predicates);
  const dictionaries = probe.marks === 0 ? undefined : dictionariesOf(plan.left, context);
  return new JoinReader(probe, predicates, left, needed, context, dictionaries);
}

/**
 * The morsels of the scan below, without those that statistics exclude, and those of unmatched rows of joins, from the lowest one upwards.
 * `predicates` are over the plan's columns.
 */
export function morselsOfPlan(plan: BasePlan, predicates: readonly Expr[], context: QueryContext): Morsel[] {
  const bounds: Bound[] = [], unmatched: Morsel[][] = [];
  let base = plan, over = predicates;
  for (; base.kind === "join"; base = base.left) {
    const { probe } = base;
    bounds.push(...base.bounds);
    over = base.predicates;
    if (probe.marks !== 0) unmatched.unshift(unmatchedMorsels(probe.id, probe.rowCount));
  }
  return [...(base.kind === "splice" ? splicedMorsels(base.rows) : ofScan(base.node)), ...unmatched.flat()];

  function ofScan(node: ScanNode): Morsel[] {
    const count = node.columnIds.length, known = bounds.filter(({ column }) => column < count);
    return morselsOf(node, sourceOf(node, context), context, over, known, true);
  }
}

export function typesOfPlan(plan: BasePlan): string[] {
  if (plan.kind === "join") return [...plan.probe.leftTypes, ...plan.probe.columns.map((column) => column.type)];
  return plan.kind === "splice" ? columnsOfSplice(plan.rows).map(({ type }) => type) : typesOf(plan.node.columns);
}

/** The dictionaries of the base's columns. */
export function dictionariesOf(plan: BasePlan, context: QueryContext): (Dictionary | undefined)[] {
  if (plan.kind === "join") {
    return [...dictionariesOf(plan.left, context), ...plan.probe.columns.map((column) => column.dictionary)];
  }
  if (plan.kind === "splice") return columnsOfSplice(plan.rows).map(({ dictionary }) => dictionary);
  return scanDictionaries(plan.node, sourceOf(plan.node, context));
}

function columnsOfSplice({ left, right }: SplicedRows): Vector[] {
  return [...left.columns, ...right.columns];
}

/** The same before the base is read in order, as far as they are known then. */
export function dictionariesOfBase(base: PipelineBase): (Dictionary | undefined)[] | undefined {
  switch (base.kind) {
    case "scan":
      return scanDictionaries(base.node, base.source);
    case "join":
      return base.join.dictionaries();
    case "operator":
      return undefined;
  }
}

/** Reads all rows of a base in order. `predicates` may exclude morsels and rows, and have to be tested by the caller. */
export function openBase(
  base: PipelineBase,
  predicates: readonly Expr[],
  bounds: readonly Bound[],
  needed: ReadonlySet<number>,
  context: QueryContext,
): RowReader {
  if (base.kind === "join") return base.join.open(needed);
  if (base.kind === "operator") return new OperatorRows(base.input);
  const reader = new ScanMorsels(base.node, base.reader, needed, context, predicates, undefined);
  return new AllMorsels(reader, morselsOf(base.node, base.source, context, predicates, bounds, true));
}

/** Prepares another run, see `Operator.rewind`. */
export function rewindBase(base: PipelineBase, joined?: RowReader): boolean {
  if (base.kind === "scan") return true;
  return base.kind === "join" ? base.join.rewind(joined) : base.input.rewind?.() === true;
}

/** The base for another run; undefined if it has to be made anew. `isKept`: the right sides of joins have to be the same. */
export function reboundBase(
  base: PipelineBase,
  changes: Changes,
  context: QueryContext,
  isKept = false,
): PipelineBase | undefined {
  switch (base.kind) {
    case "scan": {
      const node = changes.scanOf(base.node);
      return { ...base, node, source: sourceOf(node, context) };
    }
    case "operator":
      return base.input.rebind?.(changes) === true ? base : undefined;
    case "join": {
      const build = base.join.rebind(changes);
      return build === undefined || (isKept && build === "anew") ? undefined : base;
    }
  }
}

/**
 * After operators over the plans are rebound: true if they read the same rows with the same constants. `takenCount`: of `changes` before that.
 */
export function readSameRows(plans: readonly Plan[], changes: Changes, takenCount: number): boolean {
  return changes.takenCount === takenCount && !plans.flatMap(scansOf).some(({ id }) => changes.isChanged(id));
}

export function closeBase(base: PipelineBase): void {
  if (base.kind === "operator") base.input.close();
  if (base.kind === "join") base.join.close();
}

class OperatorRows implements RowReader {
  constructor(private readonly input: Operator) {}

  next(): Rows | undefined {
    const batch = this.input.next();
    return batch && { columns: batch.columns, start: 0, end: batch.rowCount, rowBase: 0n };
  }

  /** The pipeline closes the operator. */
  close(): void {}
}

/** The columns of a base of which a batch has some: `output` tells which, or -1 for those that are none of them. */
export function rowsOfBatch(columns: readonly Column[], output: readonly number[], batch: Batch): Rows {
  const vectors = columns.map(({ type }): Vector => ({
    type,
    address: 0,
    dictionary: type === "SYMBOL" ? NO_DICTIONARY : undefined,
  }));
  output.forEach((index, k) => {
    if (index >= 0) vectors[index] = batch.columns[k];
  });
  return { columns: vectors, start: 0, end: batch.rowCount, rowBase: 0n };
}

export class AllMorsels implements RowReader {
  private position = 0;

  constructor(private readonly reader: MorselReader, private readonly morsels: readonly Morsel[]) {}

  next(): Rows | undefined {
    for (;;) {
      const rows = this.reader.next();
      if (rows !== undefined) return rows;
      const morsel = this.morsels[this.position++];
      if (morsel === undefined) return undefined;
      this.reader.start(morsel);
    }
  }

  close(): void {
    this.reader.close();
  }
}
