/**
 * `StorageWriter` on the main thread. The writer itself runs behind a port, in its worker or (in tests) in this thread.
 * Commands go out with their buffers transferred. The publication that a command causes arrives before its answer.
 */
import type { NewColumn, NewTable } from "../sql/plan.ts";
import { align } from "./bytes.ts";
import type { CatalogueMirror } from "./catalogue.ts";
import { type Command, fromPlainError, type Outcome, type PlainError, toPlainError } from "./commands.ts";
import type {
  AccessChange,
  AppendBatch,
  BulkLoad,
  Change,
  PartitionChange,
  StorageTransaction,
  StorageWriter,
  TableRows,
  TableSnapshot,
} from "./contract.ts";
import type { Publication } from "./publication.ts";
import type { TableStore } from "./writer.ts";

export interface Envelope {
  id: number;
  command: Command;
}

export interface Answer {
  id: number;
  value?: number;
  error?: PlainError;
}

export interface WriterPort {
  send(envelope: Envelope): void;
}

/** Number of batches of a bulk load that may be queued at the writer. */
const LOADS_UNDERWAY_MAX = 4;

/** Commands that also succeed on a full disk, so that their success does not show that there is space again. */
const CHANGE_NOTHING: ReadonlySet<Command["kind"]> = new Set([
  "open",
  "hold",
  "release",
  "holdLog",
  "releaseLog",
  "close",
  "abortLoad",
  "beginLoad",
  "beginAppend",
  "beginChange",
  "beginTypeChange",
]);

export class WriterClient implements StorageWriter {
  private nextId = 1;
  private nextTransactionId = 1;
  private failure: unknown;
  private isDiskFull = false;
  private readonly waiting = new Map<
    number,
    { changes: boolean; resolve: (value: number | undefined) => void; reject: (error: unknown) => void }
  >();

  /** `onDiskFull` is called when the disk has become full, and when a change has succeeded again. */
  constructor(
    private readonly port: WriterPort,
    private readonly catalogue: CatalogueMirror,
    private readonly onDiskFull: (isFull: boolean) => void = () => {},
  ) {}

  /** Handles the writer's answers. */
  receive(answers: readonly Answer[]): void {
    for (const { id, value, error } of answers) {
      const waiter = this.waiting.get(id);
      this.waiting.delete(id);
      if (error?.name === "DiskFullError") this.diskIsFull(true);
      else if (error === undefined && waiter?.changes) this.diskIsFull(false);
      if (error === undefined) waiter?.resolve(value);
      else waiter?.reject(fromPlainError(error));
    }
  }

  get hasFailed(): boolean {
    return this.failure !== undefined;
  }

  /** For tests. The command gets no answer. */
  crash(text: string): void {
    this.send({ kind: "crash", text }).catch(() => {});
  }

  /** The writer has ended: rejects everything that waits for an answer. */
  fail(error: unknown): void {
    this.failure = error;
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }

  async createTable(table: NewTable, rows?: AppendBatch[], creator?: string): Promise<TableSnapshot> {
    const id = await this.send({ kind: "createTable", table, rows, creator });
    return this.catalogue.tableById(id!)!;
  }

  async beginLoad(table: NewTable, creator?: string): Promise<BulkLoad> {
    return this.loadOf((await this.send({ kind: "beginLoad", table, creator }))!);
  }

  async beginAppend(tableId: number, columnIds: readonly number[]): Promise<BulkLoad> {
    return this.loadOf((await this.send({ kind: "beginAppend", tableId, columnIds }))!);
  }

  async beginChange(change: "update" | "delete", tableId: number, columnIds: readonly number[]): Promise<BulkLoad> {
    return this.loadOf((await this.send({ kind: "beginChange", change, tableId, columnIds }))!);
  }

  async beginTypeChange(tableId: number, columnId: number, column: NewColumn): Promise<BulkLoad> {
    return this.loadOf((await this.send({ kind: "beginTypeChange", tableId, columnId, column }))!);
  }

  private loadOf(loadId: number): BulkLoad {
    const underway: Promise<unknown>[] = [];
    const prepare = async (signal?: AbortSignal) => {
      do signal?.throwIfAborted(); while (await this.send({ kind: "prepareLoad", loadId }) === 1);
    };
    return {
      add: async (packed) => {
        const done = this.send({ kind: "load", loadId, packed });
        done.catch(() => {}); // the error is reported where `done` is awaited
        underway.push(done);
        if (underway.length >= LOADS_UNDERWAY_MAX) await underway.shift();
      },
      added: async (signal) => {
        await Promise.all(underway.splice(0));
        await prepare(signal);
      },
      commit: async () => {
        await prepare();
        const id = await this.send({ kind: "endLoad", loadId });
        return this.catalogue.tableById(id!)!;
      },
      abort: async () => {
        await this.send({ kind: "abortLoad", loadId });
      },
    };
  }

  async append(changes: TableRows[]): Promise<void> {
    await this.send({ kind: "append", changes });
  }

  async change(change: Change | PartitionChange): Promise<number | undefined> {
    return await this.send(change);
  }

  async changeAccess(changes: readonly AccessChange[]): Promise<void> {
    await this.send({ kind: "changeAccess", changes });
  }

  begin(limitBytes: number): StorageTransaction {
    const transactionId = this.nextTransactionId++;
    const base = { transactionId, limitBytes };
    return {
      catalogue: this.catalogue.branch(transactionId),
      change: (changes) => this.send({ kind: "change", ...base, changes }),
      fork: async (tableId) => void await this.send({ kind: "fork", ...base, tableId }),
      rollbackTo: async (ordinal) => void await this.send({ kind: "rollbackTo", transactionId, ordinal }),
      commit: async (changes) => void await this.send({ kind: "commit", ...base, changes }),
      rollback: async () => void await this.send({ kind: "rollback", transactionId }),
    };
  }

  async open(tableId: number): Promise<void> {
    await this.send({ kind: "open", tableId });
  }

  async checkpoint(): Promise<void> {
    await this.send({ kind: "checkpoint" });
  }

  async hold(): Promise<void> {
    await this.send({ kind: "hold" });
  }

  async release(): Promise<void> {
    await this.send({ kind: "release" });
  }

  async holdLog(name: string, lsn?: number): Promise<number> {
    return (await this.send({ kind: "holdLog", name, lsn }))!;
  }

  async releaseLog(name: string): Promise<void> {
    await this.send({ kind: "releaseLog", name });
  }

  async close(): Promise<void> {
    await this.send({ kind: "close" });
  }

  private diskIsFull(isFull: boolean): void {
    if (isFull !== this.isDiskFull) this.onDiskFull(this.isDiskFull = isFull);
  }

  private send(command: Command): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      if (this.failure !== undefined) return reject(this.failure);
      const id = this.nextId++;
      this.waiting.set(id, { changes: !CHANGE_NOTHING.has(command.kind), resolve, reject });
      try {
        this.port.send({ id, command });
      } catch (error) {
        this.waiting.delete(id);
        reject(error);
      }
    });
  }
}

const VIEWS = { u8: Uint8Array, i32: Int32Array, i64: BigInt64Array } as const;

/** A view in a separate buffer, or in the gathered buffer. `length` counts elements. */
interface PackedView {
  view: keyof typeof VIEWS;
  buffer?: ArrayBuffer;
  at: number;
  length: number;
}

/** The message that is posted to the writer. */
export interface Packed {
  value: unknown;
  /**
   * Contains all views that are small or cover only a part of their buffer, because copying them is cheaper than
   * transferring a buffer for each.
   */
  gathered: ArrayBuffer;
}

/** Views of at least this size keep their buffer if they cover all of it. */
const OWN_BUFFER_BYTES_MIN = 65_536;

/**
 * Replaces views by offsets in bare buffers, which are transferred. The synchronous receive visits everything in a
 * message, and it would visit a view value by value.
 */
export function pack(value: unknown, transfer: Set<ArrayBuffer>): Packed {
  const parts: Uint8Array[] = [];
  /** Buffers that are transferred with the batches in them. */
  const owned = new Set<ArrayBufferLike>();
  let size = 0;
  const packView = (bytes: ArrayBufferView): PackedView => {
    const { buffer, byteOffset, byteLength } = bytes;
    const view = bytes instanceof Int32Array ? "i32" : bytes instanceof BigInt64Array ? "i64" : "u8";
    const length = byteLength / VIEWS[view].BYTES_PER_ELEMENT;
    if (owned.has(buffer)) return { view, buffer: buffer as ArrayBuffer, at: byteOffset, length };
    const isWhole = buffer instanceof ArrayBuffer && byteLength === buffer.byteLength && !transfer.has(buffer);
    if (isWhole && byteLength >= OWN_BUFFER_BYTES_MIN) {
      transfer.add(buffer);
      return { view, buffer, at: 0, length };
    }
    const at = size;
    parts.push(new Uint8Array(buffer, byteOffset, byteLength));
    size = align(at + byteLength, 8);
    return { view, at, length };
  };
  const walk = (item: unknown): unknown => {
    if (item === null || typeof item !== "object") return item;
    if (ArrayBuffer.isView(item)) return packView(item);
    if (Array.isArray(item)) return item.map(walk);
    const { buffer } = item as Partial<AppendBatch>;
    if (buffer instanceof ArrayBuffer && buffer.byteLength >= OWN_BUFFER_BYTES_MIN) {
      transfer.add(buffer);
      owned.add(buffer);
    }
    const copy: Record<string, unknown> = {};
    for (const key of Object.keys(item)) if (key !== "buffer") copy[key] = walk((item as Record<string, unknown>)[key]);
    return copy;
  };
  const packed = walk(value);
  const gathered = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    gathered.set(part, at);
    at = align(at + part.length, 8);
  }
  transfer.add(gathered.buffer);
  return { value: packed, gathered: gathered.buffer };
}

/** The inverse of `pack`. Changes the message in place. */
export function unpack({ value, gathered }: Packed): unknown {
  const walk = (item: unknown): unknown => {
    if (item === null || typeof item !== "object") return item;
    if (Array.isArray(item)) {
      for (let k = 0; k < item.length; k++) if (typeof item[k] === "object") item[k] = walk(item[k]);
      return item;
    }
    if ("view" in item) {
      const { view, buffer, at, length } = item as PackedView;
      return new VIEWS[view](buffer ?? gathered, at, length);
    }
    const record = item as Record<string, unknown>;
    for (const key of Object.keys(record)) if (typeof record[key] === "object") record[key] = walk(record[key]);
    return record;
  };
  return walk(value);
}

/** Executes commands that arrived together and returns their answers. */
export function answer(store: TableStore, envelopes: readonly Envelope[]): Answer[] {
  const outcomes: Outcome[] = store.execute(envelopes.map(({ command }) => command));
  return outcomes.map((outcome, k) =>
    outcome.error === undefined
      ? { id: envelopes[k].id, value: outcome.value }
      : { id: envelopes[k].id, error: toPlainError(outcome.error) }
  );
}

/** The mailboxes of the query threads, which another room knows how to use. */
export interface QueryThreads {
  readonly mailboxes: SharedArrayBuffer;
  readonly count: number;
}

/** The message by which main starts the writer's worker. */
export interface WriterStart {
  memory: WebAssembly.Memory;
  port: MessagePort;
  root: string;
  commitMode: "sync" | "nosync";
  checkpointLogBytes: number;
  checkpointIntervalMs: number;
  syncDelayMs: number;
  memoryBytes: number;
  heldLogBytes: number | undefined;
  reserveBytes: number;
  compactBytes: number;
  encoding: "auto" | "raw" | undefined;
  queryThreads: QueryThreads | undefined;
}

export type FromWriter =
  | { kind: "ready"; report: string[] }
  | { kind: "failed"; error: PlainError; key?: string }
  | { kind: "publication"; publication: Publication }
  | { kind: "answers"; answers: Answer[] }
  | { kind: "log"; level: "CRITICAL" | "ERROR" | "INFO"; message: string }
  | { kind: "damage"; message: string };
