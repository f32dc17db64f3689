/**
 * Limits the memory of large statements. Until it has been carried out, a statement takes some twelve times the bytes of its text: the text, its
 * plan and its rows on their way to the writer. So those of all clients share a number of bytes, from before they are received until
 * they have ended. One for which there is no room waits. One that is larger than all of it is carried out alone.
 */
import { ProtocolError, SQLSTATE } from "../errors.ts";

/** Smaller ones are not counted. */
export const LARGE_BYTES_MIN = 256 << 10;
/** A statement that waits longer is refused. */
const WAIT_MS_MAX = 60_000;

/** Gives the room of a statement back. */
export type Release = () => void;

export class LargeStatements {
  private usedBytes = 0;
  /** In the order of their arrival. */
  private readonly waiting = new Set<{ sizeBytes: number; begin: () => void }>();

  constructor(private readonly bytesMax: number, private readonly waitMsMax = WAIT_MS_MAX) {}

  /** Resolves when there is room for a statement. @throws {ProtocolError} if there is none for a minute. */
  async take(sizeBytes: number): Promise<Release> {
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
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.usedBytes -= sizeBytes;
      this.next();
    };
  }

  private next(): void {
    for (const waiter of this.waiting) {
      if (this.usedBytes > 0 && this.usedBytes + waiter.sizeBytes > this.bytesMax) return;
      this.waiting.delete(waiter);
      this.usedBytes += waiter.sizeBytes;
      waiter.begin();
    }
  }
}
