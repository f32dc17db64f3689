/**
 * The writer's state, as used by recovery, opening, checkpoint, transactions and bulk loads, each in its own file. `writer.ts`
 * implements it.
 */
import type { NewTable } from "../sql/plan.ts";
import type { AccessRecords } from "./access.ts";
import type { BackgroundFlush } from "./background-flush.ts";
import type { CatalogFile } from "./catalog-file.ts";
import type { Commits } from "./commits.ts";
import type { Definition } from "./blocks.ts";
import type { AppendBatch, TableSchema } from "./contract.ts";
import type { WriterMemory } from "./memory.ts";
import type { WriterOptions } from "./options.ts";
import type { Expiry } from "./expiry.ts";
import type { Numbers } from "./numbers.ts";
import type { Publisher } from "./publisher.ts";
import type { DiskReserve } from "./reserve.ts";
import type { Seal } from "./seal.ts";
import type { Flusher } from "./flusher.ts";
import type { Table } from "./table.ts";

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
  readonly background: BackgroundFlush;
  readonly memory: WriterMemory;
  readonly reserve: DiskReserve;
  readonly seal: Seal;
  readonly numbers: Numbers;
  readonly catalog: CatalogFile;
  /** From the end of recovery on. */
  readonly commits: Commits;
  readonly logDirectory: string;
  open(table: Table): undefined;
  makeDirectory(table: Table): void;
  /**
   * The schema of a table that is to be created. `place`: among the tables of a group.
   * @throws {SqlError} if the name is taken, or there are too many tables.
   */
  newSchema(table: NewTable, place?: number): TableSchema;
  /** @throws {SqlError} if no table can be created besides `more` that are being created. */
  checkTableCount(more: number): void;
  newTable(schema: TableSchema): Table;
  take(table: Table): void;
  applyDefinition(table: Table, definition: Definition, lsn: number): void;
  applyRows(table: Table, batches: readonly AppendBatch[]): void;
  readonly expiry: Expiry;
  stored(table: Table): void;
  releaseDictionaries(table: Table): void;
  readonly hasTransactions: boolean;
  /** The chunks of older files of the table are being stored anew. */
  isRepacking(table: Table): boolean;
  /** Makes a checkpoint when the server is idle, although the log has nothing new. */
  requestCheckpoint(): void;
  table(id: number): Table;
  checkNameIsFree(name: string, except?: (tableId: number) => boolean): void;
}
