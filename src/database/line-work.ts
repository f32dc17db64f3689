/**
 * Parses line protocol in a query worker and converts the rows to the types of their tables, so that the main thread handles tables
 * and not rows. A worker keeps the schemas that it was told. What it does not know goes to main as an outline. Main plans the table
 * or the columns, and has the text parsed again with the schema.
 */
import { LineError } from "../errors.ts";
import { encodeBatches, type EncodedBatch, type TableSchema } from "../storage/mod.ts";
import {
  columnOf,
  columnsOf,
  fitToTable,
  type LineTable,
  outlineOf,
  type ParsedLines,
  parseLines,
  type ParseOptions,
  type TableOutline,
} from "../wire/line/mod.ts";

/** A schema, by the name of its table as the lines have it. */
export interface NamedSchema {
  name: string;
  /** Undefined if the table does not exist any more. */
  schema?: TableSchema;
  /** The table, or some columns, exist only in the plan of this request. */
  isPlanned?: boolean;
}

export interface LineWork extends ParseOptions {
  /** What the worker should know for this text. */
  schemas: readonly NamedSchema[];
}

/** The rows of a table. */
export interface ConvertedLines {
  name: string;
  /** First line that names the table, from 1. */
  line: number;
  /** The schema that was used. */
  tableId: number;
  schemaVersion: number;
  /** The rows, or the first line with a value that does not fit. */
  rows: EncodedBatch | { line: number; message: string };
}

export interface LineResult extends Omit<ParsedLines, "tables"> {
  tables: ConvertedLines[];
  /** Tables that the worker does not know, or that lack columns. */
  unknown: TableOutline[];
}

/** Maximum number of columns in one generation of schemas. */
const COLUMNS_MAX = 32_768;

/** The schemas of the tables that were used lately: between one and two generations. */
class KnownSchemas {
  private young = new Map<string, TableSchema>();
  private old = new Map<string, TableSchema>();
  private columnCount = 0;

  get(name: string): TableSchema | undefined {
    const schema = this.young.get(name);
    if (schema !== undefined) return schema;
    const found = this.old.get(name);
    if (found !== undefined) this.set(name, found);
    return found;
  }

  set(name: string, schema: TableSchema): void {
    this.columnCount += schema.columns.length - (this.young.get(name)?.columns.length ?? 0);
    if (this.columnCount > COLUMNS_MAX && this.young.size > 0) {
      this.old = this.young;
      this.young = new Map();
      this.columnCount = schema.columns.length;
    }
    this.young.set(name, schema);
  }

  delete(name: string): void {
    this.young.delete(name);
    this.old.delete(name);
  }
}

export class LineWorker {
  private readonly known = new KnownSchemas();

  run(body: Uint8Array, { schemas, ...options }: LineWork): { value: LineResult; transfer: ArrayBuffer[] } {
    const told = new Map<string, TableSchema>();
    for (const { name, schema, isPlanned } of schemas) {
      if (schema === undefined) this.known.delete(name);
      else {
        told.set(name, schema);
        if (!isPlanned) this.known.set(name, schema);
      }
    }
    const tables: (Omit<ConvertedLines, "rows"> & { rows?: ConvertedLines["rows"] })[] = [];
    const unknown: TableOutline[] = [];
    const batches: Parameters<typeof encodeBatches>[0][number][] = [];
    const parsed = parseLines(body, options, (lines) => {
      const { name, line } = lines;
      const schema = told.get(name) ?? this.known.get(name);
      if (schema === undefined || !hasColumns(schema, lines)) unknown.push(outlineOf(lines));
      else {
        const table = { name, line, tableId: schema.id, schemaVersion: schema.schemaVersion };
        try {
          batches.push({ schema, batch: fitToTable(lines, schema) });
          tables.push(table);
        } catch (error) {
          if (!(error instanceof LineError)) throw error;
          tables.push({ ...table, rows: { line: error.line, message: error.message } });
        }
      }
      return true;
    });
    const encoded = encodeBatches(batches);
    const buffers = new Set([body.buffer as ArrayBuffer, ...encoded.map(({ buffer }) => buffer)]);
    let next = 0;
    const converted = tables.map((table): ConvertedLines => ({ ...table, rows: table.rows ?? encoded[next++]! }));
    return { value: { ...parsed, tables: converted, unknown }, transfer: [...buffers] };
  }
}

function hasColumns(schema: TableSchema, { columns }: LineTable): boolean {
  const known = columnsOf(schema);
  return columns.every(({ name }) => columnOf(known, name) !== undefined);
}
