/**
 * Main's side of the exec workers: which worker leads which query, what comes back, and how fast.
 * A worker leads one query at a time; queries that find all workers busy wait in order. Tasks (parsing) go the same way.
 */
import { CorruptFileError, SqlError, SQLSTATE } from "../errors.ts";
import type { SharedHeap } from "../storage/heap.ts";
import type { QueryRequest } from "./contract.ts";
import { packSources, type PostedRequest } from "./packed-sources.ts";
import { CANCEL, clearSlot, SLOT, SLOT_COUNT, slotWord } from "./slot.ts";

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

export interface RunningQuery {
  chunks: AsyncIterable<{ bytes: Uint8Array; rows: number }>;
  totalRows(): number;
  cancel(): void;
}

export interface Scheduler {
  run(order: QueryOrder, output: unknown): RunningQuery;
  /** Runs a named task of the entry module on a worker; `transfer` buffers are moved. */
  task(name: string, payload: unknown, transfer?: ArrayBuffer[]): Promise<unknown>;
  /** Cancels what runs and ends the workers. */
  close(): Promise<void>;
}

/** What main tells a worker. */
export type ToWorker =
  | { type: "attach"; memory: WebAssembly.Memory; index: number }
  | { type: "peer"; port: MessagePort }
  | { type: "query"; id: number; request: PostedRequest; output: unknown }
  | { type: "task"; id: number; name: string; payload: unknown };

/** What a worker tells main. */
export type FromWorker =
  | { type: "chunk"; id: number; bytes: Uint8Array; rows: number }
  | { type: "done"; id: number; totalRows: number }
  | { type: "result"; id: number; value: unknown }
  | { type: "failed"; id: number; error: PostedError };

/** An error as plain data. */
export interface PostedError {
  name: string;
  message: string;
  position: number;
  sqlState: string;
  path?: string;
  stack?: string;
}

export function postedError(error: unknown): PostedError {
  if (error instanceof SqlError) {
    return { name: "SqlError", message: error.message, position: error.position, sqlState: error.sqlState };
  }
  if (error instanceof CorruptFileError) {
    return {
      name: "CorruptFileError",
      message: error.message,
      position: 0,
      sqlState: SQLSTATE.corrupted,
      path: error.path,
    };
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { name: "Error", message, position: 0, sqlState: SQLSTATE.internal, stack };
}

interface Job {
  id: number;
  start: (worker: WorkerHandle) => void;
  onMessage: (message: FromWorker) => void;
  /** The worker that had it is gone. */
  onCrash: (reason: string) => void;
}

interface WorkerHandle {
  worker: Worker;
  index: number;
  job: Job | undefined;
}

/** Does not wait for the workers to have read their modules: what they are sent before waits in their queues. */
export function createScheduler(options: SchedulerOptions): Scheduler {
  const scheduler = new WorkerScheduler(options);
  scheduler.start();
  return scheduler;
}

class WorkerScheduler implements Scheduler {
  private readonly workers: WorkerHandle[] = [];
  private readonly waiting: Job[] = [];
  private readonly freeSlots = Array.from({ length: SLOT_COUNT }, (_, slot) => slot);
  private readonly waitingForSlot: (() => void)[] = [];
  private nextId = 1;
  private closed = false;

  constructor(private readonly options: SchedulerOptions) {}

  start(): void {
    for (let index = 0; index < this.options.workerCount; index++) this.spawn(index);
    for (const handle of this.workers) this.connect(handle, this.workers.filter((other) => other.index > handle.index));
  }

  private spawn(index: number): WorkerHandle {
    const worker = new Worker(this.options.workerUrl, { type: "module", name: `exec-${index}` });
    const handle: WorkerHandle = { worker, index, job: undefined };
    this.workers[index] = handle;
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      handle.job?.onMessage(data);
      if (data.type === "done" || data.type === "result" || data.type === "failed") this.release(handle);
    };
    worker.onerror = (event) => {
      event.preventDefault();
      this.replace(handle, event.message || "unknown error");
    };
    worker.postMessage({ type: "attach", memory: this.options.heap.memory, index } satisfies ToWorker);
    return handle;
  }

  /** Gives two workers a port to each other. */
  private connect(handle: WorkerHandle, others: WorkerHandle[]): void {
    for (const other of others) {
      const { port1, port2 } = new MessageChannel();
      handle.worker.postMessage({ type: "peer", port: port1 } satisfies ToWorker, [port1]);
      other.worker.postMessage({ type: "peer", port: port2 } satisfies ToWorker, [port2]);
    }
  }

  /** An error that nobody caught ended the worker: its query fails, a new worker takes its place. */
  private replace(handle: WorkerHandle, reason: string): void {
    if (this.closed || this.workers[handle.index] !== handle) return;
    this.options.log("CRITICAL", `query worker ${handle.index} failed and is replaced: ${reason}`);
    this.options.onUnhandledError?.();
    handle.worker.terminate();
    handle.job?.onCrash(reason);
    const fresh = this.spawn(handle.index);
    this.connect(fresh, this.workers.filter((other) => other !== fresh));
    this.next();
  }

  private release(handle: WorkerHandle): void {
    handle.job = undefined;
    this.next();
  }

  private next(): void {
    for (const handle of this.workers) {
      if (this.waiting.length === 0) return;
      if (handle.job || this.workers[handle.index] !== handle) continue;
      const job = this.waiting.shift()!;
      handle.job = job;
      job.start(handle);
    }
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
        start: ({ worker }) => worker.postMessage({ type: "task", id, name, payload } satisfies ToWorker, transfer),
        onMessage: (message) => {
          if (message.type === "result") resolve(message.value);
          else if (message.type === "failed") reject(this.revive(message.error));
        },
        onCrash: (reason) => reject(new Error(`the worker that parsed the request failed: ${reason}`)),
      });
    });
  }

  run(order: QueryOrder, output: unknown): RunningQuery {
    const { heap } = this.options;
    const id = this.nextId++;
    const queue = new ChunkQueue();
    let slot = -1, ended = false, totalRows = 0, cancelled: number = CANCEL.none;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const cancel = (reason: number) => {
      if (ended) return;
      if (cancelled === CANCEL.none) cancelled = reason;
      if (slot < 0) return;
      Atomics.compareExchange(heap.i32, slotWord(slot, SLOT.cancel), CANCEL.none, reason);
      Atomics.notify(heap.i32, slotWord(slot, SLOT.chunksUnderway));
    };
    this.cancels.add(cancel);
    const end = (error?: unknown) => {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      this.cancels.delete(cancel);
      if (slot >= 0) this.giveSlot(slot);
      if (error === undefined) queue.end();
      else queue.fail(error);
    };
    const start = () => {
      slot = this.freeSlots.shift()!;
      clearSlot(heap, slot);
      if (cancelled !== CANCEL.none) Atomics.store(heap.i32, slotWord(slot, SLOT.cancel), cancelled);
      this.enqueue({
        id,
        start: ({ worker }) => {
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
        },
        onMessage: (message) => {
          if (message.type === "chunk") queue.push({ bytes: message.bytes, rows: message.rows });
          else if (message.type === "done") {
            totalRows = message.totalRows;
            end();
          } else if (message.type === "failed") end(this.revive(message.error));
        },
        onCrash: (reason) => end(new SqlError(`the worker that ran the query failed: ${reason}`, 0, SQLSTATE.internal)),
      });
    };
    if (this.freeSlots.length > 0) start();
    else this.waitingForSlot.push(start);
    queue.onTaken = () => {
      if (ended) return;
      Atomics.sub(heap.i32, slotWord(slot, SLOT.chunksUnderway), 1);
      Atomics.notify(heap.i32, slotWord(slot, SLOT.chunksUnderway));
    };
    return { chunks: queue, totalRows: () => totalRows, cancel: () => cancel(CANCEL.byUser) };
  }

  private readonly cancels = new Set<(reason: number) => void>();

  private giveSlot(slot: number): void {
    this.freeSlots.push(slot);
    this.waitingForSlot.shift()?.();
  }

  private revive(error: PostedError): Error {
    if (error.name === "SqlError") return new SqlError(error.message, error.position, error.sqlState);
    if (error.name === "CorruptFileError") return new SqlError(error.message, 0, SQLSTATE.corrupted);
    this.options.log("CRITICAL", `query failed unexpectedly: ${error.stack ?? error.message}`);
    this.options.onUnhandledError?.();
    return new SqlError(`internal error: ${error.message}`, error.position, SQLSTATE.internal);
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const cancel of [...this.cancels]) cancel(CANCEL.shutdown);
    const deadline = performance.now() + 2_000;
    while (this.workers.some((handle) => handle.job) && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    for (const { worker } of this.workers) worker.terminate();
  }
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

  fail(error: unknown): void {
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
