/**
 * The groups of partitions that the memory did not hold. What is on disk of a partition are blocks in the order of the table: the
 * records of its table when the memory became short, and the rows after these. So its groups get the same rows in the same order as
 * in memory, and the answer is the same. Each partition is grouped by itself, or divided again if it is too large. The finished
 * groups, in the order of their first rows, are written as runs, which are merged when they are output.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { BoundKernel } from "../compiler/binding.ts";
import { partNumbersKernel } from "../compiler/partition.ts";
import { Workspace } from "../columns.ts";
import { MORSEL_ROWS, type QueryContext, type Spill, type SpilledBlock } from "../contract.ts";
import { isOutOfMemory } from "../memory.ts";
import type { Grouper, GroupTable } from "./group-table.ts";
import type { HashTable, PartTables } from "./part-tables.ts";

/** Records of groups, or rows: pieces with the number that the row numbers of each are relative to. */
export type PartBlock =
  | { kind: "records"; block: SpilledBlock; count: number }
  | { kind: "rows"; block: SpilledBlock; pieces: [rowCount: number, firstNumber: number][] };

/** A partition, whose keys have `bits` bits of their hashes in common. */
export interface SpilledPart {
  blocks: PartBlock[];
  bits: number;
}

export interface Finished {
  runs: Run[];
  /** Partitions that are too large. */
  left: SpilledPart[];
}

/** Finished groups in the order of their first rows. */
export type Run = [block: SpilledBlock, count: number][];

/** Larger blocks would take too much memory when they are read: 1 MiB with `SLACK_BYTES`. */
export const BLOCK_BYTES_MAX = (1 << 20) - 8;
/** A partition that is too large is divided into 2 ** DIVIDE_BITS. */
const DIVIDE_BITS = 2, BITS_MAX = 28;
const FIRST_CAPACITY = 1_024;
/** The last row's number is read as eight bytes. */
const SLACK_BYTES = 8;
const OPERATOR = "GROUP BY";

/** Bytes of the blocks of runs: one of each run is in memory when runs are merged. */
function runBytes({ memory, heap }: QueryContext): number {
  return Math.max(4 << 10, Math.min(64 << 10, Math.floor((memory.limitBytes || heap.sizeBytes()) / 8_192)));
}

/** Shapes of rows and records, and what groups them. */
export interface PartShape {
  grouper: Grouper;
  /** The input of the grouper's kernel for the base of row numbers. */
  base: number;
  rowBytes: number;
  keyWords: number;
}

export class PartFinisher {
  private readonly space: Workspace;
  private readonly spill: Spill;
  private readonly runs: Run[] = [];
  private readonly left: SpilledPart[] = [];

  constructor(private readonly shape: PartShape, private readonly context: QueryContext) {
    this.space = Workspace.of(context, OPERATOR);
    this.spill = context.spill!;
  }

  /** Writes the groups of a table that is complete. */
  write(table: HashTable): void {
    const { stride } = this.shape.grouper, perBlock = Math.max(1, Math.floor(runBytes(this.context) / stride));
    const run: Run = [];
    for (let from = 0; from < table.groups; from += perBlock) {
      const count = Math.min(perBlock, table.groups - from);
      run.push([this.spill.write([[table.records + from * stride, count * stride]]), count]);
    }
    if (run.length > 0) this.runs.push(run);
  }

  /** Groups what is on disk of a partition. A partition that is too large is left: see `divide`. */
  group(part: SpilledPart): void {
    if (!this.groupInMemory(part.blocks)) this.left.push(part);
  }

  /** False if the memory does not hold the groups. */
  private groupInMemory(blocks: readonly PartBlock[]): boolean {
    const { grouper } = this.shape;
    const tables: HashTable[] = [];
    try {
      const table = grouper.create(FIRST_CAPACITY) as HashTable;
      tables.push(table);
      for (const block of blocks) if (!this.add(table, block)) return false;
      this.write(table);
      return true;
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
      return false;
    } finally {
      for (const table of tables) grouper.drop(table);
    }
  }

  private add(table: HashTable, part: PartBlock): boolean {
    const { grouper, base, rowBytes } = this.shape;
    return this.withBlock(part.block, (address) => {
      if (part.kind === "records") return grouper.insertSome(table, address, part.count) === part.count;
      let at = address;
      for (const [rowCount, firstNumber] of part.pieces) {
        grouper.setConstant(base, BigInt(firstNumber));
        if (grouper.consumeSome(table, [{ type: "LONG", address: at }], rowCount) < rowCount) return false;
        at += rowCount * rowBytes;
      }
      return true;
    });
  }

  private withBlock<T>(block: SpilledBlock, use: (address: number) => T): T {
    const { space, context } = this;
    context.poll();
    const address = space.allocate(block.sizeBytes + SLACK_BYTES);
    try {
      this.spill.read(block, address);
      return use(address);
    } finally {
      space.free(address);
    }
  }

  /** Divides a partition by further bits of its keys' hashes. No other thread should take memory meanwhile. */
  divide({ blocks, bits }: SpilledPart): SpilledPart[] {
    if (bits + DIVIDE_BITS > BITS_MAX) {
      throw new SqlError(
        `${OPERATOR} cannot divide its groups further: the query's memory limit is too small (cairo.query.memory.limit)`,
        0,
        SQLSTATE.outOfMemory,
      );
    }
    const parts: PartBlock[][] = Array.from({ length: 1 << DIVIDE_BITS }, () => []);
    for (const each of blocks) this.withBlock(each.block, (address) => this.divideBlock(each, address, bits, parts));
    return parts.filter(({ length }) => length > 0).map((blocks) => ({ blocks, bits: bits + DIVIDE_BITS }));
  }

  private divideBlock(each: PartBlock, address: number, bits: number, parts: PartBlock[][]): void {
    if (each.kind === "records") {
      this.scatter(address, each.count, this.shape.grouper.stride, bits).forEach(({ block, count }, p) => {
        if (block !== undefined) parts[p].push({ kind: "records", block, count });
      });
      return;
    }
    let at = address;
    for (const [rowCount, firstNumber] of each.pieces) {
      this.scatter(at, rowCount, this.shape.rowBytes, bits).forEach(({ block, count }, p) => {
        if (block !== undefined) parts[p].push({ kind: "rows", block, pieces: [[count, firstNumber]] });
      });
      at += rowCount * this.shape.rowBytes;
    }
  }

  /** Writes rows or records of `width` bytes by parts. */
  private scatter(
    address: number,
    count: number,
    width: number,
    bits: number,
  ): { block: SpilledBlock | undefined; count: number }[] {
    const { context, shape: { keyWords } } = this, { heap } = context;
    const space = Workspace.of(context, OPERATOR);
    try {
      const { kernel, inputs } = partNumbersKernel(heap.memory, width, keyWords, bits, DIVIDE_BITS);
      const bound = new BoundKernel(kernel, inputs, context, space);
      const numbers = space.words(count), { i32 } = heap;
      bound.setI32(kernel.cells.out, numbers.byteOffset);
      bound.setColumns([{ address }]);
      bound.run(0, count);
      const counts = new Array<number>(1 << DIVIDE_BITS).fill(0);
      for (const part of numbers) counts[part]++;
      const words = width / 4, out = space.words(count * words);
      let sum = 0;
      const starts = counts.map((each) => (sum += each) - each), cursors = starts.map((start) => start * words);
      for (let row = 0, from = address / 4; row < count; row++) {
        const part = numbers[row];
        let to = cursors[part];
        for (let w = 0; w < words; w++) out[to++] = i32[from++];
        cursors[part] = to;
      }
      return counts.map((each, part) => ({
        count: each,
        block: each === 0 ? undefined : this.spill.write([[out.byteOffset + starts[part] * width, each * width]]),
      }));
    } finally {
      space.release();
    }
  }

  finish(): Finished {
    this.spill.flush();
    return { runs: this.runs, left: this.left };
  }

  close(): void {
    this.space.release();
  }
}

/** Writes the tables that are complete as runs and drops them. */
export function writeComplete(tables: PartTables, part: number, finisher: PartFinisher): void {
  const table = tables.get(part);
  if (table !== undefined) finisher.write(table);
  tables.drop(part);
}

interface Cursor {
  run: Run;
  /** The next block of the run. */
  next: number;
  /** One block in memory. */
  address: number;
  at: number;
  count: number;
}

/** The groups of all runs in the order of their first rows. All lists but the last have MORSEL_ROWS groups. */
export class MergedRuns {
  private readonly space: Workspace;
  /** A binary heap of cursors by the first row of their next group. */
  private readonly heap: Cursor[] = [];
  /** Copies of records, and their addresses. */
  private readonly records: number;
  private readonly list: Int32Array;

  constructor(runs: readonly Run[], private readonly stride: number, private readonly context: QueryContext) {
    this.space = Workspace.of(context, OPERATOR);
    this.records = this.space.allocate(MORSEL_ROWS * stride);
    this.list = this.space.words(MORSEL_ROWS);
    for (let k = 0; k < MORSEL_ROWS; k++) this.list[k] = this.records + k * stride;
    for (const run of runs) {
      const cursor: Cursor = { run, next: 0, address: 0, at: 0, count: 0 };
      if (this.load(cursor)) this.push(cursor);
    }
  }

  /** The next groups, which are valid until the next call. */
  next(): GroupTable & { kind: "list" } | undefined {
    this.context.poll();
    const { heap, list, stride, context: { heap: { i32 } } } = this;
    let groups = 0, to = this.records / 4;
    while (heap.length > 0 && groups < MORSEL_ROWS) {
      const first = heap[0], end = (first.address + (first.at + 1) * stride) / 4;
      for (let from = end - stride / 4; from < end; from++) i32[to++] = i32[from];
      groups++;
      if (++first.at < first.count || this.load(first)) this.sink(0);
      else {
        const last = heap.pop()!;
        if (heap.length === 0) break;
        heap[0] = last;
        this.sink(0);
      }
    }
    return groups === 0 ? undefined : { kind: "list", records: 0, list: list.byteOffset, listBytes: 0, groups };
  }

  private load(cursor: Cursor): boolean {
    if (cursor.next === cursor.run.length) {
      if (cursor.address !== 0) this.space.free(cursor.address);
      return false;
    }
    const [block, count] = cursor.run[cursor.next++];
    // The first block of a run is its largest.
    if (cursor.address === 0) cursor.address = this.space.allocate(block.sizeBytes);
    this.context.spill!.read(block, cursor.address);
    Object.assign(cursor, { at: 0, count });
    return true;
  }

  /** The number of the first row of a cursor's group. */
  private rowOf({ address, at }: Cursor): number {
    const word = (address + (at + 1) * this.stride) / 4 - 2, { u32 } = this.context.heap;
    return u32[word] + u32[word + 1] * 2 ** 32;
  }

  private push(cursor: Cursor): void {
    const { heap } = this;
    let k = heap.push(cursor) - 1;
    for (const row = this.rowOf(cursor); k > 0 && this.rowOf(heap[(k - 1) >> 1]) > row; k = (k - 1) >> 1) {
      heap[k] = heap[(k - 1) >> 1];
    }
    heap[k] = cursor;
  }

  private sink(k: number): void {
    const { heap } = this, cursor = heap[k], row = this.rowOf(cursor);
    for (;;) {
      let child = 2 * k + 1;
      if (child >= heap.length) break;
      let least = this.rowOf(heap[child]);
      if (child + 1 < heap.length) {
        const other = this.rowOf(heap[child + 1]);
        if (other < least) {
          child++;
          least = other;
        }
      }
      if (least >= row) break;
      heap[k] = heap[child];
      k = child;
    }
    heap[k] = cursor;
  }

  close(): void {
    this.space.release();
  }
}
