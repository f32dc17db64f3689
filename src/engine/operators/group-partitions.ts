/**
 * GROUP BY with many groups over a base that is read by morsels: rows are partitioned by the hashes of their keys, partitions are grouped
 * separately, and the groups are sorted by their first rows. Each partition has its rows in table order, whichever thread wrote them,
 * so that the answer is the same in every run.
 */
import { assert } from "../../errors.ts";
import { BoundKernel, flushKernelRows } from "../compiler/binding.ts";
import { type CompiledKernel } from "../compiler/aggregate.ts";
import type { Input } from "../compiler/expression.ts";
import type { IrNode } from "../compiler/ir.ts";
import { shapeOf } from "../compiler/kernel.ts";
import {
  markKernel,
  overWrittenRows,
  placeKernel,
  prefixKernel,
  rowBytes,
  type RowShape,
  scatterKernel,
} from "../compiler/partition.ts";
import { Workspace } from "../columns.ts";
import type { QueryContext } from "../contract.ts";
import { registerTask } from "../parallel.ts";
import { type FusedShape, Grouper, type GroupTable } from "./group-table.ts";
import type { MorselReader } from "./base-plan.ts";
import type { Morsel } from "./morsels.ts";

const OPERATOR = "GROUP BY";
const BITS = 8;
const PARTS = 1 << BITS;

/** The participants' input, made by `aggregate.ts`, which knows the ranges. */
export interface RangeSource {
  ranges: Morsel[][];
  reader: MorselReader;
  grouper: Grouper;
}
export type OpenRanges = (data: unknown, context: QueryContext) => RangeSource;

/** Written rows of one range: partition p has rows offsets[p] … offsets[p + 1]-1. */
interface WrittenRange {
  range: number;
  address: number;
  sizeBytes: number;
  offsets: number[];
  /** Rows have numbers below this; not all of them were written. */
  numbers: number;
}

function rowShapeOf(shape: FusedShape): RowShape {
  const args = new Map<string, IrNode>();
  for (const arg of shape.aggregates.flatMap((aggregate) => aggregate.args)) args.set(shapeOf(arg), arg);
  return { keys: shape.keys, args: [...args.values()] };
}

function bind(kernel: CompiledKernel, inputs: readonly Input[], context: QueryContext, space: Workspace): BoundKernel {
  return new BoundKernel(kernel.run, kernel.cells, inputs, context, space, kernel.cells.count);
}

class RangeWriter {
  private readonly space: Workspace;
  private readonly shape: FusedShape;
  private readonly rows: RowShape;
  private readonly counter: BoundKernel;
  private readonly writer: BoundKernel;
  private readonly cursors: number;
  private readonly written: WrittenRange[] = [];

  constructor(private readonly from: RangeSource, private readonly context: QueryContext) {
    this.space = Workspace.of(context, OPERATOR);
    this.shape = from.grouper.fusedShape!;
    this.rows = rowShapeOf(this.shape);
    const { memory } = context.heap;
    const { inputs, predicate } = this.shape;
    this.counter = bind(scatterKernel(memory, inputs, predicate, this.rows, BITS, false), inputs, context, this.space);
    this.writer = bind(scatterKernel(memory, inputs, predicate, this.rows, BITS, true), inputs, context, this.space);
    this.cursors = this.space.allocate(PARTS * 4);
    for (const kernel of [this.counter, this.writer]) kernel.setI32(kernel.cells.cursors, this.cursors);
  }

  run(range: number): void {
    const { heap, memory } = this.context;
    const cursors = heap.i32.subarray(this.cursors >>> 2, (this.cursors >>> 2) + PARTS);
    cursors.fill(0);
    this.pass(this.counter, range);
    const offsets = [0];
    for (const count of cursors) offsets.push(offsets.at(-1)! + count);
    const width = rowBytes(this.rows), rowCount = offsets[PARTS];
    const sizeBytes = rowCount * width + 8; // the last row's number is read as eight bytes
    const address = memory.allocate(sizeBytes, OPERATOR);
    for (let part = 0; part < PARTS; part++) cursors[part] = address + offsets[part] * width;
    const numbers = this.pass(this.writer, range);
    this.written.push({ range, address, sizeBytes, offsets, numbers });
  }

  /** Returns the number of rows. */
  private pass(kernel: BoundKernel, range: number): number {
    const { reader, ranges } = this.from;
    let number = 0;
    for (const morsel of ranges[range]) {
      reader.start(morsel);
      for (let rows = reader.next(); rows !== undefined; rows = reader.next()) {
        this.context.poll();
        kernel.setColumns(rows.columns, rows.rowBase);
        kernel.setI32(kernel.cells.firstRow, number - rows.start);
        kernel.run(rows.start, rows.end);
        number += rows.end - rows.start;
      }
    }
    return number;
  }

  finish(): WrittenRange[] {
    return this.written;
  }

  close(): void {
    this.space.release();
  }
}

interface PartTask {
  data: unknown;
  written: WrittenRange[];
  bitmap: number;
}

type PartTables = [part: number, table: GroupTable][];

class PartGrouper {
  readonly grouper: Grouper;
  private readonly base: number;
  private readonly space: Workspace;
  private readonly width: number;
  private readonly mark: BoundKernel;
  private readonly tables: PartTables = [];

  constructor(private readonly task: PartTask, from: RangeSource, private readonly context: QueryContext) {
    const shape = from.grouper.fusedShape!;
    const rows = rowShapeOf(shape);
    this.width = rowBytes(rows);
    const parts = groupOfParts(from.grouper, context);
    this.grouper = parts.grouper;
    this.base = parts.base;
    this.space = Workspace.of(context, OPERATOR);
    this.mark = bind(markKernel(context.heap.memory, this.grouper.stride), [], context, this.space);
    this.mark.setI32(this.mark.cells.bitmap, task.bitmap);
  }

  run(part: number): void {
    const { grouper, width } = this;
    const table = grouper.create();
    this.tables.push([part, table]);
    let number = 0n;
    for (const { address, offsets, numbers } of this.task.written) {
      const rowCount = offsets[part + 1] - offsets[part];
      grouper.setConstant(this.base, number);
      number += BigInt(numbers);
      if (rowCount > 0) {
        grouper.consume(table, [{ type: "LONG", address: address + offsets[part] * width }], 0, rowCount, 0n);
      }
    }
    this.mark.setI32(this.mark.cells.records, table.records);
    this.mark.run(0, grouper.groupCount(table));
  }

  finish(): PartTables {
    return this.tables;
  }

  close(): void {
    this.grouper.close();
    this.space.release();
  }
}

/** The grouper for written rows, and the input for the base of their numbers. */
function groupOfParts(grouper: Grouper, context: QueryContext): { grouper: Grouper; base: number } {
  const shape = grouper.fusedShape!;
  const { inputs, keys, aggregates, base } = overWrittenRows(rowShapeOf(shape), shape.aggregates);
  return { grouper: grouper.withShape({ ...shape, inputs, keys, aggregates, predicate: undefined }, context), base };
}

interface PlaceTask {
  tables: [records: number, groups: number][];
  stride: number;
  bitmap: number;
  before: number;
  list: number;
}

class Placer {
  private readonly space: Workspace;
  private readonly kernel: BoundKernel;

  constructor(private readonly task: PlaceTask, context: QueryContext) {
    this.space = Workspace.of(context, OPERATOR);
    this.kernel = bind(placeKernel(context.heap.memory, task.stride), [], context, this.space);
    for (const name of ["bitmap", "before", "list"] as const) this.kernel.setI32(this.kernel.cells[name], task[name]);
  }

  run(part: number): void {
    const [records, groups] = this.task.tables[part];
    this.kernel.setI32(this.kernel.cells.records, records);
    this.kernel.run(0, groups);
  }

  finish(): null {
    return null;
  }

  close(): void {
    this.space.release();
  }
}

interface Participant {
  run(k: number): void;
  finish(): unknown;
  close(): void;
}

/** Runs a task on all workers, or here. */
function spread<T>(context: QueryContext, task: string, data: unknown, count: number, here: () => Participant): T[] {
  if (context.parallel !== undefined && count > 1) return context.parallel.run(task, data, count) as T[];
  const participant = here();
  try {
    for (let k = 0; k < count; k++) participant.run(k);
    return [participant.finish() as T];
  } finally {
    participant.close();
  }
}

/**
 * Returns all groups as addresses of records, in the order of first rows. `data`: from which `open` opens a
 * participant's ranges.
 */
export function groupInParts(
  data: unknown,
  from: RangeSource,
  context: QueryContext,
  space: Workspace,
): { grouper: Grouper; table: GroupTable } {
  const { memory, heap } = context;
  const written = spread<WrittenRange[]>(context, WRITE, data, from.ranges.length, () => new RangeWriter(from, context))
    .flat().sort((a, b) => a.range - b.range);
  const rowLimit = written.reduce((sum, { numbers }) => sum + numbers, 0);
  const wordCount = Math.ceil((rowLimit + 1) / 64);
  const bitmap = space.allocate(wordCount * 8), before = space.allocate(wordCount * 4);
  heap.u8.fill(0, bitmap, bitmap + wordCount * 8);
  const task: PartTask = { data, written, bitmap };
  const parts = spread<PartTables>(context, GROUP, task, PARTS, () => new PartGrouper(task, from, context)).flat().sort(
    (a, b) => a[0] - b[0],
  );
  for (const { address, sizeBytes } of written) memory.free(address, sizeBytes);
  const prefix = bind(prefixKernel(heap.memory), [], context, space);
  prefix.setI32(prefix.cells.bitmap, bitmap);
  prefix.setI32(prefix.cells.before, before);
  const groups = prefix.run(0, wordCount);
  const listBytes = Math.max(8, groups * 4);
  const list = memory.allocate(listBytes, OPERATOR);
  const { grouper } = groupOfParts(from.grouper, context);
  const tables = parts.map(([, table]) => table);
  assert(
    tables.reduce((sum, table) => sum + grouper.groupCount(table), 0) === groups,
    "each group has a first row of its own",
  );
  const place: PlaceTask = {
    tables: tables.map((table) => [table.records, grouper.groupCount(table)]),
    stride: grouper.stride,
    bitmap,
    before,
    list,
  };
  spread(context, PLACE, place, PARTS, () => new Placer(place, context));
  space.free(bitmap);
  space.free(before);
  return { grouper, table: { kind: "parts", records: 0, sizeBytes: 0, list, listBytes, groups, tables } };
}

const WRITE = "GROUP BY: writing parts", GROUP = "GROUP BY: grouping parts", PLACE = "GROUP BY: ordering groups";

/** Sets how participants open their ranges. */
export function registerPartTasks(open: OpenRanges): void {
  const opened = (data: unknown, context: QueryContext, make: (from: RangeSource) => Participant) => {
    const from = open(data, context);
    const participant = make(from);
    return {
      run: (k: number) => participant.run(k),
      finish: () => participant.finish(),
      close: () => {
        participant.close();
        from.reader.close();
        from.grouper.close();
        flushKernelRows(context.heap.i64);
      },
    };
  };
  registerTask(WRITE, (data, context) => opened(data, context, (from) => new RangeWriter(from, context)));
  registerTask(
    GROUP,
    (data, context) =>
      opened((data as PartTask).data, context, (from) => new PartGrouper(data as PartTask, from, context)),
  );
  registerTask(PLACE, (data, context) => new Placer(data as PlaceTask, context));
}
