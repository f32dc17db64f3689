/** Encodes replies. */
import type { HeaderList, Reply } from "./contract.ts";

const REASONS: Record<number, string> = {
  200: "OK",
  204: "No Content",
  301: "Moved Permanently",
  304: "Not Modified",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  413: "Content Too Large",
  414: "URI Too Long",
  415: "Unsupported Media Type",
  417: "Expectation Failed",
  421: "Misdirected Request",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
  507: "Insufficient Storage",
  505: "HTTP Version Not Supported",
};

const encoder = new TextEncoder();
export const LAST_CHUNK = encoder.encode("0\r\n\r\n");
const BAD_HEADER = /[^\t\x20-\x7e]/;

/** A short text reply: `text` and a line end. */
export function textReply(status: number, text: string, headers: HeaderList = []): Reply {
  return {
    status,
    headers: [["Content-Type", "text/plain; charset=utf-8"], ...headers],
    body: encoder.encode(`${text}\r\n`),
    isChunked: true,
  };
}

export function isBodyless(status: number): boolean {
  return status === 204 || status === 304 || status < 200;
}

/** How the end of a body is determined. */
export type Framing = { kind: "length"; size: number } | { kind: "chunked" } | { kind: "none" } | { kind: "close" };

function headText(
  { status, headers, lines = [] }: Reply,
  framing: Framing,
  connection: "close" | "keep-alive" | undefined,
): string {
  let text = `HTTP/1.1 ${status} ${REASONS[status] ?? "Status"}${serverLines()}`;
  if (framing.kind === "chunked") text += "Transfer-Encoding: chunked\r\n";
  else if (framing.kind === "length") text += `Content-Length: ${framing.size}\r\n`;
  if (headers.length > 0) text += headerLines(headers);
  return `${text}${lines.join("")}${connection === undefined ? "" : `Connection: ${connection}\r\n`}\r\n`;
}

/** The headers as they are sent. */
export function headerLines(headers: HeaderList): string {
  let text = "";
  for (const [name, value] of headers) {
    if (BAD_HEADER.test(value)) {
      throw new Error(`the header ${name} contains a character that is not allowed in headers`);
    }
    text += `${name}: ${value}\r\n`;
  }
  return text;
}

let dateSecond = 0;
let serverText = "";

/** The end of the first line, and the headers of all replies. */
function serverLines(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    serverText = `\r\nServer: Sundial\r\nDate: ${new Date(second * 1000).toUTCString()}\r\n`;
  }
  return serverText;
}

/** The last head of a chunked reply that has nothing but `lines`. The next ones are mostly equal, until the date changes. */
let kept = { server: "", status: 0, lines: [] as readonly string[], bytes: encoder.encode() };

function keptHead(reply: Reply): Uint8Array {
  const { status, lines = [] } = reply, server = serverLines();
  const isSame = kept.server === server && kept.status === status && kept.lines.length === lines.length &&
    kept.lines.every((line, k) => line === lines[k]);
  if (!isSame) kept = { server, status, lines, bytes: encoder.encode(headText(reply, { kind: "chunked" }, undefined)) };
  return kept.bytes;
}

/** Collects bytes for one write. */
export class Output {
  #bytes = new Uint8Array(2048);
  size = 0;

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.size);
  }

  head(reply: Reply, framing: Framing, connection: "close" | "keep-alive" | undefined): void {
    const isKept = framing.kind === "chunked" && reply.headers.length === 0 && connection === undefined;
    if (isKept) this.add(keptHead(reply));
    else this.#text(headText(reply, framing, connection));
  }

  /** Adds ASCII characters. A call of the encoder takes longer than the loop over some hundred. */
  #text(text: string): void {
    this.#reserve(text.length);
    const bytes = this.#bytes;
    for (let at = 0; at < text.length; at++) bytes[this.size++] = text.charCodeAt(at);
  }

  add(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.size);
    this.size += bytes.length;
  }

  /** Adds the parts as one chunk. */
  chunk(parts: readonly Uint8Array[]): void {
    const size = sizeOf(parts);
    if (size === 0) return;
    this.#reserve(size + 20);
    this.#text(`${size.toString(16)}\r\n`);
    for (const part of parts) this.add(part);
    this.#text("\r\n");
  }

  clear(): void {
    this.size = 0;
  }

  /** Keeps only a small buffer when it is empty, because most connections are idle. */
  shrink(): void {
    if (this.size === 0 && this.#bytes.length > KEPT_BYTES) this.#replace(new Uint8Array(2048));
  }

  #reserve(size: number): void {
    const needed = this.size + size;
    if (needed <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(needed, Math.min(this.#bytes.length * 2, KEPT_BYTES)));
    larger.set(this.bytes);
    this.#replace(larger);
  }

  /** Frees a large buffer immediately. V8 would keep tens of MiB until its next major collection. */
  #replace(bytes: Uint8Array<ArrayBuffer>): void {
    const { buffer } = this.#bytes;
    this.#bytes = bytes;
    if (buffer.byteLength > KEPT_BYTES) buffer.transfer(0);
  }
}

const KEPT_BYTES = 65_536;

export function sizeOf(parts: readonly Uint8Array[]): number {
  let size = 0;
  for (const part of parts) size += part.length;
  return size;
}
