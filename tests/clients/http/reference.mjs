/** Node's HTTP parser: reports how it parsed each request. Bytes are represented as latin1 characters. */
import { createServer } from "node:http";
import process from "node:process";

const server = createServer({ requireHostHeader: false, insecureHTTPParser: false }, (request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const { method, url, rawHeaders } = request;
    const headers = [];
    for (let at = 0; at < rawHeaders.length; at += 2) headers.push([rawHeaders[at].toLowerCase(), rawHeaders[at + 1]]);
    const found = JSON.stringify({ method, url, headers, body: Buffer.concat(parts).toString("latin1") });
    request.socket.found ??= found;
    response.end(found);
  });
});
// Bytes after a parsed request are another request.
server.on("clientError", (_error, socket) => {
  setTimeout(() => {
    const { found } = socket;
    socket.end(found === undefined ? "HTTP/1.1 400 Bad Request\r\n\r\n" : `HTTP/1.1 200 OK\r\n\r\n${found}`);
  }, 20);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit());
