/**
 * The first rows of ORDER BY … LIMIT over a scan, by their keys alone. One kernel filters, and drops rows whose first
 * key is beyond that of the last wanted row so far. The most promising segments by their statistics are processed
 * first, and segments that cannot contain such a row are skipped, as are vectors by their summaries. Only then are the other columns of the
 * selected rows fetched.
 */
import { assert } from "../../assert.ts";
import type { Column, Expr, ScanNode, SortKey } from "../../sql/plan.ts";
import {
  type ColumnStats,
  type RowRange,
  type ScanSource,
  SUMMARY,
  SUMMARY_ROWS,
  SUMMARY_WORDS,
} from "../../storage/contract.ts";
import { typeOf, valueIn } from "../../types/mod.ts";
import { ColumnStore, Workspace } from "../columns.ts";
import { BoundKernel, flushKernelRows } from "../compiler/binding.ts";
import { columnsOf, formOf } from "../compiler/expression.ts";
import { f32, f64, i32, i64, input, type IrNode } from "../compiler/ir.ts";
import { projectKernel, type ProjectOutput } from "../compiler/project.ts";
import { type Batch, type Changes, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { dictionaryOf, fuse } from "../expressions.ts";
import { compareRows, sortedRows } from "../order.ts";
import { registerTask } from "../parallel.ts";
import { scanDictionaries, sourceOf } from "../physical/facts.ts";
import type { SortWay } from "../physical/plan.ts";
import { PassedRows } from "./passed-rows.ts";
import { PlacedRows, placeOf } from "./placed-rows.ts";
import { ScanReader } from "./scan.ts";
import type { Morsel } from "./morsel.ts";
import { morselsOf } from "./morsels.ts";

const OPERATOR = "sort";
const TASK = "top rows";
/** The first rows are processed in short runs: finding a bound early saves work on the others. */
const FIRST_RUN_ROWS = 1_024;
/** Number of rows that the leader searches before it involves other workers, which takes them longer than the few vectors of many segments. */
const ALONE_ROWS = 24 * MORSEL_ROWS;
/** Memory for the summaries of a segment, and for what follows them when they are read. */
const SUMMARIES_BYTES = 8 * SUMMARY_WORDS * (MORSEL_ROWS / SUMMARY_ROWS + 1);

interface TopTask {
  node: ScanNode;
  reader?: number;
  predicates: readonly Expr[];
  /** Over the scan's columns. */
  keys: readonly SortKey[];
  limit: number;
  /** A first key that the last wanted row does not exceed. Undefined if none is known. */
  bound: number | bigint | undefined;
  /** Number of morsels that are done. */
  skip: number;
}

type TopWay = Extract<SortWay, { kind: "top" }>;

/** See `placeOf`. */
type RowList = number[];

/** The scan's rows without those that the sort does not need. */
export function createTopRows({ reading, keys, limit, helpFromRows }: TopWay, context: QueryContext): Operator {
  const { base, predicates, exprs, reader } = reading;
  assert(base.kind === "scan", "top rows are read from a scan");
  const { node } = base;
  const task: TopTask = { node, reader, predicates, keys, limit, bound: undefined, skip: 0 };
  const needed = new Set<number>();
  for (const expr of exprs) columnsOf(expr, needed);
  return new TopRows(task, needed, context, helpFromRows);
}

/** True for all values not beyond `bound`, and for some others: NaN passes, because it is the greatest. */
function notBehind(key: IrNode, bound: IrNode, descending: boolean): IrNode {
  switch (key.type) {
    case "i32":
      return descending ? i32.geS(key, bound) : i32.leS(key, bound);
    case "i64":
      return descending ? i64.geS(key, bound) : i64.leS(key, bound);
    case "f32":
      return i32.eqz(descending ? f32.lt(key, bound) : f32.gt(key, bound));
    case "f64":
      return i32.eqz(descending ? f64.lt(key, bound) : f64.gt(key, bound));
  }
}

/** A bound that excludes no value. */
function openBound(key: IrNode, descending: boolean): number | bigint {
  if (key.type === "i64") return descending ? -(1n << 63n) : (1n << 63n) - 1n;
  return key.type === "i32" ? (descending ? -(2 ** 31) : 2 ** 31 - 1) : NaN;
}

/** The bits of a row's value, for a kernel's constant. */
function boundAt(context: QueryContext, { type, address }: Vector, row: number): number | bigint {
  const value = valueIn(context.heap, type, address, row), { nullValue, toBits } = typeOf(type);
  return value === null ? nullValue : toBits(value);
}

/** A morsel with the best possible first key of its rows; undefined if unknown. */
interface Candidate extends Morsel {
  best: number | bigint | undefined;
}

/** Booleans and characters have no statistics that order them. */
function hasStatistics({ expression }: SortKey, { columnIds }: ScanNode): boolean {
  return expression.kind === "column" && expression.index < columnIds.length &&
    ["i32", "i64", "f32", "f64"].includes(formOf(expression.type)!);
}

/** The scan's morsels, the most promising first. */
function candidatesOf({ node, keys }: TopTask, source: ScanSource, context: QueryContext): Candidate[] {
  const [{ expression, descending }] = keys;
  const isFloat = typeOf(expression.type).order === "float";
  const known = expression.kind === "column" && hasStatistics(keys[0], node) ? expression.index : undefined;
  const bestOf = (stats: ColumnStats | undefined) => {
    if (stats === undefined || (stats.nullCount > 0 && (isFloat || !descending))) return undefined;
    return descending ? stats.max : stats.min;
  };
  const candidates = morselsOf(node, source, context).map((morsel): Candidate => ({
    ...morsel,
    best: known === undefined ? undefined : bestOf(source.segments.at(morsel.segment)!.chunks[known]?.stats),
  }));
  const sign = descending ? -1 : 1;
  return candidates.sort((a, b) => {
    if (a.best === undefined || b.best === undefined) {
      return Number(a.best !== undefined) - Number(b.best !== undefined);
    }
    return a.best === b.best ? 0 : a.best < b.best ? -sign : sign;
  });
}

/** One participant's search: the keys and positions of the best rows so far. */
class Finder {
  readonly candidates: Candidate[];
  private readonly reader: ScanReader;
  /** Keys, then segment << 32 | row. */
  private readonly store: ColumnStore;
  private readonly found: Vector[];
  private readonly better: Int32Array;
  private readonly passed?: PassedRows;
  /** Address of the summaries of a segment's first key; 0 if it has none. */
  private readonly summaries: number;
  private runRows = FIRST_RUN_ROWS;
  /** The store's rows are in order, and their number has reached the limit. */
  private isFull = false;

  static open(task: TopTask, context: QueryContext): Finder {
    const { node, keys } = task, source = sourceOf(node, context);
    const space = Workspace.of(context, OPERATOR);
    const dictionaries = scanDictionaries(node, source);
    const rowIdColumn = node.columns.length;
    const types = [...node.columns.map((column) => column.type), "LONG"];
    const exprs = keys.map((key) => key.expression);
    const fused = fuse(task.predicates, types, [...dictionaries, undefined], context, space, {
      operator: OPERATOR,
      expectedRows: source.rowCount,
      rowIdColumn,
    });
    const { compiler } = fused, { descending } = keys[0];
    const nodes = exprs.map((expr) => compiler.value(expr, expr.type));
    const bound =
      compiler.inputs.push({ kind: "constant", type: nodes[0].type, value: openBound(nodes[0], descending) }) - 1;
    const test = notBehind(nodes[0], input(bound, nodes[0].type), descending);
    const predicate = fused.predicate === undefined ? test : i32.and(fused.predicate, test);
    const outputs = nodes.map((node, k): ProjectOutput => ({ kind: "value", node, form: formOf(exprs[k].type)! }));
    outputs.push({ kind: "value", node: compiler.column(rowIdColumn), form: "i64" });
    const compiled = projectKernel(context.heap.memory, compiler.inputs, predicate, outputs);
    const kernel = new BoundKernel(compiled, compiler.inputs, context, space);
    const finder = new Finder(
      task,
      context,
      space,
      kernel,
      bound,
      exprs.map((expr) => dictionaryOf(expr, dictionaries)),
    );
    if (task.bound !== undefined) finder.setBound(task.bound);
    return finder;
  }

  private constructor(
    private readonly task: TopTask,
    private readonly context: QueryContext,
    private readonly space: Workspace,
    private readonly kernel: BoundKernel,
    private readonly boundInput: number,
    dictionaries: Vector["dictionary"][],
  ) {
    const { node, predicates, keys } = task;
    this.candidates = candidatesOf(task, sourceOf(task.node, context), context);
    const needed = new Set<number>();
    for (const expr of [...predicates, ...keys.map((key) => key.expression)]) columnsOf(expr, needed);
    this.reader = new ScanReader(node, needed, context);
    const types = [...keys.map((key) => key.expression.type), "LONG"];
    this.store = new ColumnStore(types, space);
    this.found = types.map((type, k): Vector => ({
      type,
      address: space.allocate(MORSEL_ROWS * typeOf(type).width + 16),
      dictionary: dictionaries[k],
    }));
    this.found.forEach(({ address }, k) => kernel.setI32(kernel.cells[`out${k}`], address));
    this.better = space.words(MORSEL_ROWS);
    this.summaries = hasStatistics(keys[0], node) ? space.allocate(SUMMARIES_BYTES) : 0;
    const columnTypes = node.columns.map((column) => column.type);
    const columnDictionaries = scanDictionaries(node, sourceOf(node, context));
    this.passed = PassedRows.of(task.reader, predicates, columnTypes, columnDictionaries, context);
  }

  bound: number | bigint | undefined;
  rowsRead = 0;

  private setBound(value: number | bigint): void {
    this.bound = value;
    this.kernel.setConstant(this.boundInput, value);
  }

  /** True if a row of the candidate can still be among the first. */
  isPromising({ best }: Candidate): boolean {
    const { bound } = this;
    return best === undefined || bound === undefined || !(this.task.keys[0].descending ? best < bound : best > bound);
  }

  run(candidate: Candidate): void {
    if (!this.isPromising(candidate)) return;
    const { start, end } = candidate, { reader } = this.task;
    if (reader !== undefined) this.context.analysis?.countTaken(reader, end - start);
    for (const range of this.promisingRows(candidate)) this.read(candidate.segment, range);
  }

  private read(segment: number, rows: RowRange): void {
    this.reader.count(rows.to - rows.from);
    this.rowsRead += rows.to - rows.from;
    const columns = this.reader.open(segment, rows, { isAgain: true });
    this.passed?.count(columns, rows.from, rows.to);
    this.kernel.setColumns(columns, BigInt(segment) << 32n);
    for (let { from } = rows; from < rows.to; this.runRows = Math.min(2 * this.runRows, MORSEL_ROWS)) {
      this.context.poll();
      const to = Math.min(rows.to, from + this.runRows);
      this.take(this.kernel.run(from, to));
      from = to;
    }
  }

  /** The candidate's rows without the vectors whose summaries exclude them, if these are most of its rows. */
  private promisingRows({ segment, start, end }: Candidate): RowRange[] {
    const all = [{ from: start, to: end }];
    const { summaries, context: { pool, heap, analysis }, task: { node, keys: [{ expression }] } } = this;
    // All rows are tested to count those that pass the conditions.
    if (summaries === 0 || this.bound === undefined || this.passed !== undefined) return all;
    assert(expression.kind === "column");
    const bytes = heap.u8.subarray(summaries, summaries + SUMMARIES_BYTES);
    if (!pool.summaries(this.reader.source, segment, expression.index, bytes)) return all;
    this.reader.countFrames();
    const ranges: RowRange[] = [];
    let left = 0;
    for (let from = start, to = start; from < end; from = to) {
      to = Math.min(end, (Math.floor(from / SUMMARY_ROWS) + 1) * SUMMARY_ROWS);
      if (!this.isVectorPromising(Math.floor(from / SUMMARY_ROWS))) continue;
      left += to - from;
      const isNext = ranges.at(-1)?.to === from;
      ranges.push({ from: isNext ? ranges.pop()!.from : from, to });
    }
    if (left > (end - start) / 2) return all;
    analysis?.countSummarised(node.id, Math.ceil(end / SUMMARY_ROWS) - Math.floor(start / SUMMARY_ROWS));
    return ranges;
  }

  private isVectorPromising(vector: number): boolean {
    const { context: { heap }, task: { keys: [{ expression: { type }, descending }] } } = this;
    const at = this.summaries / 8 + vector * SUMMARY_WORDS, counts = 2 * (at + SUMMARY.counts);
    const isFloat = typeOf(type).order === "float", valueCount = heap.i32[counts], rowCount = heap.i32[counts + 1];
    // NULL is the greatest of floats and the least of integers.
    if (valueCount === 0 || (valueCount < rowCount && (isFloat || !descending))) return true;
    const best = (isFloat ? heap.f64 : heap.i64)[at + (descending ? SUMMARY.max : SUMMARY.min)];
    return !(descending ? best < this.bound! : best > this.bound!);
  }

  /** Adds `count` rows that the kernel passed. */
  private take(count: number): void {
    const { store, found, better, task: { limit, keys } } = this;
    if (!this.isFull) store.append(found, count);
    else {
      let n = 0;
      for (let row = 0; row < count; row++) if (this.isBetter(row)) better[n++] = row;
      store.appendRows(found, better, n);
    }
    if (store.rowCount < 2 * limit) return;
    // Rows of later segments may have been processed first, so the position is the last key.
    const place: SortKey = { expression: { kind: "column", index: 0, type: "LONG" }, descending: false };
    const order = sortedRows(store.vectors, [...keys, place], store.rowCount, this.space, () => this.context.poll());
    store.compact(order, limit);
    this.space.freeWords(order);
    this.isFull = true;
    this.setBound(boundAt(this.context, store.vectors[0], limit - 1));
  }

  /** True if a row comes before the last one wanted. */
  private isBetter(row: number): boolean {
    const { store, found, task: { keys, limit } } = this, { heap } = this.context;
    for (let k = 0; k < keys.length; k++) {
      const order = compareRows(heap, found[k], row, store.vectors[k], limit - 1);
      if (order !== 0) return keys[k].descending === order > 0;
    }
    return compareRows(heap, found[keys.length], row, store.vectors[keys.length], limit - 1) < 0;
  }

  rows(): RowList {
    const { i32 } = this.context.heap, at = this.store.vectors.at(-1)!.address >>> 2;
    const list: RowList = [];
    for (let k = 0; k < this.store.rowCount; k++) list.push(placeOf(i32[at + 2 * k + 1]!, i32[at + 2 * k]!));
    return list;
  }

  /** Upper bound of the rows in the remaining candidates. */
  rowsLeft(from: number): number {
    return this.candidates.slice(from).reduce(
      (sum, candidate) => sum + (this.isPromising(candidate) ? candidate.end - candidate.start : 0),
      0,
    );
  }

  close(): void {
    this.reader.close();
    this.passed?.close();
    this.space.release();
    flushKernelRows(this.context.heap.i64);
  }
}

/** Fetches the needed columns of the selected rows, in table order. */
class TopRows implements Operator {
  readonly columns: readonly Column[];
  private readonly rows: PlacedRows;
  private finder?: Finder;
  private hasStarted = false;

  constructor(
    private task: TopTask,
    needed: ReadonlySet<number>,
    private readonly context: QueryContext,
    private readonly helpFromRows: number,
  ) {
    this.columns = task.node.columns;
    this.rows = new PlacedRows(task.node, needed, context, OPERATOR);
  }

  next(): Batch | undefined {
    if (!this.hasStarted) this.rows.start(this.find());
    this.hasStarted = true;
    return this.rows.next();
  }

  private find(): Float64Array<ArrayBuffer> {
    const { context, task } = this, finder = this.finder = Finder.open(task, context), { candidates } = finder;
    let next = 0;
    // The first candidates give a bound that often excludes all others by their statistics.
    while (
      next < candidates.length &&
      (finder.bound === undefined ||
        (finder.rowsRead < ALONE_ROWS && candidates[next].best !== undefined && finder.isPromising(candidates[next])))
    ) {
      finder.run(candidates[next++]);
    }
    const lists: RowList[] = [];
    if (context.parallel !== undefined && finder.rowsLeft(next) >= this.helpFromRows) {
      context.chose?.("all threads");
      const rest: TopTask = { ...task, bound: finder.bound, skip: next };
      lists.push(...context.parallel.run(TASK, rest, candidates.length - next) as RowList[]);
    } else {
      context.chose?.("one thread");
      for (; next < candidates.length; next++) finder.run(candidates[next]);
    }
    lists.push(finder.rows());
    return Float64Array.from(lists.flat()).sort();
  }

  /** Makes the finder anew, whose buffers are large. */
  rewind(): boolean {
    this.finder?.close();
    this.finder = undefined;
    this.hasStarted = false;
    return true;
  }

  rebind(changes: Changes): boolean {
    const node = changes.scanOf(this.task.node), predicates = changes.take(this.task.predicates);
    this.task = { ...this.task, node, predicates };
    this.rows.rebind(node);
    return true;
  }

  close(): void {
    this.finder?.close();
    this.rows.close();
  }
}

registerTask(TASK, (data, context) => {
  const task = data as TopTask, finder = Finder.open(task, context);
  return {
    run: (morsel) => finder.run(finder.candidates[task.skip + morsel]),
    finish: () => finder.rows(),
    close: () => finder.close(),
  };
});
