/**
 * `StorageWriter` on the main thread. The writer itself runs behind a port, in its worker or (in tests) in this thread.
 * Commands go out as buffers (`messages.ts`). The last publication of commands that were executed together arrives with their answers, others before.
 */
import type { NewColumn, NewTable } from "../sql/plan.ts";
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

  /** True while a command waits for its answer. */
  get isWaiting(): boolean {
    return this.waiting.size > 0;
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

/** Executes commands that arrived together and returns their answers. */
export function answer(store: TableStore, envelopes: readonly Envelope[]): Answer[] {
  const outcomes: Outcome[] = store.execute(envelopes.map(({ command }) => command));
  return outcomes.map((outcome, k) =>
    outcome.error === undefined
      ? { id: envelopes[k].id, value: outcome.value }
      : { id: envelopes[k].id, error: toPlainError(outcome.error) }
  );
}

/** The mailboxes of the query threads, which another layer knows how to use. */
export interface QueryThreads {
  readonly mailboxes: SharedArrayBuffer;
  readonly count: number;
}

/** The message by which main starts the writer's worker. */
export interface WriterStart {
  memory: WebAssembly.Memory;
  /** Of the queues of commands and of answers (`SharedQueue`), and the port of both. */
  commands: SharedArrayBuffer;
  answers: SharedArrayBuffer;
  port: MessagePort;
  root: string;
  commitMode: "sync" | "nosync";
  checkpointLogBytes: number;
  checkpointIntervalMs: number;
  syncDelayMs: number;
  memoryBytes: number;
  heldLogBytes: number | undefined;
  tableCountMax: number | undefined;
  reserveBytes: number;
  compactBytes: number;
  encoding: "auto" | "raw" | undefined;
  queryThreads: QueryThreads | undefined;
}

/** In the queue of answers: a publication, and the answers of the commands that it is the result of, if any. */
export interface Answers {
  publication?: Publication;
  answers?: Answer[];
}

/** Messages that are posted, because they are rare. */
export type FromWriter =
  | { kind: "ready"; report: string[] }
  | { kind: "failed"; error: PlainError; key?: string }
  /** The queue of answers has publications that are the result of no command, or it is full. */
  | { kind: "published" }
  | { kind: "log"; level: "CRITICAL" | "ERROR" | "INFO"; message: string }
  | { kind: "damage"; message: string };
