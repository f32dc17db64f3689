/**
 * Executions of a plan that need frames which are not in memory: a worker runs the first one, and the others wait until they can run on the
 * main thread. Otherwise a statement of many connections would fill the queue of the workers.
 */
import type { PlanKey } from "./direct.ts";

/** Those that wait are tried again when a frame has been filled, but not more often: other queries fill frames, too. */
const TRIES_APART_MS = 1;
/** After this time they are tried in any case: another thread may have had the pool's lock. */
const FILLED_MS_MAX = 20;
/** After this time, the others let the event loop have a turn. */
const TURN_MS = 5;
/** The first one may take long, such as one whose reader is slow. */
const WAIT_MS_MAX = 1_000;
/** Executions of plans that waiting does not help do not wait for this time. */
const UNHELPED_MS = 1_000;

interface Waiting<T> {
  /** Undefined as long as frames are missing. */
  attempt: () => T | undefined;
  resolve: (result: T | undefined) => void;
  reject: (error: unknown) => void;
}

/** The frames that any thread fills. */
export interface FilledFrames {
  readonly filledCount: number;
  /** Resolves when there are others than `filledCount` was, or after a time. */
  filled(filledCount: number, waitMs: number): Promise<void>;
}

export class FirstReads<T> {
  private readonly unhelped = new WeakMap<PlanKey, number>();
  /** The executions that wait, by plan. */
  private readonly underway = new Map<PlanKey, Waiting<T>[]>();
  private isWatching = false;

  constructor(private readonly frames: FilledFrames) {}

  /** `ended`: resolves when the first one has been answered. */
  begin(key: PlanKey, ended: Promise<void>): void {
    if (this.underway.has(key) || performance.now() < (this.unhelped.get(key) ?? 0)) return;
    const waiting: Waiting<T>[] = [];
    this.underway.set(key, waiting);
    void this.watch();
    let timer: ReturnType<typeof setTimeout>;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, WAIT_MS_MAX));
    Promise.race([ended, late]).then(() => {
      clearTimeout(timer);
      this.underway.delete(key);
      return proceedAll(waiting);
    });
  }

  /** Tries those that wait whenever a frame has been filled: the frames are there before the first one has been answered. */
  private async watch(): Promise<void> {
    if (this.isWatching) return;
    this.isWatching = true;
    while (this.underway.size > 0) {
      const { filledCount } = this.frames;
      let hasMore = false;
      for (const waiting of this.underway.values()) hasMore = proceed(waiting, false) || hasMore;
      const triedMs = performance.now();
      if (!hasMore) await this.frames.filled(filledCount, FILLED_MS_MAX);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, TRIES_APART_MS - (performance.now() - triedMs))));
    }
    this.isWatching = false;
  }

  isUnderway(key: PlanKey): boolean {
    return this.underway.has(key);
  }

  /** Resolves to the result of an attempt; undefined if the first one is over, so that a worker has to run it. */
  wait(key: PlanKey, attempt: () => T | undefined): Promise<T | undefined> {
    return new Promise((resolve, reject) => this.underway.get(key)!.push({ attempt, resolve, reject }));
  }

  /** An execution that has waited still needs frames: the pool is too small for them. */
  isNoHelp(key: PlanKey): void {
    this.unhelped.set(key, performance.now() + UNHELPED_MS);
  }
}

/**
 * Tries those that wait, in order, up to the first one that lacks a frame. `isLast`: there are no further tries. Returns true if it has
 * left some for the next turn.
 */
function proceed<T>(waiting: Waiting<T>[], isLast: boolean): boolean {
  const startMs = performance.now();
  while (waiting.length > 0 && performance.now() - startMs < TURN_MS) {
    const { attempt, resolve, reject } = waiting[0]!;
    try {
      const result = attempt();
      if (result === undefined && !isLast) return false;
      resolve(result);
    } catch (error) {
      reject(error);
    }
    waiting.shift();
  }
  return waiting.length > 0;
}

async function proceedAll<T>(waiting: Waiting<T>[]): Promise<void> {
  for (;;) {
    if (!proceed(waiting, true)) return;
    await new Promise((resolve) => setTimeout(resolve));
  }
}
