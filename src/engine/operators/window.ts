/**
 * Window functions in general (see window-streaming.ts for those that depend only on earlier rows). The input is kept, its rows are
 * sorted once for each different PARTITION BY and ORDER BY, and each call writes one column. Kept rows are output in input order,
 * so the input's columns are never moved.
 */
import type { Expr, WindowCall, WindowNode } from "../../sql/plan.ts";
import { typeOf } from "../../types/mod.ts";
import { Workspace } from "../columns.ts";
import { type Batch, type Changes, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { KeyTable } from "../keys.ts";
import { orderWords, radixSort } from "../order.ts";
import type { KeptCall, WindowWay } from "../physical/plan.ts";
import { keepAll, type KeptRows } from "./input.ts";
import { evaluateCall } from "./window-calls.ts";
import { frameBounds, type OrderedRows } from "./window-frames.ts";
import { orApart } from "./or-apart.ts";
import { type MakeWindow, windowInSteps } from "./spilled-window.ts";
import { createStreamingWindow } from "./window-streaming.ts";

/** `again` makes the input anew. */
export function createWindow(
  plan: WindowNode,
  way: WindowWay,
  input: Operator,
  context: QueryContext,
  again: () => Operator,
): Operator {
  const inMemory = windowOf(plan, way, plan.calls.map((_, k) => k), input, context);
  if (way.spill === undefined) return inMemory;
  return orApart(inMemory, () => windowOnDisk(plan, way, again(), context), context, way.kind === "streaming");
}

/** The window in steps that keep few rows in memory. */
export function windowOnDisk(plan: WindowNode, way: WindowWay, input: Operator, context: QueryContext): Operator {
  const make: MakeWindow = (columns, calls, input, isSorted) => {
    const some = { ...plan, columns: [...columns], calls: calls.map((k) => plan.calls[k]) };
    if (!isSorted) return windowOf(some, way, calls, input, context);
    return new Window(some, calls.map(() => IN_ORDER), input, context);
  };
  return windowInSteps(plan, way.steps, make, input, context);
}

/** Calls without ranks over rows in their order. */
const IN_ORDER: KeptCall = { isSorted: true, hasPeers: false, mergesStates: false };

/** `calls`: the positions of the plan's calls in `way`. */
function windowOf(
  plan: WindowNode,
  way: WindowWay,
  calls: readonly number[],
  input: Operator,
  context: QueryContext,
): Operator {
  return way.kind === "streaming"
    ? createStreamingWindow(plan, calls.map((k) => way.calls[k]), input, context)
    : new Window(plan, calls.map((k) => way.calls[k]), input, context);
}

class Window implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private kept?: KeptRows;
  private results: Vector[] = [];
  private position = 0;

  constructor(
    private readonly plan: WindowNode,
    private readonly calls: readonly KeptCall[],
    private readonly input: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = plan.columns;
    this.space = Workspace.of(context, "window");
  }

  next(): Batch | undefined {
    const kept = this.kept ??= this.work();
    const rowCount = Math.min(MORSEL_ROWS, kept.rowCount - this.position);
    if (rowCount <= 0) return undefined;
    this.context.poll();
    const columns = [...kept.columns, ...this.results].map((vector) => ({
      ...vector,
      address: vector.address + this.position * typeOf(vector.type).width,
    }));
    this.position += rowCount;
    return { rowCount, columns };
  }

  private work(): KeptRows {
    const { plan, space, context } = this;
    // Constants (offsets, kinds of average) are read from the plan.
    const expressions: Expr[] = [];
    const needed = (expression: Expr) => expressions.push(expression) - 1;
    const uses = plan.calls.map((call) => ({
      args: call.args.map((arg) => arg.kind === "constant" ? undefined : needed(arg)),
      partitionBy: call.partitionBy.map(needed),
      orderBy: call.orderBy.map((key) => needed(key.expression)),
    }));
    const kept = keepAll(this.input, expressions, space, context);
    const orders = new Map<string, OrderedRows>();
    this.results = plan.calls.map((call, k) => {
      const { args, partitionBy, orderBy } = uses[k];
      const pick = (indices: number[]) => indices.map((index) => kept.computed[index]);
      const name = JSON.stringify(
        [call.partitionBy, call.orderBy],
        (_, value) => typeof value === "bigint" ? `${value}n` : value,
      );
      let ordered = orders.get(name);
      if (ordered === undefined) {
        ordered = this.order(kept, call, this.calls[k], pick(partitionBy), pick(orderBy));
        orders.set(name, ordered);
      }
      const frame = frameBounds(call, ordered, space, context);
      const result = evaluateCall(
        call,
        this.calls[k],
        args.map((index) => index === undefined ? undefined : kept.computed[index]),
        ordered,
        frame,
        space,
        context,
      );
      frame?.free();
      return result;
    });
    return kept;
  }

  private order(
    kept: KeptRows,
    call: WindowCall,
    { isSorted, hasPeers }: KeptCall,
    partitionBy: Vector[],
    orderBy: Vector[],
  ): OrderedRows {
    const { space, context } = this, { rowCount } = kept, poll = () => context.poll();
    // The words also determine peers, for ranks.
    const words = hasPeers ? orderWords(orderBy, call.orderBy, rowCount, space, poll) : [];
    const order = space.words(rowCount + 1);
    for (let row = 0; row < rowCount; row++) order[row] = row;
    if (!isSorted) radixSort(order, words, rowCount, space, poll);
    if (partitionBy.length === 0) {
      const starts = space.words(2);
      starts[0] = 0;
      starts[1] = rowCount;
      return { rows: order, starts, partitionCount: 1, rowCount, words, orderKey: orderBy[0], isInOrder: isSorted };
    }
    const table = new KeyTable(partitionBy.map((vector) => vector.type), space, poll);
    const groupOf = space.words(rowCount + 1);
    for (let from = 0; from < rowCount; from += MORSEL_ROWS) {
      const n = Math.min(MORSEL_ROWS, rowCount - from);
      const keys = partitionBy.map((vector) => ({
        ...vector,
        address: vector.address + from * typeOf(vector.type).width,
      }));
      groupOf.set(table.groups(keys, n, true).subarray(0, n), from);
    }
    const starts = space.words(table.count + 1).fill(0), rows = space.words(rowCount + 1);
    for (let row = 0; row < rowCount; row++) starts[groupOf[row] + 1]++;
    for (let group = 1; group <= table.count; group++) starts[group] += starts[group - 1];
    for (let i = 0; i < rowCount; i++) rows[starts[groupOf[order[i]]]++] = order[i];
    starts.copyWithin(1, 0, table.count);
    starts[0] = 0;
    space.freeWords(order);
    space.freeWords(groupOf);
    return { rows, starts, partitionCount: table.count, rowCount, words, orderKey: orderBy[0], isInOrder: false };
  }

  /** Keeps the input only: the rows take much memory. */
  rewind(): boolean {
    this.space.release();
    this.kept = undefined;
    this.results = [];
    this.position = 0;
    return this.input.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    return this.input.rebind?.(changes) === true;
  }

  close(): void {
    this.space.release();
    this.input.close();
  }
}
