/**
 * A fault of a request that is found before any route sees it. It is answered with this status, and the connection is
 * closed.
 */
export class RequestError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** The client closed the connection, the connection broke, or the server closed it because the client was too slow. */
export class ConnectionLostError extends Error {}

/**
 * Ends a body that cannot be completed, when the reason has been logged elsewhere: the client sees a broken connection.
 */
export class BrokenReplyError extends ConnectionLostError {}
