/**
 * An HTTP/1.1 server over `Deno.listen`: strict about what it reads, with limits of connections, sizes and times, and one write
 * for a reply whose size is known. `docs/architecture.md` says why it is not a library's.
 */
export type { ByteConnection, HeaderList, Limits, Reply, Server, ServerOptions } from "./contract.ts";
export { BrokenReplyError, ConnectionLostError, RequestError } from "./errors.ts";
export type { Headers } from "./head.ts";
export { textReply } from "./reply.ts";
export { HttpRequest } from "./request.ts";
export { startServer } from "./server.ts";
