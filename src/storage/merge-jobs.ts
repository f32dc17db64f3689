/**
 * Jobs for merging late rows (`jobs.ts`): the writer's side (`SharedMergers`) and that of a query thread (`MergeWorker`).
 *
 *     order    bytes of the words u32   bytes of the JSON u32   words of a page with the segment   the rest of the order as JSON
 *     result   next u32   bytes u32   words of a page with the new segments, for their statistics
 */
import { readValues, type ValueReaders } from "./chunk-values.ts";
import type { Chunk } from "./chunks.ts";
import type { SharedHeap } from "./heap.ts";
import { Jobs, JobWorker } from "./jobs.ts";
import { memoryBytes } from "./encoding/codecs.ts";
import { assemble, cut, insertedRows, mergedRuns, type Run, statsOfRuns } from "./merge.ts";
import { type MergedColumn, type MergedStats, type MergeOrder, type Mergers, rowColumnOf } from "./mergers.ts";
import { PageView, pageWords } from "./page-words.ts";
import type { ColumnChunk, ColumnStats, RowRange } from "./contract.ts";
import { nullStats } from "./stats.ts";

const HEAD_BYTES = 8;

/** The writer finds what is damaged, too, and reports it. A file may also be gone because the writer did not wait for the merge. */
class UnreadableError extends Error {}

/** `hasIdle`: a query thread is idle. `wakeIdle` wakes idle ones, and returns false if there is none. */
export class SharedMergers implements Mergers {
  private readonly jobs: Jobs;

  constructor(
    private readonly heap: SharedHeap,
    private readonly threads: { hasIdle(): boolean; wakeIdle(): boolean },
  ) {
    this.jobs = Jobs.merging(heap);
  }

  get hasIdle(): boolean {
    return this.threads.hasIdle();
  }

  offer({ segment, ...rest }: MergeOrder, wakes: boolean): number | "full" | "none" {
    const words = pageWords({ id: 0, segments: [segment], partitions: [] });
    const json = new TextEncoder().encode(JSON.stringify(rest));
    const job = this.jobs.offer(HEAD_BYTES + words.sizeBytes + json.length, (order) => {
      new Uint32Array(order.buffer, order.byteOffset, 2).set([words.sizeBytes, json.length]);
      words.write(this.heap, order.byteOffset + HEAD_BYTES);
      order.set(json, HEAD_BYTES + words.sizeBytes);
    });
    if (typeof job !== "number" || !wakes || this.threads.wakeIdle() || !this.withdraw(job)) return job;
    return "none";
  }

  outcome(job: number): MergedStats | "failed" | undefined {
    const outcome = this.jobs.outcome(job);
    if (outcome !== "done") return outcome;
    const [address] = this.jobs.results(job), page = new PageView(this.heap, address + HEAD_BYTES);
    return Array.from(
      { length: page.count },
      (_, k) => page.segment(k, page.positions).chunks.map((chunk) => chunk!.stats),
    );
  }

  release(job: number): void {
    const { heap } = this;
    for (const address of this.jobs.results(job)) heap.freeExact(address, heap.u32[(address >>> 2) + 1], "batch");
    this.jobs.release(job);
  }

  withdraw(job: number): boolean {
    return this.jobs.withdraw(job);
  }
}

/** The side of a query thread: a column is a step. `readers`: those of the thread. */
export class MergeWorker extends JobWorker {
  constructor(private readonly heap: SharedHeap, seat: number, private readonly readers: ValueReaders) {
    super(Jobs.merging(heap), seat);
  }

  protected override isLeftToWriter(error: unknown): boolean {
    return error instanceof UnreadableError || super.isLeftToWriter(error);
  }

  protected override *begin(): Generator<void> {
    const { heap, jobs } = this, { address } = jobs.orderOf(this.job);
    const [wordsBytes, jsonBytes] = heap.u32.subarray(address >>> 2);
    const jsonAt = address + HEAD_BYTES + wordsBytes;
    const json = new TextDecoder().decode(heap.u8.slice(jsonAt, jsonAt + jsonBytes));
    const { directory, timestampId, from, to, partRows, columns }: Omit<MergeOrder, "segment"> = JSON.parse(json);
    const page = new PageView(heap, address + HEAD_BYTES), { rowCount, chunks } = page.segment(0, page.positions);
    const chunkOf = (columnId: number) => chunks[page.columnIds.indexOf(columnId)];
    const oldOf = (column: MergedColumn) => this.valuesOf(directory, column, chunkOf(column.columnId), rowCount);
    const timeColumn = columns.find(({ columnId }) => columnId === timestampId)!, times = oldOf(timeColumn);
    let parts: { runs: Run[]; inserted: RowRange[] }[];
    const stats: ColumnStats[][] = partRows.map(() => []);
    try {
      const added = heap.i32.subarray(timeColumn.added!.values >>> 2);
      const runs = mergedRuns(heap, times.address!, 0, rowCount, added, from, to);
      parts = cut(runs, partRows).map((runs) => ({ runs, inserted: insertedRows(runs) }));
    } finally {
      times.free();
    }
    for (const column of columns) {
      const { columnId, type, added, to } = column, before = chunkOf(columnId)?.stats ?? nullStats(type, rowCount);
      const old = oldOf(column);
      try {
        const sources = { old: old.address, added: added && rowColumnOf(heap.u8, added) };
        let { textsAt } = column;
        parts.forEach(({ runs, inserted }, k) => {
          textsAt = assemble(heap, type, sources, runs, to[k], textsAt);
          stats[k].push(statsOfRuns(heap, type, to[k], runs, inserted, rowCount, before));
        });
      } finally {
        old.free();
      }
      yield;
    }
    this.leave(stats, columns);
  }

  /** The values of a chunk in memory, and what frees them. */
  private valuesOf(
    directory: string,
    { loadAt }: MergedColumn,
    chunk: ColumnChunk | undefined,
    rowCount: number,
  ): { address: number | undefined; free(): void } {
    if (chunk === undefined || chunk.address !== 0) return { address: chunk?.address, free() {} };
    const { heap, readers } = this, sizeBytes = memoryBytes(chunk);
    const address = loadAt === 0 ? heap.allocateExact(sizeBytes, "batch") : loadAt;
    const free = () => loadAt === 0 && heap.freeExact(address, sizeBytes, "batch");
    try {
      readValues(readers, directory, chunk, rowCount, address);
    } catch (cause) {
      free();
      throw new UnreadableError(`a chunk cannot be read: ${(cause as Error).message}`, { cause });
    }
    return { address, free };
  }

  private leave(stats: readonly ColumnStats[][], columns: readonly MergedColumn[]): void {
    const { heap } = this, plain = { address: 0, file: -1, offset: 0, sizeBytes: 0, crc: 0, valueBytes: 0 };
    const segments = stats.map((ofColumns) => {
      const chunks: Chunk[] = [];
      ofColumns.forEach((stats, k) => {
        chunks[columns[k].columnId] = { plain: { ...plain, stats }, capacity: 0, texts: [], textBytes: 0 };
      });
      return { uid: 0, partition: 0n, rowCount: 0, timestampMin: 0n, timestampMax: 0n, chunks };
    });
    const words = pageWords({ id: 0, segments, partitions: [] }), sizeBytes = HEAD_BYTES + words.sizeBytes;
    const address = heap.allocateExact(sizeBytes, "batch");
    heap.u32[(address >>> 2) + 1] = sizeBytes;
    words.write(heap, address + HEAD_BYTES);
    this.jobs.leave(this.job, address);
  }
}
