/**
 * count(DISTINCT x) without keys. Integers of a scan whose statistics bound them to a small range have one bit each. Otherwise the
 * values are grouped, and the groups counted.
 */
import type { Column } from "../../sql/plan.ts";
import { isNullAt, Workspace } from "../columns.ts";
import { BoundKernel, flushKernelRows } from "../compiler/binding.ts";
import { bitmapKernel } from "../compiler/bitmap.ts";
import { columnsOf } from "../compiler/expression.ts";
import { isNull } from "../compiler/ir.ts";
import type { Batch, Changes, Operator, QueryContext } from "../contract.ts";
import { fuse } from "../expressions.ts";
import { registerTask } from "../parallel.ts";
import { scanDictionaries, sourceOf } from "../physical/facts.ts";
import type { GroupWay } from "../physical/plan.ts";
import { PassedRows } from "./passed-rows.ts";
import { openMorsels } from "./base.ts";
import type { MorselReader } from "./base-plan.ts";
import { morselsOf, rangesOf } from "./morsels.ts";

const TASK = "count distinct";
const OPERATOR = "count(DISTINCT)";

type BitsWay = Extract<GroupWay, { kind: "bits" }>;
type BitmapResult = { address: number } | null;

/** Uses a bit for each value. */
export class DistinctBits implements Operator {
  private readonly space: Workspace;
  private done = false;

  constructor(
    readonly columns: readonly Column[],
    private way: BitsWay,
    private readonly context: QueryContext,
  ) {
    this.space = Workspace.of(context, OPERATOR);
  }

  next(): Batch | undefined {
    if (this.done) return undefined;
    this.done = true;
    return countBatch(this.columns, this.count(), this.space);
  }

  private count(): number {
    const { context, way: { node, predicates, bytes } } = this, { way } = this;
    const ranges = rangesOf(morselsOf(node, sourceOf(node, context), context, predicates));
    let bitmaps: BitmapResult[];
    if (context.parallel !== undefined && ranges.length > 1) {
      bitmaps = context.parallel.run(TASK, way, ranges.length) as BitmapResult[];
    } else {
      const opened = Bitmap.open(way, context);
      try {
        ranges.forEach((_, k) => opened.run(k));
        bitmaps = [opened.finish()];
      } finally {
        opened.close();
      }
    }
    return this.countBits(bitmaps.flatMap((bitmap) => (bitmap === null ? [] : [bitmap.address])), bytes);
  }

  private countBits(addresses: readonly number[], sizeBytes: number): number {
    const { heap, memory } = this.context;
    const views = addresses.map((address) => heap.i32.subarray(address / 4, (address + sizeBytes) / 4));
    let count = 0;
    for (let word = 0; word < sizeBytes / 4; word++) {
      let bits = 0;
      for (const view of views) bits |= view[word];
      bits -= (bits >>> 1) & 0x55555555;
      bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
      count += Math.imul((bits + (bits >>> 4)) & 0x0F0F0F0F, 0x01010101) >>> 24;
    }
    for (const address of addresses) memory.free(address, sizeBytes);
    return count;
  }

  rewind(): boolean {
    this.space.release();
    this.done = false;
    return true;
  }

  /** Other rows may have values outside of the range. */
  rebind(changes: Changes): boolean {
    const { node, predicates } = this.way;
    if (changes.isChanged(node.id)) return false;
    this.way = { ...this.way, node: changes.scanOf(node), predicates: changes.take(predicates) };
    return true;
  }

  close(): void {
    this.space.release();
    flushKernelRows(this.context.heap.i64);
  }
}

/** Counts the groups of an operator with one key, without the group of null. */
export class DistinctValues implements Operator {
  private readonly space: Workspace;
  private done = false;

  constructor(
    readonly columns: readonly Column[],
    private readonly groups: Operator,
    private readonly context: QueryContext,
  ) {
    this.space = Workspace.of(context, OPERATOR);
  }

  next(): Batch | undefined {
    if (this.done) return undefined;
    this.done = true;
    const { heap } = this.context;
    let count = 0;
    for (let batch = this.groups.next(); batch !== undefined; batch = this.groups.next()) {
      const [{ type, address }] = batch.columns;
      count += batch.rowCount;
      for (let row = 0; row < batch.rowCount; row++) if (isNullAt(heap, type, address, row)) count--;
    }
    return countBatch(this.columns, count, this.space);
  }

  rewind(): boolean {
    this.space.release();
    this.done = false;
    return this.groups.rewind?.() === true;
  }

  rebind(changes: Changes): boolean {
    return this.groups.rebind?.(changes) === true;
  }

  close(): void {
    this.groups.close();
    this.space.release();
  }
}

function countBatch([{ type }]: readonly Column[], count: number, space: Workspace): Batch {
  const address = space.allocate(8);
  space.heap.i64[address / 8] = BigInt(count);
  return { rowCount: 1, columns: [{ type, address }] };
}

class Bitmap {
  private address?: number;

  static open(task: BitsWay, context: QueryContext): Bitmap {
    const { node, predicates, value } = task, source = sourceOf(node, context);
    const space = Workspace.of(context, OPERATOR);
    const types = node.columns.map((column) => column.type);
    const fused = fuse(predicates, types, scanDictionaries(node, source), context, space, {
      operator: OPERATOR,
      expectedRows: source.rowCount,
    });
    const lowered = fused.compiler.lower(value);
    const compiled = bitmapKernel(
      context.heap.memory,
      fused.compiler.inputs,
      fused.predicate,
      lowered,
      isNull(lowered, value.type),
    );
    const kernel = new BoundKernel(compiled, fused.compiler.inputs, context, space);
    return new Bitmap(task, context, space, kernel);
  }

  private readonly reader: MorselReader;
  private readonly ranges;
  private readonly passed?: PassedRows;

  private constructor(
    private readonly task: BitsWay,
    private readonly context: QueryContext,
    private readonly space: Workspace,
    private readonly kernel: BoundKernel,
  ) {
    const needed = new Set<number>();
    for (const expr of [...task.predicates, task.value]) columnsOf(expr, needed);
    this.reader = openMorsels({ kind: "scan", node: task.node, reader: task.reader }, needed, context);
    const { node, predicates } = task, source = sourceOf(node, context);
    this.ranges = rangesOf(morselsOf(node, source, context, predicates, [], true));
    const types = node.columns.map((column) => column.type);
    this.passed = PassedRows.of(task.reader, predicates, types, scanDictionaries(node, source), context);
  }

  run(range: number): void {
    const { context, task, kernel } = this;
    if (this.address === undefined) {
      this.address = context.memory.allocate(task.bytes, OPERATOR);
      context.heap.u8.fill(0, this.address, this.address + task.bytes);
      kernel.setI32(kernel.cells.bitmap, this.address);
      kernel.setI64(kernel.cells.low, task.low);
    }
    for (const morsel of this.ranges[range]) {
      this.reader.start(morsel);
      for (let rows = this.reader.next(); rows !== undefined; rows = this.reader.next()) {
        context.poll();
        const { columns, start, end } = rows;
        this.passed?.count(columns, start, end);
        kernel.setColumns(columns, 0n);
        kernel.run(start, end);
      }
    }
  }

  finish(): BitmapResult {
    return this.address === undefined ? null : { address: this.address };
  }

  close(): void {
    this.reader.close();
    this.passed?.close();
    this.space.release();
    flushKernelRows(this.context.heap.i64);
  }
}

registerTask(TASK, (data, context) => Bitmap.open(data as BitsWay, context));
