/** For tests: a query thread that merges late rows in the thread of the test, more or less at random. */
import type { Files } from "./files.ts";
import type { SharedHeap } from "./heap.ts";
import { failJobs } from "./jobs.ts";
import { MergeWorker, SharedMergers } from "./merge-jobs.ts";
import { SharedPool } from "./pool.ts";
import type { MergedStats, MergeOrder, Mergers } from "./mergers.ts";

export class TestMergers implements Mergers {
  private readonly mergers: SharedMergers;
  private worker: MergeWorker | undefined;
  /** Merges that it has done, and that the writer has used. */
  merged = 0;

  /** `random`: in [0, 1). Whenever the writer looks for an idle thread, this one does some steps or none; now and then it fails. */
  constructor(private readonly heap: SharedHeap, private readonly files: Files, private readonly random: () => number) {
    this.mergers = new SharedMergers(heap, {
      hasIdle: () => this.random() < 0.9,
      wakeIdle: () => (this.work(), this.random() < 0.9),
    });
  }

  get hasIdle(): boolean {
    this.work();
    return this.mergers.hasIdle;
  }

  offer(order: MergeOrder, wakes: boolean): number | "full" | "none" {
    return this.mergers.offer(order, wakes);
  }

  outcome(job: number): MergedStats | "failed" | undefined {
    const outcome = this.mergers.outcome(job);
    if (typeof outcome === "object") this.merged++;
    return outcome;
  }

  release(job: number): void {
    this.mergers.release(job);
  }

  withdraw(job: number): boolean {
    return this.mergers.withdraw(job);
  }

  /** Ends what it has begun. */
  finish(): void {
    while (this.worker?.step());
  }

  private work(): void {
    const steps = Math.floor(10 * (this.random() - 0.5));
    for (let k = 0; k < steps; k++) {
      this.worker ??= new MergeWorker(this.heap, 0, new SharedPool(this.heap, this.files));
      if (!this.worker.step()) return;
      if (this.random() > 0.02) continue;
      this.worker = undefined;
      failJobs(this.heap, 0);
    }
  }
}
