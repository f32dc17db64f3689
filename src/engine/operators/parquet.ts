/** Reads a Parquet file batch by batch, so that one page of each column is held at a time. */
import type { ParquetNode } from "../../sql/plan.ts";
import { OutputColumns, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext } from "../contract.ts";
import { type ColumnReader, columnReader } from "../parquet/column.ts";
import { ParquetError } from "../parquet/error.ts";
import { atPosition, openParquet, type ParquetFile } from "../parquet/file.ts";
import { ReadBuffer } from "../parquet/pages.ts";
import type { ParquetColumn } from "../parquet/schema.ts";
import { parquetBatchRows } from "../physical/parquet.ts";
import { typesOf } from "../physical/reading.ts";

export function createParquet(plan: ParquetNode, context: QueryContext): Operator {
  return new Parquet(plan, context);
}

/** The first row group to read if only the last rows are needed, and the number of rows from there on. */
function firstGroup({ rowGroups, rowCount }: ParquetFile, lastRows = rowCount): { group: number; rowCount: number } {
  let group = 0;
  for (; group < rowGroups.length && rowCount - rowGroups[group].rowCount >= lastRows; group++) {
    rowCount -= rowGroups[group].rowCount;
  }
  return { group, rowCount };
}

class Parquet implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private readonly output: OutputColumns;
  private readonly file: ParquetFile;
  private readonly fileColumns: ParquetColumn[];
  private readonly handle: Deno.FsFile;
  private readers: ColumnReader[] = [];
  /** One for each column. */
  private readonly readBuffers: ReadBuffer[];
  private group: number;
  private rowsLeft = 0;
  private batchRows = MORSEL_ROWS;

  constructor(private readonly plan: ParquetNode, private readonly context: QueryContext) {
    this.columns = plan.columns;
    this.space = Workspace.of(context, "read_parquet");
    this.output = new OutputColumns(typesOf(plan.columns), this.space);
    try {
      const opened = atPosition(plan.path, plan.at, () => openParquet(plan.path, plan.root));
      this.file = opened.file;
      this.handle = opened.handle;
    } catch (error) {
      this.space.release();
      throw error;
    }
    const { group, rowCount } = firstGroup(this.file, plan.lastRows);
    this.group = group - 1;
    context.countToRead?.(rowCount);
    this.fileColumns = atPosition(plan.path, plan.at, () =>
      plan.fileColumns.map((name, c) => {
        const found = this.file.columns.find((column) => column.name === name);
        if (found?.type !== plan.columns[c].type) {
          throw new ParquetError(`the file has changed: column ${name} is missing, or has another type`);
        }
        return found;
      }));
    this.readBuffers = this.fileColumns.map(() => new ReadBuffer());
  }

  next(): Batch | undefined {
    return atPosition(this.plan.path, this.plan.at, () => {
      while (this.rowsLeft === 0) if (!this.nextGroup()) return undefined;
      const rowCount = Math.min(this.batchRows, this.rowsLeft);
      for (let c = 0; c < this.readers.length; c++) {
        this.context.poll();
        this.readers[c].forget();
        this.readColumn(c, rowCount);
      }
      this.rowsLeft -= rowCount;
      this.context.countRead?.(rowCount);
      return { rowCount, columns: this.output.vectors };
    });
  }

  private readColumn(c: number, rowCount: number): void {
    try {
      this.readers[c].read(this.output.vectors[c].address, 0, rowCount);
      if (rowCount === this.rowsLeft) this.readers[c].finish();
    } catch (error) {
      if (!(error instanceof ParquetError)) throw error;
      throw new ParquetError(`column ${this.fileColumns[c].name}: ${error.message}`, { cause: error });
    }
  }

  private nextGroup(): boolean {
    for (const reader of this.readers) reader.close();
    this.readers = [];
    const group = this.file.rowGroups[++this.group];
    if (group === undefined) return false;
    this.rowsLeft = group.rowCount;
    if (group.rowCount === 0) return true;
    let plainSizeBytes = 0;
    this.readers = this.fileColumns.map((column, c) => {
      const extent = group.extent(column.leaf);
      plainSizeBytes += extent.plainSizeBytes;
      return columnReader(column, extent, this.handle, this.space, this.readBuffers[c]);
    });
    this.batchRows = parquetBatchRows({ rowCount: group.rowCount, plainSizeBytes });
    this.context.chose?.(this.batchRows === MORSEL_ROWS ? "full batches" : "smaller batches");
    return true;
  }

  close(): void {
    for (const reader of this.readers) reader.close();
    this.readers = [];
    this.space.release();
    this.handle.close();
  }
}
