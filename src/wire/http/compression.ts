/** Compression of replies, for clients that accept it and replies that are large enough. */
import { once } from "node:events";
import { createGzip, createZstdCompress, gzipSync, zstdCompressSync } from "node:zlib";
import { joinedBytes } from "../../bytes.ts";

export type ContentCoding = "gzip" | "zstd";

/** Smaller replies are sent uncompressed. */
const WORTH_BYTES = 4096;

/** Compression runs on the main thread. Larger documents are compressed in slices, between which others are served. */
const SLICE_BYTES = 65_536;
/** Work between two turns of the event loop. */
const TURN_MS = 4;

const ALL: readonly ContentCoding[] = ["zstd", "gzip"];

/** The coding that the Accept-Encoding header prefers; the first of `codings` among equals. zstd costs less CPU. */
export function acceptedCoding(header: string | null, codings = ALL): ContentCoding | undefined {
  let best: ContentCoding | undefined, bestWeight = 0;
  const offers = (header ?? "").toLowerCase().split(",").map((offer) => offer.split(";").map((part) => part.trim()));
  for (const coding of codings) {
    const weight = Math.max(0, ...offers.filter(([name]) => name === coding).map(([, ...rest]) => weightOf(rest)));
    if (weight > bestWeight) [best, bestWeight] = [coding, weight];
  }
  return best;
}

function weightOf(parameters: string[]): number {
  const weight = parameters.map((parameter) => /^q=([01](?:\.\d{0,3})?)$/.exec(parameter)?.[1]).find(Boolean);
  return weight === undefined ? 1 : Number(weight);
}

/** The body of a document that is there as a whole. Returns undefined if the parts are too small. */
export function compressed(parts: Uint8Array[], coding: ContentCoding): Uint8Array | CompressedStream | undefined {
  let size = 0;
  for (const part of parts) size += part.length;
  if (size <= WORTH_BYTES) return undefined;
  if (size > SLICE_BYTES) return new CompressedStream(parts.values(), coding);
  const whole = joinedBytes(parts);
  return coding === "gzip" ? gzipSync(whole) : zstdCompressSync(whole);
}

/** Compresses pieces as they arrive, at the reader's pace. */
export class CompressedStream implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array> {
  readonly #compressor;
  readonly #output: AsyncIterator<Uint8Array>;
  #feeding: Promise<void> | undefined;

  constructor(
    private readonly pieces: AsyncIterator<Uint8Array> | Iterator<Uint8Array>,
    coding: ContentCoding,
    private readonly nowMs = () => performance.now(),
  ) {
    this.#compressor = coding === "gzip" ? createGzip() : createZstdCompress();
    this.#output = this.#compressor[Symbol.asyncIterator]();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Uint8Array>> {
    this.#feeding ??= this.#feed().catch((error) => void this.#compressor.destroy(error));
    return this.#output.next();
  }

  async #feed(): Promise<void> {
    let turnEndsMs = this.nowMs() + TURN_MS;
    for (;;) {
      const piece = await this.pieces.next();
      if (piece.done) break;
      for (let at = 0; at < piece.value.length; at += SLICE_BYTES) {
        // The compressor reads the slice after this returns, when the buffer may already hold the next piece.
        const slice = piece.value.slice(at, at + SLICE_BYTES);
        if (!this.#compressor.write(slice)) await once(this.#compressor, "drain");
        if (this.nowMs() < turnEndsMs) continue;
        // "drain" comes without a turn of the event loop.
        await new Promise((resolve) => setTimeout(resolve, 0));
        turnEndsMs = this.nowMs() + TURN_MS;
      }
    }
    this.#compressor.end();
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    this.#compressor.destroy();
    await this.pieces.return?.();
    return { done: true, value: undefined };
  }
}
