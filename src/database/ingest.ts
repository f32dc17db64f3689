/** Line protocol into tables: parsed in a worker, fitted to the tables here, committed together. */
import { LineError } from "../errors.ts";
import { type AppendBatch, type TableSnapshot } from "../storage/mod.ts";
import {
  fitToTable,
  type LinePrecision,
  type LineTable,
  missingColumns,
  newTable,
  type ParsedLines,
  parseLines,
  shownLine,
} from "../wire/line/mod.ts";
import type { Core } from "./mod.ts";

/** Bodies up to this size are parsed on the main thread: posting them would take longer. */
const DIRECT_BODY_BYTES_MAX = 4_096;

export class Ingest {
  /** Tables and columns are made one after the other. */
  private schemaChange: Promise<unknown> = Promise.resolve();

  constructor(private readonly core: Core, private readonly nowMicros: () => bigint) {}

  /** One transaction: at the first fault no row is kept, but tables and columns of the lines before it stay. @throws {LineError} */
  async writeLines(body: Uint8Array, precision: LinePrecision): Promise<{ rows: number }> {
    const parsed = await this.parse(body, precision);
    try {
      return await this.write(parsed);
    } catch (error) {
      if (error instanceof LineError && error.line > 0) error.text = shownLine(parsed.body, error.line);
      throw error;
    }
  }

  private async write({ tables, fault }: ParsedLines): Promise<{ rows: number }> {
    const changes: { tableId: number; batches: AppendBatch[] }[] = [];
    let rows = 0;
    for (const lines of tables) {
      const table = await this.tableFor(lines);
      if (fault) continue;
      changes.push({ tableId: table.schema.id, batches: [fitToTable(lines, table.schema)] });
      rows += lines.rowCount;
    }
    if (fault) throw Object.assign(new LineError(fault.line, fault.message), { isCut: fault.isCut });
    if (rows > 0) await this.core.append(changes);
    return { rows };
  }

  private async parse(body: Uint8Array, precision: LinePrecision): Promise<ParsedLines> {
    const nowMicros = this.nowMicros();
    if (body.length <= DIRECT_BODY_BYTES_MAX) return parseLines(body, precision, nowMicros);
    return await this.core.scheduler.task("lines", { body, precision, nowMicros }, [
      body.buffer as ArrayBuffer,
    ]) as ParsedLines;
  }

  /** The table, made or widened where it lacks something that the lines have. */
  private async tableFor(lines: LineTable): Promise<TableSnapshot> {
    const { catalogue, options } = this.core;
    const found = catalogue.table(lines.name);
    if (found && missingColumns(lines, found.schema, options.lineTypes).length === 0) return found;
    const change = this.schemaChange.then(() => this.complete(lines));
    this.schemaChange = change.catch(() => {});
    return await change;
  }

  private async complete(lines: LineTable): Promise<TableSnapshot> {
    const { catalogue, writer, options } = this.core;
    const found = catalogue.table(lines.name);
    if (!found) {
      if (!options.lineCreatesTables) {
        throw new LineError(lines.line, `table ${lines.name} does not exist, and line.auto.create.new.tables is off`);
      }
      const made = await writer.createTable(newTable(lines, options.linePartitionBy, options.lineTypes));
      this.core.schemaChanged("CREATE TABLE");
      return made;
    }
    const missing = missingColumns(lines, found.schema, options.lineTypes);
    if (missing.length > 0) {
      if (!options.lineCreatesColumns) {
        throw new LineError(
          lines.line,
          `table ${lines.name} has no column ${missing[0].name}, and line.auto.create.new.columns is off`,
        );
      }
      await writer.addColumns(found.schema.id, missing);
      this.core.schemaChanged("ALTER TABLE");
    }
    return catalogue.table(lines.name)!;
  }
}
