/**
 * Jobs for encoding segments (`jobs.ts`): the writer's side (`SharedEncoders`) and that of a query thread (`EncodingWorker`). A result is
 * a chunk.
 */
import { crc32 } from "./bytes.ts";
import type { ChunkOrder, EncodedChunk, Encoders } from "./encoders.ts";
import type { Codecs, Stored } from "./encoding/codecs.ts";
import { storedForm } from "./encoding/stored.ts";
import type { SharedHeap } from "./heap.ts";
import { Jobs, JobWorker } from "./jobs.ts";

/** A result: next u32, bytes u32, crc u32, encodings u32, column u32, flags u32, bytes of entries and of texts f64 each; then the bytes. */
const RESULT_HEAD_BYTES = 64;
const AS_IN_MEMORY = 1, HAS_TEXT_SIZES = 2;

/** The writer's side. `wakeIdle` wakes an idle query thread, and returns false if there is none. */
export class SharedEncoders implements Encoders {
  private readonly jobs: Jobs;

  constructor(private readonly heap: SharedHeap, private readonly wakeIdle: () => boolean) {
    this.jobs = Jobs.encoding(heap);
  }

  offer(chunks: readonly ChunkOrder[]): number | "full" | "none" {
    const order = new TextEncoder().encode(JSON.stringify(chunks));
    const job = this.jobs.offer(order.length, (into) => into.set(order));
    if (typeof job !== "number" || this.wakeIdle() || !this.withdraw(job)) return job;
    return "none";
  }

  outcome(job: number): readonly EncodedChunk[] | "failed" | undefined {
    const outcome = this.jobs.outcome(job);
    return outcome === "done" ? this.results(job).map(({ chunk }) => chunk) : outcome;
  }

  release(job: number): void {
    for (const { address, sizeBytes } of this.results(job)) this.heap.freeExact(address, sizeBytes, "batch");
    this.jobs.release(job);
  }

  withdraw(job: number): boolean {
    return this.jobs.withdraw(job);
  }

  private results(job: number): { address: number; sizeBytes: number; chunk: EncodedChunk }[] {
    const { heap: { u32, f64, u8 } } = this, results = [];
    for (const address of this.jobs.results(job)) {
      const [, length, crc, encodings, columnId, flags] = u32.subarray(address >>> 2);
      const from = address + RESULT_HEAD_BYTES;
      const bytes = (flags & AS_IN_MEMORY) === 0 ? u8.subarray(from, from + length) : undefined;
      const [entryBytes, textBytes] = f64.subarray((address >>> 3) + 3);
      const sizes = (flags & HAS_TEXT_SIZES) === 0 ? {} : { entryBytes, textBytes };
      const chunk = { columnId, bytes, crc, ...(encodings === 0 ? {} : { encodings }), ...sizes };
      results.push({ address, sizeBytes: RESULT_HEAD_BYTES + length, chunk });
    }
    return results;
  }
}

/** The side of a query thread. `codecs`: those of the thread. */
export class EncodingWorker extends JobWorker {
  constructor(private readonly heap: SharedHeap, seat: number, private readonly codecs: () => Codecs) {
    super(Jobs.encoding(heap), seat);
  }

  protected override begin(): Iterator<void> {
    const { address, sizeBytes } = this.jobs.orderOf(this.job);
    const order = this.heap.u8.slice(address, address + sizeBytes);
    return this.encodeAll(JSON.parse(new TextDecoder().decode(order)));
  }

  private *encodeAll(chunks: readonly ChunkOrder[]): Generator<void> {
    for (const chunk of chunks) {
      this.leave(chunk.columnId, yield* storedForm(this.heap, this.codecs(), chunk));
      yield;
    }
  }

  /** Adds a result to the list. */
  private leave(columnId: number, { parts, encodings = 0, entryBytes, textBytes }: Stored): void {
    const { heap } = this, { u8, u32, f64 } = heap;
    let length = 0, crc = 0;
    for (const part of parts) {
      length += part.length;
      crc = crc32(part, crc);
    }
    const isAsInMemory = parts.length === 1 && parts[0].buffer === u8.buffer;
    if (isAsInMemory) length = 0;
    const address = heap.allocateExact(RESULT_HEAD_BYTES + length, "batch");
    const flags = (isAsInMemory ? AS_IN_MEMORY : 0) | (entryBytes === undefined ? 0 : HAS_TEXT_SIZES);
    u32.set([length, crc, encodings, columnId, flags], (address >>> 2) + 1);
    f64.set([entryBytes ?? 0, textBytes ?? 0], (address >>> 3) + 3);
    let at = address + RESULT_HEAD_BYTES;
    for (const part of isAsInMemory ? [] : parts) {
      u8.set(part, at);
      at += part.length;
    }
    this.jobs.leave(this.job, address);
  }
}
