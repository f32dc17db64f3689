/** Groups of commits: makes their blocks of the log durable, then applies them to the tables, all of a group or none. */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { AccessRecords } from "./access.ts";
import { HeapFullError } from "./heap.ts";
import type { WriterOptions } from "./options.ts";
import { publishedOf, type Publisher } from "./publisher.ts";
import type { DiskReserve } from "./reserve.ts";
import type { Seal } from "./seal.ts";
import type { Table } from "./table.ts";
import { BLOCK_KIND, FLAG_LAST } from "./wal/format.ts";
import type { Log } from "./wal/log.ts";

/** The parts of the writer that a group uses. */
export interface CommitParts {
  readonly options: Pick<WriterOptions, "commitMode" | "heap">;
  readonly access: AccessRecords;
  readonly publisher: Publisher;
  readonly reserve: DiskReserve;
  readonly seal: Seal;
}

export class Commits {
  constructor(readonly log: Log, private readonly parts: CommitParts) {}

  /** Returns the LSNs that `add` returns. If it fails, either the blocks are undone or the database is sealed. */
  write(add: (log: Log) => number[]): number[] {
    const { options, seal } = this.parts;
    const before = this.log.savepoint();
    let lsns: number[];
    try {
      lsns = add(this.log);
      this.log.write();
    } catch (error) {
      try {
        this.log.rollback(before);
      } catch (second) {
        seal.set(`the log could not be cut back after a failed write: ${(second as Error).message}`);
      }
      throw error;
    }
    if (options.commitMode === "sync") this.sync();
    options.heap.setCounter("logBytes", this.log.sizeBytes);
    return lsns;
  }

  /**
   * Applies durable blocks to `tables` and publishes the result. If that fails, the tables have their former state, and the log says
   * that the blocks were taken back.
   */
  apply(lsns: readonly number[], tables: readonly Table[], apply: () => void, undo: () => void = () => {}): void {
    const { access, publisher } = this.parts;
    const before = tables.map((table) => ({ table, state: table.state }));
    const restoreAccess = access.savepoint();
    try {
      apply();
      for (const table of tables) publisher.prepare(table.segments, publishedOf(table));
    } catch (error) {
      restoreAccess();
      for (const { table, state } of before) table.restore(state);
      undo();
      publisher.settle();
      this.takeBack(lsns);
      throw asSqlError(error);
    }
    for (const table of tables) publisher.touch(table);
    publisher.publish();
  }

  /** Updates the metrics of commits that were applied together. */
  count(commits: number, rows: readonly { rowCount: number }[] = []): void {
    const { heap } = this.parts.options;
    heap.addCounter("commits", commits);
    heap.observe("commitGroupSize", commits);
    for (const { rowCount } of rows) heap.addCounter("committedRows", rowCount);
  }

  private takeBack(lsns: readonly number[]): void {
    const { reserve, seal } = this.parts;
    const info = { kind: BLOCK_KIND.abort, flags: FLAG_LAST, tableId: 0, schemaVersion: 0 };
    const bytes = new Uint8Array(Float64Array.from(lsns).buffer);
    try {
      reserve.use(() => this.write((log) => [log.add(info, [bytes])]));
    } catch {
      seal.set("a change that could not be applied could not be taken back in the log");
    }
  }

  private sync(): void {
    const { options: { heap }, seal } = this.parts;
    const start = performance.now();
    seal.sync("the log", () => this.log.sync());
    heap.observe("fsyncSeconds", (performance.now() - start) / 1000);
    try {
      this.log.mark();
    } catch {
      // Only useful against damage; the next block overwrites what was written of it.
    }
  }
}

/** What the client gets for an error: a lack of memory is an error of its statement. */
export function asSqlError(error: unknown): unknown {
  if (!(error instanceof HeapFullError)) return error;
  return new SqlError(`Cannot take the rows: ${error.message}`, 0, SQLSTATE.outOfMemory, { cause: error });
}
