/** The tables that a line-protocol request writes to, as they will be when it commits. */
import { LineError } from "../errors.ts";
import type { NewColumn, NewTable } from "../sql/plan.ts";
import {
  type AppendBatch,
  columnAfter,
  type EncodedBatch,
  encodedColumns,
  renumberColumns,
  type RowBatch,
  type TableColumn,
  type TableSchema,
} from "../storage/mod.ts";
import { columnOf, columnsOf, fitToTable, type LineTable, type TableOutline } from "../wire/line/mod.ts";

/** Id of a table that the commit creates. */
const NEW_TABLE_ID = -1;

/** Rows that this thread has converted, and can convert again, or that a query worker has. */
type Part = { line: number; lines: LineTable; batch: AppendBatch } | { line: number; batch: EncodedBatch };

/** The rows of a request for one table. New columns exist only in `schema` until the commit. */
export class LineRows {
  private readonly parts: Part[] = [];
  private rowCount = 0;
  private rowBytes = 0;
  /** Ids of columns with values. */
  private readonly columns = new Set<number>();

  private hasNewColumns = false;
  /** Of columns that this request adds: the first line that names them, by id. */
  private readonly addedBy = new Map<number, number>();
  /** Of the table, as the lines have them. */
  readonly names = new Set<string>();

  /** `madeBy`: the line that names the table first. */
  private constructor(private planned: TableSchema, private readonly madeBy: number) {}

  static of(schema: TableSchema, madeBy: number): LineRows {
    return new LineRows(schema, madeBy);
  }

  static ofNew({ name, columns, timestamp, partitionBy, wal }: NewTable, outline: TableOutline): LineRows {
    const made = new LineRows({
      id: NEW_TABLE_ID,
      name,
      columns: columns.map((column, id) => ({ ...column, id })),
      timestampId: timestamp,
      partitionBy,
      wal,
      dedupKeys: [],
      schemaVersion: 0,
    }, outline.line);
    made.noteLines(outline, 0);
    return made;
  }

  get isNew(): boolean {
    return this.planned.id === NEW_TABLE_ID;
  }

  get schema(): TableSchema {
    return this.planned;
  }

  /** True if only this request knows the schema. */
  get isPlanned(): boolean {
    return this.isNew || this.hasNewColumns;
  }

  /** Adds columns that the commit will create. */
  addColumns(missing: readonly NewColumn[], outline: TableOutline): void {
    const nextId = 1 + this.planned.columns.reduce((most, { id }) => Math.max(most, id), -1);
    const added = missing.map((column, k) => ({ ...column, id: nextId + k }));
    this.hasNewColumns = true;
    this.planned = { ...this.planned, columns: [...this.planned.columns, ...added] };
    this.noteLines(outline, nextId);
  }

  /** `firstId`: of the columns that are added. */
  private noteLines({ columns }: TableOutline, firstId: number): void {
    const known = columnsOf(this.planned);
    for (const { name, line } of columns) {
      const id = columnOf(known, name)?.id;
      if (id !== undefined && id >= firstId && !this.addedBy.has(id)) this.addedBy.set(id, line);
    }
  }

  /**
   * Returns the number of bytes by which the stored rows grow, without their texts. Each row has a value or null in every
   * column that any row names, so rows with few columns each but many in all take much more memory than the batches.
   * @throws {LineError} for the first line with a value that does not fit.
   */
  add(lines: LineTable): number {
    const batch = fitToTable(lines, this.planned), { rowCount } = batch;
    const columns = batch.columns.map(({ columnId, values }) => ({ columnId, width: values.length / rowCount }));
    return this.take({ line: lines.line, lines, batch }, columns);
  }

  /** The same for rows that a query worker has converted with this schema. */
  addConverted(line: number, batch: EncodedBatch): number {
    return this.take({ line, batch }, encodedColumns(batch));
  }

  private take(part: Part, columns: readonly { columnId: number; width: number }[]): number {
    const before = this.rowCount * this.rowBytes;
    this.parts.push(part);
    this.rowCount += part.batch.rowCount;
    for (const { columnId, width } of columns) {
      if (this.columns.has(columnId)) continue;
      this.columns.add(columnId);
      this.rowBytes += width;
    }
    return this.rowCount * this.rowBytes - before;
  }

  /** The line that names the table first. The commit reports its errors there. */
  get firstLine(): number {
    return this.madeBy;
  }

  /** True if a line before this one has made the table or columns of it. */
  makesBefore(line: number): boolean {
    return this.isNew ? this.madeBy < line : this.addedBy.values().some((by) => by < line);
  }

  private isAddedBefore(columnId: number, line: number): boolean {
    const by = this.addedBy.get(columnId);
    return by !== undefined && by < line;
  }

  /** Definition of the table, if it is new. `before`: only with columns that lines before this one name. */
  newTable(before?: number): NewTable {
    const { name, columns, timestampId, partitionBy, wal } = this.planned;
    const made = before === undefined
      ? columns
      : columns.filter(({ id }) => id === timestampId || this.isAddedBefore(id, before));
    const timestamp = made.findIndex(({ id }) => id === timestampId);
    return { name, columns: made.map(newColumn), timestamp, partitionBy, wal, dedupKeys: [] };
  }

  /** Columns with values that the table does not have. `before`: those that lines before this one name, also without values. */
  missingIn(schema: TableSchema, before?: number): NewColumn[] {
    const known = columnsOf(schema), { columns, timestampId } = this.planned;
    const isMade = (id: number) => before === undefined ? this.columns.has(id) : this.isAddedBefore(id, before);
    return columns
      .filter(({ id, name }) => id !== timestampId && isMade(id) && columnOf(known, name) === undefined)
      .map(newColumn);
  }

  /**
   * The batches for the table as it is now. Rows are fitted anew if another request has created the table or columns in the
   * meantime, with other types or in another order.
   * @throws {LineError}
   */
  batchesFor(schema: TableSchema): RowBatch[] {
    const columns = new Map(schema.columns.map((column) => [column.id, column]));
    const isAsPlanned = schema === this.planned || (schema.timestampId === this.planned.timestampId &&
      this.planned.columns.every(({ id, name, type }) => {
        if (!this.columns.has(id)) return true;
        const column = columns.get(id);
        // The writer converts what was made for a column whose type has changed since then.
        return column === undefined
          ? columnAfter(schema, id) !== undefined
          : column.name === name && column.type === type;
      }));
    return this.parts.map((part) => {
      if (isAsPlanned) return part.batch;
      return "lines" in part ? fitToTable(part.lines, schema) : this.renumbered(part.line, part.batch, schema);
    });
  }

  /** A batch for the columns of `schema` with the names and types of the planned ones. @throws {LineError} */
  private renumbered(line: number, batch: EncodedBatch, schema: TableSchema): EncodedBatch {
    const known = columnsOf(schema), { name: tableName, timestampId } = this.planned;
    const planned = new Map(this.planned.columns.map((column) => [column.id, column]));
    renumberColumns(batch, (id) => {
      if (columnAfter(schema, id) !== undefined) return id;
      const { name, type } = planned.get(id)!;
      const column = id === timestampId
        ? schema.columns.find((each) => each.id === schema.timestampId)
        : columnOf(known, name);
      if (column?.type === type && (column.id === schema.timestampId) === (id === timestampId)) return column.id;
      const what = column === undefined ? "does not have" : "has with another type";
      throw new LineError(
        line,
        `another statement has changed table ${tableName}, which now ${what} column ${name}: send the lines again`,
        "too busy",
      );
    });
    return batch;
  }
}

const newColumn = ({ id: _, ...column }: TableColumn): NewColumn => column;
