/**
 * Main's side of the exec workers: which worker leads which query, what comes back, and how fast.
 * A worker leads one query at a time; queries that find all workers busy wait in order. Tasks (parsing) go the same way.
 */
import { CorruptFileError, SqlError, SQLSTATE } from "../errors.ts";
import { type PostedError, revivedError } from "./posted-error.ts";
import type { SharedHeap } from "../storage/heap.ts";
import type { QueryRequest } from "./contract.ts";
import { packSources, type PostedRequest } from "./packed-sources.ts";
import { UNIT_BYTES } from "./memory.ts";
import { CANCEL, cancelError, clearSlot, SLOT, SLOT_COUNT, slotLong, slotWord } from "./slot.ts";

export interface SchedulerOptions {
  heap: SharedHeap;
  workerCount: number;
  /** Where workers' entry module is. */
  workerUrl: URL;
  log: (level: "DEBUG" | "INFO" | "ERROR" | "CRITICAL", message: string) => void;
  /** An error that nobody expected: the health check may turn on it. */
  onUnhandledError?: () => void;
}

/** A query without what the scheduler adds. `output` is the entry module's: how batches become bytes. */
export type QueryOrder = Omit<QueryRequest, "id" | "slot">;

/** How far a query is, and what it holds. */
export interface QueryStatistics {
  /** "waiting": for a worker; "sending": for its reader. */
  state: "waiting" | "running" | "sending" | "ended";
  /** The worker that leads it, or -1. */
  worker: number;
  rowsRead: number;
  /** At most; 0 where no source knows. */
  rowsToRead: number;
  memoryBytes: number;
}

export interface RunningQuery {
  chunks: AsyncIterable<{ bytes: Uint8Array; rows: number }>;
  totalRows(): number;
  cancel(): void;
  /** After the end: the last ones. */
  statistics(): QueryStatistics;
  /** No thread works on it any more: what it reads may go. */
  ended: Promise<void>;
}

export interface Scheduler {
  run(order: QueryOrder, output: unknown): RunningQuery;
  /** Runs a named task of the entry module on a worker; `transfer` buffers are moved. Tasks are short and do not wait for queries. */
  task(name: string, payload: unknown, transfer?: ArrayBuffer[]): Promise<unknown>;
  /** For tests: an error reaches the top of a worker that leads a query, or of any when none does. */
  crash(text: string): void;
  /** Cancels what runs and ends the workers. */
  close(): Promise<void>;
}

/** What main tells a worker. */
export type ToWorker =
  | { type: "attach"; memory: WebAssembly.Memory; runsQueries: boolean }
  /** The way to worker `index`. */
  | { type: "peer"; index: number; port: MessagePort }
  | { type: "query"; id: number; request: PostedRequest; output: unknown }
  /** Goes on with a query that it has parked. */
  | { type: "resume"; id: number }
  /** No query has run for a while: memory that it keeps for the next ones goes back. `isFirst`: that of all threads, too. */
  | { type: "rest"; isFirst: boolean }
  | { type: "task"; id: number; name: string; payload: unknown }
  /** For tests: an error reaches the top of the thread. */
  | { type: "crash"; text: string };

/** What a worker tells main. */
export type FromWorker =
  /** It can be given work. */
  | { type: "ready" }
  /** The query waits for its reader, and the worker can do something else. */
  | { type: "parked"; id: number }
  | { type: "chunk"; id: number; bytes: Uint8Array; rows: number }
  | { type: "done"; id: number; totalRows: number }
  | { type: "result"; id: number; value: unknown }
  | { type: "failed"; id: number; error: PostedError };

interface Job {
  id: number;
  isTask?: boolean;
  /** The worker that has parked it: only there can it go on. */
  only?: Seat;
  start: (worker: Worker) => void;
  onMessage: (message: FromWorker) => void;
  /** The worker that had it is gone, or there is none. */
  onCrash: (reason: string) => void;
}

/** A worker's place: who sits in it is replaced after a failure. */
interface Seat {
  index: number;
  worker: Worker;
  /** It has attached, and lives. */
  isReady: boolean;
  /** What it runs. */
  job: Job | undefined;
  /** Queries that wait for their readers. */
  parked: Set<Job>;
  /** How often in a row a worker in it has ended without having finished anything, and why the last one did. */
  failures: number;
  reason: string;
  retry?: ReturnType<typeof setTimeout>;
}

/** A worker that cannot start is tried again after so long, twice as long each time. */
const RETRY_MS = 100;
const RETRY_MS_MAX = 60_000;
/** A place that has failed so often does not count as one where work could go. */
const FAILURES_MAX = 4;
/** Chunks that a reader may have left before a parked query goes on. */
const CHUNKS_LEFT_MAX = 2;

/** A parked query whose reader has taken nothing for so long ends when others wait for its slot. */
const STALL_MS = 10_000;

/** After this time without queries, tasks and commits, the workers return memory to the system. */
const REST_MS = 5_000;

/** A query that was asked for and has not ended. */
interface Underway {
  cancel(reason: number): void;
  isParked(): boolean;
  /** When its reader last took a chunk. */
  readAtMs: number;
}

/** Does not wait for the workers to have read their modules: what comes before waits for the first that is ready. */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const scheduler = new WorkerScheduler(options);
  scheduler.start();
  return scheduler;
}

class WorkerScheduler implements Scheduler {
  private readonly seats: Seat[] = [];
  /** Made when a task comes and queries have all the workers. It gets tasks only. */
  private taskSeat: Seat | undefined;
  private readonly waiting: Job[] = [];
  private readonly freeSlots = Array.from({ length: SLOT_COUNT }, (_, slot) => slot);
  private readonly waitingForSlot: (() => void)[] = [];
  private nextId = 1;
  private closed = false;

  constructor(private readonly options: SchedulerOptions) {}

  start(): void {
    for (let index = 0; index < this.options.workerCount; index++) this.seats.push(this.newSeat(index));
    for (const seat of this.seats) this.connect(seat, this.seats.filter((other) => other.index > seat.index));
    this.restAfterWork();
  }

  private newSeat(index: number): Seat {
    const seat = { index, isReady: false, job: undefined, parked: new Set<Job>(), failures: 0, reason: "" };
    return Object.assign(seat, { worker: this.spawn(seat, index) });
  }

  private spawn(seat: Omit<Seat, "worker">, index: number): Worker {
    const worker = new Worker(this.options.workerUrl, { type: "module", name: `exec-${index}` });
    const isCurrent = () => (seat as Seat).worker === worker && !this.closed;
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      if (this.closed || isCurrent()) this.onMessage(seat as Seat, data);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      worker.onerror = (again) => again.preventDefault();
      if (isCurrent()) this.onFailure(seat as Seat, event.message || "unknown error");
    };
    const { heap, workerCount } = this.options;
    worker.postMessage(
      { type: "attach", memory: heap.memory, runsQueries: index < workerCount } satisfies ToWorker,
    );
    return worker;
  }

  private onMessage(seat: Seat, message: FromWorker): void {
    if (message.type === "ready") {
      seat.isReady = true;
      return this.next();
    }
    const { job } = seat;
    job?.onMessage(message);
    if (message.type === "chunk") return;
    if (message.type === "parked") seat.parked.add(job!);
    else seat.failures = 0;
    seat.job = undefined;
    this.next();
  }

  /** Gives two workers a port to each other. */
  private connect(seat: Seat, others: readonly Seat[]): void {
    for (const other of others) {
      const { port1, port2 } = new MessageChannel();
      seat.worker.postMessage({ type: "peer", index: other.index, port: port1 } satisfies ToWorker, [port1]);
      other.worker.postMessage({ type: "peer", index: seat.index, port: port2 } satisfies ToWorker, [port2]);
    }
  }

  /** An error that nobody caught ended the worker: its queries fail, a new worker takes its place. */
  private onFailure(seat: Seat, reason: string): void {
    const lost = [...seat.parked, ...(seat.job ? [seat.job] : [])];
    // One that was at work had started well; what made it fail is told to whoever gave it the work.
    if (lost.length > 0) seat.failures = 0;
    else seat.failures++;
    const waitMs = seat.failures === 0 ? 0 : Math.min(RETRY_MS_MAX, RETRY_MS * 2 ** (seat.failures - 1));
    this.options.log(
      "CRITICAL",
      `query worker ${seat.index} failed and is replaced${waitMs > 0 ? ` in ${waitMs} ms` : ""}: ${reason}`,
    );
    this.options.onUnhandledError?.();
    seat.worker.terminate();
    Object.assign(seat, { isReady: false, job: undefined, reason });
    seat.parked.clear();
    for (const job of lost) job.onCrash(reason);
    for (let k = this.waiting.length - 1; k >= 0; k--) if (this.waiting[k].only === seat) this.waiting.splice(k, 1);
    seat.retry = setTimeout(() => {
      seat.worker = this.spawn(seat, seat.index);
      if (seat !== this.taskSeat) this.connect(seat, this.seats.filter((other) => other !== seat));
    }, waitMs);
    this.next();
  }

  private next(): void {
    if (this.closed) return;
    const free = this.seats.filter((seat) => seat.isReady && !seat.job);
    // Those that have parked queries last: a query can go on only where it was begun.
    free.sort((a, b) => a.parked.size - b.parked.size);
    if (this.taskSeat?.isReady && !this.taskSeat.job) free.unshift(this.taskSeat);
    for (const seat of free) {
      const at = this.waiting.findIndex((job) =>
        seat === this.taskSeat ? job.isTask : job.only === undefined || job.only === seat
      );
      if (at >= 0) this.give(seat, this.waiting.splice(at, 1)[0]);
    }
    if (this.waiting.some((job) => job.isTask) && this.taskSeat === undefined && this.seats.every((seat) => seat.job)) {
      this.taskSeat = this.newSeat(this.seats.length);
    }
    const isLost = ({ isReady, failures }: Seat) => !isReady && failures >= FAILURES_MAX;
    if (this.waiting.length > 0 && this.seats.every(isLost)) this.failWaiting();
  }

  private restTimer: ReturnType<typeof setInterval> | undefined;
  private jobsGiven = 0;

  /** Rests once after each time of work. Commits count as work, because many are made without the workers. */
  private restAfterWork(): void {
    let seen = this.work(), isRested = true;
    this.restTimer = setInterval(() => {
      const isBusy = ({ job, parked }: Seat) => job !== undefined || parked.size > 0;
      const work = this.work();
      if (work !== seen || this.allSeats().some(isBusy)) isRested = false;
      else if (!isRested) {
        isRested = true;
        for (const { worker, index } of this.allSeats()) {
          worker.postMessage({ type: "rest", isFirst: index === 0 } satisfies ToWorker);
        }
      }
      seen = work;
    }, REST_MS);
    Deno.unrefTimer(this.restTimer as unknown as number);
  }

  /** Changes with each piece of work. */
  private work(): number {
    return this.jobsGiven + this.options.heap.counter("commits");
  }

  private allSeats(): Seat[] {
    return this.taskSeat ? [...this.seats, this.taskSeat] : this.seats;
  }

  private give(seat: Seat, job: Job): void {
    this.jobsGiven++;
    seat.parked.delete(job);
    job.only = undefined;
    seat.job = job;
    job.start(seat.worker);
  }

  /** No worker can be started: better an error than a wait without end. */
  private failWaiting(): void {
    const { reason } = this.seats[0];
    for (const job of this.waiting.splice(0)) job.onCrash(`no query worker can be started, ${reason}`);
  }

  private enqueue(job: Job): void {
    this.waiting.push(job);
    this.next();
  }

  task(name: string, payload: unknown, transfer: ArrayBuffer[] = []): Promise<unknown> {
    const id = this.nextId++;
    return new Promise((resolve, reject) => {
      this.enqueue({
        id,
        isTask: true,
        start: (worker) => worker.postMessage({ type: "task", id, name, payload } satisfies ToWorker, transfer),
        onMessage: (message) => {
          if (message.type === "result") resolve(message.value);
          else if (message.type === "failed") reject(this.revive(message.error));
        },
        onCrash: (reason) => reject(workerFailed("parsed the request", reason)),
      });
    });
  }

  crash(text: string): void {
    const seat = this.seats.find(({ job, parked }) => job !== undefined || parked.size > 0) ?? this.seats[0];
    seat?.worker.postMessage({ type: "crash", text } satisfies ToWorker);
  }

  run(order: QueryOrder, output: unknown): RunningQuery {
    const { heap } = this.options;
    const id = this.nextId++;
    const queue = new ChunkQueue();
    const { promise, resolve } = Promise.withResolvers<void>();
    let slot = -1, ended = false, totalRows = 0, cancelled: number = CANCEL.none, hasStarted = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const cancel = (reason: number) => {
      if (ended || cancelled !== CANCEL.none) return;
      cancelled = reason;
      if (!hasStarted) {
        remove(this.waiting, job);
        remove(this.waitingForSlot, start);
        return end(cancelError(reason, order.timeoutMs));
      }
      Atomics.compareExchange(heap.i32, word(SLOT.cancel), CANCEL.none, reason);
      Atomics.notify(heap.i32, word(SLOT.chunksUnderway));
      goOn();
    };
    const end = (error?: unknown) => {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      last = { ...statistics(), state: "ended", memoryBytes: 0 };
      this.underway.delete(underway);
      if (slot >= 0) this.giveSlot(slot);
      if (error === undefined) queue.end();
      else queue.fail(error);
      resolve();
    };
    const word = (offset: number) => slotWord(slot, offset);
    let last: QueryStatistics | undefined;
    const statistics = (): QueryStatistics => {
      if (last !== undefined) return last;
      if (!hasStarted) return { state: "waiting", worker: -1, rowsRead: 0, rowsToRead: 0, memoryBytes: 0 };
      const long = (offset: number) => Number(Atomics.load(heap.i64, slotLong(slot, offset)));
      const rowsToRead = long(SLOT.rowsToRead);
      return {
        state: parkedAt === undefined && job.only === undefined ? "running" : "sending",
        worker: this.seats.findIndex((seat) => seat.job === job || seat.parked.has(job)),
        // A segment is counted each time that it is opened.
        rowsRead: rowsToRead > 0 ? Math.min(long(SLOT.rowsRead), rowsToRead) : long(SLOT.rowsRead),
        rowsToRead,
        memoryBytes: Atomics.load(heap.i32, word(SLOT.memoryUnits)) * UNIT_BYTES,
      };
    };
    let parkedAt: Seat | undefined;
    const underway: Underway = { cancel, isParked: () => parkedAt !== undefined, readAtMs: performance.now() };
    this.underway.add(underway);
    const job: Job = {
      id,
      start: (worker) => {
        hasStarted = true;
        if (order.timeoutMs > 0 && order.timeoutMs < 2 ** 31) {
          timer = setTimeout(() => cancel(CANCEL.timeout), order.timeoutMs);
        }
        worker.postMessage(
          {
            type: "query",
            id,
            request: { ...order, id, slot, sources: packSources(order.sources) },
            output,
          } satisfies ToWorker,
        );
        job.start = (worker) => worker.postMessage({ type: "resume", id } satisfies ToWorker);
      },
      onMessage: (message) => {
        if (message.type === "chunk") queue.push({ bytes: message.bytes, rows: message.rows });
        else if (message.type === "parked") {
          parkedAt = this.seats.find((seat) => seat.job === job);
          goOn();
        } else if (message.type === "done") {
          totalRows = message.totalRows;
          end();
        } else if (message.type === "failed") end(this.revive(message.error));
      },
      onCrash: (reason) => end(workerFailed("ran the query", reason)),
    };
    /** A parked query goes on once its reader has caught up, or to be told that it is cancelled. */
    const goOn = () => {
      if (parkedAt === undefined) return;
      if (cancelled === CANCEL.none && Atomics.load(heap.i32, word(SLOT.chunksUnderway)) > CHUNKS_LEFT_MAX) return;
      job.only = parkedAt;
      parkedAt = undefined;
      this.enqueue(job);
    };
    const start = () => {
      slot = this.freeSlots.shift()!;
      clearSlot(heap, slot);
      this.enqueue(job);
    };
    if (this.freeSlots.length > 0) start();
    else {
      this.waitingForSlot.push(start);
      this.stopStalled();
    }
    queue.onTaken = () => {
      if (ended) return;
      underway.readAtMs = performance.now();
      Atomics.sub(heap.i32, word(SLOT.chunksUnderway), 1);
      Atomics.notify(heap.i32, word(SLOT.chunksUnderway));
      goOn();
    };
    return {
      chunks: queue,
      totalRows: () => totalRows,
      cancel: () => cancel(CANCEL.byUser),
      statistics,
      ended: promise,
    };
  }

  private readonly underway = new Set<Underway>();
  private stallTimer: ReturnType<typeof setTimeout> | undefined;

  private giveSlot(slot: number): void {
    this.freeSlots.push(slot);
    this.waitingForSlot.shift()?.();
  }

  /** As long as queries wait for a slot: one goes whose reader has taken nothing for long. */
  private stopStalled(): void {
    clearTimeout(this.stallTimer);
    if (this.waitingForSlot.length === 0 || this.closed) return;
    const now = performance.now();
    const stalled = [...this.underway].filter((query) => query.isParked() && now - query.readAtMs > STALL_MS)
      .sort((a, b) => a.readAtMs - b.readAtMs);
    for (const query of stalled.slice(0, this.waitingForSlot.length)) query.cancel(CANCEL.stalled);
    this.stallTimer = setTimeout(() => this.stopStalled(), STALL_MS / 10);
  }

  private revive(posted: PostedError): Error {
    const error = revivedError(posted);
    if (error instanceof SqlError || error instanceof CorruptFileError) return error;
    this.options.log("CRITICAL", `query failed unexpectedly: ${error.stack ?? error.message}`);
    this.options.onUnhandledError?.();
    return new SqlError(`internal error: ${error.message}`, 0, SQLSTATE.internal);
  }

  async close(): Promise<void> {
    for (const { cancel } of [...this.underway]) cancel(CANCEL.shutdown);
    const deadline = performance.now() + 2_000;
    while (this.seats.some(({ job, parked }) => job || parked.size > 0) && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    this.closed = true;
    clearTimeout(this.stallTimer);
    clearInterval(this.restTimer);
    for (const { worker, retry } of this.allSeats()) {
      clearTimeout(retry);
      worker.terminate();
    }
  }
}

function remove<T>(list: T[], item: T): void {
  const at = list.indexOf(item);
  if (at >= 0) list.splice(at, 1);
}

/** The fault is ours: SQLSTATE XX000. */
function workerFailed(what: string, reason: string): SqlError {
  return new SqlError(`the worker that ${what} failed: ${reason}`, 0, SQLSTATE.internal);
}

/** Chunks on their way to the reader; the sender counts those that are underway. */
class ChunkQueue
  implements AsyncIterable<{ bytes: Uint8Array; rows: number }>, AsyncIterator<{ bytes: Uint8Array; rows: number }> {
  onTaken: () => void = () => {};
  private readonly chunks: { bytes: Uint8Array; rows: number }[] = [];
  private waiting: {
    resolve: (result: IteratorResult<{ bytes: Uint8Array; rows: number }>) => void;
    reject: (error: unknown) => void;
  } | undefined;
  private over = false;
  private error: unknown;

  push(chunk: { bytes: Uint8Array; rows: number }): void {
    if (this.waiting) {
      const { resolve } = this.waiting;
      this.waiting = undefined;
      this.onTaken();
      resolve({ done: false, value: chunk });
    } else this.chunks.push(chunk);
  }

  end(): void {
    this.over = true;
    this.waiting?.resolve({ done: true, value: undefined });
    this.waiting = undefined;
  }

  /** What was not read yet goes with it: a reader may never come back for it. */
  fail(error: unknown): void {
    this.chunks.length = 0;
    this.over = true;
    this.error = error;
    if (!this.waiting) return;
    this.waiting.reject(error);
    this.waiting = undefined;
    this.error = undefined;
  }

  next(): Promise<IteratorResult<{ bytes: Uint8Array; rows: number }>> {
    const chunk = this.chunks.shift();
    if (chunk) {
      this.onTaken();
      return Promise.resolve({ done: false, value: chunk });
    }
    if (this.error !== undefined) {
      const { error } = this;
      this.error = undefined;
      return Promise.reject(error);
    }
    if (this.over) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => this.waiting = { resolve, reject });
  }

  [Symbol.asyncIterator](): AsyncIterator<{ bytes: Uint8Array; rows: number }> {
    return this;
  }
}
