/** The states of one aggregate over rows with numbers of groups, for any kind of aggregate and also over distinct values. */
import { assert } from "../../assert.ts";
import type { BatchAggregateState, BatchColumn } from "../../sql/functions/entry.ts";
import type { AggregateCall, Expr } from "../../sql/plan.ts";
import { layoutOf, typeOf } from "../../types/mod.ts";
import { endOfTexts, gather, TextArena, type Workspace } from "../columns.ts";
import { type AggregateShape, byGroupKernel, finishKernel, initialiseKernel, strideOf } from "../compiler/aggregate.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { argumentClass, ExpressionCompiler, formOf } from "../compiler/expression.ts";
import { MORSEL_ROWS, type QueryContext, type Vector } from "../contract.ts";
import { batchColumn, batchOut, functionContext } from "../batch-calls.ts";
import { type CompiledExpressions, compileExpressions } from "../expressions.ts";
import type { TableKind } from "../physical/plan.ts";
import { Grouper, type GroupTable } from "./group-table.ts";

/** A grouper over whole columns that writes group numbers. */
export function numberer(keys: readonly Vector[], table: TableKind, context: QueryContext): Grouper {
  const exprs = keys.map(({ type }, index): Expr => ({ kind: "column", index, type }));
  const grouper = new Grouper(
    { predicates: [], keys: exprs, calls: [], expectedRows: 0, staged: false, table, isOverBatches: true },
    keys.map((key) => key.type),
    context,
    true,
  );
  grouper.prepare(keys.map((key) => key.dictionary));
  return grouper;
}

/** A state processes at most this many bytes of texts and arrays before the memory that it keeps is charged. */
const SLICE_BYTES = 1 << 20;

/** One aggregate over all groups. */
export class CallState {
  private fused?: {
    kernel: BoundKernel;
    initialise: BoundKernel;
    shape: AggregateShape;
    records: number;
    capacity: number;
    finisher?: BoundKernel;
    /** It is compiled for the dictionaries of rows. */
    isForRows: boolean;
  };
  private batch?: { state: BatchAggregateState; accounted: number; result?: Vector };
  private seen?: { grouper: Grouper; table: GroupTable };
  private readonly picked: { rows: Int32Array; numbers: number; columns: Vector[]; seenNumbers: number } | undefined;
  private dictionary: Vector["dictionary"];
  private readonly space: Workspace;
  private readonly arena: TextArena;
  private readonly texts: CompiledExpressions[] = [];

  constructor(
    private readonly call: AggregateCall,
    private readonly first: number,
    /** The table of the arguments, if only distinct ones count. */
    private readonly distinct: TableKind | undefined,
    private readonly context: QueryContext,
    space: Workspace,
  ) {
    this.space = space;
    this.arena = new TextArena(space);
    if (distinct !== undefined) {
      this.picked = {
        rows: space.words(MORSEL_ROWS),
        numbers: space.allocate(MORSEL_ROWS * 4),
        seenNumbers: space.allocate(MORSEL_ROWS * 4),
        columns: call.args.map(({ type }) => ({ type, address: space.allocate(MORSEL_ROWS * typeOf(type).width) })),
      };
    }
  }

  update(columns: readonly Vector[], rowCount: number, numbers: number | undefined, groupCount: number): void {
    const { call, context } = this;
    let args = columns.slice(this.first, this.first + call.args.length);
    let count = rowCount, groups = numbers;
    if (this.picked !== undefined && rowCount > 0) {
      count = this.pickNew(args, rowCount, numbers);
      args = this.picked.columns;
      if (numbers !== undefined) groups = this.picked.numbers;
    }
    this.dictionary ??= args.find((arg) => arg.dictionary !== undefined)?.dictionary;
    const { entry, types } = context.functions.resolve(call.function);
    if (entry.aggregate?.kind === "fused") this.updateFused(args, count, groups, groupCount);
    else {
      assert(entry.aggregate?.kind === "batch", `${call.function} is an aggregate`);
      const constants = call.args.map((arg) => (arg.kind === "constant" ? arg.value : undefined));
      this.batch ??= {
        state: entry.aggregate.create(types, constants, functionContext(context, call)),
        accounted: 0,
      };
      if (count === 0) return;
      const vectors = entry.aggregate.codes ? args : this.withTexts(args, count);
      for (let from = 0, to; from < count; from = to) {
        context.poll();
        to = endOfTexts(context.heap, vectors, from, count, SLICE_BYTES);
        const view = groups === undefined
          ? undefined
          : context.heap.i32.subarray((groups >>> 2) + from, (groups >>> 2) + to);
        this.batch.state.update(view, this.batchColumns(vectors, types, from, to), to - from);
        const size = this.batch.state.sizeBytes();
        context.memory.account(size - this.batch.accounted, this.space.operator);
        this.batch.accounted = size;
      }
    }
  }

  /** Converts symbols to texts. */
  private withTexts(args: readonly Vector[], rowCount: number): Vector[] {
    const { context } = this;
    return args.map((arg, k) => {
      let { type, address } = arg;
      if (layoutOf(type) === "symbol") {
        // A CASE without branches evaluates its ELSE, as text.
        const text: Expr = {
          kind: "case",
          branches: [],
          otherwise: { kind: "column", index: 0, type },
          type: "STRING",
        };
        this.texts[k] ??= compileExpressions([text], undefined, [type], context, {
          operator: this.space.operator,
          rowByRow: true,
        });
        address = this.texts[k].run({ rowCount, columns: [arg] }).columns[0].address;
        type = "STRING";
      }
      return { type, address, dictionary: arg.dictionary };
    });
  }

  private batchColumns(vectors: readonly Vector[], types: readonly string[], from: number, to: number): BatchColumn[] {
    return vectors.map((vector, k) => {
      const constant = this.call.args[k];
      return batchColumn(
        this.context,
        types[k],
        vector.type,
        vector.address + from * typeOf(vector.type).width,
        to - from,
        constant.kind === "constant" ? constant.value : undefined,
        constant.kind === "constant",
        vector.dictionary,
      );
    });
  }

  /** Moves rows whose arguments are new in their group into `picked`. */
  private pickNew(args: readonly Vector[], rowCount: number, numbers: number | undefined): number {
    const { context } = this, { heap } = context, picked = this.picked!;
    const keys: Vector[] = numbers === undefined ? [...args] : [{ type: "INT", address: numbers }, ...args];
    if (this.seen === undefined) {
      const grouper = numberer(keys, this.distinct!, context);
      this.seen = { grouper, table: grouper.create() };
    }
    const { grouper, table } = this.seen;
    let next = grouper.groupCount(table);
    grouper.consume(table, keys, 0, rowCount, 0n, picked.seenNumbers);
    const seen = heap.i32.subarray(picked.seenNumbers >>> 2, (picked.seenNumbers >>> 2) + rowCount);
    let count = 0;
    for (let row = 0; row < rowCount; row++) {
      if (seen[row] !== next) continue;
      next++;
      picked.rows[count++] = row;
    }
    args.forEach((arg, k) => {
      gather(heap, arg.type, arg.address, picked.rows, count, picked.columns[k].address, false);
      picked.columns[k].dictionary = arg.dictionary;
    });
    if (numbers !== undefined) gather(heap, "INT", numbers, picked.rows, count, picked.numbers, false);
    return count;
  }

  private updateFused(
    args: readonly Vector[],
    rowCount: number,
    numbers: number | undefined,
    groupCount: number,
  ): void {
    const { context, call, space } = this;
    const { heap } = context;
    if (this.fused === undefined) {
      const { entry, types } = context.functions.resolve(call.function);
      assert(entry.aggregate?.kind === "fused");
      // Column 0 has the group numbers; without keys it is a column of zeros.
      const inputTypes = ["INT", ...call.args.map((arg) => arg.type)];
      const compiler = new ExpressionCompiler(
        inputTypes,
        [undefined, ...args.map((arg) => arg.dictionary)],
        context,
        space,
      );
      const nodes = call.args.map((arg, k) => {
        const column: Expr = { kind: "column", index: k + 1, type: arg.type };
        return argumentClass(entry, k) === "text" ? compiler.textOf(column) : compiler.lower(column);
      });
      const shape: AggregateShape = { aggregate: entry.aggregate, id: call.function, types, args: nodes };
      const compiled = byGroupKernel(heap.memory, compiler.inputs, compiler.column(0), [shape]);
      const initialise = initialiseKernel(heap.memory, 0, [shape]);
      this.fused = {
        shape,
        kernel: new BoundKernel(compiled, compiler.inputs, context, space),
        initialise: new BoundKernel(initialise, [], context, space),
        records: 0,
        capacity: 0,
        isForRows: rowCount > 0,
      };
      this.zeros = space.allocate(MORSEL_ROWS * 4);
      heap.i32.fill(0, this.zeros >>> 2, (this.zeros >>> 2) + MORSEL_ROWS);
    }
    const { fused } = this;
    if (fused.capacity < groupCount) {
      const stride = strideOf(0, [fused.shape]), capacity = Math.max(64, fused.capacity * 2, groupCount);
      const records = space.allocate(capacity * stride);
      if (fused.records !== 0) {
        heap.u8.copyWithin(records, fused.records, fused.records + fused.capacity * stride);
        space.free(fused.records);
      }
      fused.initialise.setI32(fused.initialise.cells.states, records);
      fused.initialise.run(fused.capacity, capacity);
      Object.assign(fused, { records, capacity });
    }
    if (rowCount === 0) return;
    fused.kernel.setI32(fused.kernel.cells.states, fused.records);
    fused.kernel.setColumns([{ address: numbers ?? this.zeros }, ...args]);
    fused.kernel.run(0, rowCount);
  }
  private zeros = 0;

  finish(out: Vector, from: number, rowCount: number, groupCount: number): Vector {
    const { call, context, space } = this;
    out.dictionary = layoutOf(call.type) === "symbol" ? this.dictionary : undefined;
    if (this.fused !== undefined) {
      const { fused } = this;
      if (fused.finisher === undefined) {
        const compiled = finishKernel(context.heap.memory, "none", 0, [], [fused.shape], [formOf(call.type)!]);
        fused.finisher = new BoundKernel(compiled, [], context, space);
      }
      fused.finisher.setI32(fused.finisher.cells.records, fused.records);
      fused.finisher.setI32(fused.finisher.cells.out0, out.address);
      fused.finisher.run(from, from + rowCount);
      return out;
    }
    const { batch } = this;
    assert(batch !== undefined, "every aggregate has a state when groups are output");
    const { width } = typeOf(call.type);
    if (batch.result === undefined) {
      const address = space.allocate(groupCount * width);
      batch.state.finish(batchOut(context, call.type, address, groupCount, this.arena), groupCount);
      batch.result = { type: call.type, address };
    }
    return { type: call.type, address: batch.result.address + from * width };
  }

  /** Begins anew: all groups are without rows. */
  restart(): void {
    this.dropBatch();
    this.arena.release();
    const { fused, seen, space } = this;
    if (seen !== undefined) {
      seen.grouper.drop(seen.table);
      // It is not dropped again if there is no memory for another one.
      this.seen = undefined;
      this.seen = { grouper: seen.grouper, table: seen.grouper.create() };
    }
    if (fused === undefined) return;
    if (fused.isForRows) {
      fused.initialise.run(0, fused.capacity);
      return;
    }
    for (const kernel of [fused.kernel, fused.initialise, fused.finisher]) if (kernel) space.free(kernel.block);
    space.free(fused.records);
    space.free(this.zeros);
    this.fused = undefined;
  }

  private dropBatch(): void {
    const { batch, space, context } = this;
    if (batch === undefined) return;
    this.batch = undefined;
    context.memory.account(-batch.accounted, space.operator);
    // A workspace that was released has no blocks.
    if (batch.result !== undefined) space.free(batch.result.address);
  }

  close(): void {
    for (const text of this.texts) text?.close();
    if (this.seen !== undefined) {
      this.seen.grouper.drop(this.seen.table);
      this.seen.grouper.close();
    }
    // A caller can still refer to the operator while it continues on disk.
    this.dropBatch();
  }
}
