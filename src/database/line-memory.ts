/**
 * Limits the memory of line-protocol rows that wait for the commit of their request. All requests share one limit. A
 * request above the limit waits for the others, except the oldest one, which continues so that not all of them wait.
 */
import { LineError } from "../errors.ts";

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

  constructor(readonly bytesMax: number) {}

  share(): LineShare {
    return new Share(this);
  }

  add(share: Share, bytes: number): void {
    this.usedBytes += bytes;
    this.holders.add(share);
  }

  mayGoOn(share: Share): boolean {
    return this.usedBytes <= this.bytesMax || !this.holders.has(share) || this.holders.values().next().value === share;
  }

  /** Waits until memory is released, or for `ms`. */
  async change(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.waiting.add(resolve);
    const timer = setTimeout(resolve, ms);
    await promise;
    clearTimeout(timer);
    this.waiting.delete(resolve);
  }

  remove(share: Share, bytes: number): void {
    this.usedBytes -= bytes;
    this.holders.delete(share);
    for (const resume of this.waiting) resume();
  }
}

class Share implements LineShare {
  private bytes = 0;

  constructor(private readonly memory: LineMemory) {}

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
