/** What is wrong with a request before any route sees it: it is answered with this status, and the connection ends. */
export class RequestError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** The client closed the connection, or it broke, or it was closed because the client was too slow. */
export class ConnectionLostError extends Error {}

/** Ends a body that cannot be finished, where the reason has been told elsewhere: the client sees a broken connection. */
export class BrokenReplyError extends ConnectionLostError {}
