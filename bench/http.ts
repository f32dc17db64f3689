/** A client of HTTP over raw sockets, because `fetch` takes longer than small queries. */

const READ_BYTES = 65_536;

/** Servers may close connections that are idle for longer. */
const IDLE_MS_MAX = 60_000;

/** A connection that is kept, with one request at a time. */
export class HttpConnection {
  private bytes = new Uint8Array(READ_BYTES);
  private usedAt = performance.now();

  private constructor(private connection: Deno.TcpConn, private readonly port: number) {}

  static async open(port: number): Promise<HttpConnection> {
    return new HttpConnection(await connect(port), port);
  }

  /** Asks `/exec` and reads the whole answer, which the function that it returns parses. Call that before the next request. */
  async exec(query: string): Promise<() => ExecAnswer> {
    if (performance.now() - this.usedAt > IDLE_MS_MAX) {
      this.connection.close();
      this.connection = await connect(this.port);
    }
    await writeAll(this.connection, requestOf(`/exec?query=${encodeURIComponent(query)}`, this.port));
    let size = 0, end = -1;
    while (end < 0) {
      if (size === this.bytes.length) this.bytes = larger(this.bytes);
      const count = await this.connection.read(this.bytes.subarray(size));
      if (count === null) throw new Error("the server has closed the connection");
      size += count;
      end = endOfHttp(this.bytes, 0, size);
    }
    if (end !== size) throw new Error("the server has sent more than an answer");
    this.usedAt = performance.now();
    return () => {
      const body: [number, number][] = [], decoder = new TextDecoder();
      endOfHttp(this.bytes, 0, size, body);
      const texts = body.map(([from, to]) => decoder.decode(this.bytes.subarray(from, to), { stream: true }));
      return JSON.parse(texts.join(""));
    };
  }

  close(): void {
    this.connection.close();
  }
}

export async function connect(port: number): Promise<Deno.TcpConn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  connection.setNoDelay(true);
  return connection;
}

export interface ExecAnswer {
  error?: string;
  dataset?: unknown[][];
}

const encoder = new TextEncoder(), decoder = new TextDecoder();

export function requestOf(target: string, port: number): Uint8Array<ArrayBuffer> {
  return encoder.encode(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`);
}

export function larger(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = new Uint8Array(bytes.length * 2);
  copy.set(bytes);
  return copy;
}

export async function writeAll(connection: Deno.TcpConn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await connection.write(at === 0 ? bytes : bytes.subarray(at));
}

const CR = 13, LF = 10;

/**
 * Offset after the answer that starts at `from`; -1 while it is incomplete. `body`: gets the ranges of a complete answer's
 * body.
 */
export function endOfHttp(bytes: Uint8Array, from: number, size: number, body?: [from: number, to: number][]): number {
  let at = from, isChunked = false, length = 0;
  for (;;) {
    const end = lineEnd(bytes, at, size);
    if (end < 0) return -1;
    if (end === at) break;
    // "Content-Length: 12" and "Transfer-Encoding: chunked", by their first letters and sizes.
    const first = bytes[at] | 0x20;
    if (first === 0x74 && bytes[at + 17] === 0x3a) isChunked = true;
    if (first === 0x63 && bytes[at + 14] === 0x3a) length = Number(decoder.decode(bytes.subarray(at + 15, end)));
    at = end + 2;
  }
  at += 2;
  if (!isChunked) {
    body?.push([at, at + length]);
    return at + length <= size ? at + length : -1;
  }
  for (;;) {
    const end = lineEnd(bytes, at, size);
    if (end < 0) return -1;
    let chunk = 0;
    for (let k = at; k < end; k++) chunk = chunk * 16 + digit(bytes[k]);
    at = end + 2 + chunk + 2;
    if (at > size) return -1;
    if (chunk === 0) return at;
    body?.push([end + 2, end + 2 + chunk]);
  }
}

/** True if the answer that starts at `from` begins with another status than 2xx. */
export function isRefusal(bytes: Uint8Array, from: number, size: number): boolean {
  return size > from + STATUS_AT && bytes[from + STATUS_AT] !== 0x32;
}

/** After "HTTP/1.1 ". */
const STATUS_AT = 9;

function lineEnd(bytes: Uint8Array, from: number, size: number): number {
  for (let at = from; at + 1 < size; at++) if (bytes[at] === CR && bytes[at + 1] === LF) return at;
  return -1;
}

function digit(code: number): number {
  return code <= 0x39 ? code - 0x30 : (code | 0x20) - 0x57;
}
