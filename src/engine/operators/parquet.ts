/** Rows of a Parquet file: batch by batch, so that one page of each column is held at a time. */
import type { ParquetNode } from "../../sql/plan.ts";
import { OutputColumns, Workspace } from "../columns.ts";
import { type Batch, MORSEL_ROWS, type Operator, type QueryContext } from "../contract.ts";
import { ColumnReader } from "../parquet/column.ts";
import { atPosition, openParquet, type ParquetColumn, ParquetError, type ParquetFile } from "../parquet/file.ts";
import { typesOf } from "./input.ts";

export function createParquet(plan: ParquetNode, context: QueryContext): Operator {
  return new Parquet(plan, context);
}

class Parquet implements Operator {
  readonly columns;
  private readonly space: Workspace;
  private readonly output: OutputColumns;
  private readonly file: ParquetFile;
  private readonly fileColumns: ParquetColumn[];
  private readonly handle: Deno.FsFile;
  private readers: ColumnReader[] = [];
  private group = -1;
  private rowsLeft = 0;

  constructor(private readonly plan: ParquetNode, private readonly context: QueryContext) {
    this.columns = plan.columns;
    this.space = Workspace.of(context, "read_parquet");
    this.output = new OutputColumns(typesOf(plan.columns), this.space);
    try {
      [this.file, this.handle] = atPosition(plan.at, () => [openParquet(plan.path), Deno.openSync(plan.path)] as const);
    } catch (error) {
      this.space.release();
      throw error;
    }
    this.fileColumns = atPosition(plan.at, () =>
      plan.fileColumns.map((name, c) => {
        const found = this.file.columns.find((column) => column.name === name);
        if (found?.type !== plan.columns[c].type) {
          throw new ParquetError(`it has changed: column ${name} is not there, or of another type`);
        }
        return found;
      }));
  }

  next(): Batch | undefined {
    return atPosition(this.plan.at, () => {
      while (this.rowsLeft === 0) {
        for (const reader of this.readers) reader.close();
        this.readers = [];
        const group = this.file.rowGroups[++this.group];
        if (group === undefined) return undefined;
        this.rowsLeft = group.rowCount;
        this.readers = this.fileColumns.map((column) => {
          const extent = group.extents[column.leaf];
          if (extent.valueCount !== group.rowCount) {
            throw new ParquetError(`column ${column.name} has ${extent.valueCount} values in ${group.rowCount} rows`);
          }
          return new ColumnReader(column, extent, this.handle, this.space);
        });
      }
      const rowCount = Math.min(MORSEL_ROWS, this.rowsLeft);
      for (let c = 0; c < this.readers.length; c++) {
        this.context.poll();
        this.readers[c].forget();
        this.readers[c].read(this.output.vectors[c].address, 0, rowCount);
      }
      this.rowsLeft -= rowCount;
      return { rowCount, columns: this.output.vectors };
    });
  }

  close(): void {
    this.space.release();
    this.readers = [];
    this.handle.close();
  }
}
