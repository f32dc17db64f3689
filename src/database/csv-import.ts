/**
 * Imports CSV files: they are analysed and parsed piece by piece in query workers, then added to a table or loaded as a
 * new one.
 */
import type { ImportColumn, ImportFault, ImportOptions, ImportReport } from "../api.ts";
import { LineError } from "../errors.ts";
import type { Permission } from "../requirement.ts";
import type { TableSchema } from "../storage/mod.ts";
import {
  type Analysis,
  type CsvTarget,
  endOfCsvLines,
  type FoundColumn,
  type ParsedCsv,
  type ParseOptions,
} from "../wire/csv/mod.ts";
import { LinePieces } from "../wire/line/mod.ts";
import type { Actor } from "./access/control.ts";
import type { Core } from "./core.ts";
import { type ImportSink, NewTableSink, refusal, TableSink } from "./import-sinks.ts";
import { newTableOf } from "./import-table.ts";
import { serverTableFault } from "./planning.ts";

/** The result of a worker for one piece. */
type ParsedPiece = Omit<ParsedCsv, "columns"> & {
  /** The rows, with the columns in the order of the targets. */
  packed: Uint8Array;
  body: Uint8Array<ArrayBuffer>;
};

export class CsvImport {
  constructor(
    private readonly core: Core,
    private readonly options: ImportOptions,
    private readonly by: Actor,
  ) {}

  /**
   * @throws {SqlError} if the file cannot be imported; and errors of the body's iterator.
   */
  async run(body: AsyncIterable<Uint8Array>, signal?: AbortSignal): Promise<ImportReport> {
    const { lineSizeMax } = this.core.options.csv;
    const pieces = new LinePieces(body, lineSizeMax, undefined, undefined, endOfCsvLines);
    const nextPiece = (line: number) => notTooLong(() => pieces.next(line), lineSizeMax);
    let piece = await nextPiece(1);
    if (piece === undefined) throw refusal("the file is empty");
    const found = this.core.catalogue.table(this.options.table)?.schema;
    const { analysis: detected, body: whole } = await this.analyse(piece.bytes, piece.isContinued, found);
    if (typeof detected === "string") throw refusal(detected);
    const analysis = withoutOmitted(detected, this.options.omit);
    let bytes = whole;
    const plan = this.planOf(analysis, found);
    for (const { permission, table } of plan.requires) this.core.access?.require(this.by.identity, permission, table);
    const { sink, targets } = plan;
    const report = { rowsImported: 0, rowsRejected: 0, errors: targets.map(() => 0) };
    const { atomicity, onFaults } = this.options;
    let faultsLeft = atomicity === "abort" ? 1 : onFaults === undefined ? 0 : this.options.faultsMax;
    const parse: Omit<ParseOptions, "firstLine" | "isLast" | "faultsMax"> = {
      delimiter: analysis.delimiter,
      fieldCount: detected.columns.length,
      targets,
      atomicity,
    };
    try {
      // Parsing may stop before the end of a piece. The rest is part of the next one.
      let from = analysis.headBytes, firstLine = 1 + analysis.headLines;
      while (piece !== undefined) {
        if (signal?.aborted) throw refusal("the client has disconnected");
        const isLast = !piece.isContinued;
        const parsed: ParsedPiece = await this.parse(bytes, from, {
          ...{ ...parse, firstLine, isLast },
          faultsMax: faultsLeft,
        });
        const { faults } = parsed;
        const [fault] = faults;
        if (atomicity === "abort" && fault !== undefined) {
          throw refusal(`${faultText(fault)}; no row is imported, because atomicity=abort`);
        }
        faultsLeft -= faults.length;
        if (faults.length > 0) await onFaults?.(faults);
        report.rowsImported += parsed.rowCount;
        report.rowsRejected += parsed.rejected;
        parsed.errors.forEach((count, index) => report.errors[index]! += count);
        await notTooLong(() => pieces.done(parsed.body, parsed.doneBytes, parsed.nextLine), lineSizeMax);
        if (parsed.rowCount > 0) await sink.add(parsed.packed, parsed.rowCount);
        [from, firstLine] = [0, parsed.nextLine];
        piece = await nextPiece(firstLine);
        if (piece !== undefined) bytes = piece.bytes;
      }
      await sink.finish();
    } catch (error) {
      await sink.abort();
      throw error;
    }
    const columns = targets.map(({ name, type }, index): ImportColumn => ({
      name,
      type,
      errors: report.errors[index]!,
    }));
    const { rowsImported, rowsRejected } = report;
    return { rowsImported, rowsRejected, hasHeader: analysis.hasHeader, columns, ...plan.settings };
  }

  private async analyse(
    bytes: Uint8Array<ArrayBuffer>,
    isContinued: boolean,
    found: TableSchema | undefined,
  ): Promise<{ analysis: Analysis | string; body: Uint8Array<ArrayBuffer> }> {
    const { delimiter, forceHeader, overwrite } = this.options, { linesMax } = this.core.options.csv;
    const knownNames = overwrite ? undefined : found?.columns.map(({ name }) => name);
    const options = { delimiter, forceHeader, linesMax, isWhole: !isContinued, knownNames };
    return await this.core.scheduler.task("csvAnalysis", options, bytes) as {
      analysis: Analysis | string;
      body: Uint8Array<ArrayBuffer>;
    };
  }

  private async parse(body: Uint8Array<ArrayBuffer>, from: number, options: ParseOptions): Promise<ParsedPiece> {
    return await this.core.scheduler.task("csv", { from, options }, body) as ParsedPiece;
  }

  /** Chooses the target of the rows, and what the report says about the table. */
  private planOf(analysis: ImportedColumns, found: TableSchema | undefined): {
    sink: ImportSink;
    targets: CsvTarget[];
    requires: { permission: Permission; table?: TableSchema }[];
    settings: Pick<ImportReport, "partitionBy" | "timestamp" | "warnings">;
  } {
    const { core, options } = this;
    const fault = serverTableFault(options.table, found);
    if (fault !== undefined) throw refusal(fault);
    if (found !== undefined && !options.overwrite) {
      const targets = this.targetsOf(analysis, found);
      return {
        sink: new TableSink(core, found, options),
        targets,
        requires: [{ permission: "INSERT", table: found }],
        settings: this.settingsOf(found),
      };
    }
    if (core.views.view(options.table) !== undefined) {
      throw refusal(`${options.table} is a view: rows can be imported only into tables`);
    }
    if (found === undefined && !options.create) {
      throw refusal(`table ${options.table} does not exist, and create=false`);
    }
    const table = newTableOf(analysis, options);
    const targets = table.columns.map(({ name, type }, columnId): CsvTarget => ({
      columnId,
      name,
      type,
      field: analysis.columns[columnId]!.field,
      pattern: this.patternOf(name, analysis.columns[columnId]),
      isDesignated: columnId === table.timestamp,
    }));
    const requires: { permission: Permission; table?: TableSchema }[] = [{ permission: "CREATE TABLE" }];
    if (found !== undefined) requires.push({ permission: "DROP TABLE", table: found });
    const timestamp = table.timestamp < 0 ? undefined : table.columns[table.timestamp]!.name;
    const settings = { partitionBy: table.partitionBy, timestamp, warnings: [] };
    return {
      sink: new NewTableSink(core, table, found?.id, this.by),
      targets,
      requires,
      settings,
    };
  }

  /** The columns of an existing table: by the header's names, or by their order without a header. */
  private targetsOf({ columns, hasHeader }: ImportedColumns, schema: TableSchema): CsvTarget[] {
    if (columns.length > schema.columns.length) {
      throw refusal(`the file has ${columns.length} columns, but table ${schema.name} has ${schema.columns.length}`);
    }
    const names = schema.columns.map(({ name }) => name.toLowerCase());
    const found = new Map<number, ImportedColumn>();
    columns.forEach((imported, position) => {
      const { title, name } = imported;
      const byTitle = hasHeader ? names.indexOf(title.toLowerCase()) : position;
      const column = byTitle >= 0 ? byTitle : names.indexOf(name.toLowerCase());
      if (column < 0) {
        throw refusal(`the file's header has a column ${title}, which table ${schema.name} does not have`);
      }
      if (found.has(column)) throw refusal(`the file has two columns called ${schema.columns[column]!.name}`);
      found.set(column, imported);
    });
    return schema.columns.map(({ id, name, type }, index) => {
      const column = found.get(index), field = column?.field ?? -1, isDesignated = id === schema.timestampId;
      if (isDesignated && field < 0) throw refusal(`the file has no column for the designated timestamp ${name}`);
      return { columnId: id, name, type, field, pattern: this.patternOf(name, column), isDesignated };
    });
  }

  /** The pattern of the schema for a column of the table, or the one that its values have. */
  private patternOf(name: string, found: FoundColumn | undefined): string | undefined {
    const given = this.options.schema.find((entry) => entry.name.toLowerCase() === name.toLowerCase());
    return given?.pattern ?? found?.pattern;
  }

  private settingsOf(schema: TableSchema): Pick<ImportReport, "partitionBy" | "timestamp" | "warnings"> {
    const { partitionBy, timestamp } = this.options;
    const designated = schema.columns.find(({ id }) => id === schema.timestampId)?.name;
    const warnings: string[] = [];
    if (timestamp !== undefined && timestamp.toLowerCase() !== designated?.toLowerCase()) {
      warnings.push(`the table's designated timestamp is ${designated ?? "none"}, not ${timestamp}`);
    }
    if (partitionBy !== undefined && partitionBy !== schema.partitionBy) {
      warnings.push(`the table is partitioned by ${schema.partitionBy}, not by ${partitionBy}`);
    }
    return { partitionBy: schema.partitionBy, timestamp: designated, warnings };
  }
}

async function notTooLong<T>(read: () => T | Promise<T>, sizeMax: number): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof LineError)) throw error;
    throw refusal(`line ${error.line}: it is longer than ${sizeMax} bytes (http.text.roll.buffer.limit)`);
  }
}

/** A column of a file, with its index in the file. */
type ImportedColumn = FoundColumn & { field: number };
type ImportedColumns = Omit<Analysis, "columns"> & { columns: ImportedColumn[] };

/** @throws {SqlError} if the file does not have an omitted column, or no column is left. */
function withoutOmitted(analysis: Analysis, omit: readonly string[]): ImportedColumns {
  const all = analysis.columns.map((column, field) => ({ ...column, field }));
  const isNamed = ({ title, name, field }: typeof all[number], text: string) =>
    [title, name].some((one) => one.toLowerCase() === text.toLowerCase()) || text === String(field);
  for (const text of omit) {
    if (!all.some((column) => isNamed(column, text))) throw refusal(`omit: the file has no column ${text}`);
  }
  const columns = all.filter((column) => !omit.some((text) => isNamed(column, text)));
  if (columns.length === 0) throw refusal("omit: no column of the file is left");
  return { ...analysis, columns };
}

function faultText({ line, column, value, reason }: ImportFault): string {
  if (column === undefined) return `line ${line}: ${reason}`;
  return `line ${line}: column ${column}: found ${value === undefined ? "nothing" : `'${value}'`}, ${reason}`;
}
