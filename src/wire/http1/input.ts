/** The buffered input of a connection. At most one read is in progress. */
import { assert } from "../../assert.ts";
import { ConnectionLostError, RequestError } from "./errors.ts";
import type { ByteConnection } from "../byte-connection.ts";

const BUFFER_BYTES = 4096;
const CR = 13, LF = 10;

export class Input {
  #buffer = new Uint8Array(BUFFER_BYTES);
  #start = 0;
  #end = 0;
  #reading: Promise<boolean> | undefined;
  /** The client has closed its sending side, or the connection is broken. */
  isOver = false;

  constructor(private readonly connection: ByteConnection) {}

  /** Bytes received and not yet consumed. Valid until the next read. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#buffer.subarray(this.#start, this.#end);
  }

  /** A received byte; undefined behind the last one. */
  at(index: number): number | undefined {
    return index < this.size ? this.#buffer[this.#start + index] : undefined;
  }

  get size(): number {
    return this.#end - this.#start;
  }

  /** Consumes the first `size` bytes. */
  skip(size: number): void {
    assert(size <= this.size, "only received bytes are consumed");
    this.#start += size;
    if (this.#start === this.#end && this.#reading === undefined) this.#start = this.#end = 0;
  }

  /** Reads once more. Returns false at the end. */
  fill(): Promise<boolean> {
    if (this.#reading !== undefined) return this.#reading;
    if (this.isOver) return Promise.resolve(false);
    this.#makeRoom();
    const free = this.#end === 0 ? this.#buffer : this.#buffer.subarray(this.#end);
    return this.#reading = this.connection.read(free).then(this.#filled, this.#broken);
  }

  readonly #filled = (count: number | null): boolean => {
    if (count === null) this.isOver = true;
    else this.#end += count;
    this.#reading = undefined;
    return !this.isOver;
  };

  readonly #broken = (): boolean => this.#filled(null);

  #makeRoom(): void {
    if (this.#start === this.#end) {
      this.#start = this.#end = 0;
      // An idle connection does not keep a buffer that one long head needed.
      if (this.#buffer.length > BUFFER_BYTES) this.#buffer = new Uint8Array(BUFFER_BYTES);
    }
    if (this.#end < this.#buffer.length) return;
    const kept = this.bytes;
    const buffer = kept.length * 2 > this.#buffer.length ? new Uint8Array(this.#buffer.length * 2) : this.#buffer;
    buffer.set(kept);
    this.#buffer = buffer;
    this.#start = 0;
    this.#end = kept.length;
  }

  /** Reads up to `into.length` bytes of a body, bypassing the buffer when it is empty. @throws {ConnectionLostError} */
  async readInto(into: Uint8Array): Promise<number> {
    if (this.size === 0 && this.#reading === undefined && into.length >= BUFFER_BYTES && !this.isOver) {
      const count = await this.connection.read(into).catch(() => null);
      if (count !== null) return count;
      this.isOver = true;
    }
    if (this.size === 0 && !(await this.fill())) throw new ConnectionLostError("the body is incomplete");
    const bytes = this.bytes.subarray(0, into.length);
    into.set(bytes);
    this.skip(bytes.length);
    return bytes.length;
  }

  /** Returns a line without its CR LF. @throws {RequestError} if it is longer or contains a bare CR or LF */
  async line(sizeMax: number): Promise<Uint8Array> {
    for (let seen = 0;;) {
      const { bytes } = this;
      const at = bytes.indexOf(LF, seen);
      if (at >= 0) {
        const carriage = bytes.indexOf(CR);
        if (at === 0 || carriage !== at - 1) {
          throw new RequestError(400, "the body has a bare CR or LF between its chunks");
        }
        this.skip(at + 1);
        return bytes.subarray(0, at - 1);
      }
      seen = bytes.length;
      if (seen > sizeMax + 1) throw new RequestError(400, `a line between chunks is longer than ${sizeMax} bytes`);
      if (!(await this.fill())) throw new ConnectionLostError("the body is incomplete");
    }
  }
}
