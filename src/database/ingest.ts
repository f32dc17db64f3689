/**
 * Ingests line protocol: texts are parsed piece by piece in a worker, which also converts the rows (`line-work.ts`), matched to the
 * tables here, and committed together. Small texts are parsed and converted here.
 */
import type { LineBody } from "../api.ts";
import { LineError, LineLimitError, SqlError, SQLSTATE } from "../errors.ts";
import type { Sender } from "../slow-senders.ts";
import type { Change, TableRows, TableSnapshot } from "../storage/mod.ts";
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
  parseTexts,
  shownLine,
  type TableOutline,
} from "../wire/line/mod.ts";
import type { Permission } from "../access/mod.ts";
import { nameKey } from "../types/names.ts";
import { auditOf } from "./access/definitions.ts";
import type { Actor } from "./access/control.ts";
import { LineRows } from "./line-tables.ts";
import type { ConvertedLines, LineResult, LineWork, NamedSchema } from "./line-work.ts";
import { serverTableFault } from "./planning.ts";
import { LineMemory, type LineShare } from "./line-memory.ts";
import type { Core } from "./core.ts";
import { TurnGroups } from "./turn-groups.ts";

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

/** A text of at most `DIRECT_TEXT_BYTES_MAX`. */
interface SmallText {
  readonly bytes: Uint8Array;
  readonly precision: LinePrecision;
  readonly by: Actor;
  /** Rows that were committed. */
  rows: number;
}

/** What was read of a text whose rows are pending. */
type TakenText = Pick<ParsedLines, "body" | "doneBytes" | "nextLine">;

/** Collects the first error of a text. */
class Faults {
  private first: LineError | undefined;

  constructor(fault: ParsedLines["fault"]) {
    this.first = fault && new LineError(fault.line, fault.message);
  }

  /** Handles lines from `line` on, unless an earlier line has an error. */
  collect(line: number, handle: () => void): void {
    if (this.first !== undefined && line >= this.first.line) return;
    try {
      handle();
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      if (this.first === undefined || error.line < this.first.line) this.first = error;
    }
  }

  /** @throws {LineError} if there is one. */
  report(body: Uint8Array, { firstLine = 1 }: ParseOptions): void {
    const { first } = this;
    if (first === undefined) return;
    if (first.line > 0) first.text = shownLine(body, first.line - firstLine + 1);
    throw first;
  }
}

export class Ingest {
  /** Tables and columns are created one at a time. */
  private schemaChange: Promise<unknown> = Promise.resolve();
  private readonly memory: LineMemory;
  private readonly limits: Core["options"]["lineLimits"];
  private readonly texts = new TurnGroups<SmallText>((texts) => this.writeTexts(texts));

  constructor(private readonly core: Core, private readonly nowMicros: () => bigint) {
    this.limits = core.options.lineLimits;
    this.memory = new LineMemory(this.limits.memoryBytesMax);
  }

  async writeLines(body: LineBody, precision: LinePrecision, by: Actor): Promise<{ rows: number }> {
    const { sizeBytes, sender } = body;
    if (sizeBytes !== undefined && sizeBytes <= DIRECT_TEXT_BYTES_MAX) {
      const text = { bytes: await wholeOf(body, sizeBytes), precision, by, rows: 0 };
      await this.texts.run(turnOf(text), text, (text) => this.writeText(text, sender));
      return text;
    }
    const pieces = new LinePieces(body, this.limits.sizeMax, sizeBytes);
    const options = this.optionsOf(precision);
    return await this.commit(by, sender, async (pending) => {
      for (let firstLine = 1;;) {
        const piece = await pieces.next(firstLine);
        if (piece === undefined) return pieces.close();
        const parsed = await this.take(
          piece.bytes,
          { ...options, firstLine, isContinued: piece.isContinued },
          pending,
        );
        firstLine = parsed.nextLine;
        pieces.done(parsed.body as Uint8Array<ArrayBuffer>, parsed.doneBytes, firstLine);
        if (piece.isContinued) await pending.share.wait(firstLine);
      }
    });
  }

  private async writeText(text: SmallText, sender: Sender | undefined): Promise<void> {
    const { bytes, precision, by } = text;
    const { rows } = await this.commit(by, sender, async (pending) => {
      await this.take(bytes, this.optionsOf(precision), pending);
    });
    text.rows = rows;
  }

  /** Commits texts of the same turn together. @throws if one of them has a fault, or needs a new table or column. */
  private async writeTexts(texts: readonly SmallText[]): Promise<void> {
    const { precision, by } = texts[0]!, pending = this.pendingOf(by, undefined);
    try {
      const parsed = parseTexts(texts.map(({ bytes }) => bytes), this.optionsOf(precision));
      let storedBytes = 0;
      for (const lines of parsed.tables) storedBytes += this.addLines(lines, pending);
      this.count(buffersOf(parsed.tables), storedBytes, 0, pending);
      const all = [...pending.tables.values()];
      if (!all.every((rows) => this.isComplete(rows))) throw new Error("a text needs a new table or column");
      await this.append(all);
      texts.forEach((text, k) => text.rows = parsed.rows[k]!);
    } finally {
      release(pending);
    }
  }

  async takeLines(
    lines: Uint8Array,
    precision: LinePrecision,
  ): Promise<{ rows: number; doneBytes: number }> {
    let doneBytes = 0;
    const { rows } = await this.commit(undefined, undefined, async (pending) => {
      ({ doneBytes } = await this.take(lines, { ...this.optionsOf(precision), isContinued: true }, pending));
    });
    return { rows, doneBytes };
  }

  private optionsOf(precision: LinePrecision): ParseOptions {
    return { precision, nowMicros: this.nowMicros(), lineSizeMax: this.limits.sizeMax };
  }

  private async commit(
    by: Actor | undefined,
    sender: Sender | undefined,
    gather: (pending: Pending) => Promise<void>,
  ): Promise<{ rows: number }> {
    const pending = this.pendingOf(by, sender);
    try {
      try {
        await gather(pending);
      } catch (error) {
        if (error instanceof LineError && !(error instanceof LineLimitError)) {
          await this.makeBefore(error.line, pending);
        }
        throw error;
      }
      const all = [...pending.tables.values()];
      if (!all.every((rows) => this.isComplete(rows))) await this.completeAll(all, pending);
      await this.append(all);
      return { rows: pending.rows };
    } finally {
      release(pending);
    }
  }

  private pendingOf(by: Actor | undefined, sender: Sender | undefined): Pending {
    const share = this.memory.share(sender);
    return { by, tables: new Map(), rows: 0, newTables: 0, newColumns: 0, share, buffers: [] };
  }

  /** Adds the rows to tables that have what they need, in one commit. */
  private async append(all: readonly LineRows[]): Promise<void> {
    const changes = all.map((rows): TableRows => {
      const schema = this.core.catalogue.table(rows.schema.name)?.schema ?? rows.schema;
      return { tableId: schema.id, batches: rows.batchesFor(schema) };
    });
    if (changes.length > 0) await this.core.append(changes);
  }

  /** Parses a text and adds its rows. @throws {LineError} for the first invalid line. */
  private async take(body: Uint8Array, options: ParseOptions, pending: Pending): Promise<TakenText> {
    if (body.length > DIRECT_TEXT_BYTES_MAX) return await this.takeParsed(body, options, pending);
    const { tables, ...parsed } = parseLines(body, options);
    const faults = new Faults(parsed.fault);
    let storedBytes = 0;
    for (const lines of tables) faults.collect(lines.line, () => storedBytes += this.addLines(lines, pending));
    faults.report(parsed.body, options);
    this.count(buffersOf(tables), storedBytes, parsed.nextLine, pending);
    return parsed;
  }

  /** Returns the bytes that the rows take. @throws {LineError} */
  private addLines(lines: LineTable, pending: Pending): number {
    pending.rows += lines.rowCount;
    return this.rowsFor(lines, pending).add(lines);
  }

  /** The same by a query worker. It parses the text again if main has schemas that it does not know. */
  private async takeParsed(body: Uint8Array, options: ParseOptions, pending: Pending): Promise<TakenText> {
    const schemas = new Map<string, NamedSchema>();
    for (const rows of pending.tables.values()) if (rows.isPlanned) this.addSchemas(rows, schemas);
    for (let text = body;;) {
      const work: LineWork = { ...options, schemas: [...schemas.values()] };
      const result = await this.core.scheduler.task("lines", work, text) as LineResult;
      const faults = new Faults(result.fault);
      if (this.addMissing(result, schemas, faults, pending)) {
        text = result.body;
        continue;
      }
      const buffers = new Set(result.tables.flatMap(({ rows }) => "buffer" in rows ? [rows.buffer] : []));
      pending.buffers.push(...buffers);
      let storedBytes = 0;
      for (const { name, line, rows } of result.tables) {
        faults.collect(line, () => {
          const table = this.known(name, line, pending)!;
          if ("message" in rows) throw new LineError(rows.line, rows.message);
          storedBytes += table.addConverted(line, rows);
          pending.rows += rows.rowCount;
        });
      }
      faults.report(result.body, options);
      this.count(buffers, storedBytes, result.nextLine, pending);
      return result;
    }
  }

  /** Adds the schemas that the worker lacks for the tables of its result. Returns false if it lacks none. */
  private addMissing(
    { tables, unknown }: LineResult,
    schemas: Map<string, NamedSchema>,
    faults: Faults,
    pending: Pending,
  ): boolean {
    let isComplete = true;
    for (const lines of unknown) {
      faults.collect(lines.line, () => {
        this.addSchemas(this.rowsFor(lines, pending), schemas, lines.name);
        isComplete = false;
      });
    }
    for (const lines of tables) {
      if (this.isCurrent(lines, pending)) continue;
      faults.collect(lines.line, () => {
        const { name, line } = lines, rows = this.known(name, line, pending);
        if (rows === undefined) schemas.set(name, { name });
        else this.addSchemas(rows, schemas, name);
        isComplete = false;
      });
    }
    return !isComplete;
  }

  private addSchemas(rows: LineRows, schemas: Map<string, NamedSchema>, name?: string): void {
    if (name !== undefined) rows.names.add(name);
    const { schema, isPlanned } = rows;
    for (const name of rows.names) schemas.set(name, { name, schema, isPlanned });
  }

  private count(buffers: Set<ArrayBuffer>, storedBytes: number, nextLine: number, { share }: Pending): void {
    const bufferBytes = buffers.values().reduce((sum, { byteLength }) => sum + byteLength, 0);
    share.add(Math.max(bufferBytes, storedBytes), nextLine);
  }

  /** True if the worker has used the schema that this request uses for the table. */
  private isCurrent({ name, tableId, schemaVersion }: ConvertedLines, pending: Pending): boolean {
    const { found, key } = this.find(name);
    const schema = pending.tables.get(key)?.schema ?? found?.schema;
    return schema?.id === tableId && schema.schemaVersion === schemaVersion;
  }

  /** `key`: of the table in `Pending`. */
  private find(name: string): { found: TableSnapshot | undefined; key: string } {
    const found = this.core.catalogue.table(name);
    return { found, key: found?.schema.name ?? nameKey(name) };
  }

  /** The rows of a table that exists, or that the request creates. @throws {LineError} */
  private known(name: string, line: number, pending: Pending): LineRows | undefined {
    const { found, key } = this.find(name);
    const fault = serverTableFault(name, found?.schema);
    if (fault !== undefined) throw new LineError(line, fault);
    if (found !== undefined) this.authorize(line, pending, "INSERT", found);
    let rows = pending.tables.get(key);
    if (rows === undefined && found !== undefined) pending.tables.set(key, rows = LineRows.of(found.schema, line));
    return rows;
  }

  /** The rows of the table that the lines are for, with all columns that they need. @throws {LineError} */
  private rowsFor(lines: TableOutline, pending: Pending): LineRows {
    const { options } = this.core;
    const rows = this.known(lines.name, lines.line, pending) ?? this.planned(lines, pending);
    const missing = missingColumns(lines, rows.schema, options.lineTypes);
    if (missing.length === 0) return rows;
    if (!options.lineCreatesColumns) {
      throw new LineError(
        lines.line,
        `table ${lines.name} has no column ${missing[0]!.name}, and line.auto.create.new.columns is off`,
      );
    }
    this.countNew(lines, missing.length, pending);
    const { found } = this.find(lines.name);
    if (found !== undefined) this.authorize(lines.line, pending, "ADD COLUMN", found);
    rows.addColumns(missing, lines);
    return rows;
  }

  /** The rows of a new table. @throws {LineError} */
  private planned(lines: TableOutline, pending: Pending): LineRows {
    const { core: { options }, limits } = this;
    if (!options.lineCreatesTables) {
      throw new LineError(lines.line, `table ${lines.name} does not exist, and line.auto.create.new.tables is off`);
    }
    const table = newTable(lines, options.linePartitionBy, options.lineTypes);
    this.countNew(lines, table.columns.length - 1, pending);
    if (++pending.newTables > limits.newTablesMax) {
      throw new LineLimitError(
        lines.line,
        `the request creates more than ${limits.newTablesMax} tables (line.auto.create.new.tables.max)`,
      );
    }
    if (this.core.views.view(table.name) !== undefined) {
      throw new LineError(lines.line, `${table.name} is a view: rows can be written only into tables`);
    }
    this.authorize(lines.line, pending, "CREATE TABLE");
    const rows = LineRows.ofNew(table, lines);
    pending.tables.set(this.find(lines.name).key, rows);
    return rows;
  }

  /** Creates the tables and columns that lines before a faulty one name. They have no rows. */
  private async makeBefore(line: number, pending: Pending): Promise<void> {
    const made = [...pending.tables.values()].filter((rows) => rows.makesBefore(line));
    if (made.length > 0) await this.completeAll(made, pending, line);
  }

  /** The table has what the rows need. True if it has been dropped: the writer refuses its rows. */
  private isComplete(rows: LineRows, before?: number): boolean {
    const found = this.core.catalogue.table(rows.schema.name);
    return found ? rows.missingIn(found.schema, before).length === 0 : !rows.isNew;
  }

  /**
   * Creates the tables, and adds the columns, that the rows need, or that lines `before` one name: all at once, so that the writer makes them durable together.
   * @throws the error of the first table that has one.
   */
  private async completeAll(all: readonly LineRows[], pending: Pending, before?: number): Promise<void> {
    const changes = this.schemaChange.then(() =>
      Promise.allSettled(
        all.map(async (rows) => this.isComplete(rows, before) || await this.complete(rows, pending, before)),
      )
    );
    this.schemaChange = changes.catch(() => {});
    for (const change of await changes) if (change.status === "rejected") throw change.reason;
  }

  private async complete(rows: LineRows, pending: Pending, before?: number): Promise<void> {
    const { catalogue, writer } = this.core;
    const found = catalogue.table(rows.schema.name), creator = this.creatorOf(pending);
    if (!found) {
      this.authorize(rows.firstLine, pending, "CREATE TABLE");
      const table = rows.newTable(before);
      const audit = this.auditOf(pending, { kind: "createTable", table, creator });
      try {
        await writer.createTable(table, undefined, creator);
      } catch (error) {
        const isFull = error instanceof SqlError && error.sqlState === SQLSTATE.configurationLimitExceeded;
        throw isFull ? new LineError(rows.firstLine, error.message) : error;
      }
      audit();
      return void this.core.schemaChanged("CREATE TABLE");
    }
    this.authorize(rows.firstLine, pending, "INSERT", found);
    const columns = rows.missingIn(found.schema, before);
    if (columns.length === 0) return;
    this.authorize(rows.firstLine, pending, "ADD COLUMN", found);
    const change: Change = { kind: "addColumns", tableId: found.schema.id, columns, creator };
    const audit = this.auditOf(pending, change);
    await writer.change(change);
    audit();
    this.core.schemaChanged("ALTER TABLE");
  }

  /** @throws {LineError} */
  private authorize(line: number, { by }: Pending, permission: Permission, table?: TableSnapshot): void {
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

  private countNew(lines: TableOutline, columns: number, pending: Pending): void {
    pending.newColumns += columns;
    if (pending.newColumns <= this.limits.newColumnsMax) return;
    throw new LineLimitError(
      lines.line,
      `the request creates more than ${this.limits.newColumnsMax} columns (line.auto.create.new.columns.max)`,
    );
  }
}

/** All bytes of a body. */
async function wholeOf(body: LineBody, sizeBytes: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(sizeBytes);
  let at = 0;
  for await (const piece of body) {
    if (piece.length === sizeBytes) return piece;
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes.subarray(0, at);
}

function release({ share, buffers }: Pending): void {
  share.release();
  buffers.forEach(free);
}

/** The same for texts that can be committed together: those with the same rights and unit of time. */
function turnOf({ precision, by: { identity: { name, id, assumed, secret } } }: SmallText): string {
  return [precision, name, id, assumed, secret].join("\n");
}
