/** The open transactions, by the id that their session has given them. */
import { Branch } from "./branch.ts";
import type { Command } from "./commands.ts";
import type { Store } from "./store.ts";

type OfTransaction = Extract<Command, { transactionId: number }>;

export class Transactions {
  private readonly branches = new Map<number, Branch>();

  constructor(private readonly store: Store) {}

  /** Returns the new table's id, if the change created one. */
  get areOpen(): boolean {
    return this.branches.size > 0;
  }

  execute(command: OfTransaction): number | undefined {
    const { transactionId: id } = command;
    switch (command.kind) {
      case "change":
        return this.branch(id, command.limitBytes).change(command.changes);
      case "fork":
        this.branch(id, command.limitBytes).see(command.tableId);
        return;
      case "rollbackTo":
        this.branches.get(id)?.rollbackTo(command.ordinal);
        return;
      case "commit": {
        const branch = this.branch(id, command.limitBytes);
        this.branches.delete(id);
        branch.commit(command.changes);
        return;
      }
      case "rollback":
        this.branches.get(id)?.end();
        this.branches.delete(id);
        return;
    }
  }

  private branch(id: number, limitBytes: number): Branch {
    let branch = this.branches.get(id);
    if (branch === undefined) this.branches.set(id, branch = new Branch(this.store, id, limitBytes));
    return branch;
  }
}
