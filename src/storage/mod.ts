/**
 * The storage room: tables on disk, the log, snapshots and the pool of column frames.
 *
 *     openStorage   on the main thread: the heap, the catalogue's mirror, and a writer in its own worker
 *     createPool    on every thread that runs queries, over the same memory: `createPool(new SharedHeap(memory))`
 */
import { ConfigError, SqlError, SQLSTATE } from "../errors.ts";
import { CatalogueMirror } from "./catalogue.ts";
import {
  answer,
  type Envelope,
  type FromWriter,
  pack,
  WriterClient,
  type WriterPort,
  type WriterStart,
} from "./client.ts";
import { fromPlainError } from "./commands.ts";
import type { StorageWriter } from "./contract.ts";
import { type Files, realFiles } from "./files.ts";
import { createHeap, SHARED_WORD, type SharedHeap } from "./heap.ts";
import { formatPool, SharedPool } from "./pool.ts";
import type { LogLevel } from "./options.ts";
import { TableStore } from "./writer.ts";

export type * from "./contract.ts";
export {
  createHeap,
  HEAP_TAGS,
  HeapFullError,
  type HeapTag,
  SHARED_WORD,
  SharedHeap,
  WRITER_COUNTERS,
  type WriterCounter,
} from "./heap.ts";
export { packAppendBatch, unpackAppendBatch } from "./packed.ts";
export { checkBatch } from "./rows.ts";
export { PoolLease, SharedPool } from "./pool.ts";
export { CatalogueMirror } from "./catalogue.ts";
export { type Files, realFiles } from "./files.ts";
export { copyDatabase, syncDirectory } from "./copy.ts";

export interface StorageOptions {
  /** The `db` directory. Made when there is none. */
  root: string;
  /** All of the shared memory. */
  heapSizeBytes: number;
  /** Frames of stored segments. Default: half of the heap. */
  poolSizeBytes?: number;
  /** Segments in memory that are not stored yet. Default: an eighth of the heap. */
  unstoredSizeBytes?: number;
  /** "sync": what is answered survives a power cut. Default. */
  commitMode?: "sync" | "nosync";
  /** A checkpoint is made when the log is larger. Default: 256 MiB. */
  checkpointLogBytes?: number;
  /** A checkpoint is made when the log has more blocks. Default: 100,000. */
  checkpointLogBlocks?: number;
  /** A checkpoint is made when the last one is so long ago. Default: 60 s. */
  checkpointIntervalMs?: number;
  /** Syncs of the writer's worker take so much longer: for measurements. Default: 0. */
  syncDelayMs?: number;
  /** Kept free on the disk for when it is full. Default: 16 MiB. */
  reserveBytes?: number;
  log?: (level: LogLevel, message: string) => void;
  /** A table was found damaged when it was opened. The others go on. */
  onDamage?: (message: string) => void;
  /**
   * The writer's thread has ended by an error. What was acknowledged is in the log; what was asked for since is refused, and only
   * a new start goes on writing, as nobody knows in what state this one's memory is.
   */
  onWriterFailed?: (reason: string) => void;
  /** The disk has become full, or a change has found room again. */
  onDiskFull?: (isFull: boolean) => void;
  /** Runs `src/workers/writer.ts` and was told nothing yet. Default: a new one. */
  writerThread?: Worker;
  /** The writer runs in this thread: for tests. */
  inProcess?: boolean;
  /** With `inProcess` only. */
  files?: Files;
  random?: () => number;
}

export interface Storage {
  heap: SharedHeap;
  catalogue: CatalogueMirror;
  writer: StorageWriter;
  /** What recovery did, a line each. */
  report: string[];
  /** For tests: an error reaches the top of the writer's thread. */
  crashWriter(text: string): void;
}

/** @throws {ConfigError} when another process has the database; {CorruptFileError} when it cannot be opened at all. */
export async function openStorage(options: StorageOptions): Promise<Storage> {
  const heap = createHeap(options.heapSizeBytes);
  formatPool(heap, options.poolSizeBytes ?? options.heapSizeBytes / 2);
  return options.inProcess ? openInProcess(options, heap) : await openWorker(options, heap);
}

/** A thread's access to the pool. A worker needs only the heap's memory. */
export function createPool(heap: SharedHeap, files: Files = realFiles): SharedPool {
  return new SharedPool(heap, files);
}

function settings(
  {
    root,
    heapSizeBytes,
    unstoredSizeBytes,
    commitMode,
    checkpointLogBytes,
    checkpointLogBlocks,
    checkpointIntervalMs,
    syncDelayMs,
    reserveBytes,
  }: StorageOptions,
) {
  return {
    root,
    commitMode: commitMode ?? "sync",
    checkpointLogBytes: checkpointLogBytes ?? 256 << 20,
    checkpointLogBlocks,
    checkpointIntervalMs: checkpointIntervalMs ?? 60_000,
    syncDelayMs: syncDelayMs ?? 0,
    reserveBytes: reserveBytes ?? 16 << 20,
    compactBytes: 4 << 20,
    memoryBytes: unstoredSizeBytes ?? heapSizeBytes / 8,
  } as const;
}

function openInProcess(options: StorageOptions, heap: SharedHeap): Storage {
  const catalogue = new CatalogueMirror(heap);
  const files = options.files ?? realFiles;
  const pool = new SharedPool(heap, files);
  const store = new TableStore({
    ...settings(options),
    files,
    heap,
    log: options.log ?? (() => {}),
    onDamage: options.onDamage ?? (() => {}),
    publish: (publication) => catalogue.apply(publication),
    random: options.random ?? Math.random,
    evict: (sizeBytes) => pool.evict(sizeBytes),
  });
  const queue: Envelope[] = [];
  const port: WriterPort = {
    send(envelope) {
      if (queue.push(envelope) > 1) return;
      queueMicrotask(() => {
        client.receive(answer(store, queue.splice(0)));
        store.maintain();
      });
    },
  };
  const client = new WriterClient(port, catalogue, options.onDiskFull);
  return { heap, catalogue, writer: client, report: store.report, crashWriter: (text) => client.crash(text) };
}

function openWorker(options: StorageOptions, heap: SharedHeap): Promise<Storage> {
  const catalogue = new CatalogueMirror(heap);
  const worker = options.writerThread ??
    new Worker(new URL("../workers/writer.ts", import.meta.url), { type: "module", name: "writer" });
  const { port1, port2 } = new MessageChannel();
  const port: WriterPort = {
    send(envelope) {
      const transfer = new Set<ArrayBuffer>();
      port1.postMessage(pack(envelope, transfer), [...transfer]);
      Atomics.add(heap.i32, SHARED_WORD.writerWake, 1);
      Atomics.notify(heap.i32, SHARED_WORD.writerWake);
    },
  };
  const client = new WriterClient(port, catalogue, options.onDiskFull);
  return new Promise((resolve, reject) => {
    const writer: StorageWriter = Object.assign(Object.create(client) as WriterClient, {
      async close() {
        if (!client.hasFailed) await WriterClient.prototype.close.call(client);
        port1.close();
        worker.terminate();
      },
    });
    worker.onmessage = ({ data }: MessageEvent<FromWriter>) => {
      switch (data.kind) {
        case "publication":
          return catalogue.apply(data.publication);
        case "answers":
          return client.receive(data.answers);
        case "log":
          return options.log?.(data.level, data.message);
        case "damage":
          return options.onDamage?.(data.message);
        case "ready":
          return resolve({
            heap,
            catalogue,
            writer,
            report: data.report,
            crashWriter: (text) => client.crash(text),
          });
        case "failed":
          worker.terminate();
          port1.close();
          return reject(
            data.key === undefined ? fromPlainError(data.error) : new ConfigError(data.key, data.error.message),
          );
      }
    };
    worker.onerror = (event) => {
      event.preventDefault();
      worker.onerror = (again) => again.preventDefault();
      const reason = event.message || "unknown error";
      options.log?.("CRITICAL", `the writer has failed: ${reason}`);
      client.fail(new SqlError(`Cannot write: the writer has failed, ${reason}`, 0, SQLSTATE.internal));
      options.onWriterFailed?.(reason);
      reject(new Error(`the writer has failed: ${reason}`));
    };
    const start: WriterStart = { ...settings(options), memory: heap.memory, port: port2 };
    worker.postMessage(start, [port2]);
  });
}
