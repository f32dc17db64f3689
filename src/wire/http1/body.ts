/** The body of a request: of known length, or chunked. */
import { RequestError } from "./errors.ts";
import { badField, latin1 } from "./head.ts";
import type { Input } from "./input.ts";

/** Maximum size of a chunk's size line including its extensions. */
const CHUNK_LINE_MAX = 256;
/** Maximum size of all trailers together; they are read and dropped. */
const TRAILERS_MAX = 8192;
const PIECE_BYTES = 65_536;
const CHUNK_SIZE = /^([0-9A-Fa-f]{1,12})(?:;[\x21-\x7e][\t\x20-\x7e\x80-\xff]*)?$/;

export class BodyReader {
  /** Number of bytes read so far. */
  size = 0;
  isWhole: boolean;
  /** Number of bytes of the body, or of the current chunk, that are still to come. */
  #left: number;
  readonly isChunked: boolean;
  #hasChunk = false;

  constructor(
    private readonly input: Pick<Input, "readInto" | "line">,
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
    const count = await this.input.readInto(into.length > this.#left ? into.subarray(0, this.#left) : into);
    this.#left -= count;
    this.size += count;
    if (!this.isChunked && this.#left === 0) this.#end();
    return count;
  }

  /** Returns the next bytes, which the caller then owns; undefined at the end. */
  async read(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const piece = new Uint8Array(this.isChunked ? PIECE_BYTES : Math.min(PIECE_BYTES, Math.max(1, this.#left)));
    const count = await this.readInto(piece);
    return count === 0 ? undefined : piece.subarray(0, count);
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
