/**
 * Server-side TLS over an accepted connection, also after other data such as PostgreSQL's SSLRequest. Each connection uses the
 * certificate of its start, so that a new certificate needs no new listener.
 */
import { Buffer } from "node:buffer";
import { Duplex } from "node:stream";
import { setImmediate } from "node:timers";
import { type SecureContext, TLSSocket } from "node:tls";
import type { ByteConnection } from "../byte-connection.ts";

export interface SecureOptions {
  /** The part of the handshake that was already received. */
  first?: Uint8Array;
  /** Protocol that the client must agree on by ALPN, if it offers any. */
  protocol?: string;
}

/** A TLS connection; reads and writes wait for the handshake. */
export interface SecureConnection extends ByteConnection {
  /** Resolves after the handshake to the protocol agreed on by ALPN; rejects with the reason if the handshake fails. */
  readonly handshake: Promise<string | undefined>;
}

const BUFFER_BYTES = 65_536;
/** For connections with little traffic, because the read buffer exists all the time. */
const SMALL_BUFFER_BYTES = 4_096;
/** A client that has not completed its handshake by then is disconnected. */
const HANDSHAKE_TIMEOUT_MS = 10_000;

export function secure(
  connection: ByteConnection,
  secureContext: SecureContext,
  options: SecureOptions = {},
): SecureConnection {
  return new TlsConnection(connection, secureContext, options);
}

class TlsConnection implements SecureConnection {
  readonly handshake: Promise<string | undefined>;
  readonly #socket: TLSSocket;
  readonly #raw: Duplex;
  #rest: Uint8Array = new Uint8Array(0);
  #error: Error | undefined;
  #isOver = false;
  #wake: (() => void) | undefined;

  constructor(private readonly connection: ByteConnection, secureContext: SecureContext, options: SecureOptions) {
    this.#raw = duplexOf(connection, options.first);
    const ALPNProtocols = options.protocol === undefined ? undefined : [options.protocol];
    this.#socket = new TLSSocket(this.#raw as never, { isServer: true, secureContext, ALPNProtocols });
    this.handshake = this.#handshake();
    // Only some callers await the handshake; for the others the first read reports the failure.
    this.handshake.catch(() => {});
    const fail = (error: Error) => {
      this.#error ??= error;
      this.#isOver = true;
      this.#wake?.();
    };
    this.#raw.on("error", fail);
    this.#socket.on("error", fail);
    this.#socket.on("readable", () => this.#wake?.());
    const end = () => {
      this.#isOver = true;
      this.#wake?.();
    };
    this.#socket.on("end", end);
    this.#socket.on("close", end);
    this.#raw.on("close", end);
  }

  #handshake(): Promise<string | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
    const fail = (reason: string) => reject(new Error(`TLS: ${reason}`));
    const timer = setTimeout(() => {
      fail(`no handshake within ${HANDSHAKE_TIMEOUT_MS} ms`);
      this.close();
    }, HANDSHAKE_TIMEOUT_MS);
    this.#socket.once("secure", () => resolve(this.#socket.alpnProtocol || undefined));
    for (const source of [this.#socket, this.#raw]) source.once("error", ({ message }) => fail(message));
    const left = () => fail("the client disconnected before the end of the handshake");
    this.#socket.once("end", left);
    this.#socket.once("close", left);
    this.#raw.once("close", left);
    return promise.finally(() => clearTimeout(timer));
  }

  get remoteAddr(): Deno.Addr {
    return this.connection.remoteAddr;
  }

  async read(into: Uint8Array): Promise<number | null> {
    for (;;) {
      if (this.#rest.length === 0) this.#rest = this.#socket.read() ?? this.#rest;
      if (this.#rest.length > 0) break;
      if (this.#error !== undefined) throw this.#error;
      if (this.#isOver) return null;
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const bytes = this.#rest.subarray(0, into.length);
    into.set(bytes);
    this.#rest = this.#rest.subarray(bytes.length);
    return bytes.length;
  }

  /** Resolves when the bytes are sent, so that a slow reader slows down the writer. */
  write(bytes: Uint8Array): Promise<number> {
    return new Promise((resolve, reject) => {
      if (this.#error !== undefined) return reject(this.#error);
      const closed = () => reject(new Deno.errors.BrokenPipe("the connection is closed"));
      this.#socket.once("close", closed);
      this.#socket.write(bytes, (error) => {
        this.#socket.off("close", closed);
        if (error) reject(error);
        else resolve(bytes.length);
      });
    });
  }

  closeWrite(): Promise<void> {
    return new Promise((resolve) => this.#socket.end(() => resolve()));
  }

  close(): void {
    this.#isOver = true;
    this.#socket.destroy();
    this.#raw.destroy();
    this.#wake?.();
  }
}

function duplexOf(connection: ByteConnection, first?: Uint8Array): Duplex {
  let buffer = new Uint8Array(SMALL_BUFFER_BYTES);
  return new Duplex({
    highWaterMark: BUFFER_BYTES,
    async read() {
      try {
        if (first !== undefined) {
          // A faulty handshake that arrives before the TLSSocket has started would throw uncatchably (Deno 2.9.6), so
          // wait one turn.
          await new Promise<void>((resolve) => setImmediate(resolve));
          this.push(Buffer.from(first));
          first = undefined;
          return;
        }
        const count = await connection.read(buffer);
        this.push(count === null ? null : Buffer.from(buffer.slice(0, count)));
        if (count === buffer.length && count < BUFFER_BYTES) buffer = new Uint8Array(BUFFER_BYTES);
      } catch (error) {
        this.destroy(error as Error);
      }
    },
    async write(bytes: Uint8Array, _encoding, done) {
      try {
        for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at));
        done();
      } catch (error) {
        done(error as Error);
      }
    },
    async final(done) {
      await connection.closeWrite().catch(() => {});
      done();
    },
    destroy(error, done) {
      try {
        connection.close();
      } catch {
        // already closed by the client
      }
      done(error);
    },
  });
}
