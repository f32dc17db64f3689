/**
 * Executions of a plan that need frames which are not in memory: a worker runs the first one, and the others wait for it, because they can
 * then run on the main thread. Otherwise a statement of many connections would fill the queue of the workers.
 */
import type { PlanKey } from "./direct.ts";

/** The first one may take long, such as one whose reader is slow. */
const WAIT_MS_MAX = 1_000;
const UNHELPED_MS = 1_000;
/** After this time, the others let the event loop have a turn. */
const TURN_MS = 5;

export class FirstReads {
  /** Plans whose executions still need frames after they have waited, and until when they do not wait. */
  private readonly unhelped = new WeakMap<PlanKey, number>();
  /** The executions that wait, by plan. */
  private readonly underway = new Map<PlanKey, (() => void)[]>();

  /** `ended`: when the frames are in memory. */
  begin(key: PlanKey, ended: Promise<void>): void {
    if (this.underway.has(key) || performance.now() < (this.unhelped.get(key) ?? 0)) return;
    this.underway.set(key, []);
    let timer: ReturnType<typeof setTimeout>;
    const late = new Promise<void>((resolve) => timer = setTimeout(resolve, WAIT_MS_MAX));
    Promise.race([ended, late]).then(() => {
      clearTimeout(timer);
      return this.end(key);
    });
  }

  /** Undefined if none is under way. Otherwise resolves when the plan can be tried. */
  wait(key: PlanKey): Promise<void> | undefined {
    const waiting = this.underway.get(key);
    return waiting && new Promise((resolve) => waiting.push(resolve));
  }

  /** An execution that has waited still needs frames: the pool is too small for them. */
  isNoHelp(key: PlanKey): void {
    this.unhelped.set(key, performance.now() + UNHELPED_MS);
  }

  private async end(key: PlanKey): Promise<void> {
    const waiting = this.underway.get(key)!;
    this.underway.delete(key);
    let startMs = performance.now();
    for (const proceed of waiting) {
      proceed();
      // Let it run: its promise has two more steps.
      for (let step = 0; step < 4; step++) await undefined;
      if (performance.now() - startMs < TURN_MS) continue;
      await new Promise((resolve) => setTimeout(resolve));
      startMs = performance.now();
    }
  }
}
