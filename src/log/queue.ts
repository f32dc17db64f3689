import type { Level } from "./record.ts";

/** Where a writer's lines go in the end. */
export interface Output {
  /** Takes lines in their order; called again only when it has finished. `timeMicros` is the last line's. */
  write(lines: QueuedLine[]): Promise<void>;
  close(): Promise<void>;
}

export interface QueuedLine {
  timeMicros: number;
  level: Level;
  /** With its line end. */
  text: string;
}

/** Messages by level that were thrown away since the start, and why the last output failed, for tests and metrics. */
export interface QueueState {
  dropped: number;
  failure: Error | undefined;
}

const mayBeDropped = ({ level }: QueuedLine) => level === "DEBUG" || level === "INFO";

/**
 * The bounded queue between a message and a slow disk. `push` never waits: above `limitBytes` DEBUG and INFO are dropped and
 * counted, the others are kept in any case. One write is under way at a time and takes all that has gathered.
 */
export class WriterQueue {
  readonly state: QueueState = { dropped: 0, failure: undefined };
  #lines: QueuedLine[] = [];
  #sizeBytes = 0;
  #pump: Promise<void> | undefined;
  #droppedBefore = 0;

  constructor(
    readonly output: Output,
    readonly limitBytes: number,
    /** The line that tells of dropped ones, once there is room again. */
    readonly tellDropped: (count: number) => QueuedLine,
    /** Last resort for lines that an output could not take. */
    readonly rescue: (lines: QueuedLine[], error: Error) => void = () => {},
  ) {}

  push(line: QueuedLine): void {
    if (this.#sizeBytes + line.text.length > this.limitBytes && mayBeDropped(line)) {
      this.state.dropped++;
      return;
    }
    this.#lines.push(line);
    this.#sizeBytes += line.text.length;
    this.#pump ??= this.#run();
  }

  async #run(): Promise<void> {
    // Leaves the caller's turn first, so that a burst of messages is one write.
    await Promise.resolve();
    while (this.#lines.length > 0) {
      const lines = this.#lines;
      if (this.state.dropped > this.#droppedBefore) {
        lines.push(this.tellDropped(this.state.dropped - this.#droppedBefore));
        this.#droppedBefore = this.state.dropped;
      }
      this.#lines = [];
      try {
        await this.output.write(lines);
      } catch (error) {
        this.state.failure = error as Error;
        this.state.dropped += lines.filter(mayBeDropped).length;
        this.rescue(lines, error as Error);
      }
      for (const line of lines) this.#sizeBytes -= line.text.length;
      if (this.#lines.length === 0) this.#sizeBytes = 0;
    }
    this.#pump = undefined;
  }

  /** Fulfilled when all that was pushed before is written. */
  async flush(): Promise<void> {
    while (this.#pump) await this.#pump;
  }

  async close(): Promise<void> {
    await this.flush();
    await this.output.close();
  }
}
