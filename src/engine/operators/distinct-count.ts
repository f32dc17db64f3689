/**
 * count(DISTINCT x) without keys. Integers of a scan whose statistics bound them to a small range have a bit each; anything else is
 * grouped by, and the groups are counted.
 */
import { assert } from "../../errors.ts";
import type { AggregateNode, Column, Expr, ScanNode } from "../../sql/plan.ts";
import type { ScanSource } from "../../storage/contract.ts";
import { layoutOf } from "../../types/mod.ts";
import { isNullAt, NO_DICTIONARY, Workspace } from "../columns.ts";
import { BoundKernel, flushKernelRows } from "../compiler/binding.ts";
import { bitmapKernel } from "../compiler/bitmap.ts";
import { columnsOf, isNullIr } from "../compiler/expression.ts";
import type { Batch, Operator, QueryContext } from "../contract.ts";
import { fuse } from "../expressions.ts";
import { registerTask } from "../parallel.ts";
import { isVolatile, type Pipeline } from "./pipeline.ts";
import { ScanReader, sourceOf } from "./scan.ts";
import { morselsOf, rangesOf } from "./morsels.ts";

/** 16 MiB a worker. */
const RANGE_MAX = 1n << 27n;
const TASK = "count distinct";
const OPERATOR = "count(DISTINCT)";

interface BitmapTask {
  node: ScanNode;
  predicates: readonly Expr[];
  value: Expr;
  low: bigint;
  sizeBytes: number;
}

type BitmapResult = { address: number } | null;

export class DistinctCount implements Operator {
  readonly columns: readonly Column[];
  private readonly space: Workspace;
  private done = false;
  private inner?: Operator;

  constructor(
    node: AggregateNode,
    private readonly pipeline: Pipeline,
    private readonly context: QueryContext,
    private readonly groups: () => Operator,
  ) {
    this.columns = node.columns;
    this.value = pipeline.over(node.aggregates[0].args[0]);
    this.space = Workspace.of(context, OPERATOR);
  }
  private readonly value: Expr;

  next(): Batch | undefined {
    if (this.done) return undefined;
    this.done = true;
    const count = this.byBits() ?? this.byGroups();
    const address = this.space.allocate(8);
    this.context.heap.i64[address / 8] = BigInt(count);
    return { rowCount: 1, columns: [{ type: this.columns[0].type, address }] };
  }

  private byBits(): number | undefined {
    const { context, pipeline, value } = this;
    if (pipeline.base.kind !== "scan" || pipeline.predicates.some((predicate) => isVolatile(predicate, context))) {
      return undefined;
    }
    const { node, source } = pipeline.base;
    const range = rangeOf(value, node, source);
    if (range === undefined) return undefined;
    const [low, high] = range;
    const sizeBytes = Math.ceil(Number(high - low + 1n) / 32) * 4;
    const task: BitmapTask = {
      node,
      predicates: pipeline.predicates,
      value,
      low,
      sizeBytes,
    };
    const ranges = rangesOf(morselsOf(node, source, context, pipeline.predicates));
    const opened = Bitmap.open(task, source, context);
    if (opened === undefined) return undefined;
    let bitmaps: BitmapResult[];
    if (context.parallel !== undefined && ranges.length > 1) {
      opened.close();
      bitmaps = context.parallel.run(TASK, task, ranges.length) as BitmapResult[];
    } else {
      try {
        ranges.forEach((_, k) => opened.run(k));
        bitmaps = [opened.finish()];
      } finally {
        opened.close();
      }
    }
    return this.countBits(bitmaps.flatMap((bitmap) => (bitmap === null ? [] : [bitmap.address])), sizeBytes);
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

  private byGroups(): number {
    const { heap } = this.context;
    this.inner = this.groups();
    let count = 0;
    for (let batch = this.inner.next(); batch !== undefined; batch = this.inner.next()) {
      const [{ type, address }] = batch.columns;
      count += batch.rowCount;
      for (let row = 0; row < batch.rowCount; row++) if (isNullAt(heap, type, address, row)) count--;
    }
    return count;
  }

  close(): void {
    if (this.inner !== undefined) this.inner.close();
    else this.pipeline.close();
    this.space.release();
    flushKernelRows(this.context.heap.i64);
  }
}

/** The least and greatest value of a scan's integer column, by the segments' statistics. */
export function rangeOf(value: Expr, node: ScanNode, source: ScanSource): [low: bigint, high: bigint] | undefined {
  if (value.kind !== "column" || value.index >= node.columnIds.length) return undefined;
  const layout = layoutOf(value.type);
  if (layout === "symbol") return [0n, BigInt(Math.max(1, source.dictionaries[value.index]?.count ?? 0))];
  if ((layout !== "i64" && layout !== "i32") || value.type === "IPv4") return undefined;
  let low: bigint | undefined, high: bigint | undefined;
  for (const { chunks, rowCount } of source.segments) {
    const stats = chunks[value.index]?.stats;
    if (stats === undefined || stats.nullCount === rowCount) continue; // all null
    if (stats.min === undefined || stats.max === undefined) return undefined;
    const min = BigInt(stats.min), max = BigInt(stats.max);
    if (low === undefined || min < low) low = min;
    if (high === undefined || max > high) high = max;
  }
  if (low === undefined || high === undefined) return [0n, 0n];
  return high - low < RANGE_MAX ? [low, high] : undefined;
}

class Bitmap {
  private address?: number;

  /** Undefined when no kernel can tell which rows are wanted. */
  static open(task: BitmapTask, source: ScanSource, context: QueryContext): Bitmap | undefined {
    const { node, predicates, value } = task;
    const space = Workspace.of(context, OPERATOR);
    const dictionaries = node.columns.map((
      { type },
      k,
    ) => (type === "SYMBOL" ? source.dictionaries[k] ?? NO_DICTIONARY : undefined));
    const types = node.columns.map((column) => column.type);
    const fused = fuse([value], predicates, types, dictionaries, context, space, {
      operator: OPERATOR,
      expectedRows: source.rowCount,
    });
    if (fused === undefined) {
      space.release();
      return undefined;
    }
    const node1 = fused.compiler.lower(value);
    const compiled = bitmapKernel(
      context.heap.memory,
      fused.compiler.inputs,
      fused.predicate,
      node1,
      isNullIr(node1, value.type),
    );
    const kernel = new BoundKernel(
      compiled.run,
      compiled.cells,
      fused.compiler.inputs,
      context,
      space,
      compiled.cells.count,
    );
    return new Bitmap(task, source, context, space, kernel);
  }

  private readonly reader: ScanReader;
  private readonly ranges;

  private constructor(
    private readonly task: BitmapTask,
    source: ScanSource,
    private readonly context: QueryContext,
    private readonly space: Workspace,
    private readonly kernel: BoundKernel,
  ) {
    const needed = new Set<number>();
    for (const expr of [...task.predicates, task.value]) columnsOf(expr, needed);
    this.reader = new ScanReader(task.node, needed, context);
    this.ranges = rangesOf(morselsOf(task.node, source, context, task.predicates));
  }

  run(range: number): void {
    const { context, task, kernel } = this;
    if (this.address === undefined) {
      this.address = context.memory.allocate(task.sizeBytes, OPERATOR);
      context.heap.u8.fill(0, this.address, this.address + task.sizeBytes);
      kernel.setI32(kernel.cells.bitmap, this.address);
      kernel.setI64(kernel.cells.low, task.low);
    }
    for (const { segment, start, end } of this.ranges[range]) {
      context.poll();
      kernel.setColumns(this.reader.open(segment), 0n);
      kernel.run(start, end);
    }
  }

  finish(): BitmapResult {
    return this.address === undefined ? null : { address: this.address };
  }

  close(): void {
    this.reader.close();
    this.space.release();
    flushKernelRows(this.context.heap.i64);
  }
}

registerTask(TASK, (data, context) => {
  const task = data as BitmapTask;
  const opened = Bitmap.open(task, sourceOf(task.node, context), context);
  assert(opened !== undefined, "the leader has made the same kernel");
  return opened;
});
