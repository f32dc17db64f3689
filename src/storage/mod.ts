/**
 * The storage layer: tables on disk, the log, snapshots and the pool of column frames.
 *
 *     openStorage   on the main thread: makes the heap, the catalogue's mirror, and a writer in its own worker
 *     createPool    on every thread that runs queries, over the same memories: `createPool(new SharedHeap(memory))`
 */
import { ConfigError, SqlError, SQLSTATE } from "../errors.ts";
import { CatalogueMirror } from "./catalogue.ts";
import { answer, type Envelope, type FromWriter, type QueryThreads, WriterClient, type WriterPort } from "./client.ts";
import { fromPlainError } from "./commands.ts";
import type { StorageWriter } from "./contract.ts";
import { type Files, realFiles } from "./files.ts";
import type { SharedHeap } from "./heap.ts";
import { createMemories, type Memories, type MemoriesOptions } from "./memories.ts";
import type { PackedMemory } from "./packed-memory.ts";
import { SharedPool } from "./pool.ts";
import type { LogLevel } from "./options.ts";
import { TableStore } from "./writer.ts";
import { type LinkOptions, WriterLink } from "./writer-link.ts";

export { tableEventOf } from "./definitions.ts";
export type * from "./contract.ts";
export { type BlockRange, createHeap, HEAP_TAGS, type HeapTag, SHARED_WORD, SharedHeap } from "./heap.ts";
export { encodeBatches, encodedColumns, renumberColumns } from "./blocks.ts";
export { encodeRows } from "./row-payload.ts";
export { packAppendBatch, unpackAppendBatch, unpackChangedBatch } from "./packed.ts";
export { checkBatch, checkTime } from "./rows.ts";
export { columnAfter } from "./schema.ts";
export type { OnMiss } from "./frames.ts";
export type { PoolLease } from "./lease.ts";
export { PackedMemory } from "./packed-memory.ts";
export { SharedPool } from "./pool.ts";
export { CatalogueMirror } from "./catalogue.ts";
export { ChangedTimes } from "./changed-times.ts";
export { type File, type Files, readFully, realFiles, writeFully } from "./files.ts";
export { type LogBlock, LogFollower, LogGoneError } from "./wal/follower.ts";
export { copyDatabase, syncDirectory } from "./copy.ts";
export { EncodingWorker } from "./encoding-jobs.ts";
export { MergeWorker } from "./merge-jobs.ts";
export { failJobs } from "./jobs.ts";
export { type Awaited, WakeLoop } from "./wake-loop.ts";
export { shareBytes, sharedBytes } from "./shared-bytes.ts";

export interface StorageOptions extends MemoriesOptions {
  /** The `db` directory. It is created if it does not exist. */
  root: string;
  /** Memory for segments that are not stored yet. Default: an eighth of the first memory. */
  unstoredSizeBytes?: number;
  /** "sync": acknowledged changes survive a power cut. Default. */
  commitMode?: "sync" | "nosync";
  /** Makes a checkpoint when the log is larger. Default: 256 MiB. */
  checkpointLogBytes?: number;
  /** Makes a checkpoint when the log has more blocks. Default: 100,000. */
  checkpointLogBlocks?: number;
  /** Makes a checkpoint when the last one is older. Default: 60 s. */
  checkpointIntervalMs?: number;
  /** Most bytes of the log that are kept only for readers of it. Default: 1 GiB. */
  heldLogBytes?: number;
  /** More tables are refused. Default: any number. */
  tableCountMax?: number;
  /** Lengthens each sync of the writer's worker, for measurements. Default: 0. */
  syncDelayMs?: number;
  /** Disk space kept free for when the disk is full. Default: 16 MiB. */
  reserveBytes?: number;
  /** How columns are stored: encoded where that is smaller (default), or as they are. */
  encoding?: "auto" | "raw";
  /** What the writer's worker needs to wake idle query threads, which encode segments for it. Default: it does everything itself. */
  queryThreads?: QueryThreads;
  log?: (level: LogLevel, message: string) => void;
  /** Called when a table was found damaged on opening. The other tables stay usable. */
  onDamage?: (message: string) => void;
  /**
   * Called when the writer's thread has ended by an error. Acknowledged changes are in the log. Later requests are
   * refused: the state of the shared memory is unknown, so only a new start can write again.
   */
  onWriterFailed?: (reason: string) => void;
  /** Called when the disk has become full, and when a change has succeeded again. */
  onDiskFull?: (isFull: boolean) => void;
  /** See `LinkOptions`. */
  awaitWriter?: LinkOptions["awaitWriter"];
  /** A worker that runs `src/workers/writer.ts` and has received no message yet. Default: a new one. */
  writerThread?: Worker;
  /** Runs the writer in this thread, for tests. */
  inProcess?: boolean;
  /** Only with `inProcess`. */
  files?: Files;
  random?: () => number;
}

export interface Storage extends Memories {
  catalogue: CatalogueMirror;
  writer: StorageWriter;
  /** Lines about what recovery did. */
  report: string[];
  /** For tests: throws an error at the top of the writer's thread. */
  crashWriter(text: string): void;
}

/** @throws {ConfigError} when another process has the database open; {CorruptFileError} when it cannot be opened. */
export async function openStorage(options: StorageOptions): Promise<Storage> {
  const { heap, further } = createMemories(options);
  const storage = options.inProcess ? openInProcess(options, heap) : await openWorker(options, heap);
  return { ...storage, further };
}

/** A thread's access to the pool. A worker needs only the memories. */
export function createPool(heap: SharedHeap, further: readonly PackedMemory[] = []): SharedPool {
  return new SharedPool(heap, realFiles, further);
}

function settings(
  {
    root,
    unstoredSizeBytes,
    commitMode,
    checkpointLogBytes,
    checkpointLogBlocks,
    checkpointIntervalMs,
    heldLogBytes,
    tableCountMax,
    syncDelayMs,
    reserveBytes,
    encoding,
    queryThreads,
  }: StorageOptions,
  heap: SharedHeap,
) {
  return {
    root,
    commitMode: commitMode ?? "sync",
    checkpointLogBytes: checkpointLogBytes ?? 256 << 20,
    checkpointLogBlocks,
    checkpointIntervalMs: checkpointIntervalMs ?? 60_000,
    heldLogBytes,
    tableCountMax,
    syncDelayMs: syncDelayMs ?? 0,
    reserveBytes: reserveBytes ?? 16 << 20,
    compactBytes: 4 << 20,
    encoding,
    queryThreads,
    memoryBytes: unstoredSizeBytes ?? heap.buffer.byteLength / 8,
  } as const;
}

function openInProcess(options: StorageOptions, heap: SharedHeap): Omit<Storage, "further"> {
  const files = options.files ?? realFiles;
  const catalogue = new CatalogueMirror(heap, files);
  const pool = new SharedPool(heap, files);
  const store = new TableStore({
    ...settings(options, heap),
    files,
    heap,
    log: options.log ?? (() => {}),
    onDamage: options.onDamage ?? (() => {}),
    publish: (publication) => catalogue.apply(publication),
    random: options.random ?? Math.random,
    nowMicros: () => BigInt(Date.now()) * 1000n,
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

function openWorker(options: StorageOptions, heap: SharedHeap): Promise<Omit<Storage, "further">> {
  const worker = options.writerThread ??
    new Worker(new URL("../workers/writer.ts", import.meta.url), { type: "module", name: "writer" });
  const link = new WriterLink(heap, options), { client, catalogue } = link;
  return new Promise((resolve, reject) => {
    const writer: StorageWriter = Object.assign(Object.create(client) as WriterClient, {
      async close() {
        if (!client.hasFailed) await WriterClient.prototype.close.call(client);
        link.close();
        worker.terminate();
      },
    });
    worker.onmessage = ({ data }: MessageEvent<FromWriter>) => {
      switch (data.kind) {
        case "published":
          return link.take();
        case "log":
          return options.log?.(data.level, data.message);
        case "damage":
          return options.onDamage?.(data.message);
        case "ready":
          link.take();
          return resolve({
            heap,
            catalogue,
            writer,
            report: data.report,
            crashWriter: (text) => client.crash(text),
          });
        case "failed":
          worker.terminate();
          link.close();
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
      link.take();
      client.fail(new SqlError(`Cannot write: the writer has failed: ${reason}`, 0, SQLSTATE.internal));
      options.onWriterFailed?.(reason);
      reject(new Error(`the writer has failed: ${reason}`));
    };
    link.start(worker, settings(options, heap));
  });
}
