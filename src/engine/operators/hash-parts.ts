/**
 * Operators over more rows than the memory holds: their inputs are divided on disk by the hashes of their keys, and the operator runs over
 * each partition. The rows of a partition's output are in the order of columns that the rows carry with them, such as their numbers in
 * the input, so that the outputs are merged to the order that the operator has in memory.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { Workspace } from "../columns.ts";
import type { Operator, QueryContext, Vector } from "../contract.ts";
import { isOutOfMemory } from "../memory.ts";
import { assertingContract } from "./contract.ts";
import { typesOf } from "../physical/reading.ts";
import { fewRuns, MergedRows, type RunKey } from "./merged-rows.ts";
import { hashRows } from "./row-hashes.ts";
import { advance } from "./scan.ts";
import { blockBytesOf, RowsReader, RowsWriter, SpilledInput, type SpilledRows } from "./spilled-rows.ts";

const BITS = 4, PARTS = 1 << BITS;
/** For each part, while an input is divided. */
const PART_BLOCKS = 2;
/** Hashes have 32 bits. */
const LEVELS = 32 / BITS;
/** Rows whose hashes are computed together. */
const HASHED_ROWS = 4_096;

/** About the memory that the division of an input takes. */
export function divisionBytes(context: QueryContext): number {
  return PARTS * PART_BLOCKS * blockBytesOf(context);
}

/** Distributes rows to files by the hashes of their keys. */
export class HashParts {
  private readonly writers: RowsWriter[];
  private readonly space: Workspace;
  private readonly hashes: Int32Array;
  private readonly rows: Int32Array;

  /** `level`: rows that are divided again have equal bits of the levels before. */
  constructor(
    types: readonly string[],
    private readonly level: number,
    private readonly context: QueryContext,
    operator: string,
  ) {
    this.space = Workspace.of(context, operator);
    this.hashes = this.space.words(HASHED_ROWS);
    this.rows = this.space.words(HASHED_ROWS);
    const blockBytes = blockBytesOf(context) / 2;
    this.writers = Array.from({ length: PARTS }, () => new RowsWriter(types, context, operator, blockBytes));
  }

  append(columns: readonly Vector[], keys: readonly Vector[], rowCount: number): void {
    const { hashes, rows, writers, level, context: { heap } } = this, shift = 32 - BITS * (level + 1);
    for (let from = 0; from < rowCount; from += HASHED_ROWS) {
      const n = Math.min(HASHED_ROWS, rowCount - from);
      hashRows(heap, advance(keys, from), n, hashes);
      const ends = new Array<number>(PARTS).fill(0);
      for (let row = 0; row < n; row++) ends[(hashes[row] >>> shift) & (PARTS - 1)]++;
      for (let part = 1; part < PARTS; part++) ends[part] += ends[part - 1];
      const next = [0, ...ends];
      for (let row = 0; row < n; row++) rows[next[(hashes[row] >>> shift) & (PARTS - 1)]++] = from + row;
      for (let part = 0, start = 0; part < PARTS; start = ends[part++]) {
        writers[part].appendRows(columns, rows, ends[part], start);
      }
    }
  }

  finish(): SpilledRows[] {
    return this.writers.map((writer) => {
      const rows = writer.finish();
      if (rows.rowCount > 0) this.context.spill!.countPart();
      return rows;
    });
  }

  close(): void {
    for (const writer of this.writers) writer.close();
    this.space.release();
  }
}

/** Partitions of all inputs with the same bits of their keys' hashes. */
interface Part {
  inputs: SpilledRows[];
  level: number;
}

export interface PartedWork {
  /** The partitions of each input. */
  inputs: SpilledRows[][];
  /** The key columns of each input, for further divisions. */
  keys: number[][];
  /** Makes the operator over the partitions' rows, which closes its inputs. */
  make(inputs: Operator[]): Operator;
  /** Columns of the operator's output by which each partition's output is sorted. */
  order: readonly RunKey[];
  /** Columns of the operator's output that remain. */
  columnCount: number;
  operator: string;
}

/** Runs the operator over each partition, and merges their outputs. */
export function runParts(work: PartedWork, context: QueryContext): MergedRows {
  const { order, columnCount, operator } = work, runs: SpilledRows[] = [];
  const left: Part[] = work.inputs[0].map((_, part) => ({ inputs: work.inputs.map((parts) => parts[part]), level: 0 }));
  for (let part = left.shift(); part !== undefined; part = left.shift()) {
    if (part.inputs.every(({ rowCount }) => rowCount === 0)) continue;
    const run = runPart(part, work, context);
    if (run === undefined) left.unshift(...dividedPart(part, work, context));
    else if (run.rowCount > 0) runs.push(run);
  }
  return new MergedRows(fewRuns(runs, order, context, operator), order, columnCount, context, operator);
}

/** Undefined if the memory does not hold the partition. */
function runPart({ inputs }: Part, { make, operator }: PartedWork, context: QueryContext): SpilledRows | undefined {
  const { memory } = context, blocks = memory.mark();
  const opened: { close(): void }[] = [];
  try {
    const running = assertingContract(
      make(inputs.map((rows) => assertingContract(new SpilledInput(rows, context, operator)))),
    );
    opened.push(running);
    const writer = new RowsWriter(typesOf(running.columns), context, operator);
    opened.push(writer);
    for (let batch = running.next(); batch !== undefined; batch = running.next()) {
      writer.append(batch.columns, batch.rowCount);
    }
    return writer.finish();
  } catch (error) {
    if (!isOutOfMemory(error)) throw error;
    return undefined;
  } finally {
    for (const each of opened) each.close();
    memory.freeSince(blocks);
  }
}

function dividedPart({ inputs, level }: Part, { keys, operator }: PartedWork, context: QueryContext): Part[] {
  const next = level + 1;
  const sides = next < LEVELS ? inputs.map((rows, k) => divided(rows, keys[k], next, context, operator)) : [];
  const isDivided = sides.some((parts, k) => parts.every(({ rowCount }) => rowCount < inputs[k].rowCount));
  if (!isDivided) {
    throw new SqlError(
      `${operator} cannot divide rows with equal keys: the query's memory limit of ${context.memory.limitBytes} bytes is too small for them (cairo.query.memory.limit)`,
      0,
      SQLSTATE.outOfMemory,
    );
  }
  return Array.from({ length: PARTS }, (_, part) => ({ inputs: sides.map((parts) => parts[part]), level: next }));
}

function divided(
  rows: SpilledRows,
  keys: readonly number[],
  level: number,
  context: QueryContext,
  operator: string,
): SpilledRows[] {
  const parts = new HashParts(rows.types, level, context, operator), reader = new RowsReader(rows, context, operator);
  try {
    for (let batch = reader.next(); batch !== undefined; batch = reader.next()) {
      parts.append(batch.columns, keys.map((key) => batch.columns[key]), batch.rowCount);
    }
    return parts.finish();
  } finally {
    reader.close();
    parts.close();
  }
}

/**
 * Divides all rows of an input by columns of it, and closes it. The rows' numbers become the last column; `firstNumber` tells the least
 * one for rows of the last batch.
 */
export function dividedInput(
  input: Operator,
  keys: readonly number[],
  context: QueryContext,
  operator: string,
  firstNumber = () => 0,
): SpilledRows[] {
  const opened: { close(): void }[] = [input];
  try {
    const numbers = new RowNumbers(context, operator);
    opened.push(numbers);
    const parts = new HashParts([...typesOf(input.columns), "LONG"], 0, context, operator);
    opened.push(parts);
    for (let batch = input.next(); batch !== undefined; batch = input.next()) {
      context.poll();
      const { rowCount, columns } = batch;
      parts.append([...columns, numbers.take(rowCount, firstNumber())], keys.map((key) => columns[key]), rowCount);
    }
    return parts.finish();
  } finally {
    for (const each of opened) each.close();
  }
}

/** A column of row numbers, for batches of an input. */
export class RowNumbers {
  private readonly space: Workspace;
  private next = 0;
  private column?: { vector: Vector; capacity: number };

  constructor(private readonly context: QueryContext, operator: string) {
    this.space = Workspace.of(context, operator);
  }

  /** Numbers of the next rows, plus `first`. Valid until the next call. */
  take(rowCount: number, first = 0): Vector {
    if (this.column === undefined || this.column.capacity < rowCount) {
      if (this.column !== undefined) this.space.free(this.column.vector.address);
      this.column = { vector: { type: "LONG", address: this.space.allocate(8 * rowCount) }, capacity: rowCount };
    }
    const { vector } = this.column, { u32 } = this.context.heap;
    for (let row = 0, at = vector.address >>> 2; row < rowCount; row++, this.next++) {
      const number = first + this.next;
      u32[at++] = number;
      u32[at++] = number / 2 ** 32;
    }
    return vector;
  }

  close(): void {
    this.space.release();
  }
}
