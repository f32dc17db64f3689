/**
 * LIMIT: rows low+1 … high, where negative bounds count from the end.
 *
 *     n        the first n           -n       the last n
 *     lo, hi   rows lo+1 … hi        -a, -b   without the last b of the last a       lo, -b   without the first lo and the last b
 *
 * Counting from the end needs a buffer of that many rows, no more. The physical pass has chosen the algorithm.
 */
import { typeOf } from "../../types/mod.ts";
import { ColumnStore, OutputColumns, Workspace } from "../columns.ts";
import type { Expr, LimitNode } from "../../sql/plan.ts";
import { type Batch, type Changes, type Constant, MORSEL_ROWS, type Operator, type QueryContext } from "../contract.ts";
import { limitWay } from "../physical/limit.ts";
import type { LimitWay } from "../physical/plan.ts";
import { typesOf } from "../physical/reading.ts";

export function createLimit(node: LimitNode, way: LimitWay, input: Operator, context: QueryContext): Operator {
  switch (way.kind) {
    case "first":
      return new First(node, way, input);
    case "last":
      return new Last(input, way.count, way.without, context);
    case "last of reversed":
      return new LastOfReversed(node, way.count, input, context);
    case "without ends":
      return new WithoutEnds(input, way.skip, way.without, context);
  }
}

/** The bounds of the runs of an operator. */
class Bounds {
  constructor(private node: LimitNode) {}

  /** How the next run finds its rows; "same" if the bounds stay. Undefined if one of them has another sign: then another operator is needed. */
  rebind(changes: Changes): LimitWay | "same" | undefined {
    const { node } = this;
    const bounds = node.low === undefined ? [node.high] : [node.low, node.high], taken = changes.take(bounds);
    if (taken === bounds) return "same";
    const isFromEnd = (e: Expr) => Number((e as Constant).value) < 0;
    if (taken.some((bound, k) => isFromEnd(bound) !== isFromEnd(bounds[k]))) return undefined;
    this.node = { ...node, low: taken.length === 1 ? undefined : taken[0], high: taken[taken.length - 1] };
    return limitWay(this.node);
  }
}

class First implements Operator {
  readonly columns;
  private position = 0;

  private readonly bounds: Bounds;

  constructor(node: LimitNode, private way: LimitWay & { kind: "first" }, private readonly input: Operator) {
    this.columns = input.columns;
    this.bounds = new Bounds(node);
  }

  next(): Batch | undefined {
    const { from, to } = this.way;
    while (this.position < to) {
      const batch = this.input.next();
      if (batch === undefined) return undefined;
      const skip = Math.min(batch.rowCount, Math.max(0, from - this.position));
      const take = Math.min(batch.rowCount, to - this.position) - skip;
      this.position += batch.rowCount;
      if (take > 0) return skip === 0 && take === batch.rowCount ? batch : sliceBatch(batch, skip, take);
    }
    return undefined;
  }

  rewind(): boolean {
    this.position = 0;
    return this.input.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    const way = this.bounds.rebind(changes);
    if (way !== "same") {
      if (way?.kind !== "first") return false;
      this.way = way;
    }
    return this.input.rebind?.(changes) === true;
  }

  close(): void {
    this.input.close();
  }
}

/** A part of a batch as a batch, without a copy. */
function sliceBatch(batch: Batch, from: number, rowCount: number): Batch {
  if (from === 0) return { rowCount, columns: batch.columns };
  return {
    rowCount,
    columns: batch.columns.map((vector) => ({ ...vector, address: vector.address + from * typeOf(vector.type).width })),
  };
}

/** The last `count` rows, without the last `without` of them. */
class Last implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private rows?: ColumnStore;
  private position = 0;

  constructor(
    private readonly input: Operator,
    private readonly count: number,
    private readonly without: number,
    private readonly context: QueryContext,
  ) {
    this.columns = input.columns;
    this.space = Workspace.of(context, "limit");
  }

  next(): Batch | undefined {
    if (this.rows === undefined) {
      const rows = this.rows = new ColumnStore(typesOf(this.columns), this.space);
      for (let batch = this.input.next(); batch !== undefined; batch = this.input.next()) {
        this.context.poll();
        const take = Math.min(batch.rowCount, this.count);
        rows.append(batch.columns, take, batch.rowCount - take);
        if (rows.rowCount >= 2 * this.count + MORSEL_ROWS) dropFirst(rows, rows.rowCount - this.count, this.space);
      }
      this.position = Math.max(0, rows.rowCount - this.count);
    }
    const rowCount = Math.min(MORSEL_ROWS, this.rows.rowCount - this.without - this.position);
    if (rowCount <= 0) return undefined;
    const batch = this.rows.slice(this.position, rowCount);
    this.position += rowCount;
    return batch;
  }

  close(): void {
    this.space.release();
    this.input.close();
  }
}

/** The last `count` rows of a reversed input, so that no more of it is read. */
class LastOfReversed implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private readonly rows: ColumnStore;
  private readonly bounds: Bounds;
  private order: Int32Array;
  private output?: OutputColumns;
  /** Undefined before the rows are kept. */
  private position: number | undefined;

  constructor(
    node: LimitNode,
    private count: number,
    private readonly input: Operator,
    private readonly context: QueryContext,
  ) {
    this.columns = input.columns;
    this.bounds = new Bounds(node);
    this.space = Workspace.of(context, "limit");
    this.rows = new ColumnStore(typesOf(this.columns), this.space);
    this.order = this.space.words(1);
  }

  next(): Batch | undefined {
    if (this.position === undefined) this.keep();
    const { rows, order } = this, position = this.position ?? 0;
    const rowCount = Math.min(MORSEL_ROWS, rows.rowCount - position);
    if (rowCount <= 0) return undefined;
    this.context.poll();
    const output = this.outputFor(rowCount), indices = order.subarray(position, position + rowCount);
    for (let c = 0; c < this.columns.length; c++) output.gather(c, rows.vectors[c], indices, rowCount, false);
    this.position = position + rowCount;
    return { rowCount, columns: output.vectors };
  }

  private outputFor(rowCount: number): OutputColumns {
    if (this.output !== undefined && this.output.capacity >= rowCount) return this.output;
    for (const { address } of this.output?.vectors ?? []) this.space.free(address);
    return this.output = new OutputColumns(typesOf(this.columns), this.space, rowCount);
  }

  private keep(): void {
    const { rows, space } = this;
    while (rows.rowCount < this.count) {
      const batch = this.input.next();
      if (batch === undefined) break;
      this.context.poll();
      rows.append(batch.columns, Math.min(batch.rowCount, this.count - rows.rowCount));
    }
    if (this.order.length < rows.rowCount) {
      space.freeWords(this.order);
      this.order = space.words(rows.rowCount);
    }
    for (let i = 0; i < rows.rowCount; i++) this.order[i] = rows.rowCount - 1 - i;
    this.position = 0;
  }

  rewind(): boolean {
    this.rows.clear();
    this.position = undefined;
    return this.input.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    const way = this.bounds.rebind(changes);
    if (way !== "same") {
      if (way?.kind !== "last" || way.without !== 0) return false;
      this.count = way.count;
    }
    return this.input.rebind?.(changes) === true;
  }

  close(): void {
    this.space.release();
    this.input.close();
  }
}

/** Without the first `skip` and the last `without` rows: a row is output after `without` more have arrived. */
class WithoutEnds implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private readonly rows: ColumnStore;
  private position = 0;
  private skipped = 0;
  private atEnd = false;

  constructor(
    private readonly input: Operator,
    private readonly skip: number,
    private readonly without: number,
    private readonly context: QueryContext,
  ) {
    this.columns = input.columns;
    this.space = Workspace.of(context, "limit");
    this.rows = new ColumnStore(typesOf(this.columns), this.space);
  }

  next(): Batch | undefined {
    for (;;) {
      const ready = Math.min(MORSEL_ROWS, this.rows.rowCount - this.without - this.position);
      if (ready > 0) {
        const batch = this.rows.slice(this.position, ready);
        this.position += ready;
        return batch;
      }
      if (this.atEnd) return undefined;
      if (this.position >= Math.max(this.without, MORSEL_ROWS)) {
        dropFirst(this.rows, this.position, this.space);
        this.position = 0;
      }
      this.context.poll();
      const batch = this.input.next();
      if (batch === undefined) this.atEnd = true;
      else {
        const skip = Math.min(batch.rowCount, this.skip - this.skipped);
        this.skipped += skip;
        this.rows.append(batch.columns, batch.rowCount - skip, skip);
      }
    }
  }

  close(): void {
    this.space.release();
    this.input.close();
  }
}

function dropFirst(rows: ColumnStore, count: number, space: Workspace): void {
  const left = rows.rowCount - count;
  const indices = space.words(Math.max(1, left));
  for (let i = 0; i < left; i++) indices[i] = count + i;
  rows.compact(indices, left);
  space.freeWords(indices);
}
