/**
 * Merges the late rows of a commit with their segments, beside each other: the writer takes one segment after the other, and offers the
 * next ones to idle query threads. What they have not begun when nothing else is left, and what they do not end soon, the writer does
 * itself. So a commit never depends on another thread.
 */
import { assert } from "../assert.ts";
import { LAYOUT_WIDTH, layoutOf } from "../types/mod.ts";
import { align } from "./bytes.ts";
import { HeapFullError, SHARED_WORD } from "./heap.ts";
import type { MemoryBlock, WriterMemory } from "./memory.ts";
import type { Mergers, SharedColumn } from "./mergers.ts";
import type { TableSchema } from "./contract.ts";
import type { Rows } from "./rows.ts";
import type { Segment } from "./segment.ts";
import type { PreparedMerge, SegmentMaker } from "./segment-maker.ts";

/** Segments that are offered at a time. */
const OFFERED_MAX = 4;
/** Bytes of results that wait until those before them are there. */
const WAITING_BYTES_MAX = 32 << 20;
/**
 * `bytesMin`: bytes of values of the segments, below which no thread is woken: on a busy machine that takes longer than it gains. `skipped`:
 * commits that the writer merges alone after one of which others did little, because the cores have other work. Tests set other ones.
 */
export const MERGE_HELP = { bytesMin: 16 << 20, skipped: 7 };
/** The share of a commit's merges below which others did little. On idle cores they do half or more. */
const LITTLE = 1 / 4;

/** Rows `from` … `to`-1 belong to the segment with this index. */
export interface LateRange {
  readonly index: number;
  readonly from: number;
  readonly to: number;
}

/** The table of the rows. */
export interface MergingTable {
  readonly schema: TableSchema;
  readonly moves: { readonly isRead: boolean };
  /** Merges rows [from, to) with the segment. */
  mergeInto(segment: Segment, rows: Rows, from: number, to: number): Segment[];
  readonly maker: Pick<SegmentMaker, "prepareMerge">;
}

/** Replaces segments of a table, in ascending order, by their indexes before the change. */
interface Replacing {
  at(index: number): Segment;
  replace(index: number, segments: readonly Segment[]): void;
}

interface Underway {
  readonly job: number;
  readonly merge: PreparedMerge;
  /** What stays as it is meanwhile. */
  readonly blocks: readonly MemoryBlock[];
}

interface Parts {
  readonly memory: WriterMemory;
  /** The last published version. */
  readonly version: () => number;
}

export class LateMerges {
  /** Merges that the writer has done itself, or does not need any more, on which other threads still work. */
  private readonly abandoned = new Set<Underway>();
  /** Commits that the writer will merge alone. */
  private skips = 0;

  constructor(private readonly mergers: Mergers | undefined, private readonly parts: Parts) {}

  /** Merges rows with segments. `ranges`: by ascending index. */
  run(table: MergingTable, rows: Rows, ranges: readonly LateRange[], replacing: Replacing): void {
    this.collect();
    const shared = this.canHelp(table, rows, ranges, replacing) ? this.share(table, rows) : undefined;
    if (shared === undefined) {
      for (const { index, from, to } of ranges) {
        replacing.replace(index, table.mergeInto(replacing.at(index), rows, from, to));
      }
      return;
    }
    const group = new Group(this.mergers!, this.parts.memory, { table, rows, ranges, replacing, shared });
    try {
      group.run();
      if (group.helped < LITTLE * ranges.length) this.skips = MERGE_HELP.skipped;
    } finally {
      for (const underway of group.end()) this.abandoned.add(underway);
      release(shared.block);
      if (shared.block.refs === 0) this.parts.memory.discard(shared.block);
    }
  }

  /** Frees the memory of abandoned merges that have ended. */
  collect(): void {
    const { memory, version } = this.parts;
    for (const underway of this.abandoned) {
      if (this.mergers!.outcome(underway.job) === undefined) continue;
      this.mergers!.release(underway.job);
      this.abandoned.delete(underway);
      for (const block of underway.blocks) {
        release(block);
        if (block.refs === 0) memory.retire(block, version());
      }
    }
  }

  private canHelp(table: MergingTable, rows: Rows, ranges: readonly LateRange[], replacing: Replacing): boolean {
    // Moves of rows are found by the runs, which other threads do not hand back.
    if (this.mergers === undefined || ranges.length < 2 || table.moves.isRead || !this.mergers.hasIdle) return false;
    const width = table.schema.columns.reduce((sum, { type }) => sum + LAYOUT_WIDTH[layoutOf(type)], 0);
    const bytesMin = Math.max(MERGE_HELP.bytesMin, rows.rowCount * width);
    let bytes = 0;
    if (!ranges.some(({ index }) => (bytes += replacing.at(index).rowCount * width) >= bytesMin)) return false;
    if (this.skips === 0) return true;
    this.skips--;
    return false;
  }

  /** The rows in shared memory; undefined if there is too little memory. */
  private share({ schema }: MergingTable, { rowCount, columns }: Rows): SharedRows | undefined {
    const { memory } = this.parts, { u8 } = memory.heap;
    const parts = schema.columns.flatMap(({ id, type }) => {
      const column = columns[id];
      if (column === undefined) return [];
      const values = column.values.subarray(0, rowCount * LAYOUT_WIDTH[layoutOf(type)]);
      return [{ id, values, heap: column.heap ?? new Uint8Array(0) }];
    });
    const sizeBytes = parts.reduce((sum, { values, heap }) => sum + align(values.length, 8) + align(heap.length, 8), 0);
    let block: MemoryBlock;
    try {
      block = memory.allocate(sizeBytes, "batch");
    } catch (error) {
      if (error instanceof HeapFullError) return undefined;
      throw error;
    }
    hold(block);
    let at = block.address;
    const put = (bytes: Uint8Array) => {
      const address = at;
      u8.set(bytes, address);
      at += align(bytes.length, 8);
      return address;
    };
    const shared: (SharedColumn | undefined)[] = [];
    for (const { id, values, heap } of parts) {
      shared[id] = { values: put(values), valueBytes: values.length, heap: put(heap), heapBytes: heap.length };
    }
    return { block, columns: shared };
  }
}

export interface SharedRows {
  readonly block: MemoryBlock;
  /** By column id. */
  readonly columns: readonly (SharedColumn | undefined)[];
}

interface Result {
  /** The segment that was merged. */
  readonly uid: number;
  readonly rowCount: number;
  readonly segments: readonly Segment[];
  readonly blocks: readonly MemoryBlock[];
  /** Of values. Texts are mostly those of the segment that was merged. */
  readonly sizeBytes: number;
}

interface Work {
  readonly table: MergingTable;
  readonly rows: Rows;
  readonly ranges: readonly LateRange[];
  readonly replacing: Replacing;
  readonly shared: SharedRows;
}

/** The merges of a commit. */
class Group {
  /** The first range that no thread has begun, and the first one whose segment has not been replaced. */
  private next = 0;
  private replaced = 0;
  /** By range, ascending. */
  private readonly underway = new Map<number, Underway>();
  private readonly abandoned: Underway[] = [];
  /** Results by range. They wait for those before them, as segments are replaced in order. */
  private readonly results = new Map<number, Result>();
  private waitingBytes = 0;
  /** Merges that others have done. */
  helped = 0;
  /** What the writer's last merge took. It waits for others as long, before it does the same. */
  private mergeMs = 0;

  constructor(
    private readonly mergers: Mergers,
    private readonly memory: WriterMemory,
    private readonly work: Work,
  ) {}

  run(): void {
    const { ranges } = this.work;
    while (this.replaced < ranges.length) {
      const isBehind = this.waitingBytes > WAITING_BYTES_MAX && this.underway.size > 0;
      const own = isBehind || this.next === ranges.length ? undefined : this.next++;
      if (!isBehind) this.offer();
      if (own !== undefined) this.merge(own);
      else this.takeBack();
      this.collect();
      this.replace();
    }
  }

  /** Returns the merges on which others still work. */
  end(): readonly Underway[] {
    for (const [range, underway] of this.underway) {
      if (!this.withdraw(range, underway)) this.abandoned.push(underway);
    }
    for (const { blocks } of this.results.values()) blocks.forEach(release);
    return this.abandoned;
  }

  private offer(): void {
    const { table, rows, ranges, replacing, shared } = this.work;
    while (this.next < ranges.length && this.underway.size < OFFERED_MAX && this.mergers.hasIdle) {
      const { index, from, to } = ranges[this.next];
      const merge = table.maker.prepareMerge(replacing.at(index), rows, shared.columns, from, to);
      if (merge === undefined) return;
      // A thread that works on a merge looks for the next one by itself.
      const job = this.mergers.offer(merge.order, this.underway.size === 0);
      if (typeof job !== "number") return merge.writes.forEach((block) => this.memory.discard(block));
      const blocks = [...merge.reads, ...merge.writes, shared.block];
      blocks.forEach(hold);
      this.underway.set(this.next++, { job, merge, blocks });
    }
  }

  private merge(range: number): void {
    const { table, rows, ranges, replacing } = this.work, { index, from, to } = ranges[range];
    const start = performance.now();
    const segment = replacing.at(index);
    this.keep(range, segment, table.mergeInto(segment, rows, from, to));
    this.mergeMs = performance.now() - start;
  }

  private keep(range: number, { uid, rowCount }: Segment, segments: readonly Segment[]): void {
    const blocks = segments.flatMap(({ chunks }) =>
      chunks.flatMap((chunk) => chunk ? [chunk.values!, ...chunk.texts] : [])
    );
    blocks.forEach(hold);
    const sizeBytes = segments.reduce((sum, { chunks }) => sum + valueBytesOf(chunks), 0);
    this.results.set(range, { uid, rowCount, segments, blocks, sizeBytes });
    this.waitingBytes += sizeBytes;
  }

  /** Does a merge that no thread has begun. If there is none, waits for the first one, or does it, too. */
  private takeBack(): void {
    for (const [range, underway] of this.underway) if (this.withdraw(range, underway)) return this.merge(range);
    const [range, underway] = this.underway.entries().next().value!;
    if (this.waitFor(underway)) return;
    this.abandoned.push(underway);
    this.underway.delete(range);
    this.merge(range);
  }

  private withdraw(range: number, underway: Underway): boolean {
    if (!this.mergers.withdraw(underway.job)) return false;
    this.forget(range, underway);
    return true;
  }

  private waitFor({ job }: Underway): boolean {
    const { i32 } = this.memory.heap;
    for (const deadline = performance.now() + this.mergeMs;;) {
      const seen = Atomics.load(i32, SHARED_WORD.writerWake);
      if (this.mergers.outcome(job) !== undefined) return true;
      const left = deadline - performance.now();
      if (left <= 0) return false;
      Atomics.wait(i32, SHARED_WORD.writerWake, seen, left);
    }
  }

  /** Takes what others have merged. */
  private collect(): void {
    for (const [range, underway] of this.underway) {
      const outcome = this.mergers.outcome(underway.job);
      if (outcome === undefined) continue;
      if (outcome !== "failed") {
        this.helped++;
        this.memory.heap.addCounter("mergedSegmentsOfHelpers", 1);
        this.keep(range, underway.merge.order.segment, underway.merge.finish(outcome));
      }
      this.mergers.release(underway.job);
      this.forget(range, underway);
      if (outcome === "failed") this.merge(range);
    }
  }

  /** No other thread uses its memory any more. */
  private forget(range: number, { blocks, merge }: Underway): void {
    this.underway.delete(range);
    blocks.forEach(release);
    if (!this.results.has(range)) merge.writes.forEach((block) => this.memory.discard(block));
  }

  private replace(): void {
    const { ranges, replacing } = this.work;
    for (let found = this.results.get(this.replaced); found !== undefined; found = this.results.get(this.replaced)) {
      const { uid, rowCount, segments, blocks, sizeBytes } = found, { index } = ranges[this.replaced];
      this.results.delete(this.replaced++);
      blocks.forEach(release);
      this.waitingBytes -= sizeBytes;
      const current = replacing.at(index);
      // It may have been flushed meanwhile.
      assert(current.uid === uid && current.rowCount === rowCount, "the segment that was merged is replaced");
      replacing.replace(index, segments);
    }
  }
}

function valueBytesOf(chunks: Segment["chunks"]): number {
  return chunks.reduce((sum, chunk) => sum + (chunk?.values?.sizeBytes ?? 0), 0);
}

function hold(block: MemoryBlock): void {
  block.refs++;
}

function release(block: MemoryBlock): void {
  block.refs--;
}
