/** The last errors in memory, for `recent_errors()`. */
import type { LogRecord } from "./record.ts";

const KEPT_MAX = 500;
/** Longer messages, such as those with stacks of nested errors, are truncated. */
const LENGTH_MAX = 4000;

/** A ring of the last records; the oldest is overwritten. */
export class RecentRecords {
  readonly #records: LogRecord[] = [];
  #next = 0;

  add(record: LogRecord): void {
    const { message } = record;
    this.#records[this.#next] = message.length > LENGTH_MAX
      ? { ...record, message: `${message.slice(0, LENGTH_MAX)}…` }
      : record;
    this.#next = (this.#next + 1) % KEPT_MAX;
  }

  /** Returns the records, latest first. */
  list(): LogRecord[] {
    return [...this.#records.slice(this.#next), ...this.#records.slice(0, this.#next)].reverse();
  }
}
