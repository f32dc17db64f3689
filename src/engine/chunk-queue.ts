/** An encoded part of a result. */
export interface ResultChunk {
  bytes: Uint8Array;
  rows: number;
}

/** Chunks for the reader; the sender counts those in flight. */
export class ChunkQueue implements AsyncIterable<ResultChunk>, AsyncIterator<ResultChunk> {
  onTaken: () => void = () => {};
  private readonly chunks: ResultChunk[] = [];
  private waiting: {
    resolve: (result: IteratorResult<ResultChunk>) => void;
    reject: (error: unknown) => void;
  } | undefined;
  private over = false;
  private error: unknown;

  push(chunk: ResultChunk): void {
    if (this.waiting) {
      const { resolve } = this.waiting;
      this.waiting = undefined;
      this.onTaken();
      resolve({ done: false, value: chunk });
    } else this.chunks.push(chunk);
  }

  end(): void {
    this.over = true;
    this.waiting?.resolve({ done: true, value: undefined });
    this.waiting = undefined;
  }

  /** Discards unread chunks, because the reader may never return. */
  fail(error: unknown): void {
    this.chunks.length = 0;
    this.over = true;
    this.error = error;
    if (!this.waiting) return;
    this.waiting.reject(error);
    this.waiting = undefined;
    this.error = undefined;
  }

  next(): Promise<IteratorResult<ResultChunk>> {
    const chunk = this.chunks.shift();
    if (chunk) {
      this.onTaken();
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

  [Symbol.asyncIterator](): AsyncIterator<ResultChunk> {
    return this;
  }
}
