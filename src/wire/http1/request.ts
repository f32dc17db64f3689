/** A request as handlers see it. Names and meanings follow the web's `Request` where they overlap. */
import { LARGE_BYTES_MIN } from "../large-statements.ts";
import type { Sender } from "../../slow-senders.ts";
import type { BodyReader } from "./body.ts";
import type { Headers, RequestHead } from "./head.ts";

/** What a request asks of its connection. */
export interface RequestConnection {
  readonly awaitsBody: boolean;
  /** Refuses the request, because its body comes too slowly. */
  tooSlow(reason: string): void;
}

export class HttpRequest implements Sender {
  readonly method: string;
  /** Path and query as sent. */
  readonly target: string;
  readonly headers: Headers;
  /** Called once, after the last byte of the reply is written, or will be with the next replies, or the client has left. */
  onEnd: (() => void) | undefined;
  #controller: AbortController | undefined;
  #isAborted = false;

  constructor(
    head: RequestHead,
    private readonly reader: BodyReader,
    readonly remoteAddr: Deno.Addr,
    /** True if the connection uses TLS. */
    readonly isSecure: boolean,
    /** The same object for all requests of a connection. */
    readonly connection: RequestConnection = { awaitsBody: false, tooSlow: () => {} },
  ) {
    this.method = head.method;
    this.target = head.target;
    this.headers = head.headers;
  }

  /** Aborted if the client leaves before its reply is complete. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isAborted) this.#controller.abort();
    return this.#controller.signal;
  }

  get receivedBytes(): number {
    return this.reader.size;
  }

  get isAwaited(): boolean {
    return this.connection.awaitsBody;
  }

  tooSlow(reason: string): void {
    this.connection.tooSlow(reason);
  }

  abort(): void {
    this.#isAborted = true;
    this.#controller?.abort();
  }

  /** The next bytes of the body, which the caller then owns; undefined at the end. Ask for them one after the other. */
  read(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    return this.reader.read();
  }

  /**
   * Returns the whole body, or undefined if it is longer than `sizeMax`. Buffers at most `sizeMax` bytes. `begin` is awaited before more than
   * LARGE_BYTES_MIN are read: it gets their number, or `sizeMax` if that is unknown.
   */
  async bytes(
    sizeMax: number,
    begin?: (sizeBytes: number) => Promise<void>,
  ): Promise<Uint8Array<ArrayBuffer> | undefined> {
    if (this.reader.sizeLeft > sizeMax) return undefined;
    // Start with the announced size, but do not allocate large amounts before bytes arrive.
    let bytes = new Uint8Array(Math.min(this.reader.sizeLeft || FIRST_BYTES, LARGE_BYTES_MIN));
    let size = 0, hasBegun = false;
    for (;;) {
      if (size === bytes.length) {
        if (this.reader.isWhole) return bytes;
        if (size >= LARGE_BYTES_MIN && !hasBegun) {
          hasBegun = true;
          await begin?.(this.reader.isChunked ? sizeMax : size + this.reader.sizeLeft);
        }
        const larger = new Uint8Array(
          Math.max(FIRST_BYTES, Math.min(size * 2, this.reader.isChunked ? size * 2 : size + this.reader.sizeLeft)),
        );
        larger.set(bytes);
        bytes = larger;
      }
      const count = await this.reader.readInto(bytes.subarray(size));
      if (count === 0) return bytes.subarray(0, size);
      size += count;
      if (size > sizeMax) return undefined;
    }
  }
}

const FIRST_BYTES = 4096;
