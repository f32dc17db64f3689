/**
 * `StorageWriter` on the main thread. The writer itself runs behind a port: in its worker, or for tests in this thread.
 * Commands go out with their buffers transferred; each answer is preceded by the publication that made it true.
 */
import type { NewColumn, NewTable } from "../sql/plan.ts";
import type { CatalogueMirror } from "./catalogue.ts";
import { type Command, fromPlainError, type Outcome, type PlainError, toPlainError } from "./commands.ts";
import type { AppendBatch, BulkLoad, StorageWriter, TableSnapshot, UpdateBatch } from "./contract.ts";
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

/** Batches of a bulk load that the writer may have before it. */
const LOADS_UNDERWAY_MAX = 4;

export class WriterClient implements StorageWriter {
  private nextId = 1;
  private failure: unknown;
  private readonly waiting = new Map<
    number,
    { resolve: (value: number | undefined) => void; reject: (error: unknown) => void }
  >();

  constructor(private readonly port: WriterPort, private readonly catalogue: CatalogueMirror) {}

  /** What came from the writer. */
  receive(answers: readonly Answer[]): void {
    for (const { id, value, error } of answers) {
      const waiter = this.waiting.get(id);
      this.waiting.delete(id);
      if (error === undefined) waiter?.resolve(value);
      else waiter?.reject(fromPlainError(error));
    }
  }

  /** The writer is gone: nobody will answer any more. */
  fail(error: unknown): void {
    this.failure = error;
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }

  async createTable(table: NewTable, rows?: AppendBatch[]): Promise<TableSnapshot> {
    const id = await this.send({ kind: "createTable", table, rows });
    return this.catalogue.tableById(id!)!;
  }

  async beginLoad(table: NewTable): Promise<BulkLoad> {
    const loadId = (await this.send({ kind: "beginLoad", table }))!;
    const underway: Promise<unknown>[] = [];
    return {
      add: async (packed) => {
        const done = this.send({ kind: "load", loadId, packed });
        done.catch(() => {}); // whoever waits for it gets the error
        underway.push(done);
        if (underway.length >= LOADS_UNDERWAY_MAX) await underway.shift();
      },
      commit: async () => {
        await Promise.all(underway);
        const id = await this.send({ kind: "endLoad", loadId });
        return this.catalogue.tableById(id!)!;
      },
      abort: async () => {
        await this.send({ kind: "abortLoad", loadId });
      },
    };
  }

  async dropTable(tableId: number): Promise<void> {
    await this.send({ kind: "dropTable", tableId });
  }

  async truncate(tableId: number): Promise<void> {
    await this.send({ kind: "truncate", tableId });
  }

  async rename(tableId: number, to: string): Promise<void> {
    await this.send({ kind: "rename", tableId, to });
  }

  async addColumns(tableId: number, columns: NewColumn[]): Promise<void> {
    await this.send({ kind: "addColumns", tableId, columns });
  }

  async dropColumns(tableId: number, columnIds: number[]): Promise<void> {
    await this.send({ kind: "dropColumns", tableId, columnIds });
  }

  async renameColumn(tableId: number, columnId: number, to: string): Promise<void> {
    await this.send({ kind: "renameColumn", tableId, columnId, to });
  }

  async append(changes: { tableId: number; batches: AppendBatch[] }[]): Promise<void> {
    await this.send({ kind: "append", changes });
  }

  async update(tableId: number, version: number, batch: UpdateBatch): Promise<void> {
    await this.send({ kind: "update", tableId, version, batch });
  }

  async delete(tableId: number, version: number, rowIds: BigInt64Array): Promise<void> {
    await this.send({ kind: "delete", tableId, version, rowIds });
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

  async close(): Promise<void> {
    await this.send({ kind: "close" });
  }

  private send(command: Command): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      if (this.failure !== undefined) return reject(this.failure);
      const id = this.nextId++;
      this.waiting.set(id, { resolve, reject });
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

interface PackedView {
  view: keyof typeof VIEWS;
  buffer: ArrayBuffer;
}

/**
 * Views as bare buffers, whole ones to be transferred: the synchronous receive walks through everything that it gets, and it
 * would walk through a view value by value.
 */
export function pack(value: unknown, transfer: Set<ArrayBuffer>): unknown {
  if (ArrayBuffer.isView(value)) {
    const view = value instanceof Int32Array ? "i32" : value instanceof BigInt64Array ? "i64" : "u8";
    const isWhole = value.buffer instanceof ArrayBuffer && value.byteLength === value.buffer.byteLength &&
      !transfer.has(value.buffer);
    const buffer = isWhole
      ? value.buffer as ArrayBuffer
      : new Uint8Array(value.buffer, value.byteOffset, value.byteLength).slice().buffer;
    transfer.add(buffer);
    return { view, buffer } satisfies PackedView;
  }
  if (Array.isArray(value)) return value.map((item) => pack(item, transfer));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, pack(item, transfer)]));
  }
  return value;
}

export function unpack(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unpack);
  if (value === null || typeof value !== "object") return value;
  if ("view" in value) {
    const { view, buffer } = value as PackedView;
    return new VIEWS[view](buffer);
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, unpack(item)]));
}

/** Runs commands that have come together, and makes their answers. */
export function answer(store: TableStore, envelopes: readonly Envelope[]): Answer[] {
  const outcomes: Outcome[] = store.execute(envelopes.map(({ command }) => command));
  return outcomes.map((outcome, k) =>
    outcome.error === undefined
      ? { id: envelopes[k].id, value: outcome.value }
      : { id: envelopes[k].id, error: toPlainError(outcome.error) }
  );
}

/** What goes from main to the writer's worker to start it. */
export interface WriterStart {
  memory: WebAssembly.Memory;
  port: MessagePort;
  root: string;
  commitMode: "sync" | "nosync";
  checkpointLogBytes: number;
  checkpointIntervalMs: number;
  syncDelayMs: number;
  memoryBytes: number;
  reserveBytes: number;
  compactBytes: number;
}

export type FromWriter =
  | { kind: "ready"; report: string[] }
  | { kind: "failed"; error: PlainError; key?: string }
  | { kind: "publication"; publication: Publication }
  | { kind: "answers"; answers: Answer[] }
  | { kind: "log"; level: "CRITICAL" | "ERROR" | "INFO"; message: string };
