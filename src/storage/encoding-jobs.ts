/**
 * Jobs for encoding segments, in shared memory. The writer offers a job and wakes an idle query thread (`SharedEncoders`). The thread takes
 * it and works on it step by step, between its other work (`EncodingWorker`). The state of a job is one word:
 *
 *     free → offered → taken by a seat → done or failed → free
 *               ↓ the writer takes it back           ↑ by main, if the thread has failed
 *              free
 *
 * The results are a list of blocks, to which the thread adds one for each chunk, so that they are found and freed if it fails midway.
 */
import { assert } from "../assert.ts";
import { crc32 } from "./bytes.ts";
import type { ChunkOrder, EncodedChunk, Encoders } from "./encoders.ts";
import type { Codecs, Stored } from "./encoding/codecs.ts";
import { storedForm } from "./encoding/stored.ts";
import { ENCODING_JOBS, HeapFullError, SHARED_WORD, type SharedHeap } from "./heap.ts";

const FREE = 0, OFFERED = 1, DONE = 2, FAILED = 3;
/** Taken by seat 0; one more for each further seat. */
const TAKEN = 16;

/** Words of a job. */
const WORD = { state: 0, order: 1, orderBytes: 2, results: 3 } as const;
const JOB_WORDS = 8;

/** A result: next u32, bytes u32, crc u32, encodings u32, column u32, flags u32, bytes of entries and of texts f64 each; then the bytes. */
const RESULT_HEAD_BYTES = 64;
const AS_IN_MEMORY = 1, HAS_TEXT_SIZES = 2;

function wordOf(job: number, offset: number): number {
  return SHARED_WORD.encodingJobs + job * JOB_WORDS + offset;
}

/** The writer's side. `wakeIdle` wakes an idle query thread, and returns false if there is none. */
export class SharedEncoders implements Encoders {
  constructor(private readonly heap: SharedHeap, private readonly wakeIdle: () => boolean) {}

  offer(chunks: readonly ChunkOrder[]): number | "full" | "none" {
    const { heap } = this;
    let job = 0;
    while (job < ENCODING_JOBS && Atomics.load(heap.i32, wordOf(job, WORD.state)) !== FREE) job++;
    if (job === ENCODING_JOBS) return "full";
    const order = new TextEncoder().encode(JSON.stringify(chunks));
    try {
      const address = heap.allocate(order.length, "batch");
      heap.u8.set(order, address);
      heap.u32[wordOf(job, WORD.order)] = address;
    } catch (error) {
      if (error instanceof HeapFullError) return "none";
      throw error;
    }
    heap.u32[wordOf(job, WORD.orderBytes)] = order.length;
    heap.u32[wordOf(job, WORD.results)] = 0;
    Atomics.store(heap.i32, wordOf(job, WORD.state), OFFERED);
    if (this.wakeIdle() || !this.withdraw(job)) return job;
    return "none";
  }

  outcome(job: number): readonly EncodedChunk[] | "failed" | undefined {
    const state = Atomics.load(this.heap.i32, wordOf(job, WORD.state));
    if (state === FAILED) return "failed";
    return state === DONE ? this.results(job).map(({ chunk }) => chunk) : undefined;
  }

  release(job: number): void {
    const { heap } = this, state = Atomics.load(heap.i32, wordOf(job, WORD.state));
    assert(state === DONE || state === FAILED, "no thread works on a job that is released");
    for (const { address, sizeBytes } of this.results(job)) heap.freeExact(address, sizeBytes, "batch");
    this.free(job);
  }

  withdraw(job: number): boolean {
    const { i32 } = this.heap;
    // Taken for a moment, so that nobody takes it while its memory is freed.
    if (Atomics.compareExchange(i32, wordOf(job, WORD.state), OFFERED, FAILED) !== OFFERED) return false;
    this.free(job);
    return true;
  }

  private free(job: number): void {
    const { heap } = this;
    heap.free(heap.u32[wordOf(job, WORD.order)], heap.u32[wordOf(job, WORD.orderBytes)], "batch");
    Atomics.store(heap.i32, wordOf(job, WORD.state), FREE);
  }

  private results(job: number): { address: number; sizeBytes: number; chunk: EncodedChunk }[] {
    const { heap: { u32, f64, u8 } } = this, results = [];
    for (let address = u32[wordOf(job, WORD.results)]; address !== 0; address = u32[address >>> 2]) {
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
export class EncodingWorker {
  private job = -1;
  private steps: Iterator<void> | undefined;

  constructor(
    private readonly heap: SharedHeap,
    private readonly seat: number,
    private readonly codecs: () => Codecs,
  ) {}

  /** Does a step of about a millisecond. Returns false if there is nothing to do. */
  step(): boolean {
    this.steps ??= this.take();
    if (this.steps === undefined) return false;
    try {
      if (!this.steps.next().done) return true;
      this.end(DONE);
    } catch (error) {
      this.end(FAILED);
      if (!(error instanceof HeapFullError)) throw error;
    }
    return true;
  }

  private take(): Iterator<void> | undefined {
    const { i32, u32, u8 } = this.heap;
    for (let job = 0; job < ENCODING_JOBS; job++) {
      const state = wordOf(job, WORD.state);
      if (Atomics.load(i32, state) !== OFFERED) continue;
      if (Atomics.compareExchange(i32, state, OFFERED, TAKEN + this.seat) !== OFFERED) continue;
      this.job = job;
      const from = u32[wordOf(job, WORD.order)];
      const order = u8.slice(from, from + u32[wordOf(job, WORD.orderBytes)]);
      return this.encodeAll(JSON.parse(new TextDecoder().decode(order)));
    }
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
    const first = wordOf(this.job, WORD.results);
    u32.set([u32[first], length, crc, encodings, columnId, flags], address >>> 2);
    f64.set([entryBytes ?? 0, textBytes ?? 0], (address >>> 3) + 3);
    let at = address + RESULT_HEAD_BYTES;
    for (const part of isAsInMemory ? [] : parts) {
      u8.set(part, at);
      at += part.length;
    }
    u32[first] = address;
  }

  private end(state: typeof DONE | typeof FAILED): void {
    this.steps = undefined;
    Atomics.compareExchange(this.heap.i32, wordOf(this.job, WORD.state), TAKEN + this.seat, state);
    wakeWriter(this.heap);
  }
}

/** Called by main when the thread of a seat has failed: the writer does the jobs that it had taken. */
export function failEncodingJobs(heap: SharedHeap, seat: number): void {
  for (let job = 0; job < ENCODING_JOBS; job++) {
    Atomics.compareExchange(heap.i32, wordOf(job, WORD.state), TAKEN + seat, FAILED);
  }
  wakeWriter(heap);
}

function wakeWriter(heap: SharedHeap): void {
  Atomics.add(heap.i32, SHARED_WORD.writerWake, 1);
  Atomics.notify(heap.i32, SHARED_WORD.writerWake);
}
