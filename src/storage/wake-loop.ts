/** How main waits for what other threads have for it. */

export interface Awaited {
  /** How often main was woken. */
  wakes: () => number;
  /** Resolves at the first wake after `wakes`. */
  nextWake: (wakes: number) => Promise<void>;
  /** Takes what has come. Returns true if there is more to wait for. */
  take: () => boolean;
  /** Waits busily until the end of the turn. Resolves to whether something has come; undefined if waiting is not worth while. */
  busily?: (hasCome: () => boolean) => Promise<boolean> | undefined;
}

/** Takes what comes, until there is no more to wait for. */
export class WakeLoop {
  private isRunning = false;

  constructor(private readonly awaited: Awaited) {}

  async run(): Promise<void> {
    if (this.isRunning) return;
    this.isRunning = true;
    const { wakes, nextWake, take, busily } = this.awaited;
    try {
      for (;;) {
        const seen = wakes();
        if (!take()) return;
        // While main looks, others do not have to wake it.
        const hasCome = busily?.(() => wakes() !== seen);
        if (hasCome === undefined || !await hasCome) await nextWake(seen);
      }
    } finally {
      this.isRunning = false;
    }
  }
}
