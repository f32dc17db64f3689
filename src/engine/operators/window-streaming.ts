/**
 * Windows without look-ahead: calls whose result depends only on earlier rows, over rows in the window's order. Batches are output as
 * they arrive; only a small state for each partition is kept.
 */
import type { Expr, WindowCall, WindowNode } from "../../sql/plan.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { ColumnStore, isNullAt, markNotNull, OutputColumns, Workspace } from "../columns.ts";
import { type Batch, type Changes, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { KeyTable } from "../keys.ts";
import { compareRows } from "../order.ts";
import type { OrderedCall } from "../physical/plan.ts";
import { typesOf } from "../physical/reading.ts";
import { Expressions } from "./input.ts";

/** `calls`: how each call of the plan is computed. */
export function createStreamingWindow(
  plan: WindowNode,
  calls: readonly OrderedCall[],
  input: Operator,
  context: QueryContext,
): Operator {
  return new StreamingWindow(plan, calls, input, context);
}

function stepOf(call: WindowCall, way: OrderedCall): MakeStep {
  switch (way.kind) {
    case "row number":
      return rowNumbers;
    case "count":
      return counts;
    case "lag":
      return lag(call, way.offset);
    case "first value":
      return ends(call, true);
    case "last value":
      return ends(call, false);
    case "sum":
      return sums(call, false);
    case "average":
      return sums(call, true);
    case "moving sum":
      return movingSums(call, way, false);
    case "moving average":
      return movingSums(call, way, true);
    case "least":
      return extremes(call, -1);
    case "greatest":
      return extremes(call, 1);
    case "rank":
      return ranks(false);
    case "dense rank":
      return ranks(true);
  }
}

/** What the step of a call reads. Constants are read from the plan. */
function argsOf(call: WindowCall, { kind }: OrderedCall): Expr[] {
  if (kind === "rank" || kind === "dense rank") return call.orderBy.map(({ expression }) => expression);
  return call.args.filter((arg) => arg.kind !== "constant");
}

/** Writes the results of a batch. `groups[row]` is the row's partition. */
type Step = (args: readonly Vector[], groups: Int32Array, rowCount: number, out: Vector) => void;
type MakeStep = (states: States) => Step;

const FIRST_PARTITIONS = 256;

/** Arrays with some words for each partition, which grow with the number of partitions. */
class States {
  private readonly all: { view: Int32Array; words: number; fill: readonly number[] }[] = [];

  /** `capacity`: partitions that there is space for at first. */
  constructor(readonly space: Workspace, private capacity: number) {}

  /** Returns a getter, because growing replaces the array. */
  make(fill: readonly number[], count = 1): () => Int32Array {
    const words = fill.length * count;
    const state = { view: this.space.words(this.capacity * words), words, fill };
    fillWith(state.view, fill, 0);
    this.all.push(state);
    return () => state.view;
  }

  reserve(groupCount: number): void {
    if (groupCount <= this.capacity) return;
    while (this.capacity < groupCount) this.capacity *= 2;
    for (const state of this.all) {
      const from = state.view.length;
      state.view = this.space.grow(state.view, this.capacity * state.words);
      fillWith(state.view, state.fill, from);
    }
  }
}

function fillWith(view: Int32Array, words: readonly number[], from: number): void {
  for (let at = from; at < view.length; at++) view[at] = words[(at - from) % words.length];
}

/** What a run has of a partitioning and of a call. */
interface Partition {
  table: KeyTable;
  groups?: Int32Array;
}
interface CallRun {
  step: Step;
  states: States;
}

class StreamingWindow implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private readonly calls: { make: MakeStep; args: Expressions; partition: number }[];
  /** The keys of each partitioning. */
  private readonly keys: Expressions[] = [];
  private run?: { partitions: Partition[]; calls: CallRun[]; output: OutputColumns };

  constructor(
    private readonly plan: WindowNode,
    ways: readonly OrderedCall[],
    private readonly input: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = plan.columns;
    this.space = Workspace.of(context, "window");
    const types = typesOf(input.columns), known = new Map<string, number>();
    this.calls = plan.calls.map((call, k) => {
      const name = JSON.stringify(call.partitionBy, (_, value) => typeof value === "bigint" ? `${value}n` : value);
      let partition = known.get(name);
      if (partition === undefined) {
        partition = this.keys.push(new Expressions(call.partitionBy, types, context)) - 1;
        known.set(name, partition);
      }
      const args = new Expressions(argsOf(call, ways[k]), types, context);
      return { make: stepOf(call, ways[k]), args, partition };
    });
  }

  private begin() {
    const { space, context } = this;
    return {
      partitions: this.keys.map(({ types }): Partition => ({
        table: new KeyTable(types, space, () => context.poll()),
      })),
      calls: this.calls.map(({ make, partition }): CallRun => {
        const states = new States(space, this.keys[partition].types.length === 0 ? 1 : FIRST_PARTITIONS);
        return { step: make(states), states };
      }),
      output: new OutputColumns(this.plan.calls.map((call) => call.type), space),
    };
  }

  next(): Batch | undefined {
    const batch = this.input.next();
    if (batch === undefined) return undefined;
    this.context.poll();
    const { rowCount } = batch, { partitions, calls, output } = this.run ??= this.begin();
    partitions.forEach((partition, k) => {
      partition.groups = partition.table.groups(this.keys[k].run(batch), rowCount, true);
    });
    calls.forEach(({ step, states }, k) => {
      const { args, partition } = this.calls[k], { table, groups } = partitions[partition];
      this.context.poll();
      states.reserve(table.count);
      step(args.run(batch), groups!, rowCount, output.vectors[k]);
    });
    return { rowCount, columns: [...batch.columns, ...output.vectors] };
  }

  /** Keeps the kernels of keys and arguments. The states of many partitions take much memory. */
  rewind(): boolean {
    this.space.release();
    this.run = undefined;
    return this.input.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    return this.input.rebind?.(changes) === true;
  }

  close(): void {
    for (const { args } of this.calls) args.close();
    for (const keys of this.keys) keys.close();
    this.space.release();
    this.input.close();
  }
}

const rowNumbers: MakeStep = (states) => {
  const counts = states.make([0, 0]), { i32 } = states.space.heap;
  return (_, groups, rowCount, out) => {
    const numbers = counts();
    for (let row = 0, at = out.address >>> 2; row < rowCount; row++, at += 2) {
      const g = groups[row] * 2;
      const low = numbers[g] + 1 | 0;
      numbers[g] = low;
      if (low === 0) numbers[g + 1]++;
      i32[at] = low;
      i32[at + 1] = numbers[g + 1];
    }
  };
};

/** Keeps the last `offset` values of each partition in a ring. */
function lag(call: WindowCall, offset: number): MakeStep {
  const none = typeOf(call.type).nullWords, words = none.length;
  return (states) => {
    // A ring is initially full of nulls, for rows before the partition's first row.
    const ring = states.make(none, offset), slots = states.make([0]), { i32 } = states.space.heap;
    return ([source], groups, rowCount, out) => {
      const values = ring(), next = slots();
      const from = source.address >>> 2, to = out.address >>> 2;
      if (words === 2) {
        for (let row = 0; row < rowCount; row++) {
          const group = groups[row], slot = next[group], at = (group * offset + slot) * 2;
          const low = i32[from + row * 2], high = i32[from + row * 2 + 1];
          i32[to + row * 2] = values[at];
          i32[to + row * 2 + 1] = values[at + 1];
          values[at] = low;
          values[at + 1] = high;
          next[group] = slot + 1 === offset ? 0 : slot + 1;
        }
      } else {
        for (let row = 0; row < rowCount; row++) {
          const group = groups[row], slot = next[group], at = group * offset + slot;
          const value = i32[from + row];
          i32[to + row] = values[at];
          values[at] = value;
          next[group] = slot + 1 === offset ? 0 : slot + 1;
        }
      }
    };
  };
}

/** first_value and last_value of all rows up to the current one. */
function ends(call: WindowCall, first: boolean): MakeStep {
  const none = typeOf(call.type).nullWords, words = none.length;
  return (states) => {
    const kept = states.make(none), known = states.make([0]), { heap } = states.space, { i32 } = heap;
    return ([source], groups, rowCount, out) => {
      const values = kept(), has = known();
      for (let row = 0; row < rowCount; row++) {
        const group = groups[row], from = (source.address >>> 2) + row * words;
        const takes = first ? has[group] === 0 : true;
        if (takes && !(call.ignoreNulls && isNullAt(heap, source.type, source.address, row))) {
          has[group] = 1;
          for (let k = 0; k < words; k++) values[group * words + k] = i32[from + k];
        }
        for (let k = 0, to = (out.address >>> 2) + row * words; k < words; k++) i32[to + k] = values[group * words + k];
      }
    };
  };
}

/** Rows whose argument is not null. */
const counts: MakeStep = (states) => {
  const counts = states.make([0, 0]), { i32 } = states.space.heap, marks = states.space.bytes(MORSEL_ROWS);
  return ([source], groups, rowCount, out) => {
    markNotNull(states.space.heap, source, rowCount, marks);
    const numbers = counts();
    for (let row = 0, at = out.address >>> 2; row < rowCount; row++, at += 2) {
      const g = groups[row] * 2;
      if (marks[row] !== 0 && (numbers[g] = numbers[g] + 1 | 0) === 0) numbers[g + 1]++;
      i32[at] = numbers[g];
      i32[at + 1] = numbers[g + 1];
    }
  };
};

/** Returns the index in `heap.f64` of a column's values as doubles. */
function doublesOf({ type }: Expr, { space }: States): (source: Vector, rowCount: number) => number {
  if (layoutOf(type) === "f64") return ({ address }) => address >>> 3;
  const scratch = space.allocate(MORSEL_ROWS * 8);
  return (source, rowCount) => {
    toDoubles(space.heap, source, rowCount, scratch);
    return scratch >>> 3;
  };
}

/** In double-double arithmetic, like sums over frames. */
function sums({ args: [arg] }: WindowCall, mean: boolean): MakeStep {
  return (states) => {
    // Sum, rest, count: three doubles.
    const state = states.make([0, 0, 0, 0, 0, 0]), { heap } = states.space;
    const doubles = doublesOf(arg, states);
    return ([source], groups, rowCount, out) => {
      const from = doubles(source, rowCount);
      const words = state(),
        totals = heap.f64.subarray(words.byteOffset >>> 3, (words.byteOffset + words.byteLength) >>> 3);
      const { f64 } = heap, to = out.address >>> 3;
      for (let row = 0; row < rowCount; row++) {
        const at = groups[row] * 3, value = f64[from + row];
        if (value === value) {
          const before = totals[at], s = before + value, t = s - before;
          totals[at + 1] += (before - (s - t)) + (value - t);
          totals[at] = s;
          totals[at + 2]++;
        }
        const n = totals[at + 2];
        f64[to + row] = n === 0 ? NaN : mean ? (totals[at] + totals[at + 1]) / n : totals[at] + totals[at + 1];
      }
    };
  };
}

/**
 * Sum or mean of the rows from `first` rows before the current one to `last` rows before it. Like sums over frames, each value is added and
 * later subtracted in double-double arithmetic.
 */
function movingSums(
  { args: [arg] }: WindowCall,
  { first, last }: OrderedCall & { kind: "moving sum" | "moving average" },
  mean: boolean,
): MakeStep {
  // The values of the frame, the one that leaves it, and the rows between it and the current one. At first all are null.
  const size = first + 2;
  return (states) => {
    const state = states.make([0, 0, 0, 0, 0, 0]), ring = states.make(typeOf("DOUBLE").nullWords, size);
    const slots = states.make([0]), { heap } = states.space;
    const doubles = doublesOf(arg, states);
    return ([source], groups, rowCount, out) => {
      const from = doubles(source, rowCount);
      const { f64 } = heap, to = out.address >>> 3, next = slots();
      const totals = state().byteOffset >>> 3, values = ring().byteOffset >>> 3;
      const add = (at: number, value: number, count: number) => {
        if (value !== value) return;
        const before = f64[at], s = before + value, t = s - before;
        f64[at + 1] += (before - (s - t)) + (value - t);
        f64[at] = s;
        f64[at + 2] += count;
      };
      for (let row = 0; row < rowCount; row++) {
        const group = groups[row], at = totals + group * 3, kept = values + group * size, slot = next[group];
        f64[kept + slot] = f64[from + row];
        add(at, f64[kept + (slot >= last ? slot - last : slot - last + size)], 1);
        next[group] = slot + 1 === size ? 0 : slot + 1;
        add(at, -f64[kept + next[group]], -1);
        const n = f64[at + 2];
        if (n === 0) f64[at] = f64[at + 1] = 0;
        f64[to + row] = n === 0 ? NaN : mean ? (f64[at] + f64[at + 1]) / n : f64[at] + f64[at + 1];
      }
    };
  };
}

/** The first of the least (`sign` -1) or greatest values so far. */
function extremes(call: WindowCall, sign: -1 | 1): MakeStep {
  const none = typeOf(call.type).nullWords, words = none.length;
  return (states) => {
    const kept = states.make(none), known = states.make([0]), { heap } = states.space, { i32 } = heap;
    return ([source], groups, rowCount, out) => {
      const values = kept(), has = known(), best = { type: source.type, address: values.byteOffset };
      for (let row = 0; row < rowCount; row++) {
        const group = groups[row], at = (source.address >>> 2) + row * words;
        const takes = !isNullAt(heap, source.type, source.address, row) &&
          (has[group] === 0 || compareRows(heap, best, group, source, row) * sign < 0);
        if (takes) {
          has[group] = 1;
          for (let k = 0; k < words; k++) values[group * words + k] = i32[at + k];
        }
        for (let k = 0, to = (out.address >>> 2) + row * words; k < words; k++) i32[to + k] = values[group * words + k];
      }
    };
  };
}

/** Over rows of one partition, by their order keys. */
function ranks(dense: boolean): MakeStep {
  return ({ space }) => {
    const { heap } = space, { i32 } = heap;
    let last: ColumnStore | undefined, before = 0, rank = 1;
    return (keys, _, rowCount, out) => {
      if (rowCount === 0) return;
      const previous = last?.vectors ?? keys;
      const differs = (row: number) =>
        keys.some((key, k) =>
          compareRows(heap, row === 0 ? previous[k] : key, row === 0 ? 0 : row - 1, key, row) !== 0
        );
      for (let row = 0, at = out.address >>> 2; row < rowCount; row++, at += 2, before++) {
        if (before > 0 && differs(row)) rank = dense ? rank + 1 : before + 1;
        i32[at] = rank;
        i32[at + 1] = rank / 4294967296;
      }
      last ??= new ColumnStore(keys.map(({ type }) => type), space);
      last.clear();
      last.append(keys, 1, rowCount - 1);
    };
  };
}

function toDoubles(heap: Workspace["heap"], source: Vector, rowCount: number, target: number): void {
  const { type, address } = source, { nullable, width } = typeOf(type), { f64 } = heap, to = target >>> 3;
  const view: ArrayLike<number | bigint> =
    { i8: heap.i8, i16: heap.i16, i32: heap.i32, i64: heap.i64, f32: heap.f32 }[layoutOf(type) as "i8"];
  const from = address / width;
  for (let row = 0; row < rowCount; row++) f64[to + row] = Number(view[from + row]);
  if (nullable) {
    for (let row = 0; row < rowCount; row++) {
      if (isNullAt(heap, type, address, row)) f64[to + row] = NaN;
    }
  }
}
