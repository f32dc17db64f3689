/**
 * `StorageWriter` on the main thread. The writer itself runs behind a port: in its worker, or for tests in this thread.
 * Commands go out with their buffers transferred; each answer is preceded by the publication that made it true.
 */
import type { NewColumn, NewTable } from "../sql/plan.ts";
import type { CatalogueMirror } from "./catalogue.ts";
import { type Command, fromPlainError, type Outcome, type PlainError, toPlainError } from "./commands.ts";
import type { AppendBatch, AppendColumn, StorageWriter, TableSnapshot, UpdateBatch } from "./contract.ts";
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
  send(envelope: Envelope, transfer: ArrayBuffer[]): void;
}

export class WriterClient implements StorageWriter {
  private nextId = 1;
  private readonly waiting = new Map<number, { resolve: (value: number | undefined) => void; reject: (error: unknown) => void }>();

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

  /** The writer is gone: nobody will answer. */
  fail(error: unknown): void {
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }

  async createTable(table: NewTable, rows?: AppendBatch[]): Promise<TableSnapshot> {
    const id = await this.send({ kind: "createTable", table, rows }, buffersOf(rows ?? []));
    return this.catalogue.tableById(id!)!;
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
    await this.send({ kind: "append", changes }, buffersOf(changes.flatMap(({ batches }) => batches)));
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

  async close(): Promise<void> {
    await this.send({ kind: "close" });
  }

  private send(command: Command, transfer: ArrayBuffer[] = []): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const id = this.nextId++;
      this.waiting.set(id, { resolve, reject });
      try {
        this.port.send({ id, command }, transfer);
      } catch (error) {
        this.waiting.delete(id);
        reject(error);
      }
    });
  }
}

/** Buffers that can go along: whole ones, each once. A view of a larger buffer is copied instead. */
function buffersOf(batches: readonly AppendBatch[]): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  const add = (view: ArrayBufferView | undefined) => {
    if (view !== undefined && view.buffer instanceof ArrayBuffer && view.byteLength === view.buffer.byteLength && view.byteLength > 0) buffers.add(view.buffer);
  };
  const each = ({ values, heap, symbols }: AppendColumn) => {
    add(values);
    add(heap);
    add(symbols);
  };
  for (const batch of batches) batch.columns.forEach(each);
  return [...buffers];
}

/** Runs commands that have come together, and makes their answers. */
export function answer(store: TableStore, envelopes: readonly Envelope[]): Answer[] {
  const outcomes: Outcome[] = store.execute(envelopes.map(({ command }) => command));
  return outcomes.map((outcome, k) =>
    outcome.error === undefined ? { id: envelopes[k].id, value: outcome.value } : { id: envelopes[k].id, error: toPlainError(outcome.error) }
  );
}

/** What goes from main to the writer's worker to start it. */
export interface WriterStart {
  memory: WebAssembly.Memory;
  port: MessagePort;
  root: string;
  commitMode: "sync" | "nosync";
  checkpointLogBytes: number;
  memoryBytes: number;
}

export type FromWriter =
  | { kind: "ready"; report: string[] }
  | { kind: "failed"; error: PlainError; key?: string }
  | { kind: "publication"; publication: Publication }
  | { kind: "answers"; answers: Answer[] }
  | { kind: "log"; level: "CRITICAL" | "ERROR" | "INFO"; message: string };
