/**
 * The turn of the event loop that all connections share. Clients with very many messages work for `TURN_MS` in a turn, all together, so that
 * what others send is received soon.
 */
import { setImmediate } from "node:timers";

const TURN_MS = 5;
/** A connection works as long at a time while others wait. */
const SLICE_MS = 1;

export class SharedTurn {
  /** Undefined if no connection has asked in this turn of the event loop. */
  private startMs: number | undefined;
  /** In the order in which they continue. */
  private readonly waiting: (() => void)[] = [];
  private isContinuing = false;

  /** @param nextTurn calls a function when the event loop has received what has come; setImmediate would be earlier */
  constructor(
    private readonly now: () => number = () => performance.now(),
    private readonly nextTurn: (begin: () => void) => void = (begin) => setTimeout(begin, 0),
  ) {}

  /** True if a connection with more to do should `wait`. @param sinceMs when it began to work, or to continue */
  isDue(sinceMs: number, nowMs: number = this.now()): boolean {
    if (this.startMs === undefined) this.start(nowMs);
    return nowMs - this.startMs! > TURN_MS || (this.waiting.length > 0 && nowMs - sinceMs > SLICE_MS);
  }

  /** Resolves when the connection may continue. */
  wait(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.waiting.push(resolve);
    if (!this.isContinuing) this.continueNextTurn();
    return promise;
  }

  private start(nowMs: number): void {
    this.startMs = nowMs;
    setImmediate(() => this.startMs = undefined);
  }

  private continueNextTurn(): void {
    this.isContinuing = true;
    this.nextTurn(() => {
      const nowMs = this.now();
      this.start(nowMs);
      this.continueAt(nowMs);
    });
  }

  /** A connection that continues works before the microtask after it. */
  private continueAt(nowMs: number): void {
    const resolve = this.isDue(nowMs, nowMs) ? undefined : this.waiting.shift();
    if (resolve !== undefined) {
      resolve();
      queueMicrotask(() => this.continueAt(this.now()));
    } else if (this.waiting.length > 0) this.continueNextTurn();
    else this.isContinuing = false;
  }
}
