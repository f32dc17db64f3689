/**
 * GROUP BY, and aggregates without keys. The rows of a scan are split into ranges of morsels, independent of the number of workers.
 * Each range has its own table, and the tables are merged in order. So sums of floats are the same in every run, and groups are in
 * the order of their first rows.
 */
import { assert } from "../../assert.ts";
import type { Column, Expr } from "../../sql/plan.ts";
import type { Dictionary } from "../../storage/contract.ts";
import { typeOf } from "../../types/mod.ts";
import { NO_DICTIONARY, Workspace } from "../columns.ts";
import { columnsOf } from "../compiler/expression.ts";
import { flushKernelRows } from "../compiler/binding.ts";
import { type Batch, type Changes, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { registerTask } from "../parallel.ts";
import { sourceOf } from "../physical/facts.ts";
import { exprsOf, type GroupSample, isSampled, pairsOf, readsAfter } from "../physical/grouping.ts";
import type { Grouping, GroupReads, GroupSpec, GroupWay } from "../physical/plan.ts";
import { readingOf, typesOf, unnamedColumns } from "../physical/reading.ts";
import {
  closeBase,
  dictionariesOf,
  morselsOfPlan,
  openBase,
  openMorsels,
  planOf,
  reboundBase,
  rewindBase,
  rowCountOf,
  typesOfPlan,
} from "./base.ts";
import { countedSpec, countPassed, isCounted } from "./counted-spec.ts";
import { assertingContract } from "./contract.ts";
import { DistinctBits, DistinctValues } from "./distinct-count.ts";
import { SideBySide } from "./side-by-side.ts";
import type { PartGroups } from "./group-order.ts";
import { groupInParts, registerPartTasks } from "./group-partitions.ts";
import { mergeRanges, registerRangeTasks } from "./merged-groups.ts";
import { GroupedBatches } from "./group-batches.ts";
import { orApart } from "./or-apart.ts";
import { Pipeline } from "./pipeline.ts";
import { piecesByRange, RangedRows } from "./ranged-rows.ts";
import { columnsFor, spillingGroups } from "./spilled-groups.ts";
import { type DecidedSpec, Grouper, type GroupTable } from "./group-table.ts";
import type { BasePlan, MorselReader, OpenBase, PipelineBase, RowReader } from "./base-plan.ts";
import { SegmentWays } from "./segment-ways.ts";
import { SummedRows } from "./summed-rows.ts";
import type { Morsel } from "./morsel.ts";
import { rangesOf, rowsOf, smallRangesOf, stagesOf } from "./morsels.ts";

type KernelWay = Extract<GroupWay, { kind: "kernel" }>;

/** `input` opens the rows of a grouping that does not read a base itself. */
export function createGrouping(
  { node, way }: Grouping,
  open: OpenBase,
  input: () => Operator,
  context: QueryContext,
): Operator {
  const inner = (grouping: Grouping) => assertingContract(createGrouping(grouping, open, input, context));
  switch (way.kind) {
    case "kernel": {
      const inMemory = new Aggregate(node.columns, way, open(way.reading), context);
      if (way.spill === undefined) return inMemory;
      return spillingGroups(inMemory, {
        node: {
          ...node,
          keys: [...way.spec.keys],
          aggregates: node.aggregates.map((call, k) => ({ ...call, args: way.spec.calls[k].args })),
        },
        open: () => {
          const exprs = columnsFor(way.spec.keys, way.spec.calls), { reader } = way.reading;
          const reading = { ...way.reading, exprs, columns: unnamedColumns(typesOf(exprs)), reader: undefined };
          const base = open(way.reading), ranged = byRanges(base, way, inMemory.merged, context);
          const rows = new Pipeline(
            ranged === undefined ? base : { kind: "operator", input: ranged },
            reading,
            context,
          );
          return { rows: countingPassed(rows, reader, context), firstNumber: ranged && (() => ranged.firstNumber) };
        },
        group: (node, input) => {
          const calls = node.aggregates.map((call) => ({
            function: call.function,
            args: [...call.args],
            type: call.type,
          }));
          const spec: GroupSpec = {
            predicates: [],
            keys: node.keys,
            calls,
            expectedRows: input.rowsAtMost ?? 0,
            staged: true,
            table: "hash",
            isOverBatches: true,
          };
          const overRows = { kind: "kernel", reading: readingOf(input.columns), spec, reads: "in order" } as const;
          return new Aggregate(
            node.columns,
            overRows,
            { kind: "operator", input },
            context,
            inMemory.merged !== undefined,
          );
        },
      }, context);
    }
    case "batches": {
      const inMemory = new GroupedBatches(node, way, input(), context);
      const byKeys = way.spill === undefined || node.keys.length === 0 ? inMemory : spillingGroups(inMemory, {
        node,
        open: () => {
          const rows = input(), exprs = columnsFor(node.keys, node.aggregates);
          const reading = { ...readingOf(rows.columns), exprs, columns: unnamedColumns(typesOf(exprs)) };
          return { rows: new Pipeline({ kind: "operator", input: rows }, reading, context) };
        },
        group: (node, input) => new GroupedBatches(node, { ...way, table: "hash" }, input, context),
      }, context);
      const { apart } = way;
      return apart === undefined ? byKeys : orApart(byKeys, () => inner({ node, way: apart }), context);
    }
    case "bits":
      return new DistinctBits(node.columns, way, context);
    case "values":
      return new DistinctValues(node.columns, inner(way.groups), context);
    case "pairs": {
      const pairs = () => inner(way.pairs);
      return createGrouping(way.counts, () => ({ kind: "operator", input: pairs() }), pairs, context);
    }
    case "side by side":
      return new SideBySide(
        node.columns,
        way.parts.map(inner),
        way.columns,
      );
  }
}

/** Counts the rows that pass the conditions of a reading; in memory, the groups count them. */
function countingPassed(rows: Operator, reader: number | undefined, context: QueryContext): Operator {
  const { analysis } = context;
  if (reader === undefined || analysis === undefined) return rows;
  analysis.countPassed(reader, 0);
  return {
    columns: rows.columns,
    next: () => {
      const batch = rows.next();
      if (batch !== undefined) analysis.countPassed(reader, batch.rowCount);
      return batch;
    },
    close: () => rows.close(),
  };
}

/** Ranges whose groups are merged in order, made of all morsels. */
type MergedRanges = (morsels: readonly Morsel[]) => Morsel[][];

/** Undefined if the rows are not grouped by ranges, or the base cannot be read by morsels now. */
function byRanges(
  base: PipelineBase,
  { spec }: KernelWay,
  merged: MergedRanges | undefined,
  context: QueryContext,
): RangedRows | undefined {
  if (merged === undefined || spec.rowIdColumn !== undefined) return undefined;
  const plan = planOf(base);
  if (plan === undefined) return undefined;
  return new RangedRows(base, plan, merged(morselsOfPlan(plan, spec.predicates, context)), columnsRead(spec), context);
}

/** The groups in one table, or in several lists that are valid until the next call. */
type Groups = Pick<PartGroups, "grouper" | "close"> & { next(): GroupTable | undefined };

class Aggregate implements Operator {
  private readonly baseTypes: string[];
  private grouper: Grouper;
  private spec: GroupSpec;
  private readonly space: Workspace;
  /** Set if each range of morsels has a table of its own. */
  merged?: MergedRanges;
  private groups?: Groups;
  /** Of runs over the same rows. */
  private ranges?: Morsel[][];
  private filler?: RangeFiller;
  /** The table that is being output, and the next of its groups. */
  private table?: GroupTable;
  private position = 0;
  private out?: { columns: Vector[]; counts: number; rowCount: number };

  constructor(
    readonly columns: readonly Column[],
    private readonly way: KernelWay,
    private base: PipelineBase,
    private readonly context: QueryContext,
    /** The last column of the input has numbers of rows that tell their ranges, see `RangedRows`. */
    private readonly isNumbered = false,
  ) {
    this.spec = countedSpec(way.spec, way.reading.reader, context);
    this.baseTypes = typesOf(way.reading.baseColumns);
    this.grouper = new Grouper(this.spec, this.baseTypes, context);
    this.space = Workspace.of(context, "GROUP BY");
  }

  next(): Batch | undefined {
    this.groups ??= this.fill();
    const { grouper } = this.groups;
    if (this.table === undefined || this.position === grouper.groupCount(this.table)) {
      this.table = this.groups.next();
      this.position = 0;
    }
    const { table } = this;
    if (table === undefined) return undefined;
    const rowCount = Math.min(MORSEL_ROWS, grouper.groupCount(table) - this.position);
    if (rowCount === 0) return undefined;
    this.context.poll();
    const { columns, counts } = this.output(grouper, rowCount);
    const addresses = columns.map((vector) => vector.address);
    const { spec: { keys: { length: keyCount } }, way: { reading: { reader } }, context } = this;
    const hasCount = isCounted(reader, context);
    if (hasCount) addresses.push(counts);
    grouper.finish(
      table,
      this.position,
      this.position + rowCount,
      addresses.slice(0, keyCount),
      addresses.slice(keyCount),
    );
    if (hasCount) countPassed(reader, addresses.at(-1)!, rowCount, context);
    this.position += rowCount;
    return { rowCount, columns };
  }

  /** Columns for at least this many groups. */
  private output(grouper: Grouper, rowCount: number) {
    const { out, space } = this;
    if (out !== undefined && out.rowCount >= rowCount) return out;
    for (const address of out === undefined ? [] : [...out.columns.map((vector) => vector.address), out.counts]) {
      space.free(address);
    }
    const dictionaries = grouper.outputDictionaries(this.columns);
    const columns = this.columns.map(({ type }, k): Vector => ({
      type,
      address: space.allocate(rowCount * typeOf(type).width),
      dictionary: dictionaries[k],
    }));
    return this.out = { columns, counts: space.allocate(rowCount * 8), rowCount };
  }

  private fill(): Groups {
    const { base, way: { reads }, context, spec } = this;
    // A join with an empty build side has no plan and no rows.
    const plan = reads === "in order" ? undefined : planOf(base);
    if (plan !== undefined) {
      return reads === "count" ? this.inTable(this.countOf(plan)) : this.fillByMorsels(plan, reads);
    }
    const rows = openBase(base, spec.predicates, [], columnsRead(spec), context);
    try {
      return this.inTable(this.isNumbered ? this.fillRanges(rows) : this.fillInOrder(rows));
    } finally {
      rows.close();
    }
  }

  private fillInOrder(reader: RowReader): GroupTable {
    let table: GroupTable | undefined;
    for (let rows = reader.next(); rows !== undefined; rows = reader.next()) {
      this.context.poll();
      if (table === undefined) {
        this.prepare(rows.columns.map((column) => column.dictionary));
        table = this.grouper.create();
      }
      this.grouper.consume(table, rows.columns, rows.start, rows.end, rows.rowBase);
    }
    return table ?? this.emptyTable();
  }

  /** Before a table is made. Kernels of an earlier run may be for other dictionaries: symbols of no rows have none. */
  private prepare(dictionaries: readonly (Dictionary | undefined)[]): void {
    if (!this.grouper.isFor(dictionaries)) {
      this.grouper.close();
      this.grouper = new Grouper(this.spec, this.baseTypes, this.context);
      // They are made for its kernels and dictionaries.
      this.dropFiller();
      if (this.out !== undefined) this.space.release();
      this.out = undefined;
    }
    this.grouper.prepare(dictionaries);
  }

  private emptyTable(): GroupTable {
    this.prepare(this.baseTypes.map((type) => (type === "SYMBOL" ? NO_DICTIONARY : undefined)));
    return this.grouper.create();
  }

  /** Like `fillInOrder`, but with a table for each range, which are merged in order. */
  private fillRanges(reader: RowReader): GroupTable {
    const { context } = this;
    let whole: GroupTable | undefined, last: { range: number; table: GroupTable } | undefined;
    const add = (table: GroupTable) => {
      if (whole === undefined) whole = table;
      else this.grouper.merge(whole, table);
    };
    for (let rows = reader.next(); rows !== undefined; rows = reader.next()) {
      context.poll();
      const { columns, start, end, rowBase } = rows;
      if (last === undefined) this.prepare(columns.map((column) => column.dictionary));
      const { grouper } = this;
      for (const { range, from, to } of piecesByRange(context.heap, columns.at(-1)!, start, end)) {
        if (last !== undefined && last.range !== range) add(last.table);
        if (last?.range !== range) last = { range, table: grouper.create() };
        grouper.consume(last.table, columns, from, to, rowBase);
      }
    }
    if (last !== undefined) add(last.table);
    return whole ?? this.emptyTable();
  }

  private inTable(table: GroupTable): Groups {
    const { grouper } = this, left = [table];
    return { grouper, next: () => left.pop(), close: () => grouper.drop(table) };
  }

  private fillByMorsels(base: BasePlan, reads: GroupReads): Groups {
    const { context, way: { spill } } = this;
    const ranges = this.ranges ??= rangesOf(morselsOfPlan(base, this.spec.predicates, context));
    this.prepare(dictionariesOf(base, context));
    const { grouper } = this;
    const spec = grouper.decided!, data: MorselTask = { base, spec, first: 0 };
    const isOpen = reads === "ranges" && ranges.length > 1 &&
      isSampled(spec.table, rowCountOf(base, context));
    const sample = isOpen ? this.sampleOf(base, ranges[0][0]) : undefined;
    const after = sample === undefined ? reads : readsAfter(sample, spec, spec.staged);
    if (isOpen) context.chose?.(READS[after as keyof typeof READS]);
    if (after === "merged") {
      this.merged = smallRangesOf;
      return mergeRanges(data, smallRangesOf(ranges.flat()), sample!, grouper, context, this.space);
    }
    if (after === "parts") {
      const reader = openMorsels(base, columnsRead(spec), context, spec.predicates);
      try {
        const rows = { morsels: () => ranges.flat(), reader, grouper };
        return groupInParts(data, rows, { pairs: pairsOf(sample!), spills: spill !== undefined }, context, this.space);
      } finally {
        reader.close();
      }
    }
    const read = after === "one range" ? [ranges.flat()] : ranges;
    if (read.length > 1) this.merged = rangesOf;
    const tables: GroupTable[] = [];
    if (context.parallel !== undefined && read.length > 1) {
      for (const { first, count } of stagesOf(read)) {
        for (const result of context.parallel.run(TASK, { ...data, first }, count) as RangeTables[]) {
          for (const [range, table] of result) tables[range] = table;
        }
      }
    } else {
      for (const [range, table] of this.fillRangesOf(base, spec, read)) tables[range] = table;
    }
    if (tables.length === 0) return this.inTable(grouper.create());
    for (let later = 1; later < tables.length; later++) grouper.merge(tables[0], tables[later]);
    return this.inTable(tables[0]);
  }

  /** With what an earlier run has made, if it can be used again. */
  private fillRangesOf(base: BasePlan, spec: DecidedSpec, ranges: Morsel[][]): RangeTables {
    const filler = this.filler ?? new RangeFiller(base, spec, this.context, this.grouper);
    this.filler = undefined;
    let isReusable = false;
    try {
      filler.begin(base, spec, ranges);
      for (let range = 0; range < ranges.length; range++) filler.run(range);
      const tables = filler.finish();
      isReusable = filler.rewind();
      return tables;
    } finally {
      if (isReusable) this.filler = filler;
      else filler.close();
    }
  }

  /**
   * Aggregates that read no column see identical rows: the state after 2n rows is the state after n, merged with
   * itself.
   */
  private countOf(base: BasePlan): GroupTable {
    const { grouper, context } = this;
    assert(base.kind === "scan", "only rows of scans are counted without reading them");
    grouper.prepare([]);
    const table = grouper.create(), power = grouper.create();
    grouper.consume(power, [], 0, 1, 0n);
    for (
      let rows = rowsOf(base.node, sourceOf(base.node, context), context);
      rows > 0;
      rows = Math.floor(rows / 2)
    ) {
      if (rows % 2 === 1) grouper.add(table, power);
      grouper.add(power, power);
    }
    grouper.drop(power);
    return table;
  }

  /** Groups one morsel as a sample. */
  private sampleOf(base: BasePlan, morsel: Morsel): GroupSample {
    const filler = new RangeFiller(base, this.spec, this.context, this.grouper);
    try {
      return { ...filler.sampleOf(morsel), scanned: morsel.end - morsel.start };
    } finally {
      filler.close();
    }
  }

  rewind(): boolean {
    const { base, groups } = this;
    // Groups of partitions are those of another grouper.
    if (groups !== undefined && groups.grouper !== this.grouper) return false;
    if (!rewindBase(base)) return false;
    groups?.close();
    this.groups = this.table = undefined;
    this.position = 0;
    if (this.out === undefined || this.out.rowCount > KEPT_ROWS_MAX) {
      this.space.release();
      this.out = undefined;
    }
    return true;
  }

  rebind(changes: Changes): boolean {
    // Kernels are made for the dictionaries of the first rows.
    const base = reboundBase(this.base, changes, this.context, true);
    if (base === undefined) return false;
    this.base = base;
    this.ranges = undefined;
    const predicates = changes.take(this.spec.predicates);
    const plan = this.filler && planOf(base);
    if (plan === undefined || !this.filler!.rebind(plan, predicates)) this.dropFiller();
    if (predicates === this.spec.predicates) return true;
    this.spec = { ...this.spec, predicates };
    return this.grouper.change(predicates, changes) !== undefined;
  }

  private dropFiller(): void {
    this.filler?.close();
    this.filler = undefined;
  }

  close(): void {
    this.dropFiller();
    this.groups?.close();
    this.grouper.close();
    this.space.release();
    closeBase(this.base);
    flushKernelRows(this.context.heap.i64);
  }
}

const TASK = "GROUP BY";
/** Columns of the output that have space for more groups are not kept for another run. */
const KEPT_ROWS_MAX = 256;

const READS = {
  parts: "partitions of the rows",
  merged: "partitions of the groups",
  ranges: "a table for each range",
} as const;

interface MorselTask {
  base: BasePlan;
  spec: DecidedSpec;
  /** The task's first range. */
  first: number;
}

type RangeTables = [range: number, table: GroupTable][];

/** The columns of the base that are read. */
function columnsRead(spec: GroupSpec): Set<number> {
  const needed = new Set<number>();
  for (const expr of exprsOf(spec)) columnsOf(expr, needed);
  return needed;
}

/** Fills the tables of ranges, on any thread. */
class RangeFiller {
  private readonly reader: MorselReader;
  private readonly summed?: SummedRows;
  /** The operator whose statistics count the rows of `summed`. */
  private readonly counter?: number;
  private readonly ways?: SegmentWays;
  private ranges: Morsel[][] = [];
  private tables: RangeTables = [];
  /** The table that is being filled. */
  private table?: GroupTable;

  constructor(
    private base: BasePlan,
    private spec: GroupSpec,
    private readonly context: QueryContext,
    private readonly grouper: Grouper,
  ) {
    grouper.prepare(dictionariesOf(base, context));
    if (base.kind === "scan") this.ways = SegmentWays.of(spec, grouper, base.node, context);
    const taker = this.ways?.takerFor(() => this.table!);
    this.reader = openMorsels(base, columnsRead(spec), context, spec.predicates, taker);
    const shape = grouper.fusedShape;
    if (base.kind !== "scan") return;
    this.counter = base.reader;
    if (shape?.kind === "single") {
      this.summed = SummedRows.of(spec, shape.aggregates, base.node, grouper, context);
    }
  }

  /** Prepares tables for these ranges. Base and groups may differ in sources and constants from those that it was made for. */
  begin(base: BasePlan, spec: GroupSpec, ranges: Morsel[][]): void {
    this.base = base;
    this.spec = spec;
    this.ranges = ranges;
    this.tables = [];
  }

  /** Prepares another run over the same rows. Returns false if that is impossible. */
  rewind(): boolean {
    if (this.summed !== undefined || this.ways?.isUsed) return false;
    this.table = undefined;
    this.tables = [];
    return this.reader.rewind?.() === true;
  }

  /** Prepares a run over other rows, or with other constants in conditions. Returns false if that is impossible. */
  rebind(base: BasePlan, predicates: readonly Expr[]): boolean {
    return this.reader.rebind?.(base, predicates) === true;
  }

  run(range: number): void {
    this.tables.push([range, this.fill(this.ranges[range])]);
  }

  fill(morsels: readonly Morsel[]): GroupTable {
    const table = this.grouper.create();
    this.reader.restart?.();
    this.ways?.restart();
    for (const morsel of morsels) this.consume(table, morsel);
    return table;
  }

  /** Returns the number of rows. */
  private consume(table: GroupTable, morsel: Morsel): number {
    const { reader, context, grouper, summed } = this;
    if (summed !== undefined && morsel.lookup === undefined) {
      context.poll();
      if (this.counter !== undefined) context.analysis?.countTaken(this.counter, morsel.end - morsel.start);
      summed.consume(table, morsel);
      return morsel.end - morsel.start;
    }
    let rowCount = 0;
    this.table = table;
    context.poll();
    reader.start(morsel);
    for (let rows = reader.next(); rows !== undefined; rows = reader.next()) {
      context.poll();
      grouper.consume(table, rows.columns, rows.start, rows.end, rows.rowBase);
      rowCount += rows.end - rows.start;
    }
    return rowCount;
  }

  sampleOf(morsel: Morsel): Omit<GroupSample, "scanned"> {
    const table = this.grouper.create();
    const rows = this.consume(table, morsel), groups = this.grouper.groupCount(table);
    const bytes = this.grouper.bytesOf(table);
    this.grouper.drop(table);
    return { groups, rows, bytes };
  }

  finish(): RangeTables {
    return this.tables;
  }

  close(): void {
    this.reader.close();
    this.summed?.close();
    this.ways?.close();
  }
}

registerPartTasks((data, context) => {
  const { base, spec } = data as MorselTask;
  const grouper = new Grouper(spec, typesOfPlan(base), context);
  grouper.prepare(dictionariesOf(base, context));
  return {
    morsels: () => morselsOfPlan(base, spec.predicates, context),
    reader: openMorsels(base, columnsRead(spec), context, spec.predicates),
    grouper,
  };
});

registerRangeTasks((data, context) => {
  const { base, spec } = data as MorselTask;
  const grouper = new Grouper(spec, typesOfPlan(base), context);
  grouper.prepare(dictionariesOf(base, context));
  const ranges = smallRangesOf(morselsOfPlan(base, spec.predicates, context));
  let filler: RangeFiller | undefined;
  return {
    grouper,
    fill: (range) => (filler ??= new RangeFiller(base, spec, context, grouper)).fill(ranges[range]),
    close: () => {
      filler?.close();
      grouper.close();
      flushKernelRows(context.heap.i64);
    },
  };
});

registerTask(TASK, (data, context) => {
  const { base, spec, first } = data as MorselTask;
  const grouper = new Grouper(spec, typesOfPlan(base), context);
  const filler = new RangeFiller(base, spec, context, grouper);
  filler.begin(base, spec, rangesOf(morselsOfPlan(base, spec.predicates, context)));
  return {
    run: (k) => filler.run(first + k),
    finish: () => filler.finish(),
    close: () => {
      filler.close();
      grouper.close();
      flushKernelRows(context.heap.i64);
    },
  };
});
