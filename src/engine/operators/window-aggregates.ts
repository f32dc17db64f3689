/**
 * Any aggregate of the catalogue over frames. Arguments are first gathered in the window's order, so that a frame is a
 * range of rows.
 *
 *     fused   a record of states for each row; for sliding frames, rows after a boundary are merged towards it and those before it
 *             from it, so that each row costs three merges, regardless of the length of its frame
 *     batch   frames from the partition's start process each row once; sliding frames are recomputed, as groups of one state
 *
 * Source of the boundary: the queue of two stacks, Tangwongsan, Hirzel and Schneider, "Low-Latency Sliding-Window
 * Aggregation in Worst-Case Constant Time", DEBS 2017 (there called Two-Stacks).
 */
import { assert } from "../../assert.ts";
import { withCaret } from "../../errors.ts";
import type { BatchAggregate, BatchAggregateState, FusedAggregate } from "../../sql/functions/entry.ts";
import type { Expr, WindowCall } from "../../sql/plan.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { batchColumn, batchOut, functionContext } from "../batch-calls.ts";
import { endOfTexts, fillConstant, gather, repeatFirst, TextArena, Workspace } from "../columns.ts";
import {
  type AggregateShape,
  byGroupKernel,
  type CompiledKernel,
  finishKernel,
  initialiseKernel,
  singleMergeKernel,
  strideOf,
} from "../compiler/aggregate.ts";
import { BoundKernel, flushKernelRows } from "../compiler/binding.ts";
import { argumentClass, ExpressionCompiler, formOf } from "../compiler/expression.ts";
import { MORSEL_ROWS, type QueryContext, type Vector } from "../contract.ts";
import { compileExpressions } from "../expressions.ts";
import type { Frame, OrderedRows } from "./window-frames.ts";

const OPERATOR = "window";

/** The column of an aggregate's results, by input row. `args`: undefined for constants. */
export function aggregateFrames(
  call: WindowCall,
  args: readonly (Vector | undefined)[],
  ordered: OrderedRows,
  frame: Frame,
  space: Workspace,
  context: QueryContext,
): Vector {
  const { entry, types } = context.functions.resolve(call.function);
  const { aggregate } = entry;
  assert(aggregate !== undefined, `${call.function} is an aggregate`);
  const own = Workspace.of(context, OPERATOR);
  try {
    const columns = args.map((arg, k) => inOrder(arg, call.args[k], ordered, own));
    const frames: Frames = { call, columns, types, ordered, frame, own, space, context };
    const byOrdinal = aggregate.kind === "fused" ? fused(frames, aggregate) : batch(frames, aggregate);
    return byRow(byOrdinal, ordered, own, space);
  } finally {
    own.release();
    flushKernelRows(context.heap.i64);
  }
}

interface Frames {
  call: WindowCall;
  /** The arguments, in the window's order. */
  columns: Vector[];
  types: string[];
  ordered: OrderedRows;
  frame: Frame;
  /** Memory for this call only, and for the result. */
  own: Workspace;
  space: Workspace;
  context: QueryContext;
}

/** An argument in the window's order. A constant is repeated. */
function inOrder(arg: Vector | undefined, expr: Expr, { rows, rowCount }: OrderedRows, own: Workspace): Vector {
  const type = arg?.type ?? (layoutOf(expr.type) === "symbol" ? "STRING" : expr.type);
  const address = own.allocate(rowCount * typeOf(type).width + 16); // lanes may read beyond the last row
  if (arg !== undefined) gather(own.heap, type, arg.address, rows, rowCount, address, false);
  else {
    assert(expr.kind === "constant", "arguments without columns are constants");
    fillConstant(own.heap, type, address, rowCount, expr.value, new TextArena(own));
  }
  return { type, address, dictionary: arg?.dictionary };
}

function byRow(byOrdinal: Vector, { rows, rowCount }: OrderedRows, own: Workspace, space: Workspace): Vector {
  const ordinals = own.words(rowCount + 1);
  for (let ordinal = 0; ordinal < rowCount; ordinal++) ordinals[rows[ordinal]] = ordinal;
  const { type } = byOrdinal, address = space.allocate(Math.max(1, rowCount) * typeOf(type).width);
  gather(space.heap, type, byOrdinal.address, ordinals, rowCount, address, false);
  return { ...byOrdinal, address };
}

/** Calls `work` for the position range of each partition. */
function eachPartition({ ordered, context }: Frames, work: (first: number, end: number) => void): void {
  const { starts, partitionCount } = ordered;
  for (let p = 0; p < partitionCount; p++) {
    context.poll();
    work(starts[p], starts[p + 1]);
  }
}

const isWhole = ({ frame }: WindowCall): boolean =>
  frame.start === undefined && frame.end === undefined && !frame.excludeCurrentRow;

// ---- fused

const POLL_MERGES = 4_096;

function fused(frames: Frames, aggregate: FusedAggregate): Vector {
  const { call, columns, ordered: { rowCount }, frame: { low, high }, own, context } = frames;
  const records = new FusedRecords(frames, aggregate);
  // A record for each row, initially of this row alone; one for each result; one for the rows after the boundary; an
  // empty one.
  const rows = records.make(rowCount),
    results = records.make(rowCount),
    behind = records.make(1),
    none = records.make(1);
  records.update(rows, rowCount);
  let merges = 0;
  eachPartition(frames, (first, end) => {
    let boundary = first, next = first;
    records.copy(none, 0, behind, 0);
    for (let ordinal = first; ordinal < end; ordinal++) {
      if ((merges += 3) > POLL_MERGES) {
        context.poll();
        merges = 0;
      }
      for (const last = high[ordinal]; next <= last; next++) records.merge(behind, 0, rows, next);
      const from = low[ordinal];
      if (from >= boundary && boundary < next) {
        // The rows before the boundary have left the frame: merge those after it towards a new boundary.
        for (let k = next - 2; k >= from; k--) {
          if ((++merges & (POLL_MERGES - 1)) === 0) context.poll();
          records.merge(rows, k, rows, k + 1);
        }
        boundary = next;
        records.copy(none, 0, behind, 0);
      }
      if (high[ordinal] < from) records.copy(none, 0, results, ordinal);
      else if (from < boundary) {
        records.copy(rows, from, results, ordinal);
        records.merge(results, ordinal, behind, 0);
      } else records.copy(behind, 0, results, ordinal);
    }
  });
  const type = call.type, address = own.allocate(rowCount * typeOf(type).width + 16);
  records.finish(results, rowCount, address);
  const dictionary = layoutOf(type) === "symbol" ? columns.find((column) => column.dictionary)?.dictionary : undefined;
  return { type, address, dictionary };
}

/** Records with the state of one aggregate, and the kernels over them. */
class FusedRecords {
  private readonly shape: AggregateShape;
  private readonly strideWords: number;
  private readonly updater: BoundKernel;
  private readonly initialiser: BoundKernel;
  private readonly merger: BoundKernel;
  private readonly finisher: BoundKernel;

  constructor(private readonly frames: Frames, aggregate: FusedAggregate) {
    const { call, columns, types, context, own } = frames, { memory } = context.heap;
    const { entry } = context.functions.resolve(call.function);
    // Column 0 has the record numbers.
    const compiler = new ExpressionCompiler(
      ["INT", ...columns.map(({ type }) => type)],
      [undefined, ...columns.map(({ dictionary }) => dictionary)],
      context,
      own,
    );
    const args = columns.map(({ type }, k) => {
      const column: Expr = { kind: "column", index: k + 1, type };
      return argumentClass(entry, k) === "text" ? compiler.textOf(column) : compiler.lower(column);
    });
    this.shape = { aggregate, id: call.function, types, args };
    this.strideWords = strideOf(0, [this.shape]) / 8;
    const bound = (kernel: CompiledKernel, inputs: typeof compiler.inputs = []) =>
      new BoundKernel(kernel, inputs, context, own);
    this.updater = bound(byGroupKernel(memory, compiler.inputs, compiler.column(0), [this.shape]), compiler.inputs);
    this.initialiser = bound(initialiseKernel(memory, 0, [this.shape]));
    this.merger = bound(singleMergeKernel(memory, [this.shape]));
    this.finisher = bound(finishKernel(memory, "none", 0, [], [this.shape], [formOf(call.type)!]));
  }

  /** Makes empty records. */
  make(count: number): number {
    const address = this.frames.own.allocate(Math.max(1, count) * this.strideWords * 8);
    this.initialiser.setI32(this.initialiser.cells.states, address);
    this.initialiser.run(0, count);
    return address;
  }

  /** Adds each row to the record with its number. */
  update(records: number, rowCount: number): void {
    const { own, columns } = this.frames, numbers = own.words(rowCount + 1);
    for (let row = 0; row < rowCount; row++) numbers[row] = row;
    this.updater.setI32(this.updater.cells.states, records);
    this.updater.setColumns([{ address: numbers.byteOffset }, ...columns]);
    this.updater.run(0, rowCount);
  }

  private address(records: number, k: number): number {
    return records + k * this.strideWords * 8;
  }

  copy(from: number, k: number, to: number, l: number): void {
    const { i64 } = this.frames.context.heap;
    const source = this.address(from, k) / 8, target = this.address(to, l) / 8;
    for (let word = 0; word < this.strideWords; word++) i64[target + word] = i64[source + word];
  }

  /** Merges the later record into the earlier one. */
  merge(earlier: number, k: number, later: number, l: number): void {
    const { merger } = this;
    merger.setI32(merger.cells.record, this.address(earlier, k));
    merger.setI32(merger.cells.laters, this.address(later, l));
    merger.run(0, 1);
  }

  finish(records: number, count: number, out: number): void {
    this.finisher.setI32(this.finisher.cells.records, records);
    this.finisher.setI32(this.finisher.cells.out0, out);
    this.finisher.run(0, count);
  }
}

// ---- batch

/** A state processes at most this many bytes of texts and arrays before the memory that it keeps is charged. */
const SLICE_BYTES = 1 << 20;

function batch(frames: Frames, aggregate: BatchAggregate): Vector {
  const { call, ordered: { rowCount }, own } = frames;
  const address = own.allocate(Math.max(1, rowCount) * typeOf(call.type).width);
  const states = new BatchStates(frames, aggregate, address);
  try {
    if (isWhole(call)) wholePartitions(frames, states);
    else if (call.frame.start === undefined) runningFrames(frames, states);
    else slidingFrames(frames, states);
  } catch (error) {
    throw withCaret(error, call.at);
  } finally {
    states.close();
  }
  return { type: call.type, address };
}

/** One value for all rows of a partition. */
function wholePartitions(frames: Frames, states: BatchStates): void {
  eachPartition(frames, (first, end) => {
    states.open();
    states.update(undefined, first, end);
    states.finish(first, 1);
    states.repeat(first, end);
  });
}

/** Frames that begin at the partition's start process each row once. */
function runningFrames(frames: Frames, states: BatchStates): void {
  const { frame: { high }, context } = frames;
  eachPartition(frames, (first, end) => {
    states.open();
    let next = first;
    for (let ordinal = first; ordinal < end; ordinal++) {
      if ((ordinal & 255) === 0) context.poll();
      if (high[ordinal] >= next) states.update(undefined, next, next = high[ordinal] + 1);
      states.finish(ordinal, 1);
    }
  });
}

/** As many frames at a time as fit into a morsel of rows; each is a group. */
function slidingFrames(frames: Frames, states: BatchStates): void {
  const { frame: { low, high }, ordered: { rowCount }, own } = frames;
  const picks = own.words(MORSEL_ROWS), groups = own.words(MORSEL_ROWS);
  let first = 0, used = 0;
  states.open();
  for (let ordinal = 0; ordinal <= rowCount; ordinal++) {
    const size = ordinal < rowCount ? high[ordinal] - low[ordinal] + 1 : 0;
    // A frame that does not fit is processed alone, in pieces.
    if (ordinal === rowCount || (used + size > MORSEL_ROWS && used > 0) || ordinal - first === MORSEL_ROWS) {
      states.updatePicked(picks, groups, used);
      if (ordinal > first) states.finish(first, ordinal - first);
      if (ordinal === rowCount) return;
      states.open();
      first = ordinal;
      used = 0;
    }
    for (let row = low[ordinal]; row <= high[ordinal]; row++) {
      if (used === MORSEL_ROWS) {
        states.updatePicked(picks, groups, used);
        used = 0;
      }
      picks[used] = row;
      groups[used++] = ordinal - first;
    }
  }
}

class BatchStates {
  private state?: BatchAggregateState;
  private accountedBytes = 0;
  private readonly columns: Vector[];
  private readonly picked: Vector[];
  private readonly arena: TextArena;
  private readonly constants;

  /** `out`: address of the results, in the window's order. */
  constructor(
    private readonly frames: Frames,
    private readonly aggregate: BatchAggregate,
    private readonly out: number,
  ) {
    const { call, columns, ordered: { rowCount }, own, context } = frames;
    this.columns = aggregate.codes ? columns : columns.map((column) => asText(column, rowCount, own, context));
    this.picked = this.columns.map(({ type, dictionary }) => ({
      type,
      address: own.allocate(MORSEL_ROWS * typeOf(type).width + 16),
      dictionary,
    }));
    this.arena = new TextArena(frames.space);
    this.constants = call.args.map((arg) => (arg.kind === "constant" ? arg.value : undefined));
  }

  /** Makes a new state in place of the previous one. */
  open(): void {
    this.close();
    const { call, types, context } = this.frames;
    this.state = this.aggregate.create(types, this.constants, functionContext(context, call));
  }

  close(): void {
    this.frames.context.memory.account(-this.accountedBytes, OPERATOR);
    this.accountedBytes = 0;
    this.state = undefined;
  }

  /** Adds the rows at positions from … to-1. */
  update(groups: Int32Array | undefined, from: number, to: number): void {
    this.take(this.columns, groups, from, to);
  }

  /** Adds the rows at these positions. */
  updatePicked(ordinals: Int32Array, groups: Int32Array, count: number): void {
    const { heap } = this.frames.context;
    this.columns.forEach(({ type, address }, k) =>
      gather(heap, type, address, ordinals, count, this.picked[k].address, false)
    );
    this.take(this.picked, groups, 0, count);
  }

  private take(columns: readonly Vector[], groups: Int32Array | undefined, first: number, end: number): void {
    const { context, types } = this.frames;
    for (let from = first, to; from < end; from = to) {
      context.poll();
      to = endOfTexts(context.heap, columns, from, Math.min(end, from + MORSEL_ROWS), SLICE_BYTES);
      const args = columns.map(({ type, address, dictionary }, k) =>
        batchColumn(
          context,
          types[k],
          type,
          address + from * typeOf(type).width,
          to! - from,
          this.constants[k],
          this.constants[k] !== undefined,
          dictionary,
        )
      );
      this.state!.update(groups?.subarray(from, to), args, to - from);
      const sizeBytes = this.state!.sizeBytes();
      context.memory.account(sizeBytes - this.accountedBytes, OPERATOR);
      this.accountedBytes = sizeBytes;
    }
  }

  /** Writes the values of groups 0 … count-1 to the positions from `ordinal` on. */
  finish(ordinal: number, count: number): void {
    const { call, context } = this.frames, { width } = typeOf(call.type);
    this.state!.finish(batchOut(context, call.type, this.out + ordinal * width, count, this.arena), count);
  }

  /** Copies the value at `first` to all following positions up to `end`. */
  repeat(first: number, end: number): void {
    const { width } = typeOf(this.frames.call.type);
    repeatFirst(this.frames.context.heap, this.out + first * width, width, end - first);
  }
}

function asText(column: Vector, rowCount: number, own: Workspace, context: QueryContext): Vector {
  if (layoutOf(column.type) !== "symbol") return column;
  // A CASE without branches evaluates its ELSE, as text.
  const text: Expr = {
    kind: "case",
    branches: [],
    otherwise: { kind: "column", index: 0, type: column.type },
    type: "STRING",
  };
  const compiled = compileExpressions([text], undefined, [column.type], context, {
    operator: OPERATOR,
    rowByRow: true,
  });
  const address = own.allocate(rowCount * 8 + 16);
  try {
    for (let from = 0; from < rowCount; from += MORSEL_ROWS) {
      const count = Math.min(MORSEL_ROWS, rowCount - from);
      const made = compiled.run({ rowCount: count, columns: [{ ...column, address: column.address + from * 4 }] });
      context.heap.u8.copyWithin(address + from * 8, made.columns[0].address, made.columns[0].address + count * 8);
    }
  } finally {
    compiled.close();
  }
  return { type: "STRING", address, dictionary: column.dictionary };
}
