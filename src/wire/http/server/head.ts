/** The head of a request, and of a reply. */

export interface RequestHead {
  method: string;
  /** As sent, still percent-encoded. */
  target: string;
  /** Of HTTP/1.x. */
  minor: number;
  /** Names in lower case. Of a name that is given twice both values stand, divided by a comma. */
  headers: Map<string, string>;
}

const LF = 0x0a, CR = 0x0d;
const decoder = new TextDecoder();

/** Where the body begins, when the head between `from` and `to` is whole; -1 otherwise. Bare line feeds end lines as well. */
export function endOfHead(bytes: Uint8Array, from: number, to: number): number {
  for (let at = bytes.indexOf(LF, from); at >= 0 && at < to; at = bytes.indexOf(LF, at + 1)) {
    if (at + 1 < to && bytes[at + 1] === LF) return at + 2;
    if (at + 2 < to && bytes[at + 1] === CR && bytes[at + 2] === LF) return at + 3;
  }
  return -1;
}

const REQUEST_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([^\s]+) HTTP\/1\.([01])$/;
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Undefined when the bytes are no head of HTTP/1.x. */
export function parseHead(bytes: Uint8Array): RequestHead | undefined {
  const lines = decoder.decode(bytes).split("\n");
  const first = REQUEST_LINE.exec(withoutCr(lines[0]));
  if (first === null) return undefined;
  const headers = new Map<string, string>();
  // The last two pieces are the empty line and what follows it: nothing.
  for (let index = 1; index < lines.length - 2; index++) {
    const line = withoutCr(lines[index]);
    const colon = line.indexOf(":");
    // A name with a blank behind it, or a folded line, is read differently by different servers: by none here.
    if (colon <= 0 || !HEADER_NAME.test(line.slice(0, colon))) return undefined;
    const name = line.slice(0, colon).toLowerCase(), value = line.slice(colon + 1).trim();
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return { method: first[1], target: first[2], minor: Number(first[3]), headers };
}

function withoutCr(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

export type HeaderList = [name: string, value: string][];

const REASONS: Record<number, string> = {
  200: "OK",
  204: "No Content",
  301: "Moved Permanently",
  400: "Bad Request",
  401: "Unauthorized",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  421: "Misdirected Request",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  501: "Not Implemented",
  503: "Service Unavailable",
};

export function formatHead(status: number, headers: HeaderList): string {
  let text = `HTTP/1.1 ${status} ${REASONS[status] ?? "Unknown"}\r\nServer: Sundial\r\nDate: ${date()}\r\n`;
  for (const [name, value] of headers) text += `${name}: ${value}\r\n`;
  return text + "\r\n";
}

let second = -1, dateText = "";

/** Worded once a second. */
function date(): string {
  const now = Date.now(), current = Math.floor(now / 1000);
  if (current !== second) {
    second = current;
    dateText = new Date(now).toUTCString();
  }
  return dateText;
}
