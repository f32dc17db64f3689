/** When checkpoints are made, and what becomes of one that fails. `checkpoint.ts` makes them. */
import { DiskFullError, SqlError, SQLSTATE } from "../errors.ts";
import { checkpointSteps } from "./checkpoint.ts";
import type { Store } from "./store.ts";

/** Default of `checkpointStepMs`. */
const STEP_MS = 10;
/** A start replays about this many single-row blocks in a second. */
const LOG_BLOCKS_MAX = 100_000;

export class Checkpoints {
  private madeAtMs = performance.now();
  /** The checkpoint in progress. */
  private underway: ReturnType<typeof checkpointSteps> | undefined;
  /** Something has changed that is not in the log. */
  private isRequested = false;
  /** It has nothing to do before other threads have encoded segments. */
  private isWaiting = false;

  constructor(private readonly store: Store) {}

  get isUnderway(): boolean {
    return this.underway !== undefined;
  }

  /** The checkpoint in progress has something to do, or one is to begin as soon as no command waits. */
  get isBusy(): boolean {
    return this.isUnderway ? !this.isWaiting : this.isRequested && this.store.publisher.holds === 0;
  }

  /** Does a part of what is due. `isIdle`: no command came for a while. */
  maintain(isIdle: boolean): void {
    const { log, options, reserve } = this.parts;
    try {
      if (this.underway === undefined && this.isDue(isIdle)) this.begin();
      if (this.underway === undefined) return this.flush(() => this.store.flusher.ahead(log.sizeBytes));
      // If the log has outgrown its limit by this much, the checkpoint runs to its end and commands wait.
      const isLate = log.sizeBytes > 2 * options.checkpointLogBytes;
      this.continue(isLate ? Infinity : options.checkpointStepMs ?? STEP_MS);
      if (this.underway === undefined) reserve.keep();
    } catch (error) {
      options.log("ERROR", `the checkpoint failed: ${(error as Error).message}`);
    }
  }

  /** Makes a whole checkpoint now, unless files are being copied. */
  make(): undefined {
    if (this.store.publisher.holds > 0) return;
    this.underway = undefined;
    if (!this.begin()) return;
    this.continue(Infinity);
  }

  private get parts() {
    const { options, reserve, publisher, commits: { log } } = this.store;
    return { options, reserve, publisher, log };
  }

  /**
   * Age counts only while no command waits: with a thousand tables a checkpoint takes seconds, and the log is durable
   * without it.
   */
  private isDue(isIdle: boolean): boolean {
    const { log, options, publisher } = this.parts;
    const { checkpointLogBytes, checkpointLogBlocks = LOG_BLOCKS_MAX, checkpointIntervalMs = Infinity } = options;
    if (publisher.holds > 0) return false;
    if (this.isRequested && isIdle) return true;
    if (log.sizeBytes === 0) return false;
    const isOld = () => performance.now() - this.madeAtMs > checkpointIntervalMs;
    const isLong = log.sizeBytes > checkpointLogBytes || log.blockCount > checkpointLogBlocks;
    return isLong || (isIdle && isOld());
  }

  request(): void {
    this.isRequested = true;
  }

  /** Returns false when there is nothing to write. */
  private begin(): boolean {
    const { store } = this, { log, publisher } = this.parts;
    this.madeAtMs = performance.now();
    this.isRequested = false;
    const isChanged = () => [...store.tables.values()].some((table) => table.changed && table.damage === undefined);
    if (log.sizeBytes === 0 && !publisher.hasDroppedDirectories && !isChanged()) return false;
    this.underway = checkpointSteps(store, log);
    return true;
  }

  /** Continues the checkpoint for this long, by at least one step. */
  private continue(ms: number): void {
    if (ms === Infinity) return this.store.background.withoutWaiting(() => this.continueUntil(Infinity));
    this.continueUntil(performance.now() + ms);
  }

  private continueUntil(deadline: number): void {
    const { store } = this, { log, publisher, reserve } = this.parts;
    try {
      for (;;) {
        const { done, value } = this.underway!.next();
        if (done) break;
        this.isWaiting = value === "for others";
        if (this.isWaiting || performance.now() >= deadline) return;
      }
    } catch (error) {
      this.underway = undefined;
      this.hasFailed(error);
      // Repeat all of it, using the disk reserve.
      try {
        reserve.use(() =>
          store.background.withoutWaiting(() => {
            for (const _ of checkpointSteps(store, log));
          })
        );
      } catch (again) {
        this.hasFailed(again);
        throw again;
      }
    }
    this.underway = undefined;
    publisher.publish();
    publisher.removeDroppedDirectories();
  }

  /** Writes what other threads have encoded. */
  collect(): void {
    try {
      this.flush(() => this.store.background.collect());
    } catch (error) {
      this.parts.options.log("ERROR", `encoded segments could not be stored: ${(error as Error).message}`);
    }
  }

  private flush(action: () => void): void {
    try {
      action();
    } catch (error) {
      this.hasFailed(error);
    }
  }

  /**
   * A lack of disk space, of memory to open a table or of files that may be open changes nothing: the log continues. After other failures
   * the state on disk is unknown, and the database is sealed.
   */
  private hasFailed(error: unknown): void {
    const isLack = error instanceof DiskFullError || (error as { code?: string }).code === "EMFILE" ||
      (error instanceof SqlError && error.sqlState === SQLSTATE.outOfMemory);
    if (isLack) return;
    this.store.seal.set(`the checkpoint failed: ${(error as Error).message}`);
    throw error;
  }
}
