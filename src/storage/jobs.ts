/**
 * Jobs of the writer for idle query threads, in shared memory. The writer offers a job and wakes a thread, which takes it and works on it
 * in steps, between its other work. The state of a job is one word:
 *
 *     free → offered → taken by a seat → done or failed → free
 *               ↓ the writer takes it back           ↑ by main, if the thread has failed
 *              free
 *
 * The results are a list of blocks, to which the thread adds, so that they are found and freed if it fails midway. A block begins with the
 * address of the next one.
 */
import { assert } from "../assert.ts";
import { ENCODING_JOBS, HeapFullError, MERGE_JOBS, SHARED_WORD, type SharedHeap } from "./heap.ts";

const FREE = 0, OFFERED = 1, DONE = 2, FAILED = 3;
/** Taken by seat 0; one more for each further seat. */
const TAKEN = 16;

/** Words of a job. */
const WORD = { state: 0, order: 1, orderBytes: 2, results: 3 } as const;
const JOB_WORDS = 8;

export class Jobs {
  private constructor(
    private readonly heap: SharedHeap,
    private readonly start: number,
    private readonly count: number,
  ) {}

  static encoding(heap: SharedHeap): Jobs {
    return new Jobs(heap, SHARED_WORD.encodingJobs, ENCODING_JOBS);
  }

  static merging(heap: SharedHeap): Jobs {
    return new Jobs(heap, SHARED_WORD.mergeJobs, MERGE_JOBS);
  }

  // ---- the writer's side

  /** Returns the number of the job; "full" if there are as many as there can be, "none" if there is no memory. */
  offer(orderBytes: number, write: (order: Uint8Array) => void): number | "full" | "none" {
    const { heap } = this;
    let job = 0;
    while (job < this.count && Atomics.load(heap.i32, this.word(job, WORD.state)) !== FREE) job++;
    if (job === this.count) return "full";
    let address: number;
    try {
      address = heap.allocate(orderBytes, "batch");
    } catch (error) {
      if (error instanceof HeapFullError) return "none";
      throw error;
    }
    write(heap.u8.subarray(address, address + orderBytes));
    heap.u32[this.word(job, WORD.order)] = address;
    heap.u32[this.word(job, WORD.orderBytes)] = orderBytes;
    heap.u32[this.word(job, WORD.results)] = 0;
    Atomics.store(heap.i32, this.word(job, WORD.state), OFFERED);
    return job;
  }

  /** Undefined as long as a thread works on it, or no thread has begun. */
  outcome(job: number): "done" | "failed" | undefined {
    const state = Atomics.load(this.heap.i32, this.word(job, WORD.state));
    return state === DONE ? "done" : state === FAILED ? "failed" : undefined;
  }

  /** Takes a job back that no thread has begun. */
  withdraw(job: number): boolean {
    // Taken for a moment, so that no thread takes it while its memory is freed.
    const state = this.word(job, WORD.state);
    if (Atomics.compareExchange(this.heap.i32, state, OFFERED, FAILED) !== OFFERED) return false;
    this.free(job);
    return true;
  }

  /** The caller has freed the results. */
  release(job: number): void {
    assert(this.outcome(job) !== undefined, "no thread works on a job that is released");
    this.free(job);
  }

  /** Addresses of the results. */
  *results(job: number): Iterable<number> {
    const { u32 } = this.heap;
    for (let next = u32[this.word(job, WORD.results)]; next !== 0;) {
      const address = next;
      next = u32[address >>> 2];
      yield address;
    }
  }

  private free(job: number): void {
    const { heap } = this;
    heap.free(heap.u32[this.word(job, WORD.order)], heap.u32[this.word(job, WORD.orderBytes)], "batch");
    Atomics.store(heap.i32, this.word(job, WORD.state), FREE);
  }

  // ---- the side of a query thread

  /** Takes a job that no thread has taken. */
  take(seat: number): number | undefined {
    const { i32 } = this.heap;
    for (let job = 0; job < this.count; job++) {
      const state = this.word(job, WORD.state);
      if (Atomics.load(i32, state) !== OFFERED) continue;
      if (Atomics.compareExchange(i32, state, OFFERED, TAKEN + seat) === OFFERED) return job;
    }
  }

  orderOf(job: number): { address: number; sizeBytes: number } {
    const { u32 } = this.heap;
    return { address: u32[this.word(job, WORD.order)], sizeBytes: u32[this.word(job, WORD.orderBytes)] };
  }

  /** Adds a block to the results. */
  leave(job: number, address: number): void {
    const { u32 } = this.heap, first = this.word(job, WORD.results);
    u32[address >>> 2] = u32[first];
    u32[first] = address;
  }

  end(job: number, seat: number, outcome: "done" | "failed"): void {
    const state = outcome === "done" ? DONE : FAILED;
    Atomics.compareExchange(this.heap.i32, this.word(job, WORD.state), TAKEN + seat, state);
    wakeWriter(this.heap);
  }

  /** The thread of a seat has failed. */
  fail(seat: number): void {
    for (let job = 0; job < this.count; job++) {
      Atomics.compareExchange(this.heap.i32, this.word(job, WORD.state), TAKEN + seat, FAILED);
    }
  }

  private word(job: number, offset: number): number {
    return this.start + job * JOB_WORDS + offset;
  }
}

/** The side of a query thread: takes jobs, and does them in steps. */
export abstract class JobWorker {
  /** The job that it has taken. */
  protected job = -1;
  private steps: Iterator<void> | undefined;

  constructor(protected readonly jobs: Jobs, private readonly seat: number) {}

  /** The steps of the job, of about a millisecond each. */
  protected abstract begin(): Iterator<void>;

  /** True for errors after which the writer does the job. Others end the thread. */
  protected isLeftToWriter(error: unknown): boolean {
    return error instanceof HeapFullError;
  }

  /** Does a step. Returns false if there is nothing to do. */
  step(): boolean {
    this.steps ??= this.take();
    if (this.steps === undefined) return false;
    try {
      if (!this.steps.next().done) return true;
      this.end("done");
    } catch (error) {
      this.end("failed");
      if (!this.isLeftToWriter(error)) throw error;
    }
    return true;
  }

  private take(): Iterator<void> | undefined {
    const job = this.jobs.take(this.seat);
    if (job === undefined) return undefined;
    this.job = job;
    return this.begin();
  }

  private end(outcome: "done" | "failed"): void {
    this.steps = undefined;
    this.jobs.end(this.job, this.seat, outcome);
  }
}

/** Called by main when the thread of a seat has failed: the writer does the jobs that it had taken. */
export function failJobs(heap: SharedHeap, seat: number): void {
  Jobs.encoding(heap).fail(seat);
  Jobs.merging(heap).fail(seat);
  wakeWriter(heap);
}

export function wakeWriter(heap: SharedHeap): void {
  Atomics.add(heap.i32, SHARED_WORD.writerWake, 1);
  Atomics.notify(heap.i32, SHARED_WORD.writerWake);
}
