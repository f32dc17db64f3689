/**
 * Ends requests whose clients send too slowly while they hold memory that others wait for. Otherwise a client that sends nothing would keep the
 * memory.
 */

/** The client of a request whose bytes are still to come. */
export interface Sender {
  readonly receivedBytes: number;
  /** True while the server waits for the client, not the client for the server. */
  readonly isAwaited: boolean;
  /** Ends the request with an error. */
  tooSlow(reason: string): void;
}

/** Senders are looked at in this interval while others wait. */
export const LOOK_MS = 1_000;
/** A sender may pause for this long in all, and gets more for the bytes that it sends. */
const PAUSE_MS_MAX = 5_000;
const BYTES_A_MS_MIN = 1_048;

interface Pace {
  receivedBytes: number;
  pauseMsLeft: number;
}

export class SlowSenders {
  private readonly paces = new Map<Sender, Pace>();
  private lookedAtMs = 0;

  /** @param reason for the client */
  constructor(private readonly reason: string, private readonly nowMs: () => number = () => performance.now()) {}

  add(sender: Sender): void {
    this.paces.set(sender, { receivedBytes: sender.receivedBytes, pauseMsLeft: PAUSE_MS_MAX });
  }

  delete(sender: Sender): void {
    this.paces.delete(sender);
  }

  /** Called again and again while others wait. */
  look(): void {
    const nowMs = this.nowMs(), passedMs = nowMs - this.lookedAtMs;
    if (passedMs < LOOK_MS / 2) return;
    this.lookedAtMs = nowMs;
    for (const [sender, pace] of this.paces) {
      const bytes = sender.receivedBytes - pace.receivedBytes;
      pace.receivedBytes += bytes;
      // After a time in which no request waited, the last look was long ago.
      if (!sender.isAwaited || passedMs > 2 * LOOK_MS) continue;
      pace.pauseMsLeft = Math.min(PAUSE_MS_MAX, pace.pauseMsLeft - passedMs + bytes / BYTES_A_MS_MIN);
      if (pace.pauseMsLeft >= 0) continue;
      this.paces.delete(sender);
      sender.tooSlow(this.reason);
    }
  }
}
