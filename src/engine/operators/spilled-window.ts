/**
 * Window functions over more rows than the memory holds, in steps: each computes some of the calls, and the next one reads its output. Calls
 * with common keys in PARTITION BY run over rows that are divided on disk by the hashes of these keys, so that a partition of the calls is
 * in one partition of the rows. Calls without keys run over rows that are sorted on disk by their ORDER BY, and need a small state only.
 * The output of each step is in the order of its input, by the numbers that rows carry with them.
 */
import type { Column, SortKey, WindowNode } from "../../sql/plan.ts";
import { typeOf } from "../../types/mod.ts";
import { ColumnStore, repeatFirst, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import type { DividedStep, OrderedStep, WindowStep } from "../physical/plan.ts";
import { columnAt, identity, readingOf, typesOf } from "../physical/reading.ts";
import { dividedInput, RowNumbers, runParts } from "./hash-parts.ts";
import { keepAll, spareBytesOf } from "./input.ts";
import type { MergedRows } from "./merged-rows.ts";
import { Pipeline } from "./pipeline.ts";
import { advance } from "./scan.ts";
import { SortedRuns } from "./sorted-runs.ts";
import { RowsReader, RowsWriter } from "./spilled-rows.ts";
import { createStreamingWindow } from "./window-streaming.ts";

const OPERATOR = "window";

/** Makes the operator of some of the calls over an input. `columns`: those of its output. `isSorted`: the input has the calls' order. */
export type MakeWindow = (
  columns: readonly Column[],
  calls: readonly number[],
  input: Operator,
  isSorted: boolean,
) => Operator;

/** Computes the calls step by step. It closes the input. */
export function windowInSteps(
  plan: WindowNode,
  steps: readonly WindowStep[],
  make: MakeWindow,
  input: Operator,
  context: QueryContext,
): Operator {
  const inputColumns = input.columns, results = plan.columns.slice(inputColumns.length), calls: number[] = [];
  let running = input;
  for (const step of steps) {
    const ofStep = step.kind === "hash partitions" ? step.calls : [...step.near.calls, ...step.calls];
    const added = ofStep.map((k) => results[k]);
    running = step.kind === "hash partitions"
      ? new Divided(step, added, make, running, context)
      : inOrder(plan, step, added, make, running, context);
    calls.push(...ofStep);
  }
  if (calls.every((k, at) => k === at)) return running;
  const placed = results.map(({ type }, k) => columnAt(inputColumns.length + calls.indexOf(k), type));
  return picked(running, [...identity(inputColumns), ...placed], plan.columns, context);
}

/** Outputs expressions over the input's columns. */
function picked(
  input: Operator,
  exprs: ReturnType<typeof identity>,
  columns: readonly Column[],
  context: QueryContext,
): Operator {
  return new Pipeline({ kind: "operator", input }, { ...readingOf(input.columns), exprs, columns }, context);
}

/** A step by common keys. */
class Divided implements Operator {
  readonly columns: readonly Column[];
  private merged?: MergedRows;
  private isRead = false;

  constructor(
    private readonly step: DividedStep,
    private readonly added: readonly Column[],
    private readonly make: MakeWindow,
    private readonly input: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = [...input.columns, ...added];
  }

  next(): Batch | undefined {
    this.merged ??= this.divide();
    return this.merged.next();
  }

  private divide(): MergedRows {
    const { step: { calls, keys }, added, make, input, context } = this, { columns, columns: { length } } = input;
    const withKeys = [...columns, ...keys.map(({ type }, k) => ({ name: `key ${k}`, type }))];
    const keyColumns = keys.map((_, k) => length + k), number = withKeys.length;
    const keyed = picked(input, [...identity(columns), ...keys], withKeys, context);
    // The division closes it.
    this.isRead = true;
    return runParts({
      inputs: [dividedInput(keyed, keyColumns, context, OPERATOR)],
      keys: [keyColumns],
      make: ([rows]) => {
        const over = make([...rows.columns, ...added], calls, rows, false);
        const exprs = [
          ...identity(columns),
          ...added.map(({ type }, k) => columnAt(number + 1 + k, type)),
          columnAt(number, "LONG"),
        ];
        return picked(over, exprs, [...this.columns, NUMBER], context);
      },
      order: [{ column: this.columns.length, descending: false }],
      columnCount: this.columns.length,
      operator: OPERATOR,
    }, context);
  }

  close(): void {
    this.merged?.close();
    if (!this.isRead) this.input.close();
  }
}

const NUMBER: Column = { name: "number", type: "LONG" };

/** A step without keys, over rows in the order of its calls. */
function inOrder(
  plan: WindowNode,
  { sortBy, near, calls, ways, isWhole }: OrderedStep,
  added: readonly Column[],
  make: MakeWindow,
  input: Operator,
  context: QueryContext,
): Operator {
  const { columns } = input, isSorted = sortBy.length === 0;
  let over = isSorted ? input : new SortedOnDisk(sortBy, new Numbered(input, context), context);
  if (near.calls.length > 0) over = new NearRows(near, added.slice(0, near.calls.length), make, over, context);
  if (calls.length > 0) {
    const outputs = [...over.columns, ...added.slice(near.calls.length)];
    const node = { ...plan, calls: calls.map((k) => plan.calls[k]), columns: outputs };
    over = createStreamingWindow(node, ways, over, context);
  }
  if (isWhole.includes(true)) over = new WholeResults(isWhole, over, context);
  if (isSorted) return over;
  const number = columns.length;
  const byNumber = new SortedOnDisk([{ expression: columnAt(number, "LONG"), descending: false }], over, context);
  const exprs = [...identity(columns), ...added.map(({ type }, k) => columnAt(number + 1 + k, type))];
  return picked(byNumber, exprs, [...columns, ...added], context);
}

/** Appends the numbers of the rows as a column. */
class Numbered implements Operator {
  readonly columns: readonly Column[];
  private readonly numbers: RowNumbers;

  constructor(private readonly input: Operator, context: QueryContext) {
    this.columns = [...input.columns, NUMBER];
    this.numbers = new RowNumbers(context, OPERATOR);
  }

  next(): Batch | undefined {
    const batch = this.input.next();
    if (batch === undefined) return undefined;
    const { rowCount, columns } = batch;
    return { rowCount, columns: [...columns, this.numbers.take(rowCount)] };
  }

  close(): void {
    this.numbers.close();
    this.input.close();
  }
}

/** Sorts rows on disk, so that while they are output, the steps above have the memory. */
class SortedOnDisk implements Operator {
  readonly columns: readonly Column[];
  private readonly runs: SortedRuns;
  private merged?: MergedRows;

  constructor(
    private readonly keys: readonly SortKey[],
    private readonly input: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = input.columns;
    this.runs = new SortedRuns(input.columns, keys, context, OPERATOR);
  }

  next(): Batch | undefined {
    this.merged ??= this.sort();
    return this.merged.next();
  }

  private sort(): MergedRows {
    const { runs, keys, input, context } = this, space = Workspace.of(context, OPERATOR);
    try {
      const { store } = keepAll(input, keys.map(({ expression }) => expression), space, context, {
        bytesPerRow: runs.bytesPerRow,
        // The steps below need memory while they output rows.
        bytesBesides: runs.bytesBesides + spareBytesOf(context),
        take: (store) => runs.take(store),
      });
      runs.take(store);
    } finally {
      space.release();
    }
    return runs.merged();
  }

  close(): void {
    this.merged?.close();
    this.runs.close();
    this.input.close();
  }
}

/** Rows whose results are computed together, besides the rows around them. */
const CHUNK_ROWS_MIN = 8_192;

/**
 * Calls that need only some rows before and after the current one, over rows in their order: chunks of rows, with the rows around them, are
 * windows of their own.
 */
class NearRows implements Operator {
  readonly columns: readonly Column[];
  private readonly space: Workspace;
  private readonly store: ColumnStore;
  /** What is not yet in the store of the input's last batch. */
  private batch?: Batch;
  private isEnded = false;
  /** Rows at the start of the store that have been output. */
  private outputCount = 0;
  private chunk?: { window: Operator; position: number; end: number };

  constructor(
    private readonly near: OrderedStep["near"],
    private readonly added: readonly Column[],
    private readonly make: MakeWindow,
    private readonly input: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = [...input.columns, ...added];
    this.space = Workspace.of(context, OPERATOR);
    this.store = new ColumnStore(typesOf(input.columns), this.space);
  }

  next(): Batch | undefined {
    for (;;) {
      const chunk = this.chunk ??= this.nextChunk();
      if (chunk === undefined) return undefined;
      const batch = chunk.window.next();
      if (batch === undefined) {
        this.endChunk(chunk);
        continue;
      }
      const from = Math.max(0, this.outputCount - chunk.position);
      const to = Math.min(batch.rowCount, chunk.end - chunk.position);
      chunk.position += batch.rowCount;
      if (from < to) return { rowCount: to - from, columns: advance(batch.columns, from) };
    }
  }

  private nextChunk() {
    const { store, near: { calls, before, after }, make, added, input } = this;
    this.fill(this.outputCount + Math.max(CHUNK_ROWS_MIN, before + after) + after);
    const end = this.isEnded ? store.rowCount : store.rowCount - after;
    if (end === this.outputCount) return undefined;
    return {
      window: make([...input.columns, ...added], calls, new StoredRows(input.columns, store), true),
      position: 0,
      end,
    };
  }

  private fill(rowCount: number): void {
    const { store, input, context } = this;
    while (store.rowCount < rowCount) {
      const batch = this.batch ?? input.next();
      if (batch === undefined) {
        this.isEnded = true;
        return;
      }
      context.poll();
      const n = Math.min(batch.rowCount, rowCount - store.rowCount), left = batch.rowCount - n;
      store.append(batch.columns, n);
      this.batch = left > 0 ? { rowCount: left, columns: advance(batch.columns, n) } : undefined;
    }
  }

  /** Keeps the rows that the next chunk needs. */
  private endChunk({ window, end }: { window: Operator; end: number }): void {
    const { store, near: { before } } = this, first = Math.max(0, end - before);
    window.close();
    this.chunk = undefined;
    const rows = this.space.words(store.rowCount - first + 1), n = store.rowCount - first;
    for (let k = 0; k < n; k++) rows[k] = first + k;
    store.compact(rows, n);
    this.space.freeWords(rows);
    this.outputCount = end - first;
  }

  close(): void {
    this.chunk?.window.close();
    this.space.release();
    this.input.close();
  }
}

/** The rows of a store, which stays as it is. */
class StoredRows implements Operator {
  readonly rowsAtMost: number;
  private position = 0;

  constructor(readonly columns: readonly Column[], private readonly store: ColumnStore) {
    this.rowsAtMost = store.rowCount;
  }

  next(): Batch | undefined {
    const { store, position } = this, rowCount = Math.min(MORSEL_ROWS, store.rowCount - position);
    if (rowCount === 0) return undefined;
    this.position += rowCount;
    return { rowCount, columns: advance(store.vectors, position) };
  }

  close(): void {}
}

/** Gives all rows the results of the last row, in some of the last columns. */
class WholeResults implements Operator {
  readonly columns: readonly Column[];
  private readonly space: Workspace;
  private rows?: { reader: RowsReader; results: (Vector | undefined)[] };

  /** `isWhole`: for each of the last columns. */
  constructor(
    private readonly isWhole: readonly boolean[],
    private readonly input: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = input.columns;
    this.space = Workspace.of(context, OPERATOR);
  }

  next(): Batch | undefined {
    const { reader, results } = this.rows ??= this.write(), batch = reader.next();
    if (batch === undefined) return undefined;
    return { rowCount: batch.rowCount, columns: batch.columns.map((column, c) => results[c] ?? column) };
  }

  private write() {
    const { columns, input, space, context, isWhole } = this,
      types = typesOf(columns),
      first = columns.length - isWhole.length;
    const writer = new RowsWriter(types, context, OPERATOR), last = new ColumnStore(types.slice(first), space);
    try {
      for (let batch = input.next(); batch !== undefined; batch = input.next()) {
        const { rowCount } = batch;
        if (rowCount === 0) continue;
        writer.append(batch.columns, rowCount);
        last.clear();
        last.append(batch.columns.slice(first), 1, rowCount - 1);
      }
      const rows = writer.finish();
      context.spill!.countPart();
      const results = types.map((_, c) =>
        c >= first && isWhole[c - first] && last.rowCount > 0 ? this.repeated(last.vectors[c - first]) : undefined
      );
      return { reader: new RowsReader(rows, context, OPERATOR), results };
    } finally {
      writer.close();
    }
  }

  private repeated({ type, address }: Vector): Vector {
    const { width } = typeOf(type), { heap } = this.context, target = this.space.allocate(MORSEL_ROWS * width);
    heap.u8.copyWithin(target, address, address + width);
    repeatFirst(heap, target, width, MORSEL_ROWS);
    return { type, address: target };
  }

  close(): void {
    this.rows?.reader.close();
    this.space.release();
    this.input.close();
  }
}
