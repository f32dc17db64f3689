/** Whether the database can still be written. It becomes read-only when the state on disk is no longer known. */
import { SqlError, SQLSTATE } from "../errors.ts";
import type { WriterOptions } from "./options.ts";

export class Seal {
  private reason: string | undefined;

  constructor(private readonly options: Pick<WriterOptions, "log">) {}

  get isSet(): boolean {
    return this.reason !== undefined;
  }

  /** Makes the database read-only. */
  set(why: string): void {
    this.reason ??= why;
    this.options.log("CRITICAL", `the database is read-only from now on: ${why}`);
  }

  /** @throws {SqlError} if nothing can be written. */
  check(): void {
    if (this.reason === undefined) return;
    throw new SqlError(`Cannot write, the database is read-only: ${this.reason}`, 0, SQLSTATE.readOnly);
  }

  /** Runs a sync of `what`. After one that failed the written pages are unknown, so a later success would prove nothing. */
  sync(what: string, sync: () => void): void {
    try {
      sync();
    } catch (error) {
      this.set(`${what} could not be synced: ${(error as Error).message}`);
      throw error;
    }
  }
}
