/** The types of the HTTP/1.1 server: its options, and what handlers return. */
import type { ByteConnection, Sockets } from "../byte-connection.ts";
import type { HttpRequest } from "./request.ts";

export type HeaderList = [name: string, value: string][];

export interface Reply {
  status: number;
  headers: HeaderList;
  /** More headers, made by `headerLines`. Most replies have the same strings. */
  lines?: readonly string[];
  /**
   * An array of bytes, in one or more parts, is sent with the head in one write. An iterable is sent piece by piece:
   * the next piece is requested when the client has taken the previous one, and `return()` is called if the client
   * leaves. A piece is copied before the next one is requested.
   */
  body?: Uint8Array | Uint8Array[] | AsyncIterable<Uint8Array>;
  /** Sends an array of bytes as one chunk, without a Content-Length. */
  isChunked?: boolean;
  /** Closes the connection after this reply. */
  isLast?: boolean;
}

/** Limits. They are read on each use, so that they can change while the server runs. */
export interface Limits {
  /** Maximum number of connections that are served at a time. */
  readonly connectionsMax: number;
  /** How long another connection waits for a slot before it is refused with 503. */
  readonly queueTimeoutMs: number;
  /** A connection is closed when its client neither sends nor reads for this long. */
  readonly idleTimeoutMs: number;
  /** While others wait for a slot, a connection that has been idle for this long is closed. */
  readonly spareIdleMs: number;
  /** Time from the first byte of a head to the last one. */
  readonly headTimeoutMs: number;
  readonly headSizeMax: number;
  /** Time to wait for a body, plus one second for each `bodyRateMin` bytes received. */
  readonly bodyTimeoutMs: number;
  readonly bodyRateMin: number;
}

export interface ServerOptions {
  hostname: string;
  /** 0 selects any free port. */
  port: number;
  limits: Limits;
  /** Answers a request. An error that it throws goes to `onError` and is answered with 500. */
  handle(request: HttpRequest): Reply | Promise<Reply>;
  onError(error: unknown): void;
  sockets?: Sockets;
  /** Headers of replies that the server makes itself. */
  ownHeaders?: HeaderList;
  /** Wraps an accepted connection in TLS. */
  secure?(connection: ByteConnection): ByteConnection;
}

export interface Server {
  port: number;
  connectionCount(): number;
  /** Accepts no more connections, closes idle ones, and waits for running requests. */
  close(): Promise<void>;
}
