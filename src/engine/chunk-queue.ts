/** An encoded part of a result. */
export interface ResultChunk {
  bytes: Uint8Array;
  rows: number;
}

/** Chunks for the reader; the sender counts those in flight. */
export class ChunkQueue implements AsyncIterable<ResultChunk>, AsyncIterator<ResultChunk> {
  onTaken: () => void = () => {};
  /** Called with the size of each chunk that the queue was given, once its reader asks for the next one, or never will. */
  onFreed: (sizeBytes: number) => void = () => {};
  /** Size of the chunk that the reader has. */
  private takenBytes = 0;
  private readonly chunks: ResultChunk[] = [];
  private waiting: {
    resolve: (result: IteratorResult<ResultChunk>) => void;
    reject: (error: unknown) => void;
  } | undefined;
  private waitingForWhole: {
    resolve: (chunks: readonly ResultChunk[] | undefined) => void;
    reject: (error: unknown) => void;
  } | undefined;
  private over = false;
  private error: unknown;

  push(chunk: ResultChunk): void {
    this.tellWhole(undefined);
    if (this.waiting) {
      const { resolve } = this.waiting;
      this.waiting = undefined;
      this.take(chunk);
      resolve({ done: false, value: chunk });
    } else this.chunks.push(chunk);
  }

  /** The result is there as a whole. */
  endWith(chunks: readonly ResultChunk[]): void {
    if (this.tellWhole(chunks)) return;
    for (const chunk of chunks) this.push(chunk);
    this.end();
  }

  /** Returns false if no caller waits for `whole`. */
  private tellWhole(chunks: readonly ResultChunk[] | undefined): boolean {
    const waiting = this.waitingForWhole;
    this.waitingForWhole = undefined;
    waiting?.resolve(chunks);
    return waiting !== undefined;
  }

  end(): void {
    this.over = true;
    this.tellWhole(undefined);
    this.waiting?.resolve({ done: true, value: undefined });
    this.waiting = undefined;
  }

  private take({ bytes }: ResultChunk): void {
    this.takenBytes = bytes.length;
    this.onTaken();
  }

  private freeTaken(): void {
    const { takenBytes } = this;
    this.takenBytes = 0;
    if (takenBytes > 0) this.onFreed(takenBytes);
  }

  private discard(): void {
    for (const { bytes } of this.chunks.splice(0)) this.onFreed(bytes.length);
  }

  /** Discards unread chunks, because the reader may never return. */
  fail(error: unknown): void {
    this.discard();
    this.over = true;
    if (this.waitingForWhole !== undefined) {
      this.waitingForWhole.reject(error);
      this.waitingForWhole = undefined;
      return;
    }
    this.error = error;
    if (!this.waiting) return;
    this.waiting.reject(error);
    this.waiting = undefined;
    this.error = undefined;
  }

  /**
   * To be called first, if at all: resolves to all chunks if the result is handed over as a whole, and otherwise to undefined when there is
   * something to iterate. Rejects if it fails before.
   */
  whole(): Promise<readonly ResultChunk[] | undefined> {
    if (this.over || this.chunks.length > 0) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => this.waitingForWhole = { resolve, reject });
  }

  next(): Promise<IteratorResult<ResultChunk>> {
    this.freeTaken();
    const chunk = this.chunks.shift();
    if (chunk) {
      this.take(chunk);
      return Promise.resolve({ done: false, value: chunk });
    }
    if (this.error !== undefined) {
      const { error } = this;
      this.error = undefined;
      return Promise.reject(error);
    }
    if (this.over) return Promise.resolve({ done: true, value: undefined });
    return new Promise((resolve, reject) => this.waiting = { resolve, reject });
  }

  /** The reader has gone. */
  return(): Promise<IteratorResult<ResultChunk>> {
    this.freeTaken();
    this.discard();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): AsyncIterator<ResultChunk> {
    return this;
  }
}
