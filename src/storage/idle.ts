/** When the writer has time for what can wait: no command has come for a while, and no query runs. */
import { DiskFullError } from "../errors.ts";
import { HeapFullError } from "./heap.ts";
import type { WriterOptions } from "./options.ts";
import type { Store } from "./store.ts";

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

/** After this many bytes on disk, a checkpoint makes the progress of work durable, and removes files that are empty. */
const CHECKPOINT_BYTES = 64 << 20;
/** How long nothing is tried after the disk or the memory was full. */
const RETRY_MS = 60_000;

/** Work in steps that waits for idle times. */
export abstract class IdleWork {
  /** Bytes written to data files since the last checkpoint. */
  protected sinceCheckpoint = 0;
  private notBeforeMs = 0;

  /** `later`: what the log tells of an error, "… are converted later". */
  constructor(protected readonly store: Store, protected readonly idle: Idle, private readonly later: string) {}

  /** The server has been idle for long enough, and there was no error lately. */
  protected get isFree(): boolean {
    return performance.now() >= this.notBeforeMs && this.idle.isFree;
  }

  /** An error is logged and delays the next step. */
  step(): void {
    try {
      this.doStep();
    } catch (error) {
      this.notBeforeMs = performance.now() + RETRY_MS;
      const isHarmless = error instanceof DiskFullError || error instanceof HeapFullError;
      this.store.options.log(isHarmless ? "INFO" : "ERROR", `${this.later}: ${(error as Error).message}`);
    }
  }

  protected abstract doStep(): void;

  /** Makes the progress durable if it is much. */
  protected checkpointIfMuch(): void {
    if (this.sinceCheckpoint >= CHECKPOINT_BYTES) this.checkpoint();
  }

  protected checkpoint(): void {
    this.store.requestCheckpoint();
    this.sinceCheckpoint = 0;
  }
}
