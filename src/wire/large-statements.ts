/**
 * Limits the memory of large statements. Until it has been carried out, a statement takes some twelve times the bytes of its text: the text, its
 * plan and its rows on their way to the writer. So those of all clients share a number of bytes, from before they are received until
 * they have ended. One that does not fit waits. One that is larger than all of it is carried out alone. While one waits, those whose
 * clients send too slowly are ended.
 */
import { ProtocolError, SQLSTATE } from "../errors.ts";
import { LOOK_MS, type Sender, SlowSenders } from "../slow-senders.ts";

/** Smaller ones are not counted. */
export const LARGE_BYTES_MIN = 256 << 10;
/** A statement that waits longer is refused. */
const WAIT_MS_MAX = 60_000;

/** Returns the bytes of a statement. */
export type Release = () => void;

export class LargeStatements {
  private usedBytes = 0;
  /** In the order of their arrival. */
  private readonly waiting = new Set<{ sizeBytes: number; begin: () => void }>();
  /** Clients whose statements are counted, but have not been received yet. */
  private readonly senders: SlowSenders;
  private looks: ReturnType<typeof setInterval> | undefined;

  constructor(
    private readonly bytesMax: number,
    private readonly waitMsMax = WAIT_MS_MAX,
    private readonly lookMs = LOOK_MS,
    nowMs?: () => number,
  ) {
    this.senders = new SlowSenders("large statements of other clients wait for query.text.memory.size", nowMs);
  }

  /**
   * Resolves when a statement fits. `sender`: its client, if the statement is still to be received.
   * @throws {ProtocolError} if there is none for a minute.
   */
  async take(sizeBytes: number, sender?: Sender): Promise<Release> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { sizeBytes, begin: resolve };
    this.waiting.add(waiter);
    const timer = setTimeout(() => {
      this.waiting.delete(waiter);
      reject(
        new ProtocolError(
          `large statements of other clients fill query.text.memory.size, ${this.bytesMax} bytes: try again later, or send less at a time`,
          SQLSTATE.outOfMemory,
        ),
      );
      this.next();
    }, this.waitMsMax);
    this.next();
    try {
      await promise;
    } finally {
      clearTimeout(timer);
    }
    if (sender !== undefined) this.senders.add(sender);
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      if (sender !== undefined) this.senders.delete(sender);
      this.usedBytes -= sizeBytes;
      this.next();
    };
  }

  private next(): void {
    for (const waiter of this.waiting) {
      if (this.usedBytes > 0 && this.usedBytes + waiter.sizeBytes > this.bytesMax) {
        this.looks ??= setInterval(() => this.senders.look(), this.lookMs);
        return;
      }
      this.waiting.delete(waiter);
      this.usedBytes += waiter.sizeBytes;
      waiter.begin();
    }
    clearInterval(this.looks);
    this.looks = undefined;
  }
}
