/**
 * Fills the index of a large build side, on all threads and without locks. A part of the index is a range of its buckets or slots that fits
 * into a cache. First the keys of all rows are written by parts, for each portion of the rows separately. Then one thread inserts the rows of
 * a part. Rows whose buckets would be beyond the end of their part are left, and inserted at last by the leader. Portions and parts
 * do not depend on the number of threads, so neither does the index.
 */
import type { Expr } from "../../sql/plan.ts";
import { Workspace } from "../columns.ts";
import { BoundKernel, flushKernelRows } from "../compiler/binding.ts";
import { ExpressionCompiler } from "../compiler/expression.ts";
import { bucketBytes, type JoinKey, partIndexKernel, partKeysKernel, partRowBytes } from "../compiler/join.ts";
import type { QueryContext, Vector } from "../contract.ts";
import { type Participant, registerTask, runTask } from "../parallel.ts";
import { typesOf } from "../physical/reading.ts";
import { INDEX_PARTS_ROWS_MIN } from "../physical/thresholds.ts";
import type { KeyMode } from "./base-plan.ts";
import { joinKeyOf } from "./join-probe.ts";
import { roomOf } from "./spilled-rows.ts";

const PART_BYTES = 256 << 10;
/** With more parts, writing their rows is slow. */
const PARTS_MAX = 512;
/** Rows of a portion: each part has some hundreds of them. */
const PORTION_ROWS = 1 << 17;

/** The keys of rows, which are columns of `vectors`. */
export interface IndexedRows {
  vectors: readonly Vector[];
  rowCount: number;
  keys: readonly Expr[];
  modes: readonly KeyMode[];
}

/** Memory of an index, with undefined contents. */
export interface EmptyIndex {
  kind: JoinKey["kind"];
  table: number;
  /** Or slots. */
  buckets: number;
  next: number;
}

interface PartsTask extends IndexedRows {
  index: EmptyIndex;
  /** A part has 2 ** shift buckets. */
  shift: number;
  partCount: number;
  /** Address of the written rows: portion after portion, each in the order of its parts. */
  written: number;
  /** Address of i32 lists, for each portion: the number of the first written row of each part, and the end of the last one. */
  starts: number;
  operator: string;
}

/** Rows without a bucket in their part: the last `count` ones of a portion's rows of a part. */
type Left = [portion: number, part: number, count: number];

/** Undefined if it has done nothing: the rows are few, or there is no memory for copies of their keys. */
export function fillInParts(
  rows: IndexedRows,
  index: EmptyIndex,
  context: QueryContext,
  operator: string,
): { unique: boolean } | undefined {
  const { rowCount } = rows;
  if (rowCount < INDEX_PARTS_ROWS_MIN) return undefined;
  const space = Workspace.of(context, operator);
  try {
    const width = partRowBytes(keyOf(rows, index, context, space).key), portions = Math.ceil(rowCount / PORTION_ROWS);
    const shift = Math.ceil(Math.log2(Math.max(PART_BYTES / entryBytes(index, width), index.buckets / PARTS_MAX)));
    const partCount = Math.ceil(index.buckets / 2 ** shift);
    const writtenBytes = rowCount * width, startsBytes = 4 * portions * (partCount + 1);
    if (2 * (writtenBytes + startsBytes) > roomOf(context)) return undefined;
    const written = space.allocate(writtenBytes), starts = space.allocate(startsBytes);
    const task: PartsTask = { ...rows, index, shift, partCount, written, starts, operator };
    runTask(WRITE, task, portions, context);
    const results = runTask(INSERT, task, partCount, context) as { isRepeated: boolean; left: Left[] }[];
    let isRepeated = results.some((result) => result.isRepeated);
    const left = results.flatMap((result) => result.left).sort(([a, p], [b, q]) => p - q || b - a);
    if (left.length > 0) {
      const inserter = new Inserter(task, context);
      try {
        for (const each of left) inserter.insertLeft(each);
        isRepeated ||= inserter.finish().isRepeated;
      } finally {
        inserter.close();
      }
    }
    return { unique: !isRepeated };
  } finally {
    space.release();
  }
}

/** Bytes of a bucket or slot. */
function entryBytes({ kind }: EmptyIndex, rowBytes: number): number {
  return kind === "dense" ? 4 : bucketBytes(rowBytes / 8 - 1);
}

function keyOf(
  { vectors, keys, modes }: IndexedRows,
  { kind }: EmptyIndex,
  context: QueryContext,
  space: Workspace,
): { key: JoinKey; compiler: ExpressionCompiler } {
  const dictionaries = vectors.map((vector) => vector.dictionary);
  const compiler = new ExpressionCompiler(typesOf(vectors), dictionaries, context, space);
  return { key: joinKeyOf(compiler, keys, modes, kind === "dense"), compiler };
}

/** The buckets of a hash table are found by these bits of a tag; slots are as they are. */
function maskOf({ kind, buckets }: EmptyIndex): number {
  return kind === "dense" ? -1 : buckets - 1;
}

/** Writes the keys of portions. */
class Writer implements Participant {
  private readonly space: Workspace;
  private readonly counter: BoundKernel;
  private readonly scatterer: BoundKernel;
  private readonly cursors: Int32Array;
  private readonly width: number;

  constructor(private readonly task: PartsTask, private readonly context: QueryContext) {
    const { index, shift, vectors, partCount } = task, { memory } = context.heap;
    this.space = Workspace.of(context, task.operator);
    const { key, compiler: { inputs } } = keyOf(task, index, context, this.space);
    this.width = partRowBytes(key);
    this.cursors = this.space.words(partCount);
    const kernelOf = (write: boolean) => {
      const kernel = new BoundKernel(partKeysKernel(memory, inputs, key, write), inputs, context, this.space),
        { cells } = kernel;
      kernel.setColumns(vectors);
      kernel.setI32(cells.cursors, this.cursors.byteOffset);
      kernel.setI32(cells.mask, maskOf(index));
      kernel.setI32(cells.shift, shift);
      return kernel;
    };
    this.counter = kernelOf(false);
    this.scatterer = kernelOf(true);
  }

  run(portion: number): void {
    const { task: { rowCount, written, partCount, starts, index }, cursors, width, context: { heap } } = this;
    const start = portion * PORTION_ROWS, end = Math.min(rowCount, start + PORTION_ROWS);
    cursors.fill(0);
    this.counter.run(start, end);
    const first = starts / 4 + portion * (partCount + 1);
    let row = start;
    for (let part = 0; part < partCount; part++) {
      heap.i32[first + part] = row;
      row += cursors[part];
      cursors[part] = written + heap.i32[first + part] * width;
    }
    heap.i32[first + partCount] = row;
    this.scatterer.run(start, end);
    heap.i32.fill(0, index.next / 4 + start, index.next / 4 + end);
  }

  finish(): null {
    return null;
  }

  close(): void {
    this.space.release();
    flushKernelRows(this.context.heap.i64);
  }
}

/** Inserts the rows of parts. */
class Inserter implements Participant {
  private readonly space: Workspace;
  private readonly kernel: BoundKernel;
  private readonly width: number;
  private readonly left: Left[] = [];

  constructor(private readonly task: PartsTask, private readonly context: QueryContext) {
    const { index, operator } = task;
    this.space = Workspace.of(context, operator);
    const { key } = keyOf(task, index, context, this.space);
    const { kernel, inputs } = partIndexKernel(context.heap.memory, index.kind, key.kind === "hash" ? key.texts : []);
    this.width = partRowBytes(key);
    this.kernel = new BoundKernel(kernel, inputs, context, this.space);
    const { cells } = this.kernel;
    this.kernel.setI32(cells.table, index.table);
    this.kernel.setI32(cells.mask, index.kind === "dense" ? 0 : index.buckets - 1);
    this.kernel.setI32(cells.next, index.next);
    this.kernel.setI32(cells.repeated, 0);
  }

  run(part: number): void {
    const { task, width, context: { heap } } = this, { index, shift, rowCount } = task;
    const bytes = entryBytes(index, width);
    const start = part * 2 ** shift, end = Math.min(index.buckets, start + 2 ** shift);
    heap.u8.fill(0, index.table + start * bytes, index.table + end * bytes);
    for (let portion = Math.ceil(rowCount / PORTION_ROWS) - 1; portion >= 0; portion--) {
      const [from, to] = this.rowsOf(portion, part), count = this.insert(from, to, end);
      if (count > 0) this.left.push([portion, part, count]);
    }
  }

  insertLeft([portion, part, count]: Left): void {
    const [, to] = this.rowsOf(portion, part);
    this.insert(to - count, to, 0);
  }

  private rowsOf(portion: number, part: number): [from: number, to: number] {
    const { task: { starts, partCount }, context: { heap: { i32 } } } = this;
    const at = starts / 4 + portion * (partCount + 1) + part;
    return [i32[at], i32[at + 1]];
  }

  /** Returns the number of rows that are left. */
  private insert(from: number, to: number, end: number): number {
    if (from === to) return 0;
    const { kernel, task: { written }, width } = this, { cells } = kernel, rows = written + from * width;
    kernel.setColumns([{ address: rows }]);
    kernel.setI32(cells.rows, rows);
    kernel.setI32(cells.last, to - from - 1);
    kernel.setI32(cells.end, end);
    kernel.run(0, to - from);
    return kernel.getI32(cells.left);
  }

  finish(): { isRepeated: boolean; left: Left[] } {
    return { isRepeated: this.kernel.getI32(this.kernel.cells.repeated) !== 0, left: this.left };
  }

  close(): void {
    this.space.release();
    flushKernelRows(this.context.heap.i64);
  }
}

const WRITE = "join: writing keys by parts of the index", INSERT = "join: inserting the rows of parts";

registerTask(WRITE, (data, context) => new Writer(data as PartsTask, context));
registerTask(INSERT, (data, context) => new Inserter(data as PartsTask, context));
