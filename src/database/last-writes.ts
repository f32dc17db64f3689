/** The time of the last change of each table's rows, as far as this process has seen it. */
import type { CatalogueMirror, TableSnapshot } from "../storage/mod.ts";
import { TableClosedError } from "../errors.ts";

type Changes = Parameters<Parameters<CatalogueMirror["onChange"]>[0]>[0]["tables"];

export class LastWrites {
  private readonly lsns = new Map<number, bigint>();
  private readonly micros = new Map<number, bigint>();
  /** Tables that have not been opened since the start. Opening one publishes its rows, which is not a write. */
  private readonly closed = new Set<number>();

  constructor(catalogue: Pick<CatalogueMirror, "tables" | "onChange">, private readonly nowMicros: () => bigint) {
    for (const table of catalogue.tables()) {
      this.lsns.set(table.schema.id, table.lsn);
      if (isClosed(table)) this.closed.add(table.schema.id);
    }
    catalogue.onChange(({ tables }) => this.follow(tables));
  }

  /** Null if there was no write since the start. */
  of(tableId: number): bigint | null {
    return this.micros.get(tableId) ?? null;
  }

  private follow(changes: Changes): void {
    for (const { tableId, lsn, dropped, unread, parts } of changes) {
      if (dropped) {
        for (const known of [this.lsns, this.micros, this.closed]) known.delete(tableId);
        continue;
      }
      const isOpening = this.closed.has(tableId);
      if (isOpening && !unread) this.closed.delete(tableId);
      if (!isOpening && parts !== undefined && lsn > (this.lsns.get(tableId) ?? -1n)) {
        this.micros.set(tableId, this.nowMicros());
      }
      this.lsns.set(tableId, lsn);
    }
  }
}

function isClosed(table: TableSnapshot): boolean {
  try {
    return table.rowCount < 0;
  } catch (error) {
    return error instanceof TableClosedError;
  }
}
