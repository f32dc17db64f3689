/**
 * WINDOW joins: for each left row, aggregates over the right rows of its key within a window of time. Some left rows at a time, the right rows
 * of their windows are found by search and paired with them, and the aggregates of GROUP BY run over these pairs, with a group for each left
 * row.
 */
import type { Expr, WindowBound, WindowJoinNode } from "../../sql/plan.ts";
import { typeOf } from "../../types/mod.ts";
import { NO_DICTIONARY, OutputColumns, POLL_ROWS, Workspace } from "../columns.ts";
import { columnsOf, mapColumns } from "../compiler/expression.ts";
import { flushKernelRows } from "../compiler/binding.ts";
import type { Batch, Operator, QueryContext, Vector } from "../contract.ts";
import { type CompiledExpressions, compileExpressions, conjuncts } from "../expressions.ts";
import { columnAt, typesOf } from "../physical/reading.ts";
import { type WindowRowsKernels, windowRowsKernels } from "../wasm/window-rows.ts";
import { CallState } from "./call-state.ts";
import { Expressions } from "./input.ts";
import { advance } from "./scan.ts";
import { nextLeftRows, SlidingRows } from "./sliding-rows.ts";

const OPERATOR = "window join";

/** Left rows whose windows are found at a time, and that are output at a time if aggregates have states of one size. */
const LEFT_ROWS = 4_096;

/** Otherwise this many pairs, or one left row: states may have all values of the windows. */
const PAIRS_OF_STATES = 65_536;

/** Pairs that are aggregated at a time. */
const PAIRS = 16_384;

/** Windows of fewer rows are copied row by row. */
const COPIED_MIN = 32;

/** Rows that are tested for one left row at a time, in the search for a prevailing one: these double up to the limit. */
const TESTED_MAX = 1_024;

const NO_TIME = -(1n << 63n);

export function createWindowJoin(
  plan: WindowJoinNode,
  left: Operator,
  right: Operator,
  context: QueryContext,
): Operator {
  return new WindowJoin(plan, left, right, context);
}

class WindowJoin implements Operator {
  readonly columns;
  readonly rowsAtMost;
  private readonly space: Workspace;
  private readonly kernels: WindowRowsKernels;
  private readonly right: SlidingRows;
  /** The time, the keys, the offsets that are not constant, and the conditions on left rows alone. */
  private readonly leftExpressions: Expressions;
  private readonly pairs: Pairs;
  /** For the search of prevailing rows. */
  private readonly residual?: { pairs: Pairs; test: CompiledExpressions };
  private readonly stage: CompiledExpressions;
  private readonly calls: CallState[];
  /** The states of all aggregates have one size. */
  private readonly areStatesSmall: boolean;
  private readonly results: Vector[];

  /** Of the left rows that are output next: their windows as times, and as positions in the lists of right rows. */
  private readonly lows: number;
  private readonly highs: number;
  private readonly groups: Int32Array;
  private readonly firsts: Int32Array;
  private readonly ends: Int32Array;
  /** Positions, or -1. */
  private readonly prevailing?: Int32Array;

  private batch?: { rowCount: number; columns: Vector[]; computed: Vector[] };
  /** The next left row of the batch whose window is not found. */
  private row = 0;
  /** The left rows whose windows are found, and the first of them that is not output. */
  private found: { columns: Vector[]; first: number; count: number } = { columns: [], first: 0, count: 0 };

  constructor(
    private readonly plan: WindowJoinNode,
    private readonly left: Operator,
    right: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = plan.columns;
    this.rowsAtMost = left.rowsAtMost;
    const space = this.space = Workspace.of(context, OPERATOR), leftTypes = typesOf(left.columns);
    this.kernels = windowRowsKernels(context.heap.memory);
    const conditions = plan.residual === undefined ? [] : conjuncts(plan.residual, context);
    const ofLeft = conditions.filter((e) => [...columnsOf(e)].every((index) => index < leftTypes.length));
    const residual = conditions.filter((e) => !ofLeft.includes(e));
    const offsets = [plan.start, plan.end].map(({ offset }) => offset).filter(({ kind }) => kind !== "constant");
    this.leftExpressions = new Expressions(
      [plan.leftTime, ...plan.leftKeys, ...offsets, ...ofLeft],
      leftTypes,
      context,
    );
    const args = plan.aggregates.flatMap((call) => call.args);
    const pairs = this.pairs = new Pairs([...args, ...residual], leftTypes, typesOf(right.columns), space);
    const exprs = [columnAt(0, "INT"), ...args.map((arg) => pairs.over(arg))];
    this.stage = compileExpressions(exprs, residual.map((e) => pairs.over(e)), pairs.types, context, {
      operator: OPERATOR,
    });
    if (residual.length > 0 && plan.includesPrevailing) {
      const test = residual.map((e) => pairs.over(e));
      this.residual = {
        pairs,
        test: compileExpressions([columnAt(0, "INT")], test, pairs.types, context, { operator: OPERATOR }),
      };
      this.prevailing = space.words(LEFT_ROWS);
    }
    this.right = new SlidingRows(
      right,
      {
        time: plan.rightTime,
        keys: plan.rightKeys,
        columns: pairs.rightColumns,
        lastBefore: plan.includesPrevailing,
      },
      space,
      context,
    );
    let first = 1;
    this.calls = plan.aggregates.map((call) => {
      const state = new CallState(call, first, call.distinct ? "hash" : undefined, context, space);
      first += call.args.length;
      return state;
    });
    this.areStatesSmall = plan.aggregates.every((call) =>
      !call.distinct && context.functions.resolve(call.function).entry.aggregate?.kind === "fused"
    );
    this.results = plan.aggregates.map(({ type }) => ({
      type,
      address: space.allocate(LEFT_ROWS * typeOf(type).width),
    }));
    this.lows = space.allocate(8 * LEFT_ROWS);
    this.highs = space.allocate(8 * LEFT_ROWS);
    this.groups = space.words(LEFT_ROWS);
    this.firsts = space.words(LEFT_ROWS);
    this.ends = space.words(LEFT_ROWS);
  }

  next(): Batch | undefined {
    this.context.poll();
    if (this.found.first === this.found.count && !this.findNext()) return undefined;
    const { found, calls } = this, { first } = found, end = found.first = this.endOfStates(first, found.count);
    for (const call of calls) call.restart();
    this.aggregate(found.columns, first, end);
    const n = end - first;
    return {
      rowCount: n,
      columns: [...advance(found.columns, first), ...calls.map((call, k) => this.resultOf(call, k, n))],
    };
  }

  /** Finds the windows of the next left rows. */
  private findNext(): boolean {
    const batch = this.batch ??= this.nextLeft();
    if (batch === undefined) return false;
    const from = this.row, columns = advance(batch.columns, from);
    const count = this.findWindows(batch.computed, from, Math.min(LEFT_ROWS, batch.rowCount - from));
    this.row += count;
    if (this.row === batch.rowCount) this.batch = undefined;
    if (this.residual !== undefined) this.findPrevailing(columns, count);
    this.found = { columns, first: 0, count };
    return true;
  }

  /** The end of the left rows whose states are in memory at the same time. */
  private endOfStates(first: number, count: number): number {
    if (this.areStatesSmall) return count;
    const { firsts, ends } = this;
    let end = first;
    for (let pairs = 0; end < count; end++) {
      pairs += 1 + ends[end] - firsts[end];
      if (pairs > PAIRS_OF_STATES && end > first) break;
    }
    return end;
  }

  private nextLeft() {
    this.row = 0;
    return nextLeftRows(this.left, this.leftExpressions);
  }

  private resultOf(call: CallState, k: number, n: number): Vector {
    const { results, plan: { aggregates } } = this;
    const result = call.finish(results[k], 0, n, n);
    return aggregates[k].type === "SYMBOL" ? { ...result, dictionary: result.dictionary ?? NO_DICTIONARY } : result;
  }

  /** Finds the windows of left rows from … from+most-1, for which the right side is read, or of fewer. Returns their number. */
  private findWindows(computed: readonly Vector[], from: number, most: number): number {
    const { plan: { leftKeys, start, end, includesPrevailing }, kernels, right, lows, highs, residual } = this;
    const [time, ...others] = computed, keys = others.splice(0, leftKeys.length);
    const bound = ({ offset, unit, direction }: WindowBound, out: number) => {
      const isPreceding = direction === "preceding" ? 1 : 0;
      const offsets = offset.kind === "constant" ? 0 : others.shift()!.address;
      const constant = offset.kind === "constant" ? BigInt((offset.value ?? NO_TIME) as bigint) : 0n;
      kernels.bounds(time.address, offsets, constant, unit, isPreceding, from, most, out);
    };
    bound(start, lows);
    bound(end, highs);
    const { i64 } = this.context.heap;
    // The prevailing row may be after a window that ends before it starts.
    const lastOf = (row: number, count: number) => {
      const greatest = kernels.greatest(highs + 8 * row, count);
      return includesPrevailing ? maxOf(greatest, kernels.greatest(lows + 8 * row, count)) : greatest;
    };
    const last = lastOf(0, most);
    // Times of left rows ascend, and so do their windows' starts if all have the same length.
    const ascend = start.offset.kind === "constant" && residual === undefined;
    const read = last === NO_TIME ? last : right.readTo(last, ascend ? i64[lows / 8] : undefined, lastOf(0, 1));
    let n = 1;
    if (read === last) n = most;
    else while (n < most && lastOf(n, 1) <= read) n++;
    const { groups } = this;
    groups.set(right.groupsOf(advance(keys, from), n).subarray(0, n));
    for (const condition of others) {
      const passes = condition.address + from, { u8 } = this.context.heap;
      for (let row = 0; row < n; row++) if (u8[passes + row] !== 1) groups[row] = -1;
    }
    const takesBefore = includesPrevailing && residual === undefined ? 1 : 0;
    kernels.ranges(
      lows,
      highs,
      groups.byteOffset,
      n,
      right.starts,
      right.times,
      takesBefore,
      this.firsts.byteOffset,
      this.ends.byteOffset,
    );
    return n;
  }

  /** With a condition on both sides, the prevailing row is the last one that passes it. The search goes backwards. */
  private findPrevailing(columns: readonly Vector[], n: number): void {
    const { right, firsts, ends, groups, context, space } = this, { heap: { i32, i64 } } = context;
    const { pairs, test } = this.residual!, prevailing = this.prevailing!.fill(-1, 0, n);
    const starts = right.starts / 4, times = right.times / 8, lows = this.lows / 8, highs = this.highs / 8;
    /** By left row: the next position to test. */
    const next = space.words(n);
    let active: number[] = [];
    for (let row = 0; row < n; row++) {
      const group = groups[row];
      if (group < 0 || i64[lows + row] === NO_TIME || i64[highs + row] === NO_TIME) continue;
      const end = i32[starts + group + 1];
      let position = firsts[row];
      while (position < end && i64[times + position] === i64[lows + row]) position++;
      next[row] = position - 1;
      if (position > i32[starts + group]) active.push(row);
    }
    const positions = space.words(PAIRS), tested = space.words(PAIRS);
    for (let most = 1; active.length > 0; most = Math.min(TESTED_MAX, 2 * most)) {
      const found = new Set<number>();
      let count = 0;
      const flush = () => {
        context.poll();
        const passed = test.run(pairs.of(count, columns, right));
        const ordinals = passed.columns[0].address / 4;
        for (let k = 0; k < passed.rowCount; k++) {
          const pair = i32[ordinals + k], row = tested[pair];
          if (found.has(row)) continue;
          found.add(row);
          // A row at the start belongs to the window anyway, unless this ends before.
          if (positions[pair] < firsts[row] || positions[pair] >= ends[row]) prevailing[row] = positions[pair];
        }
        count = 0;
      };
      for (const row of active) {
        const least = Math.max(i32[starts + groups[row]], next[row] - most + 1);
        for (let position = next[row]; position >= least; position--) {
          tested[count] = pairs.leftRows[count] = row;
          positions[count] = position;
          pairs.numbers[count] = count;
          pairs.rightRows[count++] = right.rows[position];
          if (count === PAIRS) flush();
        }
        next[row] = least - 1;
      }
      if (count > 0) flush();
      active = active.filter((row) => !found.has(row) && next[row] >= i32[starts + groups[row]]);
    }
    for (const list of [next, positions, tested]) space.freeWords(list);
  }

  /** Aggregates the windows of left rows start … end-1, with the number of the left row as the group. */
  private aggregate(columns: readonly Vector[], start: number, end: number): void {
    const { pairs, right, firsts, ends, prevailing, context } = this, { leftRows, rightRows, numbers } = pairs;
    const { rows } = right, n = end - start;
    let count = 0;
    const flush = () => {
      context.poll();
      for (let k = 0; k < count; k++) numbers[k] = leftRows[k] - start;
      const staged = this.stage.run(pairs.of(count, columns, right));
      for (const call of this.calls) call.update(staged.columns, staged.rowCount, staged.columns[0].address, n);
      count = 0;
    };
    const add = (row: number, position: number) => {
      leftRows[count] = row;
      rightRows[count++] = rows[position];
      if (count === PAIRS) flush();
    };
    for (let row = start; row < end; row++) {
      if (row % POLL_ROWS === 0) context.poll();
      if (prevailing !== undefined && prevailing[row] >= 0) add(row, prevailing[row]);
      const last = ends[row];
      for (let position = firsts[row]; position < last;) {
        const length = Math.min(last - position, PAIRS - count);
        if (length < COPIED_MIN) add(row, position++);
        else {
          leftRows.fill(row, count, count + length);
          rightRows.set(rows.subarray(position, position + length), count);
          position += length;
          count += length;
          if (count === PAIRS) flush();
        }
      }
    }
    if (count > 0) flush();
    for (const call of this.calls) call.update([], 0, undefined, n);
  }

  close(): void {
    this.leftExpressions.close();
    this.stage.close();
    this.residual?.test.close();
    for (const call of this.calls) call.close();
    this.right.close();
    this.space.release();
    this.left.close();
    flushKernelRows(this.context.heap.i64);
  }
}

function maxOf(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

/** Pairs of left and right rows as columns: a number, then the columns of both sides that expressions read. */
class Pairs {
  readonly types: string[];
  readonly leftRows: Int32Array;
  readonly rightRows: Int32Array;
  readonly numbers: Int32Array;
  readonly rightColumns: number[];
  private readonly leftColumns: number[];
  private readonly output: OutputColumns;

  constructor(exprs: readonly Expr[], leftTypes: readonly string[], rightTypes: readonly string[], space: Workspace) {
    const read = new Set<number>(), leftCount = leftTypes.length;
    for (const expr of exprs) columnsOf(expr, read);
    this.leftColumns = [...read].filter((index) => index < leftCount);
    this.rightColumns = [...read].filter((index) => index >= leftCount).map((index) => index - leftCount);
    const types = [
      ...this.leftColumns.map((index) => leftTypes[index]),
      ...this.rightColumns.map((index) => rightTypes[index]),
    ];
    this.types = ["INT", ...types];
    this.places = new Map([...this.leftColumns, ...this.rightColumns.map((index) => index + leftCount)]
      .map((index, k) => [index, k + 1]));
    this.output = new OutputColumns(types, space, PAIRS);
    this.leftRows = space.words(PAIRS);
    this.rightRows = space.words(PAIRS);
    this.numbers = space.words(PAIRS);
  }

  private readonly places: Map<number, number>;

  /** An expression over left and right columns, over the columns of the pairs. */
  over(expr: Expr): Expr {
    return mapColumns(expr, (index) => columnAt(this.places.get(index)!, this.types[this.places.get(index)!]));
  }

  /** The first `n` pairs. */
  of(n: number, left: readonly Vector[], right: SlidingRows): Batch {
    const { output, leftColumns, rightColumns, leftRows, rightRows, numbers } = this, first = leftColumns.length;
    leftColumns.forEach((index, c) => output.gather(c, left[index], leftRows, n, false));
    rightColumns.forEach((_, k) => output.gather(first + k, right.columns[k], rightRows, n, false));
    return { rowCount: n, columns: [{ type: "INT", address: numbers.byteOffset }, ...output.vectors] };
  }
}
