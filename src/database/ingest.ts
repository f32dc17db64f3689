/**
 * Ingests line protocol: texts are parsed piece by piece in a worker, matched to the tables here, and committed
 * together.
 */
import type { LineBody } from "../api.ts";
import { LineError, SqlError } from "../errors.ts";
import type { AppendBatch, Change, TableSchema, TableSnapshot } from "../storage/mod.ts";
import {
  buffersOf,
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
import { nameKey } from "../types/names.ts";
import { auditOf } from "./access/definitions.ts";
import type { Actor } from "./access/control.ts";
import { LineRows } from "./line-tables.ts";
import { LineMemory, type LineShare } from "./line-memory.ts";
import type { Core } from "./core.ts";

/** Smaller texts are parsed on the main thread, because posting them would take longer. */
const DIRECT_TEXT_BYTES_MAX = 4_096;

/** Rows that wait for the commit of their request. */
interface Pending {
  /** Undefined if the sender cannot authenticate. It then has all permissions. */
  by: Actor | undefined;
  /** By the table's name, or `nameKey` of the name of a new one. */
  tables: Map<string, LineRows>;
  rows: number;
  newTables: number;
  newColumns: number;
  share: LineShare;
  /** Made by workers for this request, and freed at its end. */
  buffers: ArrayBuffer[];
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
        this.add(parsed, firstLine, pending);
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
      this.add(parsed, 1, pending);
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
      const changes: { tableId: number; batches: AppendBatch[] }[] = [];
      for (const rows of pending.tables.values()) {
        const schema = await this.completed(rows, pending);
        changes.push({ tableId: schema.id, batches: rows.batchesFor(schema) });
      }
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

  /** @throws {LineError} for the first invalid line. */
  private add({ tables, fault, body, nextLine }: ParsedLines, firstLine: number, pending: Pending): void {
    let first = fault && new LineError(fault.line, fault.message);
    let storedBytes = 0;
    for (const lines of tables) {
      if (first !== undefined && lines.line >= first.line) continue;
      try {
        storedBytes += this.rowsFor(lines, pending).add(lines);
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

  /** The rows of the table that the lines are for, with all columns that they need. @throws {LineError} */
  private rowsFor(lines: LineTable, pending: Pending): LineRows {
    const { core: { catalogue, options }, limits } = this;
    const found = catalogue.table(lines.name);
    const key = found?.schema.name ?? nameKey(lines.name);
    let rows = pending.tables.get(key);
    if (found !== undefined) this.authorize(lines, pending, "INSERT", found);
    if (rows === undefined && found !== undefined) rows = LineRows.of(found.schema);
    if (rows === undefined) {
      if (!options.lineCreatesTables) {
        throw new LineError(lines.line, `table ${lines.name} does not exist, and line.auto.create.new.tables is off`);
      }
      const table = newTable(lines, options.linePartitionBy, options.lineTypes);
      this.countNew(lines, table.columns.length - 1, pending);
      if (++pending.newTables > limits.newTablesMax) {
        throw new LineError(
          lines.line,
          `the request creates more than ${limits.newTablesMax} tables (line.auto.create.new.tables.max)`,
        );
      }
      this.authorize(lines, pending, "CREATE TABLE");
      rows = LineRows.ofNew(table);
    }
    pending.tables.set(key, rows);
    const missing = missingColumns(lines, rows.schema, options.lineTypes);
    if (missing.length === 0) return rows;
    if (!options.lineCreatesColumns) {
      throw new LineError(
        lines.line,
        `table ${lines.name} has no column ${missing[0]!.name}, and line.auto.create.new.columns is off`,
      );
    }
    this.countNew(lines, missing.length, pending);
    if (found !== undefined) this.authorize(lines, pending, "ADD COLUMN", found);
    rows.addColumns(missing);
    return rows;
  }

  /** Returns the table's schema. Creates the table, or adds the columns that the rows need. */
  private async completed(rows: LineRows, pending: Pending): Promise<TableSchema> {
    const found = this.core.catalogue.table(rows.schema.name);
    if (found ? rows.missingIn(found.schema).length === 0 : !rows.isNew) return found?.schema ?? rows.schema;
    const change = this.schemaChange.then(() => this.complete(rows, pending));
    this.schemaChange = change.catch(() => {});
    return await change;
  }

  private async complete(rows: LineRows, pending: Pending): Promise<TableSchema> {
    const { catalogue, writer } = this.core;
    const found = catalogue.table(rows.schema.name), creator = this.creatorOf(pending);
    if (!found) {
      this.authorize(rows.firstLines, pending, "CREATE TABLE");
      const table = rows.newTable();
      const audit = this.auditOf(pending, { kind: "createTable", table, creator });
      const { schema } = await writer.createTable(table, undefined, creator);
      audit();
      this.core.schemaChanged("CREATE TABLE");
      return schema;
    }
    this.authorize(rows.firstLines, pending, "INSERT", found);
    const columns = rows.missingIn(found.schema);
    if (columns.length === 0) return found.schema;
    this.authorize(rows.firstLines, pending, "ADD COLUMN", found);
    const change: Change = { kind: "addColumns", tableId: found.schema.id, columns, creator };
    const audit = this.auditOf(pending, change);
    await writer.change(change);
    audit();
    this.core.schemaChanged("ALTER TABLE");
    return catalogue.table(rows.schema.name)!.schema;
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
