/** Inputs of operators: expressions computed in addition to the columns, and inputs kept as a whole. */
import type { Expr } from "../../sql/plan.ts";
import { ColumnStore, endOfPickedTexts, endOfTexts, type Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext, type Vector } from "../contract.ts";
import { compileExpressions } from "../expressions.ts";
import { isOutOfMemory } from "../memory.ts";
import { layoutOf } from "../../types/mod.ts";
import { typesOf } from "../physical/reading.ts";
import { roomOf } from "./spilled-rows.ts";

/** Expressions over batches of one input. Plain columns are used directly. */
export class Expressions {
  private readonly compiled?: ReturnType<typeof compileExpressions>;
  /** Location of each expression: a column of the input, or (negative) ~k for the k-th compiled one. */
  private readonly places: number[] = [];
  readonly types: string[];

  constructor(expressions: readonly Expr[], inputTypes: readonly string[], context: QueryContext) {
    const computed: Expr[] = [];
    for (const expression of expressions) {
      if (expression.kind === "column") this.places.push(expression.index);
      else this.places.push(~(computed.push(expression) - 1));
    }
    this.types = expressions.map((expression) => expression.type);
    if (computed.length > 0) this.compiled = compileExpressions(computed, undefined, [...inputTypes], context);
  }

  /** Valid as long as the batch, and until the next call. */
  run(batch: Batch): Vector[] {
    const computed = this.compiled?.run(batch).columns;
    return this.places.map((place) => place >= 0 ? batch.columns[place] : computed![~place]);
  }

  close(): void {
    this.compiled?.close();
  }
}

/** All rows of an operator with expressions: `vectors` has the input's columns, then the computed ones. */
export interface KeptRows {
  store: ColumnStore;
  rowCount: number;
  columns: Vector[];
  computed: Vector[];
}

/** Handles rows that the memory does not hold. */
export interface Overflow {
  /** Bytes that each row needs later, besides its columns. */
  bytesPerRow: number;
  /** Bytes that it needs then, whatever the number of rows. */
  bytesBesides: number;
  /** Takes the rows of the store, which is empty afterwards. */
  take(store: ColumnStore): void;
}

/** The operators above need memory too. */
const KEPT_SHARE = 4, ABOVE_SHARE = 8;
/** They read batches into buffers, whose size does not depend on the query's memory. */
const BUFFERS_BYTES = 10 * 8 * MORSEL_ROWS;

/** So much, but not less than some buffers, unless these would take half of the query's memory. */
function partOf({ memory, heap }: QueryContext, share: number): number {
  const bytes = memory.limitBytes || heap.sizeBytes();
  return Math.max(bytes / share, Math.min(bytes / 2, BUFFERS_BYTES));
}

/** Memory that an operator which keeps many rows leaves to others. */
export function spareBytesOf(context: QueryContext): number {
  return partOf(context, KEPT_SHARE);
}

/**
 * False if an operator that is about to output rows, after taking this many bytes more, leaves too little to those above: for their buffers, and
 * for the rows that they write when they continue on disk. If it can continue on disk itself, it should, though the memory holds what it keeps.
 */
export function leavesRoom(context: QueryContext, bytesToTake = 0): boolean {
  return roomOf(context) - bytesToTake >= partOf(context, ABOVE_SHARE);
}

/** Ends the reading of rows when the memory does not hold them. */
export class TooManyRows extends Error {}

/** For `keepAll`: all rows are kept, or it throws an error for which `isTooMany` is true. */
export function allOrNone(bytesPerRow: number, context: QueryContext): Overflow {
  return {
    bytesPerRow,
    bytesBesides: spareBytesOf(context),
    take: () => {
      throw new TooManyRows();
    },
  };
}

export function isTooMany(error: unknown): boolean {
  return error instanceof TooManyRows || isOutOfMemory(error);
}

/** With an overflow, this many rows are appended at a time, and texts of this part of the query's memory. */
const SLICE_ROWS = 8_192, TEXT_SHARE = 16;

/** Reads `input` to its end. With `overflow`, the result has only the rows that it has not taken. */
export function keepAll(
  input: Operator,
  expressions: readonly Expr[],
  space: Workspace,
  context: QueryContext,
  overflow?: Overflow,
): KeptRows {
  const types = typesOf(input.columns);
  const extra = expressions.filter((expression) => expression.kind !== "column");
  const store = new ColumnStore([...types, ...extra.map((expression) => expression.type)], space);
  const rowsAtMost = input.rowsAtMost ?? 0;
  if (overflow === undefined || hasRoom(store, rowsAtMost, overflow, context)) store.reserve(rowsAtMost);
  const evaluated = new Expressions(extra, types, context);
  try {
    for (let batch = input.next(); batch !== undefined; batch = input.next()) {
      context.poll();
      const columns = [...batch.columns, ...evaluated.run(batch)];
      if (overflow === undefined) store.append(columns, batch.rowCount);
      else appendWithin(store, columns, batch.rowCount, overflow, context);
    }
  } finally {
    evaluated.close();
  }
  let next = types.length;
  return {
    store,
    rowCount: store.rowCount,
    columns: store.vectors.slice(0, types.length),
    computed: expressions.map((expression) => store.vectors[expression.kind === "column" ? expression.index : next++]),
  };
}

/** `textBytes`: of the next rows. */
function hasRoom(
  store: ColumnStore,
  rowCount: number,
  overflow: Overflow,
  context: QueryContext,
  textBytes = 0,
): boolean {
  const later = overflow.bytesBesides + rowCount * overflow.bytesPerRow;
  return store.bytesToReserve(rowCount) + textBytes + later <= roomOf(context);
}

/** Appends rows from … to-1. Before the memory is short, `overflow` takes the rows of the store. */
export function appendWithin(
  store: ColumnStore,
  columns: readonly Vector[],
  to: number,
  overflow: Overflow,
  context: QueryContext,
  from = 0,
): void {
  const texts = textsOf(columns), textBytes = texts.length === 0 ? 0 : sliceTextBytes(context);
  while (from < to) {
    const next = endOfTexts(context.heap, texts, from, Math.min(to, from + SLICE_ROWS), textBytes);
    const n = next - from, at = from;
    takingOver(store, n, overflow, context, textBytes, () => store.append(columns, n, at));
    from = next;
  }
}

/** The same for rows `indices[0 … n-1]`. */
export function appendRowsWithin(
  store: ColumnStore,
  columns: readonly Vector[],
  indices: Int32Array,
  n: number,
  overflow: Overflow,
  context: QueryContext,
): void {
  const texts = textsOf(columns), textBytes = texts.length === 0 ? 0 : sliceTextBytes(context);
  for (let from = 0; from < n;) {
    const next = endOfPickedTexts(context.heap, texts, indices, from, Math.min(n, from + SLICE_ROWS), textBytes);
    const rows = indices.subarray(from, next), { length } = rows;
    takingOver(store, length, overflow, context, textBytes, () => store.appendRows(columns, rows, length));
    from = next;
  }
}

/** The columns of texts. */
export function textsOf(columns: readonly Vector[]): Vector[] {
  return columns.filter(({ type }) => layoutOf(type) === "text");
}

/** Texts of a slice, for operators that take rows slice by slice. */
export function sliceTextBytes({ memory, heap }: QueryContext): number {
  return (memory.limitBytes || heap.sizeBytes()) / TEXT_SHARE;
}

function takingOver(
  store: ColumnStore,
  n: number,
  overflow: Overflow,
  context: QueryContext,
  textBytes: number,
  append: () => void,
): void {
  if (store.rowCount > 0 && !hasRoom(store, store.rowCount + n, overflow, context, textBytes)) overflow.take(store);
  try {
    append();
  } catch (error) {
    if (!isOutOfMemory(error) || store.rowCount === 0) throw error;
    overflow.take(store);
    append();
  }
}
