/**
 * Commits of constant rows. Rows of one table that several sessions add in the same turn of the event loop are one commit, which costs little
 * more than one of a single row.
 */
import type { TableRows } from "../storage/contract.ts";
import { RowsToAdd } from "./constant-rows.ts";

interface SharedCommit {
  readonly rows: RowsToAdd;
  readonly done: Promise<void>;
  isShared: boolean;
}

export class RowCommits {
  /** By table, the commit that rows can still be added to. */
  private readonly open = new Map<number, SharedCommit>();

  constructor(private readonly append: (changes: TableRows[]) => Promise<void>) {}

  /** Commits the rows. Those of other sessions cannot make them fail. */
  async add(added: RowsToAdd): Promise<void> {
    let commit = this.open.get(added.tableId);
    if (commit?.rows.isOf(added.tableId, added.columnIds)) {
      commit.isShared = true;
      commit.rows.add(added.rows);
    } else this.open.set(added.tableId, commit = this.begin(added));
    try {
      await commit.done;
    } catch (error) {
      if (!commit.isShared) throw error;
      await this.append([changeOf(added)]);
    }
  }

  private begin(first: RowsToAdd): SharedCommit {
    const rows = new RowsToAdd(first.tableId, first.columnIds, first.types);
    rows.add(first.rows);
    // Sessions whose messages have arrived together add their rows before this runs.
    const done = Promise.resolve().then(() => {
      if (this.open.get(rows.tableId) === commit) this.open.delete(rows.tableId);
      return this.append([changeOf(rows)]);
    });
    const commit = { rows, done, isShared: false };
    return commit;
  }
}

function changeOf(rows: RowsToAdd): TableRows {
  return { tableId: rows.tableId, batches: [rows.batch()] };
}
