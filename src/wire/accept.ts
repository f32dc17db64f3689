/** Accepts the clients of a listener. */

/** After an error such as a lack of descriptors, trying again at once would only take processor time. */
const PAUSE_MS = 100;

export interface Accepting {
  welcome(connection: Deno.TcpConn): void;
  failed(error: unknown): void;
  /** True when the listener is being closed. */
  isClosing(): boolean;
}

/** Resolves when the listener is closed. */
export async function acceptAll(
  listener: Pick<Deno.TcpListener, "accept">,
  accepting: Accepting,
  pause = () => new Promise<void>((resolve) => setTimeout(resolve, PAUSE_MS)),
): Promise<void> {
  while (!accepting.isClosing()) {
    let connection: Deno.TcpConn | undefined;
    try {
      connection = await listener.accept();
      accepting.welcome(connection);
    } catch (error) {
      if (accepting.isClosing()) return;
      try {
        connection?.close();
      } catch {
        // already closed
      }
      if (hasLeft(error)) continue;
      accepting.failed(error);
      await pause();
    }
  }
}

/** True if the client has reset its connection before it was accepted. Many such clients must not delay others. */
function hasLeft(error: unknown): boolean {
  return error instanceof Deno.errors.NotConnected || error instanceof Deno.errors.ConnectionAborted ||
    error instanceof Deno.errors.ConnectionReset;
}
