/** When the writer has time for what can wait: no command has come for a while, and no query runs. */
import type { WriterOptions } from "./options.ts";

/** Default of `idleMs`. */
const IDLE_MS = 1000;

export interface IdleParts {
  readonly options: Pick<WriterOptions, "idleMs" | "isReading">;
  /** Files are being copied: no checkpoint is made. */
  readonly publisher: { readonly holds: number };
  readonly hasTransactions: boolean;
}

export class Idle {
  private lastCommandMs = performance.now();

  constructor(private readonly parts: IdleParts) {}

  /** A command has come. */
  wasUsed(): void {
    this.lastCommandMs = performance.now();
  }

  /** No command has come for a while. */
  get isLong(): boolean {
    const { idleMs = IDLE_MS } = this.parts.options;
    return performance.now() - this.lastCommandMs >= idleMs;
  }

  /** What is stored may be stored anew. Not during a transaction: its commit would bring its segments back as they were. */
  get isFree(): boolean {
    const { options, publisher, hasTransactions } = this.parts;
    return publisher.holds === 0 && !hasTransactions && this.isLong && !options.isReading?.();
  }
}
