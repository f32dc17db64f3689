import type { Level } from "./record.ts";

/** The destination of a writer's lines. */
export interface Output {
  /** Writes lines in order. It is called again only after it has finished. `timeMicros` is that of the last line. */
  write(lines: QueuedLine[]): Promise<void>;
  close(): Promise<void>;
}

export interface QueuedLine {
  timeMicros: number;
  level: Level;
  /** Includes the line end. */
  text: string;
}

/** Number of messages dropped since the start, and the last output error, for tests and metrics. */
export interface QueueState {
  dropped: number;
  failure: Error | undefined;
}

const mayBeDropped = ({ level }: QueuedLine) => level === "DEBUG" || level === "INFO";

/**
 * The bounded queue between messages and a slow disk. `push` never waits: above `limitBytes`, DEBUG and INFO are
 * dropped and counted, and other levels are always kept. One write at a time takes everything that is queued.
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
    /** Makes the line that reports dropped lines, once there is space again. */
    readonly tellDropped: (count: number) => QueuedLine,
    /** Last resort for lines that an output could not write. */
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
    // Defer to the next turn, so that a burst of messages is one write.
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

  /** Resolves when everything pushed before is written. */
  async flush(): Promise<void> {
    while (this.#pump) await this.#pump;
  }

  async close(): Promise<void> {
    await this.flush();
    await this.output.close();
  }
}
