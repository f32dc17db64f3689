/**
 * TLS on the server's side of an accepted connection, also one on which something else was said before, as PostgreSQL's
 * SSLRequest. Each connection takes the certificate of its moment, so a new certificate needs no new listener.
 */
import { Buffer } from "node:buffer";
import { Duplex } from "node:stream";
import { type SecureContext, TLSSocket } from "node:tls";

/** A TCP connection, or TLS over one. */
export type ByteConnection = Pick<Deno.Conn, "read" | "write" | "close" | "closeWrite" | "remoteAddr">;

const BUFFER_BYTES = 65_536;

export function secure(connection: ByteConnection, secureContext: SecureContext): ByteConnection {
  return new TlsConnection(connection, secureContext);
}

class TlsConnection implements ByteConnection {
  readonly #socket: TLSSocket;
  readonly #raw: Duplex;
  #rest: Uint8Array = new Uint8Array(0);
  #error: Error | undefined;
  #isOver = false;
  #wake: (() => void) | undefined;

  constructor(private readonly connection: ByteConnection, secureContext: SecureContext) {
    this.#raw = duplexOf(connection);
    this.#socket = new TLSSocket(this.#raw as never, { isServer: true, secureContext });
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

  /** Done when the bytes are out, so that a slow reader holds the writer back. */
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

function duplexOf(connection: ByteConnection): Duplex {
  const buffer = new Uint8Array(BUFFER_BYTES);
  return new Duplex({
    highWaterMark: BUFFER_BYTES,
    async read() {
      try {
        const count = await connection.read(buffer);
        this.push(count === null ? null : Buffer.from(buffer.slice(0, count)));
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
        // The client was first.
      }
      done(error);
    },
  });
}
