/**
 * Limits the memory of line-protocol rows that wait for the commit of their request. All requests share one limit. A
 * request above the limit waits for the others, except the oldest one, which continues so that not all of them wait. While one waits, those
 * whose clients send too slowly are ended.
 */
import { LineError } from "../errors.ts";
import { LOOK_MS, type Sender, SlowSenders } from "../slow-senders.ts";

/** A request that waits longer is refused. */
const WAIT_MS_MAX = 60_000;

export interface LineShare {
  /** Counts rows. `line`: number of the next line. @throws {LineError} if there are too many for one commit. */
  add(bytes: number, line: number): void;
  /** Waits until there is memory. `line`: number of the next line. @throws {LineError} on timeout. */
  wait(line: number): Promise<void>;
  release(): void;
}

export class LineMemory {
  private usedBytes = 0;
  /** Requests that hold rows, the oldest first. */
  private readonly holders = new Set<Share>();
  private readonly waiting = new Set<() => void>();
  /** Clients of the holders. */
  private readonly senders: SlowSenders;

  constructor(readonly bytesMax: number, private readonly lookMs = LOOK_MS, nowMs?: () => number) {
    this.senders = new SlowSenders("rows of other requests wait for line.memory.size", nowMs);
  }

  /** `sender`: the client, if it can be ended. */
  share(sender?: Sender): LineShare {
    return new Share(this, sender);
  }

  add(share: Share, bytes: number): void {
    this.usedBytes += bytes;
    if (share.sender !== undefined && !this.holders.has(share)) this.senders.add(share.sender);
    this.holders.add(share);
  }

  mayGoOn(share: Share): boolean {
    return this.usedBytes <= this.bytesMax || !this.holders.has(share) || this.holders.values().next().value === share;
  }

  /** Waits until memory is released, or for `ms` at most. */
  async change(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.waiting.add(resolve);
    const timer = setTimeout(resolve, Math.min(ms, this.lookMs));
    await promise;
    clearTimeout(timer);
    this.waiting.delete(resolve);
    this.senders.look();
  }

  remove(share: Share, bytes: number): void {
    this.usedBytes -= bytes;
    this.holders.delete(share);
    if (share.sender !== undefined) this.senders.delete(share.sender);
    for (const resume of this.waiting) resume();
  }
}

class Share implements LineShare {
  private bytes = 0;

  constructor(private readonly memory: LineMemory, readonly sender: Sender | undefined) {}

  add(bytes: number, line: number): void {
    const { memory } = this;
    this.bytes += bytes;
    memory.add(this, bytes);
    if (this.bytes > memory.bytesMax) {
      throw new LineError(
        line,
        `the rows before it take more than ${memory.bytesMax} bytes, the maximum that can wait for a commit (line.memory.size)`,
      );
    }
  }

  async wait(line: number): Promise<void> {
    const { memory } = this;
    const deadline = performance.now() + WAIT_MS_MAX;
    while (!memory.mayGoOn(this)) {
      const left = deadline - performance.now();
      if (left <= 0) {
        throw new LineError(line, "rows of other requests fill line.memory.size: try again", "too busy");
      }
      await memory.change(left);
    }
  }

  release(): void {
    if (this.bytes > 0) this.memory.remove(this, this.bytes);
  }
}
