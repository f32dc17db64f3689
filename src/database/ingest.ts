/**
 * Ingests line protocol: texts are parsed piece by piece in a worker, matched to the tables here, and committed
 * together.
 */
import type { LineBody } from "../api.ts";
import { LineError, SqlError } from "../errors.ts";
import type { AppendBatch, Change, TableSnapshot } from "../storage/mod.ts";
import {
  buffersOf,
  fitToTable,
  free,
  LinePieces,
  type LinePrecision,
  type LineTable,
  missingColumns,
  newTable,
  type ParsedLines,
  parseLines,
  type ParseOptions,
  shownLine,
} from "../wire/line/mod.ts";
import type { Permission } from "../access/mod.ts";
import { auditOf } from "./access/definitions.ts";
import type { Actor } from "./access/control.ts";
import { LineMemory, type LineShare } from "./line-memory.ts";
import type { Core } from "./core.ts";

/** Smaller texts are parsed on the main thread, because posting them would take longer. */
const DIRECT_TEXT_BYTES_MAX = 4_096;

/** Rows that wait for the commit of their request. */
interface Pending {
  /** Undefined if the sender cannot authenticate. It then has all permissions. */
  by: Actor | undefined;
  tables: Map<number, PendingRows>;
  rows: number;
  newTables: number;
  newColumns: number;
  share: LineShare;
  /** Made by workers for this request, and freed at its end. */
  buffers: ArrayBuffer[];
}

/** Rows of one table. */
class PendingRows {
  readonly batches: AppendBatch[] = [];
  private rowCount = 0;
  private rowBytes = 0;
  private readonly columns = new Set<number>();

  /**
   * Returns the number of bytes by which the stored rows grow, without their texts. Each row has a value or null in
   * every column that any row names, so rows with few columns each but many in all take much more memory than the
   * batches.
   */
  add(batch: AppendBatch): number {
    const before = this.rowCount * this.rowBytes;
    this.batches.push(batch);
    this.rowCount += batch.rowCount;
    for (const { columnId, values } of batch.columns) {
      if (this.columns.has(columnId)) continue;
      this.columns.add(columnId);
      this.rowBytes += values.length / batch.rowCount;
    }
    return this.rowCount * this.rowBytes - before;
  }
}

export class Ingest {
  /** Tables and columns are created one at a time. */
  private schemaChange: Promise<unknown> = Promise.resolve();
  private readonly memory: LineMemory;
  private readonly limits: Core["options"]["lineLimits"];

  constructor(private readonly core: Core, private readonly nowMicros: () => bigint) {
    this.limits = core.options.lineLimits;
    this.memory = new LineMemory(this.limits.memoryBytesMax);
  }

  async writeLines(body: LineBody, precision: LinePrecision, by: Actor): Promise<{ rows: number }> {
    const pieces = new LinePieces(body, this.limits.sizeMax, body.sizeBytes);
    const options = this.optionsOf(precision);
    return await this.commit(by, async (pending) => {
      for (let firstLine = 1;;) {
        const piece = await pieces.next(firstLine);
        if (piece === undefined) return pieces.close();
        const parsed = await this.parse(
          piece.bytes,
          { ...options, firstLine, isContinued: piece.isContinued },
          pending,
        );
        await this.add(parsed, firstLine, pending);
        firstLine = parsed.nextLine;
        pieces.done(parsed.body as Uint8Array<ArrayBuffer>, parsed.doneBytes, firstLine);
        if (piece.isContinued) await pending.share.wait(firstLine);
      }
    });
  }

  async takeLines(
    lines: Uint8Array,
    precision: LinePrecision,
  ): Promise<{ rows: number; doneBytes: number }> {
    let doneBytes = 0;
    const { rows } = await this.commit(undefined, async (pending) => {
      const parsed = await this.parse(lines, { ...this.optionsOf(precision), isContinued: true }, pending);
      await this.add(parsed, 1, pending);
      doneBytes = parsed.doneBytes;
    });
    return { rows, doneBytes };
  }

  private optionsOf(precision: LinePrecision): ParseOptions {
    return { precision, nowMicros: this.nowMicros(), lineSizeMax: this.limits.sizeMax };
  }

  private async commit(
    by: Actor | undefined,
    gather: (pending: Pending) => Promise<void>,
  ): Promise<{ rows: number }> {
    const share = this.memory.share();
    const pending: Pending = { by, tables: new Map(), rows: 0, newTables: 0, newColumns: 0, share, buffers: [] };
    try {
      await gather(pending);
      const changes = [...pending.tables].map(([tableId, { batches }]) => ({ tableId, batches }));
      if (changes.length > 0) await this.core.append(changes);
      return { rows: pending.rows };
    } finally {
      pending.share.release();
      pending.buffers.forEach(free);
    }
  }

  private async parse(body: Uint8Array, options: ParseOptions, pending: Pending): Promise<ParsedLines> {
    if (body.length <= DIRECT_TEXT_BYTES_MAX) return parseLines(body, options);
    const task = this.core.scheduler.task("lines", options, body);
    const parsed = await task as ParsedLines;
    pending.buffers.push(...buffersOf(parsed.tables));
    return parsed;
  }

  /**
   * @throws {LineError} for the first invalid line, after the tables and columns of the lines before it were created.
   */
  private async add(
    { tables, fault, body, nextLine }: ParsedLines,
    firstLine: number,
    pending: Pending,
  ): Promise<void> {
    let first = fault && new LineError(fault.line, fault.message);
    let storedBytes = 0;
    for (const lines of tables) {
      if (first !== undefined && lines.line >= first.line) continue;
      try {
        const table = await this.tableFor(lines, pending);
        const batch = fitToTable(lines, table.schema);
        let rows = pending.tables.get(table.schema.id);
        if (rows === undefined) pending.tables.set(table.schema.id, rows = new PendingRows());
        storedBytes += rows.add(batch);
        pending.rows += lines.rowCount;
      } catch (error) {
        if (!(error instanceof LineError)) throw error;
        if (first === undefined || error.line < first.line) first = error;
      }
    }
    if (first !== undefined) {
      if (first.line > 0) first.text = shownLine(body, first.line - firstLine + 1);
      throw first;
    }
    const bufferBytes = buffersOf(tables).values().reduce((sum, { byteLength }) => sum + byteLength, 0);
    pending.share.add(Math.max(bufferBytes, storedBytes), nextLine);
  }

  /** Returns the table. Creates it, or adds the columns that the lines need. */
  private async tableFor(lines: LineTable, pending: Pending): Promise<TableSnapshot> {
    const { catalogue, options } = this.core;
    const found = catalogue.table(lines.name);
    if (found) this.authorize(lines, pending, "INSERT", found);
    if (found && missingColumns(lines, found.schema, options.lineTypes).length === 0) return found;
    const change = this.schemaChange.then(() => this.complete(lines, pending));
    this.schemaChange = change.catch(() => {});
    return await change;
  }

  private async complete(lines: LineTable, pending: Pending): Promise<TableSnapshot> {
    const { catalogue, writer, options } = this.core;
    const found = catalogue.table(lines.name);
    if (!found) {
      if (!options.lineCreatesTables) {
        throw new LineError(lines.line, `table ${lines.name} does not exist, and line.auto.create.new.tables is off`);
      }
      const table = newTable(lines, options.linePartitionBy, options.lineTypes);
      this.countNew(lines, table.columns.length - 1, pending);
      if (++pending.newTables > this.limits.newTablesMax) {
        throw new LineError(
          lines.line,
          `the request creates more than ${this.limits.newTablesMax} tables (line.auto.create.new.tables.max)`,
        );
      }
      this.authorize(lines, pending, "CREATE TABLE");
      const creator = this.creatorOf(pending);
      const audit = this.auditOf(pending, { kind: "createTable", table, creator });
      const made = await writer.createTable(table, undefined, creator);
      audit();
      this.core.schemaChanged("CREATE TABLE");
      return made;
    }
    this.authorize(lines, pending, "INSERT", found);
    const missing = missingColumns(lines, found.schema, options.lineTypes);
    if (missing.length > 0) {
      if (!options.lineCreatesColumns) {
        throw new LineError(
          lines.line,
          `table ${lines.name} has no column ${missing[0].name}, and line.auto.create.new.columns is off`,
        );
      }
      this.countNew(lines, missing.length, pending);
      this.authorize(lines, pending, "ADD COLUMN", found);
      const creator = this.creatorOf(pending);
      const change: Change = { kind: "addColumns", tableId: found.schema.id, columns: missing, creator };
      const audit = this.auditOf(pending, change);
      await writer.change(change);
      audit();
      this.core.schemaChanged("ALTER TABLE");
    }
    return catalogue.table(lines.name)!;
  }

  /** @throws {LineError} */
  private authorize({ line }: LineTable, { by }: Pending, permission: Permission, table?: TableSnapshot): void {
    if (by === undefined) return;
    try {
      this.core.access?.require(by.identity, permission, table?.schema);
    } catch (error) {
      if (error instanceof SqlError) throw new LineError(line, error.message, "denied");
      throw error;
    }
  }

  private creatorOf({ by }: Pending): string | undefined {
    return by && this.core.access?.creatorOf(by.identity);
  }

  private auditOf({ by }: Pending, change: Change): () => void {
    return by === undefined ? () => {} : auditOf(this.core.access, by, change, this.core.catalogue);
  }

  private countNew(lines: LineTable, columns: number, pending: Pending): void {
    pending.newColumns += columns;
    if (pending.newColumns <= this.limits.newColumnsMax) return;
    throw new LineError(
      lines.line,
      `the request creates more than ${this.limits.newColumnsMax} columns (line.auto.create.new.columns.max)`,
    );
  }
}
