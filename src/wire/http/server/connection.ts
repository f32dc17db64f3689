/** One connection: requests in, replies out, one after the other. */
import { endOfHead, formatHead, parseHead, type RequestHead } from "./head.ts";
import { HttpRequest, type Reply } from "./message.ts";

/** Read at their use, so that they can change. */
export interface ConnectionBounds {
  /** Longest head of a request. */
  readonly headSizeMax: number;
  /** Bytes of a body that are read at once. */
  readonly receiveSize: number;
  /** Longest chunk of a reply. */
  readonly sendSize: number;
}

export interface ConnectionOptions {
  config: ConnectionBounds;
  handle(request: HttpRequest): Reply | Promise<Reply>;
  /** An error that a handler let through. */
  onError(error: unknown): void;
}

/** The part of a socket that is used. */
export interface Stream {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  closeWrite(): Promise<void>;
  close(): void;
}

const FIRST_BUFFER_BYTES = 4096;
/** A larger body is not copied behind its head, but sent by itself. */
const JOINED_BYTES_MAX = 65_536;
/** So much of a body that nobody wants is passed over to keep the connection. */
const UNREAD_BYTES_MAX = 1 << 20;
/** A body is given its whole memory only when so much of it has come. */
const TRUSTED_BYTES = 16 << 20;
const LINGER_MS = 2000;

const encoder = new TextEncoder();
const CHUNKS_END = encoder.encode("0\r\n\r\n"), CRLF = encoder.encode("\r\n");

/** What the client sent cannot be understood; undefined: not even an answer could be. */
class BadRequest extends Error {
  constructor(readonly reply: Reply | undefined) {
    super("bad request");
  }
}

/** The client left before it had said all. */
class Gone extends Error {}

export class Connection {
  /** performance.now() since when the client is waited for; undefined while it waits for us. */
  waitingSince: number | undefined = performance.now();
  private buffer = new Uint8Array(FIRST_BUFFER_BYTES);
  private start = 0;
  private end = 0;
  /** A read into the buffer's end that is under way, so that a client is missed as soon as it leaves. */
  private ahead: Promise<number | null> | undefined;
  private isEnding = false;

  constructor(private readonly stream: Stream, private readonly options: ConnectionOptions) {}

  /** No request after the one under way. */
  finish(): void {
    this.isEnding = true;
    if (this.waitingSince !== undefined && this.start === this.end) this.close();
  }

  close(): void {
    this.isEnding = true;
    try {
      this.stream.close();
    } catch {
      // It is closed already.
    }
  }

  /** Serves until one of the two sides has enough. */
  async run(): Promise<void> {
    try {
      while (!this.isEnding) {
        const head = await this.readHead();
        if (head === undefined || !await this.serve(head)) break;
      }
    } catch (error) {
      if (!(error instanceof BadRequest)) {
        // Whatever the system says of a socket means that nobody is there any more.
        return;
      }
      if (error.reply !== undefined) {
        await this.write(error.reply, undefined).then(() => this.linger()).catch(() => {});
      }
    } finally {
      this.close();
    }
  }

  private async readHead(): Promise<RequestHead | undefined> {
    this.waitingSince = performance.now();
    for (;;) {
      // Empty lines before a request are passed over, as RFC 9112 asks for.
      while (this.start < this.end && (this.buffer[this.start] === 0x0d || this.buffer[this.start] === 0x0a)) {
        this.start++;
      }
      const bodyAt = endOfHead(this.buffer, this.start, this.end);
      const { headSizeMax } = this.options.config;
      if (bodyAt < 0 ? this.end - this.start >= headSizeMax : bodyAt - this.start > headSizeMax) {
        throw new BadRequest(textReply(431, `the head of the request is longer than ${headSizeMax} bytes`));
      }
      if (bodyAt >= 0) {
        const head = parseHead(this.buffer.subarray(this.start, bodyAt));
        if (head === undefined) throw new BadRequest(undefined);
        this.start = bodyAt;
        return head;
      }
      if (!await this.readMore()) return undefined;
    }
  }

  /** False at the end. */
  private async readMore(): Promise<boolean> {
    const read = await this.readAhead().catch(() => null);
    this.ahead = undefined;
    if (read === null) return false;
    this.end += read;
    return true;
  }

  private readAhead(): Promise<number | null> {
    if (this.ahead !== undefined) return this.ahead;
    if (this.start === this.end) this.start = this.end = 0;
    if (this.end === this.buffer.length) {
      const { buffer, start, end } = this;
      // Room by moving, and by growing only when what is unfinished fills half of it.
      const larger = end - start > buffer.length / 2 ? new Uint8Array(buffer.length * 2) : buffer;
      larger.set(buffer.subarray(start, end));
      this.buffer = larger;
      this.end = end - start;
      this.start = 0;
    }
    const read = this.stream.read(this.buffer.subarray(this.end));
    // Somebody looks at the failure only once the reply is out.
    read.catch(() => {});
    return this.ahead = read;
  }

  /** Answers one request; false when it was the last. */
  private async serve(head: RequestHead): Promise<boolean> {
    const body = new Body(head, {
      buffered: () => this.buffer.subarray(this.start, this.end),
      take: (count) => void (this.start += count),
      more: async () => {
        this.waitingSince = performance.now();
        if (!await this.readMore()) throw new Gone();
      },
      readInto: async (into) => {
        this.waitingSince = performance.now();
        const read = await this.stream.read(into).catch(() => null);
        if (read === null) throw new Gone();
        return read;
      },
      receiveSize: this.options.config.receiveSize,
      goOn: async () => {
        await this.writeAll(encoder.encode("HTTP/1.1 100 Continue\r\n\r\n"));
      },
    });
    const request = new HttpRequest(head, async (maxBytes) => {
      const bytes = await body.read(maxBytes);
      this.waitingSince = undefined;
      if (bytes !== undefined) this.watch(request);
      return bytes;
    }, this);
    this.waitingSince = undefined;
    if (body.isOver) this.watch(request);
    try {
      const reply = await this.answer(request);
      const keeps = !reply.isLast && !this.isEnding && wantsToStay(head) &&
        (body.isOver || body.left <= UNREAD_BYTES_MAX);
      await this.write(keeps ? reply : { ...reply, headers: [...reply.headers, ["Connection", "close"]] }, head);
      if (body.isOver) return keeps;
      if (keeps) return await body.skip(UNREAD_BYTES_MAX);
      await this.linger();
      return false;
    } finally {
      request.onDone?.();
    }
  }

  private async answer(request: HttpRequest): Promise<Reply> {
    try {
      return await this.options.handle(request);
    } catch (error) {
      if (error instanceof Gone || error instanceof BadRequest) throw error;
      this.options.onError(error);
      return textReply(500, "internal server error");
    }
  }

  /** From here on the client has nothing to say before it is answered: what it sends is the next request, or its end. */
  private watch(request: HttpRequest): void {
    this.readAhead().then((read) => read === null && request.gone(), () => request.gone());
  }

  private async write({ status, headers, body }: Reply, head: RequestHead | undefined): Promise<void> {
    if (body === undefined) return await this.writeAll(encoder.encode(formatHead(status, headers)));
    const isWhole = body instanceof Uint8Array;
    const hasLength = headers.some(([name]) => name === "Content-Length");
    // A client of HTTP/1.0 knows no chunks.
    const isOld = head !== undefined && head.minor === 0;
    const chunked = !hasLength && !isOld;
    const framed: Reply["headers"] = chunked
      ? [["Transfer-Encoding", "chunked"], ...headers]
      : isOld && !hasLength && isWhole
      ? [...headers, ["Content-Length", String(body.length)]]
      : headers;
    const headText = formatHead(status, framed);
    if (head?.method === "HEAD") return await this.writeAll(encoder.encode(headText));
    if (isWhole) return await this.writeWhole(headText, body, chunked);
    await this.writeAll(encoder.encode(headText));
    for await (const piece of body) await this.writePiece(piece, chunked);
    if (chunked) await this.writeAll(CHUNKS_END);
  }

  private async writeWhole(head: string, body: Uint8Array, chunked: boolean): Promise<void> {
    const isOneChunk = body.length > 0 && body.length <= this.options.config.sendSize;
    if (body.length > JOINED_BYTES_MAX || chunked && !isOneChunk) {
      await this.writeAll(encoder.encode(head));
      await this.writePiece(body, chunked);
      if (chunked) await this.writeAll(CHUNKS_END);
      return;
    }
    const before = chunked ? `${head}${body.length.toString(16)}\r\n` : head;
    const bytes = new Uint8Array(before.length + body.length + (chunked ? CRLF.length + CHUNKS_END.length : 0));
    // A head is ASCII: the values of headers that are not fixed are cleaned where they are made.
    const { written } = encoder.encodeInto(before, bytes);
    bytes.set(body, written);
    if (chunked) {
      bytes.set(CRLF, written + body.length);
      bytes.set(CHUNKS_END, written + body.length + CRLF.length);
    }
    await this.writeAll(bytes);
  }

  private async writePiece(piece: Uint8Array, chunked: boolean): Promise<void> {
    if (!chunked) return await this.writeAll(piece);
    const { sendSize } = this.options.config;
    for (let at = 0; at < piece.length; at += sendSize) {
      const part = piece.subarray(at, at + sendSize);
      await this.writeAll(encoder.encode(`${part.length.toString(16)}\r\n`));
      await this.writeAll(part);
      await this.writeAll(CRLF);
    }
  }

  private async writeAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += await this.stream.write(at === 0 ? bytes : bytes.subarray(at));
  }

  /** Closing while the client still sends would take the answer away from it: what it sends is passed over for a while. */
  private async linger(): Promise<void> {
    const timer = setTimeout(() => this.close(), LINGER_MS);
    try {
      await this.stream.closeWrite();
      await this.ahead;
      const sink = new Uint8Array(65_536);
      while (await this.stream.read(sink) !== null);
    } finally {
      clearTimeout(timer);
    }
  }
}

function wantsToStay({ minor, headers }: RequestHead): boolean {
  const connection = headers.get("connection");
  if (connection === undefined) return minor > 0;
  const words = connection.toLowerCase().split(",").map((word) => word.trim());
  return minor > 0 ? !words.includes("close") : words.includes("keep-alive");
}

function textReply(status: number, text: string): Reply {
  return { status, headers: [["Content-Type", "text/plain; charset=utf-8"]], body: encoder.encode(`${text}\r\n`) };
}

/** How a body gets at the connection's bytes. */
interface Source {
  buffered(): Uint8Array;
  take(count: number): void;
  /** Waits for more bytes in the buffer. */
  more(): Promise<void>;
  /** Past the buffer, which is empty. */
  readInto(into: Uint8Array): Promise<number>;
  receiveSize: number;
  /** Tells the client, which waits for it, to send the body. */
  goOn(): Promise<void>;
}

/** The body of a request: with a length, in chunks, or none. */
class Body {
  isOver: boolean;
  /** Bytes to come; unknown of chunks. */
  left: number;
  private readonly isChunked: boolean;
  private isAwaited: boolean;

  constructor({ headers }: RequestHead, private readonly source: Source) {
    const encoding = headers.get("transfer-encoding"), length = headers.get("content-length");
    this.isChunked = encoding !== undefined;
    // Which of the two holds is a matter of taste, and so a way to hide a request in another one's body.
    if (encoding !== undefined && (length !== undefined || encoding.toLowerCase() !== "chunked")) {
      throw new BadRequest(textReply(400, "the body has more than one framing, or one that is not known"));
    }
    if (length !== undefined && !/^\d{1,15}$/.test(length)) {
      throw new BadRequest(textReply(400, "Content-Length is not a number"));
    }
    this.left = encoding !== undefined ? Infinity : Number(length ?? 0);
    this.isOver = this.left === 0;
    this.isAwaited = headers.get("expect")?.toLowerCase() === "100-continue";
  }

  /** @returns undefined when it is longer. */
  async read(maxBytes: number): Promise<Uint8Array | undefined> {
    if (this.isOver) return new Uint8Array(0);
    if (!this.isChunked && this.left > maxBytes) return undefined;
    if (this.isAwaited && this.source.buffered().length === 0) {
      this.isAwaited = false;
      await this.source.goOn();
    }
    return this.isChunked ? await this.readChunks(maxBytes) : await this.readLength();
  }

  /** Passes over what is left; false when that is more than `maxBytes`. */
  async skip(maxBytes: number): Promise<boolean> {
    return await this.read(maxBytes) !== undefined;
  }

  private async readLength(): Promise<Uint8Array> {
    const total = this.left;
    let bytes = new Uint8Array(Math.min(total, TRUSTED_BYTES)), used = 0;
    while (used < total) {
      if (used === bytes.length) {
        const whole = new Uint8Array(total);
        whole.set(bytes);
        bytes = whole;
      }
      used += await this.readSome(bytes.subarray(used));
      this.left = total - used;
    }
    this.isOver = true;
    return bytes;
  }

  private async readSome(into: Uint8Array): Promise<number> {
    const { source } = this;
    const buffered = source.buffered();
    if (buffered.length === 0) return await source.readInto(into.subarray(0, source.receiveSize));
    const count = Math.min(buffered.length, into.length);
    into.set(buffered.subarray(0, count));
    source.take(count);
    return count;
  }

  private async readChunks(maxBytes: number): Promise<Uint8Array | undefined> {
    let bytes = new Uint8Array(4096), used = 0;
    for (;;) {
      const line = await this.line();
      const size = /^([0-9a-fA-F]{1,12})[ \t]*(?:;.*)?$/.exec(line);
      if (size === null) throw new BadRequest(textReply(400, "a chunk of the body does not begin with its size"));
      const end = used + parseInt(size[1], 16);
      if (end === used) break;
      if (end > maxBytes) return undefined;
      while (used < end) {
        if (used === bytes.length) {
          const larger = new Uint8Array(Math.max(bytes.length * 2, Math.min(end, TRUSTED_BYTES)));
          larger.set(bytes);
          bytes = larger;
        }
        used += await this.readSome(bytes.subarray(used, end));
      }
      if (await this.line() !== "") throw new BadRequest(textReply(400, "a chunk of the body is longer than its size"));
    }
    // What follows the last chunk are headers that nobody asks for.
    while (await this.line() !== "");
    this.left = 0;
    this.isOver = true;
    return bytes.subarray(0, used);
  }

  /** A line of the framing, without its end. */
  private async line(): Promise<string> {
    for (;;) {
      const buffered = this.source.buffered();
      const end = buffered.indexOf(0x0a);
      if (end >= 0) {
        const text = String.fromCharCode(...buffered.subarray(0, end));
        this.source.take(end + 1);
        return text.endsWith("\r") ? text.slice(0, -1) : text;
      }
      if (buffered.length > 1024) throw new BadRequest(textReply(400, "a line of the body's framing is too long"));
      await this.source.more();
    }
  }
}
