/** The body of a request: of known length, or chunked. */
import { RequestError } from "./errors.ts";
import { badField, latin1 } from "./head.ts";
import type { Input } from "./input.ts";

/** Maximum size of a chunk's size line including its extensions. */
const CHUNK_LINE_MAX = 256;
/** Maximum size of all trailers together; they are read and dropped. */
const TRAILERS_MAX = 8192;
const PIECE_BYTES = 65_536;
/** Pieces of this part of their buffer are copied, so that small chunks do not keep large buffers. */
const SMALL_PIECE = 1 / 4;
const CR = 13, LF = 10;
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,12})(?:;[\x21-\x7e][\t\x20-\x7e\x80-\xff]*)?$/;

/** What the reader of a body uses of the connection's input. */
export type BodyInput = Pick<Input, "readInto" | "line" | "bytes" | "skip">;

export class BodyReader {
  /** Number of bytes read so far. */
  size = 0;
  isWhole: boolean;
  /** Number of bytes of the body, or of the current chunk, that are still to come. */
  #left: number;
  readonly isChunked: boolean;
  #hasChunk = false;
  /** The buffer of a small piece, for the next one. */
  #spare: Uint8Array<ArrayBuffer> | undefined;

  constructor(
    private readonly input: BodyInput,
    size: number | "chunked",
    private readonly onWhole: () => void = () => {},
  ) {
    this.isChunked = size === "chunked";
    this.#left = size === "chunked" ? 0 : size;
    this.isWhole = size === 0;
  }

  /** Number of bytes that are known to be still to come. */
  get sizeLeft(): number {
    return this.#left;
  }

  /** Fills a part of `into` and returns its size, 0 at the end. @throws {RequestError | ConnectionLostError} */
  async readInto(into: Uint8Array): Promise<number> {
    if (this.isWhole) return 0;
    if (this.#left === 0) {
      await this.#nextChunk();
      if (this.isWhole) return 0;
    }
    let count = await this.input.readInto(into.length > this.#left ? into.subarray(0, this.#left) : into);
    this.#left -= count;
    if (this.isChunked && this.#left === 0) count += this.#receivedChunks(into.subarray(count));
    this.size += count;
    if (!this.isChunked && this.#left === 0) this.#end();
    return count;
  }

  /** Returns the next bytes, which the caller then owns; undefined at the end. */
  async read(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const size = this.isChunked ? PIECE_BYTES : Math.min(PIECE_BYTES, Math.max(1, this.#left));
    const piece = this.#spare ?? new Uint8Array(size);
    this.#spare = undefined;
    const count = await this.readInto(piece);
    if (count === 0) return undefined;
    if (!this.isChunked || count > piece.length * SMALL_PIECE) return piece.subarray(0, count);
    this.#spare = piece;
    return piece.slice(0, count);
  }

  /**
   * Takes bytes of further chunks that have been received already, because waiting for each of many small ones takes long. Anything else,
   * such as the last chunk, is left to `#nextChunk`. Returns their number.
   */
  #receivedChunks(into: Uint8Array): number {
    const { input } = this;
    let count = 0;
    while (this.#left === 0 && count < into.length) {
      const { bytes } = input, end = bytes.subarray(0, CHUNK_LINE_MAX).indexOf(LF, 2);
      if (bytes[0] !== CR || bytes[1] !== LF || end < 0 || bytes[end - 1] !== CR || end + 1 === bytes.length) break;
      const size = sizeOf(bytes.subarray(2, end - 1));
      if (size === 0) break;
      const part = bytes.subarray(end + 1, end + 1 + Math.min(size, into.length - count));
      into.set(part, count);
      count += part.length;
      this.#left = size - part.length;
      input.skip(end + 1 + part.length);
    }
    return count;
  }

  async #nextChunk(): Promise<void> {
    if (this.#hasChunk && (await this.input.line(0)).length > 0) {
      throw new RequestError(400, "a chunk is longer than its declared size");
    }
    const line = latin1(await this.input.line(CHUNK_LINE_MAX));
    const match = CHUNK_SIZE.exec(line);
    if (match === null) throw new RequestError(400, "the size of a chunk is not a hexadecimal number");
    this.#left = parseInt(match[1]!, 16);
    this.#hasChunk = true;
    if (this.#left > 0) return;
    for (let size = 0;;) {
      const trailer = latin1(await this.input.line(TRAILERS_MAX));
      if (trailer === "") break;
      size += trailer.length;
      if (size > TRAILERS_MAX) throw new RequestError(431, `trailers are longer than ${TRAILERS_MAX} bytes`);
      if (!/^[^\s:]+:/.test(trailer)) throw badField(trailer);
    }
    this.#end();
  }

  #end(): void {
    this.isWhole = true;
    this.onWhole();
  }
}

/** A chunk's size without extensions; 0 if it is anything else. */
function sizeOf(line: Uint8Array): number {
  if (line.length > 12) return 0;
  let size = 0;
  for (const byte of line) {
    const digit = byte >= 0x30 && byte <= 0x39 ? byte - 0x30 : ((byte | 0x20) - 0x57);
    if (digit < 0 || digit > 15 || (byte > 0x39 && digit < 10)) return 0;
    size = size * 16 + digit;
  }
  return size;
}
