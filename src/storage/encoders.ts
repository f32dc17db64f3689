/**
 * What the writer asks of other threads: to encode the chunks of a segment while it goes on committing. Other threads help only while they
 * have nothing else to do, and may be slow or fail, so the writer can do the same itself at any time.
 */
import type { Stored } from "./encoding/codecs.ts";
import type { ChunkValues } from "./encoding/stored.ts";

export interface ChunkOrder extends ChunkValues {
  readonly columnId: number;
}

/** The stored form of a chunk. */
export interface EncodedChunk extends Omit<Stored, "parts"> {
  readonly columnId: number;
  /** Undefined: the bytes of the values, as they are in memory. */
  readonly bytes: Uint8Array | undefined;
  readonly crc: number;
}

export interface Encoders {
  /**
   * Hands over the chunks of a segment, whose memory must stay as it is until `outcome` or `withdraw` says that no thread reads it any
   * more. Returns the number of the job; "full" if there are as many jobs as there can be, "none" if no thread is idle.
   */
  offer(chunks: readonly ChunkOrder[]): number | "full" | "none";
  /** The chunks, or "failed"; undefined as long as a thread works on them. The caller must call `release` after that. */
  outcome(job: number): readonly EncodedChunk[] | "failed" | undefined;
  /** Frees what `outcome` has returned. */
  release(job: number): void;
  /** Takes a job back that no thread has begun. */
  withdraw(job: number): boolean;
}
