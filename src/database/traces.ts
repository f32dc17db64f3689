/** The table `_query_trace`: start, duration and user of each statement. Traces are kept for a day. */
import type { Session } from "../api.ts";
import { type Catalogue, encodeRows, type StorageWriter } from "../storage/mod.ts";
import { withoutSecrets } from "../log/mod.ts";
import { ownChange } from "./own-statements.ts";
import type { StatementEnd } from "./progress.ts";

const TABLE = "_query_trace";
const MAKE = `create table if not exists ${TABLE} (
  ts timestamp, query_text varchar, execution_micros long, principal symbol
) timestamp(ts) partition by hour`;
const FORGET = `delete from ${TABLE} where ts < dateadd('d', -1, now())`;
const FORGET_EVERY_MICROS = 3_600_000_000n;
const FLUSH_MS = 1_000;
/**
 * Limits of traces that wait to be written, and of the characters of their texts. Further ones are dropped, so that they do not fill the
 * memory if statements are long, or if the database cannot write.
 */
const WAITING_MAX = 100_000, WAITING_LENGTH_MAX = 16 << 20;

export interface TraceOptions {
  catalogue: Catalogue;
  writer: Pick<StorageWriter, "append">;
  /** A session whose statements are not traced. */
  session(): Session;
  nowMicros(): bigint;
  onError(error: unknown): void;
}

export class Traces {
  private waiting: [micros: bigint, text: string, executionMicros: bigint, user: string][] = [];
  /** Of the waiting texts. */
  private length = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private writing = Promise.resolve();
  private forgotMicros = 0n;

  constructor(private readonly options: TraceOptions) {}

  add({ text, micros, user }: StatementEnd): void {
    if (this.waiting.length >= WAITING_MAX || this.length + text.length > WAITING_LENGTH_MAX) return;
    this.length += text.length;
    this.waiting.push([this.options.nowMicros() - BigInt(micros), withoutSecrets(text), BigInt(micros), user]);
    this.timer ??= setTimeout(() => this.flush(), FLUSH_MS);
  }

  /** Writes the waiting traces. */
  flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.writing = this.writing.then(() => this.write()).catch((error) => this.options.onError(error));
    return this.writing;
  }

  private async write(): Promise<void> {
    const rows = this.waiting.splice(0);
    this.length = 0;
    if (rows.length === 0) return;
    const { catalogue, writer, nowMicros } = this.options;
    if (catalogue.table(TABLE) === undefined) await ownChange(this.options.session(), MAKE);
    const { schema } = catalogue.table(TABLE)!;
    const batch = encodeRows(
      rows,
      schema.columns.map(({ id }) => id),
      schema.columns.map(({ type }) => type),
    );
    await writer.append([{ tableId: schema.id, batches: [batch] }]);
    if (nowMicros() - this.forgotMicros < FORGET_EVERY_MICROS) return;
    this.forgotMicros = nowMicros();
    await ownChange(this.options.session(), FORGET);
  }
}
