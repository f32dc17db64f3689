/**
 * An HTTP/1.1 server over `Deno.listen`: parses strictly, limits connections, sizes and times, and sends a reply of
 * known size in one write. `docs/architecture.md` explains why no library is used.
 */
export type { HeaderList, Limits, Reply, Server } from "./contract.ts";
export { BrokenReplyError, ConnectionLostError, RequestError } from "./errors.ts";
export { headerLines, textReply } from "./reply.ts";
export { HttpRequest } from "./request.ts";
export { startServer } from "./server.ts";
