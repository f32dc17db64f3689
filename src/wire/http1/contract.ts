/** What the HTTP/1.1 server is given, and what a handler gets and gives. */
import type { ByteConnection } from "../tls/mod.ts";
import type { HttpRequest } from "./request.ts";

export type { ByteConnection };

export type HeaderList = [name: string, value: string][];

export interface Reply {
  status: number;
  headers: HeaderList;
  /**
   * Bytes, whole or in parts, go out with the head in one write. Pieces go out as they are made, each when the client has taken
   * the one before; the iterator is returned when the client goes. A piece is copied before the next one is asked for.
   */
  body?: Uint8Array | Uint8Array[] | AsyncIterable<Uint8Array>;
  /** Sends known bytes as a chunk, without a Content-Length. */
  isChunked?: boolean;
  /** Ends the connection after this reply. */
  isLast?: boolean;
}

/** Read at their use, so that they can change while the server runs. */
export interface Limits {
  /** Connections that are served at a time. */
  readonly connectionsMax: number;
  /** One more waits so long for a slot, and is then refused with 503. */
  readonly queueTimeoutMs: number;
  /** A connection is closed when its client neither asks nor reads for so long. */
  readonly idleTimeoutMs: number;
  /** While others wait for a slot, a connection that has idled for so long gives its own up. */
  readonly spareIdleMs: number;
  /** From the first byte of a head to its last. */
  readonly headTimeoutMs: number;
  readonly headSizeMax: number;
  /** Waiting for a body, beside a second for each `bodyRateMin` bytes that came. */
  readonly bodyTimeoutMs: number;
  readonly bodyRateMin: number;
}

export interface ServerOptions {
  hostname: string;
  /** 0 takes any free one. */
  port: number;
  limits: Limits;
  /** Answers a request. What it throws is told to `onError` and answered 500. */
  handle(request: HttpRequest): Reply | Promise<Reply>;
  onError(error: unknown): void;
  /** Headers of replies that the server makes itself. */
  ownHeaders?: HeaderList;
  /** Puts TLS over an accepted connection. */
  secure?(connection: Deno.Conn): ByteConnection;
}

export interface Server {
  port: number;
  connectionCount(): number;
  /** Takes no more connections, ends those that idle, and waits for the requests that run. */
  close(): Promise<void>;
}
