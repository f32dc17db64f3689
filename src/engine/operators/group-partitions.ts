/**
 * GROUP BY with many groups over a base that is read by morsels: rows are partitioned by the hashes of their keys, partitions are grouped
 * separately, and the groups are sorted by their first rows. Each partition has its rows in table order, whichever thread wrote them,
 * so that the answer is the same in every run.
 */
import { BoundKernel, flushKernelRows } from "../compiler/binding.ts";
import type { IrNode } from "../compiler/ir.ts";
import { shapeOf } from "../compiler/kernel.ts";
import { overWrittenRows, rowBytes, type RowShape, scatterKernel } from "../compiler/partition.ts";
import { Workspace } from "../columns.ts";
import { MORSEL_ROWS, type Piece, type QueryContext, type Spill, type Vector } from "../contract.ts";
import { SharedHeap } from "../../storage/heap.ts";
import { isOutOfMemory } from "../memory.ts";
import { registerTask } from "../parallel.ts";
import { inOrderOfRows, type Output, PART_BITS, type PartGroups, PARTS, wholeOutput } from "./group-order.ts";
import { numbered, Scatter, type Scattered } from "./group-scatter.ts";
import { type FusedShape, Grouper } from "./group-table.ts";
import type { MorselReader } from "./base-plan.ts";
import type { Morsel } from "./morsel.ts";
import { rangesOfRows, stagesOf } from "./morsels.ts";
import { PartTables } from "./part-tables.ts";
import {
  BLOCK_BYTES_MAX,
  type Finished,
  MergedRuns,
  type PartBlock,
  PartFinisher,
  type Run,
  type SpilledPart,
  writeComplete,
} from "./spilled-parts.ts";

const OPERATOR = "GROUP BY";
/** The last row's number is read as eight bytes. */
const ROW_NUMBER_SLACK = 8;

/** The participants' input, made by `aggregate.ts`. */
interface RowSource {
  /** All morsels, in order. */
  morsels: () => Morsel[];
  reader: MorselReader;
  grouper: Grouper;
}
export type OpenRows = (data: unknown, context: QueryContext) => RowSource;

/** The data for each task of a grouping. */
interface Rounds {
  /** The data from which `OpenRows` opens a participant's input. */
  data: unknown;
  /** Maximum number of rows of a range. */
  rangeRows: number;
  /** The partitions' tables. */
  tables: number;
  /** Partitions may be written to disk. */
  spills: boolean;
}

/** Ranges first … first + n-1 are written. */
interface WriteTask extends Rounds {
  first: number;
}

/** Written rows of one range. */
interface WrittenRange extends Scattered {
  range: number;
  /** Rows have numbers below this; not all of them were written. */
  numbers: number;
}

function rowShapeOf(shape: FusedShape): RowShape {
  const args = new Map<string, IrNode>();
  for (const arg of shape.aggregates.flatMap((aggregate) => aggregate.args)) args.set(shapeOf(arg), arg);
  return { keys: shape.keys, args: [...args.values()] };
}

class RangeWriter {
  private readonly space: Workspace;
  private readonly shape: FusedShape;
  private readonly rows: RowShape;
  private readonly scatter: Scatter;
  private readonly ranges: Morsel[][];
  private readonly written: WrittenRange[] = [];

  constructor(
    private readonly task: WriteTask,
    private readonly from: RowSource,
    private readonly context: QueryContext,
  ) {
    this.ranges = rangesOfRows(from.morsels(), task.rangeRows);
    this.space = Workspace.of(context, OPERATOR);
    this.shape = from.grouper.fusedShape!;
    this.rows = rowShapeOf(this.shape);
    const { inputs, predicate } = this.shape;
    const kernelOf = (writes: boolean) => {
      const kernel = scatterKernel(context.heap.memory, inputs, predicate, this.rows, PART_BITS, writes);
      return new BoundKernel(kernel, inputs, context, this.space);
    };
    this.scatter = new Scatter({ counting: kernelOf(false), writing: kernelOf(true) }, context, this.space);
  }

  run(k: number): void {
    const range = this.task.first + k;
    let numbers = 0;
    const scattered = this.scatter.run(rowBytes(this.rows), ROW_NUMBER_SLACK, OPERATOR, (kernel) => {
      numbers = this.pass(kernel, range);
    });
    this.written.push({ range, ...scattered, numbers });
  }

  /** Returns the number of rows. */
  private pass(kernel: BoundKernel, range: number): number {
    const { reader } = this.from;
    let number = 0;
    for (const morsel of this.ranges[range]) {
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

interface GroupTask extends Rounds {
  /** In the order of the table. */
  written: (WrittenRange & { firstNumber: number })[];
}

type SpilledParts = [part: number, blocks: PartBlock[]][];

/** Row `row` of the partition's rows in a written range. */
interface Place {
  range: number;
  row: number;
}

/** Adds the written rows of partitions to their tables, and writes them to disk when the memory is short. */
class PartGrouper {
  private readonly grouper: Grouper;
  private readonly base: number;
  private readonly width: number;
  private readonly tables: PartTables;
  private readonly spilled: SpilledParts = [];
  private readonly spill?: Spill;

  constructor(private readonly task: GroupTask, from: RowSource, context: QueryContext) {
    this.spill = task.spills ? context.spill : undefined;
    this.width = rowBytes(rowShapeOf(from.grouper.fusedShape!));
    const parts = groupOfParts(from.grouper, context);
    this.grouper = parts.grouper;
    this.base = parts.base;
    this.tables = PartTables.at(context, task.tables, PARTS);
  }

  run(part: number): void {
    const { spill } = this;
    if (spill === undefined) {
      this.add(part);
      return;
    }
    const rest = this.tables.isSpilled(part) ? { range: 0, row: 0 } : this.add(part);
    if (rest === undefined) return;
    const blocks = [...this.spillTable(part, spill), ...this.spillRows(part, rest, spill)];
    if (blocks.length > 0) this.spilled.push([part, blocks]);
  }

  /** Returns the row to go on with if the memory is short and rows may be spilled. */
  private add(part: number): Place | undefined {
    const { grouper, width, task: { written }, spill } = this;
    let place: Place = { range: 0, row: 0 };
    try {
      this.tables.with(part, grouper, (table) => {
        for (const [range, { address, offsets, firstNumber }] of written.entries()) {
          const rowCount = offsets[part + 1] - offsets[part];
          if (rowCount === 0) continue;
          grouper.setConstant(this.base, BigInt(firstNumber));
          const columns: Vector[] = [{ type: "LONG", address: address + offsets[part] * width }];
          if (spill === undefined) grouper.consume(table, columns, 0, rowCount, 0n);
          else {
            const row = grouper.consumeSome(table, columns, rowCount);
            place = { range, row };
            if (row < rowCount) return;
          }
        }
        place = { range: written.length, row: 0 };
      });
    } catch (error) {
      if (spill === undefined || !isOutOfMemory(error)) throw error;
    }
    return place.range === written.length ? undefined : place;
  }

  /** Writes the table of a partition and drops it. Its rows go to disk from then on. */
  spillTable(part: number, spill: Spill): PartBlock[] {
    const { stride } = this.grouper, table = this.tables.get(part), blocks: PartBlock[] = [];
    const perBlock = Math.floor(BLOCK_BYTES_MAX / stride);
    for (let from = 0; table !== undefined && from < table.groups; from += perBlock) {
      const count = Math.min(perBlock, table.groups - from);
      blocks.push({ kind: "records", block: spill.write([[table.records + from * stride, count * stride]]), count });
    }
    if (!this.tables.isSpilled(part)) spill.countPart();
    this.tables.setSpilled(part);
    return blocks;
  }

  private spillRows(part: number, rest: Place, spill: Spill): PartBlock[] {
    const { width, task: { written } } = this, perBlock = Math.floor(BLOCK_BYTES_MAX / width);
    const blocks: PartBlock[] = [];
    let bytes: Piece[] = [], pieces: [number, number][] = [], room = perBlock;
    const flush = () => {
      if (pieces.length > 0) blocks.push({ kind: "rows", block: spill.write(bytes), pieces });
      bytes = [];
      pieces = [];
      room = perBlock;
    };
    for (let range = rest.range; range < written.length; range++) {
      const { address, offsets, firstNumber } = written[range];
      for (let row = offsets[part] + (range === rest.range ? rest.row : 0); row < offsets[part + 1];) {
        const count = Math.min(room, offsets[part + 1] - row);
        bytes.push([address + row * width, count * width]);
        pieces.push([count, firstNumber]);
        row += count;
        room -= count;
        if (room === 0) flush();
      }
    }
    flush();
    return blocks;
  }

  finish(): SpilledParts {
    this.spill?.flush();
    return this.spilled;
  }

  close(): void {
    this.grouper.close();
  }
}

/** The grouper for written rows, and the input for the base of their numbers. */
function groupOfParts(grouper: Grouper, context: QueryContext): { grouper: Grouper; base: number } {
  const shape = grouper.fusedShape!;
  const { inputs, keys, aggregates, base } = overWrittenRows(rowShapeOf(shape), shape.aggregates);
  return { grouper: grouper.withShape({ ...shape, inputs, keys, aggregates, predicate: undefined }, context), base };
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
 * Limits of the bytes of rows that are written before they are grouped: absolute, and as a fraction of the query's
 * limit.
 */
const ROUND_BYTES_MAX = 256 << 20, ROUND_SHARE = 4;
/** Minimum number of ranges of a round, so that workers finish at about the same time. */
const RANGES_MIN = 8;
const RANGE_BYTES_MAX = 16 << 20;

/** Sizes of rounds. `pairs`: average number of rows for each row of the scan. */
function roundsOf(
  shape: RowShape,
  pairs: number,
  { memory, heap }: QueryContext,
): { rangeRows: number; ranges: number; bytes: number } {
  const bytes = Math.min(ROUND_BYTES_MAX, (memory.limitBytes || heap.sizeBytes()) / ROUND_SHARE);
  const rowSize = rowBytes(shape) * Math.max(1, pairs);
  // The heap's blocks are powers of two.
  const wanted = 2 ** Math.floor(Math.log2(Math.min(RANGE_BYTES_MAX, bytes / RANGES_MIN)));
  const rangeRows = Math.max(MORSEL_ROWS, Math.floor((wanted - ROW_NUMBER_SLACK) / rowSize));
  const rangeBytes = SharedHeap.blockBytes(rangeRows * rowSize + ROW_NUMBER_SLACK);
  const ranges = Math.max(1, Math.floor(bytes / rangeBytes));
  return { rangeRows, ranges, bytes: ranges * rangeBytes };
}

/** `pairs`: average number of rows for each row of the scan. */
interface PartChoices {
  pairs: number;
  spills: boolean;
}

/**
 * Groups the rows of all morsels. Rows are written and grouped in rounds, so the memory grows with the groups and not with the rows;
 * partitions that it does not hold go to disk. `data`: from which `OpenRows` opens a participant's input.
 */
export function groupInParts(
  data: unknown,
  from: RowSource,
  { pairs, spills }: PartChoices,
  context: QueryContext,
  space: Workspace,
): PartGroups {
  const tables = PartTables.create(context, PARTS, OPERATOR);
  try {
    const { rangeRows, ranges, bytes } = roundsOf(rowShapeOf(from.grouper.fusedShape!), pairs, context);
    const rounds: Rounds = { data, rangeRows, tables: tables.address, spills };
    const stages = stagesOf(rangesOfRows(from.morsels(), rangeRows));
    const spilled = new Map<number, PartBlock[]>();
    let rowLimit = 0;
    for (const stage of stages) {
      for (let k = 0; k < stage.count; k += ranges) {
        const task: WriteTask = { ...rounds, first: stage.first + k };
        makeRoom(task, bytes, tables, from, context, spilled);
        rowLimit = groupRound(task, Math.min(ranges, stage.count - k), rowLimit, from, context, spilled);
      }
    }
    const { grouper } = groupOfParts(from.grouper, context);
    const output = spilled.size > 0
      ? mergedOutput(rounds, spilled, grouper.stride, from, context)
      : wholeOutput(inOrderOfRows(tables, grouper.stride, rowLimit, context, space), context);
    return {
      grouper,
      next: () => output.next(),
      close: () => {
        output.close();
        grouper.close();
        tables.close();
      },
    };
  } catch (error) {
    tables.close();
    throw error;
  }
}

/** Writes the largest tables to disk until there is memory for the rows of a round. */
function makeRoom(
  task: WriteTask,
  bytes: number,
  tables: PartTables,
  from: RowSource,
  context: QueryContext,
  spilled: Map<number, PartBlock[]>,
): void {
  const { memory, heap } = context, spill = task.spills ? context.spill : undefined;
  // Participants need some memory besides.
  const wanted = bytes + (memory.limitBytes || heap.sizeBytes()) / 16;
  const hasRoom = () =>
    (memory.limitBytes === 0 || memory.usedBytes + wanted <= memory.limitBytes) &&
    heap.usedBytes() + wanted <= heap.sizeBytes();
  if (spill === undefined || hasRoom()) return;
  const grouper = new PartGrouper({ ...task, written: [] }, from, context);
  try {
    const parts = Array.from({ length: PARTS }, (_, part) => part)
      .sort((a, b) => tables.groupCount(b) - tables.groupCount(a));
    for (const part of parts) {
      if (hasRoom() || tables.groupCount(part) === 0) break;
      spilled.set(part, grouper.spillTable(part, spill));
    }
    spill.flush();
  } finally {
    grouper.close();
  }
}

/** Writes and groups some ranges, whose rows have numbers from `firstNumber` on. Returns the number after the last. */
function groupRound(
  write: WriteTask,
  ranges: number,
  firstNumber: number,
  from: RowSource,
  context: QueryContext,
  spilled: Map<number, PartBlock[]>,
): number {
  const ofRanges = spread<WrittenRange[]>(context, WRITE, write, ranges, () => new RangeWriter(write, from, context));
  const { ranges: written, next } = numbered(ofRanges.flat(), firstNumber, ({ numbers }) => numbers);
  const group: GroupTask = { ...write, written };
  for (const parts of spread<SpilledParts>(context, GROUP, group, PARTS, () => new PartGrouper(group, from, context))) {
    for (const [part, blocks] of parts) spilled.set(part, [...spilled.get(part) ?? [], ...blocks]);
  }
  for (const { address, sizeBytes } of written) context.memory.free(address, sizeBytes);
  return next;
}

/** Frees all tables, and groups what is on disk. */
function mergedOutput(
  rounds: Rounds,
  spilled: ReadonlyMap<number, PartBlock[]>,
  stride: number,
  from: RowSource,
  context: QueryContext,
): Output {
  const runs: Run[] = [];
  const finish = (parts: FinishTask["parts"]): SpilledPart[] => {
    const task: FinishTask = { ...rounds, parts };
    const finished = spread<Finished>(context, FINISH, task, parts.length, () => new Finisher(task, from, context));
    runs.push(...finished.flatMap((each) => each.runs));
    return finished.flatMap((each) => each.left);
  };
  // Complete tables first: this frees their memory.
  finish(Array.from({ length: PARTS }, (_, part) => part).filter((part) => !spilled.has(part)));
  let left = finish([...spilled.values()].map((blocks) => ({ blocks, bits: PART_BITS })));
  while (left.length > 0) {
    const here = new Finisher({ ...rounds, parts: [] }, from, context);
    try {
      const divided = left.flatMap((part) => here.finisher.divide(part));
      here.finish();
      left = finish(divided);
    } finally {
      here.close();
    }
  }
  return new MergedRuns(runs, stride, context);
}

interface FinishTask extends Rounds {
  /** Numbers of partitions whose tables are in memory, or partitions that are on disk. */
  parts: (number | SpilledPart)[];
}

class Finisher {
  readonly finisher: PartFinisher;
  private readonly tables: PartTables;
  private readonly grouper: Grouper;

  constructor(private readonly task: FinishTask, from: RowSource, context: QueryContext) {
    const { grouper, base } = groupOfParts(from.grouper, context);
    const rows = rowShapeOf(from.grouper.fusedShape!), keyWords = rows.keys.flatMap((key) => key.words).length;
    this.grouper = grouper;
    this.finisher = new PartFinisher({ grouper, base, rowBytes: rowBytes(rows), keyWords }, context);
    this.tables = PartTables.at(context, task.tables, PARTS);
  }

  run(k: number): void {
    const part = this.task.parts[k];
    if (typeof part === "number") writeComplete(this.tables, part, this.finisher);
    else this.finisher.group(part);
  }

  finish(): Finished {
    return this.finisher.finish();
  }

  close(): void {
    this.finisher.close();
    this.grouper.close();
  }
}

const WRITE = "GROUP BY: writing parts", GROUP = "GROUP BY: grouping parts";
const FINISH = "GROUP BY: grouping spilled parts";

/** Sets how participants open their input. */
export function registerPartTasks(open: OpenRows): void {
  const opened = ({ data }: Rounds, context: QueryContext, make: (from: RowSource) => Participant) => {
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
  registerTask(WRITE, (data, context) => {
    const task = data as WriteTask;
    return opened(task, context, (from) => new RangeWriter(task, from, context));
  });
  registerTask(GROUP, (data, context) => {
    const task = data as GroupTask;
    return opened(task, context, (from) => new PartGrouper(task, from, context));
  });
  registerTask(FINISH, (data, context) => {
    const task = data as FinishTask;
    return opened(task, context, (from) => new Finisher(task, from, context));
  });
}
