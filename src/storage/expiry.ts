/** Drops the partitions that have outlived the time to live of their tables. */
import type { PartitionMove } from "./contract.ts";
import type { WriterOptions } from "./options.ts";
import type { Seal } from "./seal.ts";
import type { Table } from "./table.ts";

/** How often tables without new rows are checked. */
const INTERVAL_MS = 60_000;

export interface ExpiryParts {
  readonly options: Pick<WriterOptions, "nowMicros" | "log">;
  readonly seal: Seal;
  readonly tables: ReadonlyMap<number, Table>;
}

export class Expiry {
  private checkedAtMs = performance.now();
  /** Why the last drop has failed. It is tried again soon, and logged once. */
  private failure: string | undefined;

  /** `remove` drops partitions by a change in the log, so that replay does not ask the clock. */
  constructor(
    private readonly parts: ExpiryParts,
    private readonly remove: (table: Table, moves: readonly PartitionMove[]) => void,
  ) {}

  /** Checks all tables when it is time to, or when a drop has failed. */
  whenDue(): void {
    if (this.failure === undefined && performance.now() - this.checkedAtMs <= INTERVAL_MS) return;
    const known = this.failure;
    this.failure = undefined;
    this.drop(this.parts.tables.values(), known);
    this.checkedAtMs = performance.now();
  }

  /** Each drop is a change of its own. A known failure is not logged again. */
  drop(tables: Iterable<Table>, knownFailure?: string): undefined {
    const { options, seal } = this.parts;
    const now = options.nowMicros();
    if (seal.isSet) return;
    for (const table of tables) {
      if (table.schema.ttl === undefined || table.unread !== undefined || table.damage !== undefined) continue;
      const moves = table.expired(now);
      if (moves.length === 0) continue;
      try {
        this.remove(table, moves);
      } catch (error) {
        const { name } = table.schema;
        const failure = `expired partitions of table ${name} could not be dropped: ${(error as Error).message}`;
        if (failure !== knownFailure) options.log("ERROR", failure);
        this.failure = failure;
        if (seal.isSet) return;
      }
    }
  }
}
