/** A client's connection as the wires see it: TCP, or TLS over it. */
export interface ByteConnection extends Pick<Deno.Conn, "read" | "close" | "closeWrite" | "remoteAddr"> {
  /** Returns how many bytes the system has taken, as a promise if it has to wait for the client. At most one write is pending. */
  write(bytes: Uint8Array): number | Promise<number>;
}

/** Connections that answer and wait for the next request with less delay (`workers/direct-sockets.ts`). */
export interface Sockets {
  /** To be used instead of the connection. */
  direct(connection: Deno.Conn): ByteConnection;
  /** To be called when an answer has been sent, before the next read. */
  onAnswered(): void;
}
