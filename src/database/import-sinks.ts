/** The targets of an import's rows. */
import type { ImportOptions } from "../api.ts";
import { SqlError, SQLSTATE } from "../errors.ts";
import type { NewTable } from "../sql/plan.ts";
import type { AppendBatch, BulkLoad, Change, TableSchema } from "../storage/contract.ts";
import { unpackAppendBatch } from "../storage/mod.ts";
import type { Actor } from "./access/control.ts";
import { auditOf } from "./access/definitions.ts";
import type { Core } from "./core.ts";

export interface ImportSink {
  /** Takes packed rows of all columns of the table. May wait until earlier rows are stored. */
  add(packed: Uint8Array, rowCount: number): Promise<void>;
  /** Stores all rows. */
  finish(): Promise<void>;
  /** Discards rows that are not stored. */
  abort(): Promise<void>;
}

export function refusal(message: string): SqlError {
  return new SqlError(message, 0, SQLSTATE.invalidParameter);
}

/** Rows are committed at this size, even if they are few. */
const COMMIT_BYTES = 32 << 20;
const UNCOMMITTED_ROWS = 500_000;

/** Adds rows to an existing table: in several commits, or in one with `abort`. */
export class TableSink implements ImportSink {
  private batches: AppendBatch[] = [];
  private rowCount = 0;
  private sizeBytes = 0;
  private underway: Promise<void> = Promise.resolve();
  private readonly columnIds: number[];

  constructor(
    private readonly core: Core,
    private readonly schema: TableSchema,
    private readonly options: Pick<ImportOptions, "atomicity" | "maxUncommittedRows">,
  ) {
    this.columnIds = schema.columns.map(({ id }) => id);
  }

  async add(packed: Uint8Array, rowCount: number): Promise<void> {
    this.batches.push(unpackAppendBatch(packed, this.columnIds));
    this.rowCount += rowCount;
    this.sizeBytes += packed.length;
    const { atomicity, maxUncommittedRows = UNCOMMITTED_ROWS } = this.options;
    if (atomicity === "abort") {
      const limit = this.core.options.queryMemoryLimitBytes;
      if (this.sizeBytes <= limit) return;
      throw refusal(
        `the rows take more than ${limit} bytes (cairo.query.memory.limit), which atomicity=abort keeps in memory until the last line`,
      );
    }
    if (this.rowCount >= maxUncommittedRows || this.sizeBytes >= COMMIT_BYTES) await this.commit();
  }

  async finish(): Promise<void> {
    await this.commit();
    await this.underway;
  }

  async abort(): Promise<void> {
    this.batches = [];
    await this.underway.catch(() => {});
  }

  /** Starts a commit after the previous one has ended, so that the next rows are parsed meanwhile. */
  private async commit(): Promise<void> {
    await this.underway;
    if (this.batches.length === 0) return;
    const { batches } = this;
    this.batches = [];
    this.rowCount = this.sizeBytes = 0;
    this.underway = this.core.append([{ tableId: this.schema.id, batches }]);
    this.underway.catch(() => {}); // reported by the next commit
  }
}

/** Smaller sets of rows go through the log with their table. Larger ones are loaded. */
const LOAD_BYTES_MIN = 16 << 20;

/** Creates a new table, replacing another one if necessary. It becomes visible when all rows are stored. */
export class NewTableSink implements ImportSink {
  private held: Uint8Array[] = [];
  private heldBytes = 0;
  private load: BulkLoad | undefined;

  /** `replaced`: id of the table that has the name. */
  constructor(
    private readonly core: Core,
    private readonly table: NewTable,
    private readonly replaced: number | undefined,
    private readonly by: Actor,
  ) {}

  private get creator(): string | undefined {
    return this.core.access?.creatorOf(this.by.identity);
  }

  async add(packed: Uint8Array): Promise<void> {
    if (this.load !== undefined) return await this.load.add(packed);
    this.held.push(packed);
    this.heldBytes += packed.length;
    if (this.heldBytes < LOAD_BYTES_MIN) return;
    const name = this.replaced === undefined ? this.table.name : `_import_${crypto.randomUUID()}`;
    this.load = await this.core.writer.beginLoad({ ...this.table, name }, this.creator);
    for (const bytes of this.held.splice(0)) await this.load.add(bytes);
  }

  async finish(): Promise<void> {
    const { core, load, replaced, table, creator } = this;
    const audit = auditOf(core.access, this.by, { kind: "createTable", table, creator }, core.catalogue);
    if (load === undefined) await this.create();
    else {
      await load.added();
      // An external copy may have passed the table's directory before it copies the log that names the table.
      await core.backups.released();
      const { schema } = await load.commit();
      if (replaced !== undefined) await this.exchange(replaced, schema.id);
    }
    audit();
    core.schemaChanged("CREATE TABLE");
  }

  async abort(): Promise<void> {
    await this.load?.abort();
  }

  private async create(): Promise<void> {
    const { core: { writer }, table, replaced, creator } = this;
    const columnIds = table.columns.map((_, id) => id);
    const rows = this.held.map((packed) => unpackAppendBatch(packed, columnIds));
    if (replaced === undefined) return void await writer.createTable(table, rows, creator);
    await this.core.exclusively(
      replaced,
      () => this.transact([{ kind: "dropTable", tableId: replaced }, { kind: "createTable", table, rows, creator }]),
    );
  }

  /** Makes all changes or none. */
  private async transact(changes: Change[]): Promise<void> {
    const transaction = this.core.writer.begin(Infinity);
    try {
      await transaction.change(changes.map((change, ordinal) => ({ ...change, ordinal })));
    } catch (error) {
      await transaction.rollback();
      throw error;
    }
    await transaction.commit([]);
  }

  /** Replaces the other table by the loaded one in one transaction. */
  private async exchange(replaced: number, loaded: number): Promise<void> {
    const { core, table } = this;
    try {
      await core.exclusively(replaced, () =>
        this.transact([{ kind: "dropTable", tableId: replaced }, {
          kind: "rename",
          tableId: loaded,
          to: table.name,
        }]));
    } catch (error) {
      await core.writer.change({ kind: "dropTable", tableId: loaded, permissions: true });
      throw error;
    }
  }
}
