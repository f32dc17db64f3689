/**
 * GROUP BY, and aggregates without keys. Rows of a scan are cut into ranges of morsels, the same ranges however many workers there
 * are; each range has a table of its own, and the tables are merged in order. So sums of floats come out the same in every run, and
 * groups in the order of their first rows.
 */
import type { AggregateNode, Column, Expr } from "../../sql/plan.ts";
import { typeOf } from "../../types/mod.ts";
import { NO_DICTIONARY, Workspace } from "../columns.ts";
import { columnsOf } from "../compiler/expression.ts";
import { flushKernelRows } from "../compiler/binding.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { registerTask } from "../parallel.ts";
import { dictionariesOf, morselsOfPlan, openBase, openMorsels, planOf, scanOf, typesOfPlan } from "./base.ts";
import { asPipeline } from "./filter-project.ts";
import { DistinctCount } from "./distinct-count.ts";
import { DISTINCT_ROWS_MIN, groupsWithDistinctCounts } from "./distinct-groups.ts";
import { canPartition, groupInParts, registerPartTasks } from "./group-partitions.ts";
import { GroupedBatches } from "./group-batches.ts";
import { Grouper, type GroupSpec, type GroupTable } from "./group-table.ts";
import { isVolatile, type Pipeline } from "./pipeline.ts";
import type { BasePlan, MorselReader, PipelineBase, RowReader } from "./base-plan.ts";
import { type Morsel, rangesOf } from "./morsels.ts";

/** From so many rows on, and so many groups in the first morsel, rows are written out in parts first. */
const PARTITION_ROWS_MIN = 500_000;
const MANY_GROUPS = 8_192;
/** Rows that come of one row of the scan, at most, on the average. */
const PARTITION_PAIRS_MAX = 2;

export function createAggregate(
  node: AggregateNode,
  input: Operator,
  context: QueryContext,
  distinctRowsMin = DISTINCT_ROWS_MIN,
): Operator {
  const pipeline = asPipeline(input, context);
  if (isDistinctCount(node, context) && pipeline.canBeRead()) {
    const [{ args: [value] }] = node.aggregates;
    const groups: AggregateNode = {
      ...node,
      keys: [value],
      aggregates: [],
      columns: [{ name: "value", type: value.type }],
    };
    return new DistinctCount(node, pipeline, context, () => new Aggregate(groups, pipeline, context));
  }
  const group = (part: AggregateNode, of: Operator) => createAggregate(part, of, context, Infinity);
  const counts = groupsWithDistinctCounts(node, pipeline, context, group, distinctRowsMin);
  if (counts !== undefined) return counts;
  const fusedCalls = node.aggregates.every((call) =>
    !call.distinct && context.functions.resolve(call.function).entry.aggregate?.kind === "fused"
  );
  return fusedCalls ? new Aggregate(node, pipeline, context) : new GroupedBatches(node, pipeline, context);
}

/** One count of the distinct values of one expression, without keys. */
function isDistinctCount({ keys, aggregates }: AggregateNode, context: QueryContext): boolean {
  if (keys.length > 0 || aggregates.length !== 1 || aggregates[0].args.length !== 1) return false;
  const { name } = context.functions.resolve(aggregates[0].function).entry;
  return name === "count_distinct" || (name === "count" && aggregates[0].distinct);
}

/** The node's keys and calls over the columns of the pipeline's base. */
function specOf(node: AggregateNode, pipeline: Pipeline): GroupSpec {
  const over = (exprs: readonly Expr[]) => exprs.map((expr) => pipeline.over(expr));
  return {
    predicates: pipeline.predicates,
    keys: over(node.keys),
    calls: node.aggregates.map((call) => ({ function: call.function, args: over(call.args), type: call.type })),
    rowIdColumn: pipeline.rowIdColumn,
    expectedRows: expectedRows(pipeline.base),
  };
}

function expectedRows(base: PipelineBase): number {
  return base.kind === "scan" ? base.source.rowCount : base.kind === "join" ? expectedRows(base.join.left.base) : 0;
}

class Aggregate implements Operator {
  readonly columns: readonly Column[];
  private readonly pipeline: Pipeline;
  private readonly grouper: Grouper;
  private readonly spec: GroupSpec;
  private readonly space: Workspace;
  private table?: GroupTable;
  private out?: Vector[];
  private position = 0;
  /** Reads the table, where that is another than filled it. */
  private finisher?: Grouper;

  constructor(node: AggregateNode, pipeline: Pipeline, private readonly context: QueryContext) {
    this.columns = node.columns;
    this.pipeline = pipeline.canBeRead() ? pipeline : asPipeline(pipeline, context, true);
    this.spec = specOf(node, this.pipeline);
    this.grouper = new Grouper(this.spec, this.pipeline.baseTypes, context);
    this.space = Workspace.of(context, "GROUP BY");
  }

  next(): Batch | undefined {
    this.table ??= this.fill();
    const { table, columns } = this, grouper = this.finisher ?? this.grouper;
    const rowCount = Math.min(MORSEL_ROWS, grouper.groupCount(table) - this.position);
    if (rowCount <= 0) return undefined;
    this.context.poll();
    if (this.out === undefined) {
      const dictionaries = grouper.outputDictionaries(columns);
      this.out = columns.map(({ type }, k) => ({
        type,
        address: this.space.allocate(rowCount * typeOf(type).width),
        dictionary: dictionaries[k],
      }));
    }
    const addresses = this.out.map((vector) => vector.address);
    const keyCount = this.spec.keys.length;
    grouper.finish(
      table,
      this.position,
      this.position + rowCount,
      addresses.slice(0, keyCount),
      addresses.slice(keyCount),
    );
    this.position += rowCount;
    return { rowCount, columns: this.out };
  }

  private fill(): GroupTable {
    const { base } = this.pipeline;
    const plan = planOf(base);
    if (plan !== undefined) return this.fillByMorsels(plan);
    const rows = openBase(base, this.spec.predicates, [], columnsRead(this.spec), this.context);
    try {
      return this.fillInOrder(rows);
    } finally {
      rows.close();
    }
  }

  private fillInOrder(reader: RowReader): GroupTable {
    let table: GroupTable | undefined;
    for (let rows = reader.next(); rows !== undefined; rows = reader.next()) {
      this.context.poll();
      this.grouper.prepare(rows.columns.map((column) => column.dictionary));
      table ??= this.grouper.create();
      this.grouper.consume(table, rows.columns, rows.start, rows.end, rows.rowBase);
    }
    if (table === undefined) {
      this.grouper.prepare(this.pipeline.baseTypes.map((type) => (type === "SYMBOL" ? NO_DICTIONARY : undefined)));
      table = this.grouper.create();
    }
    return table;
  }

  private fillByMorsels(base: BasePlan): GroupTable {
    const { context, grouper, spec } = this, { source } = scanOf(base, context);
    const data: MorselTask = { base, spec };
    const morsels = morselsOfPlan(base, spec.predicates, context);
    if (
      base.kind === "scan" && spec.keys.length === 0 && spec.predicates.length === 0 &&
      spec.calls.every((call) => call.args.length === 0)
    ) return this.countOf(morsels);
    const ranges = rangesOf(morsels);
    grouper.prepare(dictionariesOf(base, context));
    const first = source.rowCount >= PARTITION_ROWS_MIN && grouper.kind === "hash" && ranges.length > 1
      ? this.sampleOf(base, ranges[0][0])
      : undefined;
    const hasMany = first !== undefined && first.groups >= MANY_GROUPS;
    // All rows are written out: not where a join makes many rows of few.
    if (hasMany && canPartition(grouper) && first.rows <= PARTITION_PAIRS_MAX * first.scanned) {
      const reader = openMorsels(base, columnsRead(spec), context);
      try {
        const parts = groupInParts(data, { ranges, reader, grouper }, context, this.space);
        this.finisher = parts.grouper;
        return parts.table;
      } finally {
        reader.close();
      }
    }
    // Tables of many texts would be as large as the rows. Functions that count their calls must see all rows, in order.
    const isVolatileSpec = [...spec.predicates, ...spec.keys, ...spec.calls.flatMap((call) => call.args)].some((expr) =>
      isVolatile(expr, context)
    );
    if (hasMany || isVolatileSpec) ranges.splice(0, ranges.length, morsels);
    const tables: GroupTable[] = [];
    if (context.parallel !== undefined && ranges.length > 1) {
      for (const result of context.parallel.run(TASK, data, ranges.length) as RangeTables[]) {
        for (const [range, table] of result) {
          tables[range] = table;
        }
      }
    } else {
      const participant = new RangeFiller(base, spec, context, grouper, ranges);
      try {
        ranges.forEach((_, range) => participant.run(range));
      } finally {
        participant.close();
      }
      for (const [range, table] of participant.finish()) tables[range] = table;
    }
    if (tables.length === 0) return grouper.create();
    for (const later of tables.slice(1)) grouper.merge(tables[0], later);
    return tables[0];
  }

  /** Aggregates that read no column see rows that are all alike: the state after 2n rows is that after n, merged with itself. */
  private countOf(morsels: readonly Morsel[]): GroupTable {
    const { grouper } = this;
    grouper.prepare([]);
    const table = grouper.create(), power = grouper.create();
    grouper.consume(power, [], 0, 1, 0n);
    for (
      let rows = morsels.reduce((sum, { start, end }) => sum + end - start, 0);
      rows > 0;
      rows = Math.floor(rows / 2)
    ) {
      if (rows % 2 === 1) grouper.add(table, power);
      grouper.add(power, power);
    }
    grouper.drop(power);
    return table;
  }

  /** What one morsel comes to. */
  private sampleOf(base: BasePlan, morsel: Morsel): { groups: number; rows: number; scanned: number } {
    const filler = new RangeFiller(base, this.spec, this.context, this.grouper);
    try {
      return { ...filler.sampleOf(morsel), scanned: morsel.end - morsel.start };
    } finally {
      filler.close();
    }
  }

  close(): void {
    if (this.table !== undefined) this.grouper.drop(this.table);
    this.finisher?.close();
    this.grouper.close();
    this.space.release();
    this.pipeline.close();
    flushKernelRows(this.context.heap.i64);
  }
}

const TASK = "GROUP BY";

interface MorselTask {
  base: BasePlan;
  spec: GroupSpec;
}

type RangeTables = [range: number, table: GroupTable][];

/** The columns of the base that are read. */
function columnsRead(spec: GroupSpec): Set<number> {
  const needed = new Set<number>();
  for (const expr of [...spec.predicates, ...spec.keys, ...spec.calls.flatMap((call) => call.args)]) {
    columnsOf(expr, needed);
  }
  return needed;
}

/** Fills the tables of ranges, on any thread. */
class RangeFiller {
  private readonly reader: MorselReader;
  private readonly ranges: Morsel[][];
  private readonly tables: RangeTables = [];

  constructor(
    base: BasePlan,
    spec: GroupSpec,
    private readonly context: QueryContext,
    private readonly grouper: Grouper,
    ranges?: Morsel[][],
  ) {
    this.ranges = ranges ?? rangesOf(morselsOfPlan(base, spec.predicates, context));
    grouper.prepare(dictionariesOf(base, context));
    this.reader = openMorsels(base, columnsRead(spec), context);
  }

  run(range: number): void {
    const table = this.grouper.create();
    this.tables.push([range, table]);
    for (const morsel of this.ranges[range]) this.consume(table, morsel);
  }

  /** Gives how many rows there were. */
  private consume(table: GroupTable, morsel: Morsel): number {
    const { reader, context, grouper } = this;
    let rowCount = 0;
    reader.start(morsel);
    for (let rows = reader.next(); rows !== undefined; rows = reader.next()) {
      context.poll();
      grouper.consume(table, rows.columns, rows.start, rows.end, rows.rowBase);
      rowCount += rows.end - rows.start;
    }
    return rowCount;
  }

  sampleOf(morsel: Morsel): { groups: number; rows: number } {
    const table = this.grouper.create();
    const rows = this.consume(table, morsel), groups = this.grouper.groupCount(table);
    this.grouper.drop(table);
    return { groups, rows };
  }

  finish(): RangeTables {
    return this.tables;
  }

  close(): void {
    this.reader.close();
  }
}

registerPartTasks((data, context) => {
  const { base, spec } = data as MorselTask;
  const grouper = new Grouper(spec, typesOfPlan(base, context), context);
  grouper.prepare(dictionariesOf(base, context));
  return {
    ranges: rangesOf(morselsOfPlan(base, spec.predicates, context)),
    reader: openMorsels(base, columnsRead(spec), context),
    grouper,
  };
});

registerTask(TASK, (data, context) => {
  const { base, spec } = data as MorselTask;
  const grouper = new Grouper(spec, typesOfPlan(base, context), context);
  const filler = new RangeFiller(base, spec, context, grouper);
  return {
    run: (range) => filler.run(range),
    finish: () => filler.finish(),
    close: () => {
      filler.close();
      grouper.close();
      flushKernelRows(context.heap.i64);
    },
  };
});
