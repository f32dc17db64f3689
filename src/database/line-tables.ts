/** The tables that a line-protocol request writes to, as they will be when it commits. */
import type { NewColumn, NewTable } from "../sql/plan.ts";
import type { AppendBatch, TableColumn, TableSchema } from "../storage/mod.ts";
import { columnOf, columnsOf, fitToTable, type LineTable } from "../wire/line/mod.ts";

/** Id of a table that the commit creates. */
const NEW_TABLE_ID = -1;

/** The rows of a request for one table. Refused requests create nothing, so new columns exist only in `schema` until the commit. */
export class LineRows {
  private readonly parts: { lines: LineTable; batch: AppendBatch }[] = [];
  private rowCount = 0;
  private rowBytes = 0;
  /** Ids of columns with values. */
  private readonly columns = new Set<number>();

  private constructor(private planned: TableSchema) {}

  static of(schema: TableSchema): LineRows {
    return new LineRows(schema);
  }

  static ofNew({ name, columns, timestamp, partitionBy, wal }: NewTable): LineRows {
    return new LineRows({
      id: NEW_TABLE_ID,
      name,
      columns: columns.map((column, id) => ({ ...column, id })),
      timestampId: timestamp,
      partitionBy,
      wal,
      dedupKeys: [],
      schemaVersion: 0,
    });
  }

  get isNew(): boolean {
    return this.planned.id === NEW_TABLE_ID;
  }

  get schema(): TableSchema {
    return this.planned;
  }

  /** Adds columns that the commit will create. */
  addColumns(missing: readonly NewColumn[]): void {
    const nextId = 1 + this.planned.columns.reduce((most, { id }) => Math.max(most, id), -1);
    const added = missing.map((column, k) => ({ ...column, id: nextId + k }));
    this.planned = { ...this.planned, columns: [...this.planned.columns, ...added] };
  }

  /**
   * Returns the number of bytes by which the stored rows grow, without their texts. Each row has a value or null in every
   * column that any row names, so rows with few columns each but many in all take much more memory than the batches.
   * @throws {LineError} for the first line with a value that does not fit.
   */
  add(lines: LineTable): number {
    const batch = fitToTable(lines, this.planned);
    const before = this.rowCount * this.rowBytes;
    this.parts.push({ lines, batch });
    this.rowCount += batch.rowCount;
    for (const { columnId, values } of batch.columns) {
      if (this.columns.has(columnId)) continue;
      this.columns.add(columnId);
      this.rowBytes += values.length / batch.rowCount;
    }
    return this.rowCount * this.rowBytes - before;
  }

  /** Lines of the first rows. The commit reports its errors there. */
  get firstLines(): LineTable {
    return this.parts[0]!.lines;
  }

  /** Definition of the table, if it is new. */
  newTable(): NewTable {
    const { name, columns, timestampId, partitionBy, wal } = this.planned;
    return { name, columns: columns.map(newColumn), timestamp: timestampId, partitionBy, wal, dedupKeys: [] };
  }

  /** Columns with values that the table does not have. */
  missingIn(schema: TableSchema): NewColumn[] {
    const known = columnsOf(schema), { columns, timestampId } = this.planned;
    return columns
      .filter(({ id, name }) => id !== timestampId && this.columns.has(id) && columnOf(known, name) === undefined)
      .map(newColumn);
  }

  /**
   * The batches for the table as it is now. Rows are fitted anew if another request has created the table or columns in the
   * meantime, with other types or in another order.
   * @throws {LineError}
   */
  batchesFor(schema: TableSchema): AppendBatch[] {
    const columns = new Map(schema.columns.map((column) => [column.id, column]));
    const isAsPlanned = schema.timestampId === this.planned.timestampId &&
      this.planned.columns.every(({ id, name, type }) => {
        const column = columns.get(id);
        return !this.columns.has(id) || (column?.name === name && column.type === type);
      });
    return this.parts.map(({ lines, batch }) => isAsPlanned ? batch : fitToTable(lines, schema));
  }
}

const newColumn = ({ id: _, ...column }: TableColumn): NewColumn => column;
