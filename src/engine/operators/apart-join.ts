/**
 * Joins whose build side exceeds the memory (grace hash join): both sides are divided on disk by the hashes of their keys, and each
 * partition is joined in memory. Rows carry their numbers, by which the pairs of all partitions are merged to the order of a join in
 * memory: by left row, then by right row, and right rows without a match at the end.
 */
import type { Column, Expr } from "../../sql/plan.ts";
import type { ColumnStore } from "../columns.ts";
import { columnsOf, mapColumns } from "../compiler/expression.ts";
import { bucketBytes } from "../compiler/join.ts";
import type { Operator, QueryContext } from "../contract.ts";
import { type CompiledExpressions, compileExpressions } from "../expressions.ts";
import type { PhysicalJoin } from "../physical/plan.ts";
import { columnAt, identity, readingOf, typesOf } from "../physical/reading.ts";
import { rowsOfBatch } from "./base.ts";
import type { JoinBase, RowReader, Rows } from "./base-plan.ts";
import { HashParts, RowNumbers, runParts } from "./hash-parts.ts";
import { type Overflow, spareBytesOf } from "./input.ts";
import type { MergedRows } from "./merged-rows.ts";
import { Pipeline } from "./pipeline.ts";
import { advance } from "./scan.ts";
import type { SpilledRows } from "./spilled-rows.ts";

/** The build side on disk: the right side's columns, the keys that are computed, and the rows' numbers. */
export interface BuiltApart {
  parts: SpilledRows[];
  /** The columns of the keys. */
  keys: number[];
}

/** Makes a join of two inputs, which stays within the memory or fails. */
export type JoinInMemory = (plan: PhysicalJoin, left: Operator, right: Operator) => JoinBase;

export class BuildParts implements Overflow {
  /** The index, whose size is a power of two, and the next row of each key. */
  readonly bytesPerRow: number;
  readonly bytesBesides: number;
  private parts?: HashParts;
  private readonly numbers: RowNumbers;
  private readonly keys: number[];

  constructor(
    columns: readonly Column[],
    keys: readonly Expr[],
    private readonly context: QueryContext,
    private readonly operator: string,
  ) {
    let next = columns.length;
    this.keys = keys.map((key) => key.kind === "column" ? key.index : next++);
    this.bytesPerRow = 2 * bucketBytes(keys.length) + 4;
    this.bytesBesides = spareBytesOf(context);
    this.numbers = new RowNumbers(context, operator);
  }

  get hasRows(): boolean {
    return this.parts !== undefined;
  }

  take(store: ColumnStore): void {
    const { context, operator, keys, numbers } = this;
    this.parts ??= new HashParts([...store.types, "LONG"], 0, context, operator);
    for (let from = 0; from < store.rowCount; from += NUMBERED_ROWS) {
      const { columns, rowCount } = store.slice(from, Math.min(NUMBERED_ROWS, store.rowCount - from));
      this.parts.append([...columns, numbers.take(rowCount)], keys.map((key) => columns[key]), rowCount);
    }
    store.clear();
  }

  finish(): BuiltApart {
    return { parts: this.parts!.finish(), keys: this.keys };
  }

  close(): void {
    this.parts?.close();
    this.numbers.close();
  }
}

const NUMBERED_ROWS = 8_192;

/** The pairs of such a join, in order. */
export class ApartJoin implements RowReader {
  /** The columns of the left side's base that are needed, in the order in which they are on disk. */
  private readonly leftColumns: number[];
  /** The needed ones of all columns, as they are output. */
  private readonly output: number[];
  private merged?: MergedRows;

  constructor(
    private readonly physical: PhysicalJoin,
    private readonly built: BuiltApart,
    needed: ReadonlySet<number>,
    private readonly readLeft: (columns: ReadonlySet<number>) => RowReader,
    private readonly inMemory: JoinInMemory,
    private readonly context: QueryContext,
  ) {
    const { residual } = physical, leftCount = this.leftCount;
    const columns = new Set([...needed, ...(residual === undefined ? [] : columnsOf(residual))]);
    this.leftColumns = [...columns].filter((index) => index < leftCount);
    this.output = [...needed];
  }

  private get leftCount(): number {
    return this.physical.left.baseColumns.length;
  }

  next(): Rows | undefined {
    this.merged ??= this.join();
    const batch = this.merged.next();
    if (batch === undefined) return undefined;
    return rowsOfBatch(this.physical.columns, this.output, batch);
  }

  private join(): MergedRows {
    const { physical, built, context, output } = this, { node, leftKeys } = physical;
    const operator = "join", left = this.divideLeft(operator), keyAt = this.leftColumns.length;
    const leftKeyColumns = leftKeys.map((_, k) => keyAt + k), count = output.length;
    return runParts({
      inputs: [left, built.parts],
      keys: [leftKeyColumns, built.keys],
      make: ([left, right]) => {
        const all = [...left.columns, ...right.columns], leftWidth = left.columns.length;
        const moved = (index: number) =>
          index < this.leftCount ? this.leftColumns.indexOf(index) : leftWidth + index - this.leftCount;
        const plan: PhysicalJoin = {
          ...physical,
          left: readingOf(left.columns),
          columns: all,
          leftKeys: leftKeyColumns.map((index, k) => columnAt(index, leftKeys[k].type)),
          node: { ...node, rightKeys: built.keys.map((index, k) => columnAt(index, node.rightKeys[k].type)) },
          residual: physical.residual && mapColumns(physical.residual, (index, type) => columnAt(moved(index), type)),
          over: { predicates: [], exprs: identity(all) },
          byMorsels: false,
          expectedLeftRows: left.rowsAtMost ?? 0,
          // A partition that is too large is divided by runParts().
          spill: undefined,
        };
        const places = [...output.map(moved), leftWidth - 1, all.length - 1];
        const columns = places.map((place) => all[place]);
        const exprs = places.map((place) => columnAt(place, all[place].type));
        const join = this.inMemory(plan, left, right);
        const reading = { base: { kind: "join" }, baseColumns: all, predicates: [], exprs, columns } as const;
        return new Pipeline({ kind: "join", join }, reading, context);
      },
      order: [{ column: count, descending: false, nulls: "last" }, { column: count + 1, descending: false }],
      columnCount: count,
      operator,
    }, context);
  }

  /** The left rows that pass the predicates: the needed columns, the keys and the rows' numbers. */
  private divideLeft(operator: string): SpilledRows[] {
    const { physical: { left, leftKeys }, leftColumns, context } = this, { baseColumns, predicates } = left;
    const read = new Set(leftColumns);
    for (const expr of [...predicates, ...leftKeys]) columnsOf(expr, read);
    const exprs = [...leftColumns.map((index) => columnAt(index, baseColumns[index].type)), ...leftKeys];
    const compiled: CompiledExpressions = compileExpressions(exprs, predicates, typesOf(baseColumns), context, {
      operator,
    });
    const numbers = new RowNumbers(context, operator);
    const parts = new HashParts([...exprs.map(({ type }) => type), "LONG"], 0, context, operator);
    const reader = this.readLeft(read);
    try {
      for (let rows = reader.next(); rows !== undefined; rows = reader.next()) {
        context.poll();
        // A few at a time, because the buffers of all rows of a batch may take more memory than the parts.
        for (let start = rows.start; start < rows.end; start += NUMBERED_ROWS) {
          const { rowCount, columns } = compiled.run({
            rowCount: Math.min(NUMBERED_ROWS, rows.end - start),
            columns: advance(rows.columns, start),
          });
          if (predicates.length > 0) context.analysis?.countPassed(this.physical.id, rowCount);
          if (rowCount === 0) continue;
          parts.append([...columns, numbers.take(rowCount)], columns.slice(leftColumns.length), rowCount);
        }
      }
      return parts.finish();
    } finally {
      reader.close();
      compiled.close();
      parts.close();
      numbers.close();
    }
  }

  close(): void {
    this.merged?.close();
  }
}
