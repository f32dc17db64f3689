/**
 * The writer's state, as used by recovery, opening, checkpoint and transactions, each in its own file. `writer.ts`
 * implements it.
 */
import type { AccessRecords } from "./access.ts";
import type { Definition } from "./blocks.ts";
import type { AppendBatch, TableSchema } from "./contract.ts";
import type { WriterMemory } from "./memory.ts";
import type { WriterOptions } from "./options.ts";
import type { Publisher } from "./publisher.ts";
import type { DiskReserve } from "./reserve.ts";
import type { Flusher } from "./flusher.ts";
import type { Table } from "./table.ts";
import type { Log } from "./wal/log.ts";

export interface Store {
  readonly options: WriterOptions;
  readonly tables: Map<number, Table>;
  /** Lines of the start's report. */
  readonly report: string[];
  /** Blocks and rows that opening tables has applied from the log since the start. */
  readonly replayed: { blocks: number; rows: number; ms: number };
  readonly access: AccessRecords;
  readonly publisher: Publisher;
  readonly flusher: Flusher;
  readonly memory: WriterMemory;
  readonly reserve: DiskReserve;
  nextTableId: number;
  nextFileId: number;
  catalogGeneration: number;
  readonly logDirectory: string;
  readonly catalogBase: string;
  /** If set, nothing can be written: the reason. */
  readonly sealed: string | undefined;
  /** Makes the database read-only. */
  seal(why: string): void;
  open(table: Table): undefined;
  makeDurable(sync: () => void): void;
  makeDirectory(table: Table): void;
  newTable(schema: TableSchema): Table;
  take(table: Table): void;
  applyDefinition(table: Table, definition: Definition, lsn: number): void;
  applyRows(table: Table, batches: readonly AppendBatch[]): void;
  commit(add: (log: Log) => number[]): number[];
  dropExpired(tables: Iterable<Table>): void;
  count(commits: number, rows?: readonly { rowCount: number }[]): void;
  applyGroup(lsns: readonly number[], tables: readonly Table[], apply: () => void, undo?: () => void): void;
  stored(table: Table): void;
  checkWritable(): void;
  table(id: number): Table;
  checkNameIsFree(name: string, except?: (tableId: number) => boolean): void;
}
