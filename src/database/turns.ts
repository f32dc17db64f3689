/**
 * Limits how long small statements run before the event loop handles other events: new connections, health checks, rows that arrive.
 * Statements of many connections arrive together and are all run in one turn of the event loop otherwise.
 */

import { SelfEvents } from "./self-events.ts";

/** Time of one turn for statements. */
const TURN_MS = 5;
/** What a statement costs beside its run: it is read, and its answer is written. */
const STATEMENT_MS = 0.03;

export interface TurnsOptions {
  /** In steps of a millisecond is sufficient: sums of differences are right on average. */
  nowMs(): number;
  /** Calls back after all events that are there have been handled. */
  afterEvents(callback: () => void): void;
}

export class Turns {
  private leftMs = TURN_MS;
  private isOver = false;
  /** Statements of later turns, in the order of their arrival. */
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly options: TurnsOptions) {}

  static create(): Turns & Disposable {
    const events = new SelfEvents();
    const turns = new Turns({ nowMs: Date.now, afterEvents: (callback) => events.after(callback) });
    return Object.assign(turns, { [Symbol.dispose]: () => events.close() });
  }

  /** Runs `work` now, or in a later turn, unless the signal of `of` is aborted by then. */
  run<T>(work: () => T | Promise<T>, of: { signal?: AbortSignal } = {}): T | Promise<T> {
    if (!this.isOver) return this.timed(work);
    return new Promise((resolve, reject) =>
      this.waiting.push(() => {
        try {
          of.signal?.throwIfAborted();
          resolve(work());
        } catch (error) {
          reject(error);
        }
      })
    );
  }

  private timed<T>(work: () => T): T {
    const startMs = this.options.nowMs();
    try {
      return work();
    } finally {
      // Clocks may be set back.
      this.leftMs -= Math.max(0, this.options.nowMs() - startMs) + STATEMENT_MS;
      if (this.leftMs <= 0 && !this.isOver) this.end();
    }
  }

  private end(): void {
    this.isOver = true;
    this.options.afterEvents(() => {
      this.isOver = false;
      this.leftMs = TURN_MS;
      while (!this.isOver && this.waiting.length > 0) this.timed(this.waiting.shift()!);
    });
  }
}
