/** One client connection: serves its requests in sequence and enforces its time limits. */
import { setImmediate } from "node:timers";
import { type BodyInput, BodyReader } from "./body.ts";
import type { ByteConnection } from "../byte-connection.ts";
import type { Reply, ServerOptions } from "./contract.ts";
import { ConnectionLostError, RequestError } from "./errors.ts";
import { HeadEnd, HeadParser, type RequestHead } from "./head.ts";
import { Input } from "./input.ts";
import { type Framing, isBodyless, LAST_CHUNK, Output, sizeOf, textReply } from "./reply.ts";
import { HttpRequest, type RequestConnection } from "./request.ts";

/**
 * If at most this much of a body remains unread, it is read and dropped, so that the connection can serve the next
 * request.
 */
const DROPPED_MAX = 65_536;
/** Maximum number of bytes to read ahead of the current request; more stays in the system's buffers. */
const AHEAD_MAX = 65_536;
const LINGER_MS = 1000;
/** Replies to pipelined requests are written together, up to this size and for this time. */
const HELD_BYTES_MAX = 65_536;
const HELD_MS_MAX = 5;

/** What the connection waits for. `work`: for a handler, which has its own limits. */
type Waits = "request" | "head" | "body" | "work" | "write" | "end";

export class Connection implements RequestConnection {
  readonly #input: Input;
  readonly #output = new Output();
  readonly #heads = new HeadParser();
  #waits: Waits = "request";
  #sinceMs = performance.now();
  /** Time spent waiting for this request's body. */
  #bodyWaitedMs = 0;
  #body: BodyReader | undefined;
  #request: HttpRequest | undefined;
  #isClosed = false;
  /** True if no further request is accepted. */
  #isLast = false;
  #hasServed = false;
  #refusing: Promise<void> | undefined;
  #awaitsContinue = false;
  /** When the first of the replies was added that are still to be written. */
  #heldSinceMs = 0;
  /** Called when the last reply is sent and the connection's slot is free, before the client has closed. */
  onSlotFree: () => void = () => {};

  constructor(
    private readonly connection: ByteConnection,
    private readonly options: ServerOptions,
    private readonly isSecure: boolean,
  ) {
    this.#input = new Input(connection);
  }

  async run(): Promise<void> {
    try {
      while (!this.#isLast && await this.#serveOne());
      await this.#flushHeld();
      if (this.#waits !== "end" && !this.#isClosed) await this.#linger();
    } catch (error) {
      if (!(error instanceof ConnectionLostError)) this.options.onError(error);
    } finally {
      await this.#refusing;
      this.close();
      this.onSlotFree();
    }
  }

  /** Closes the connection at once and aborts its request. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#request?.abort();
    try {
      this.connection.close();
    } catch {
      // already closed by the client
    }
  }

  /** Closes the connection now if no request is running, otherwise after the reply. */
  finish(): void {
    this.#isLast = true;
    const isWaiting = this.#waits === "request" || this.#waits === "head" || this.#waits === "end";
    if (isWaiting && this.#output.size === 0) this.close();
  }

  /** Closes the connection if its client is too slow. */
  checkTimes(nowMs: number): void {
    const { limits } = this.options;
    const waitedMs = nowMs - this.#sinceMs;
    switch (this.#waits) {
      case "request":
      case "write":
        if (waitedMs > limits.idleTimeoutMs) this.close();
        return;
      case "head":
        if (waitedMs > limits.headTimeoutMs) this.#tooSlow("head");
        return;
      case "body": {
        const allowedMs = limits.bodyTimeoutMs + (this.#body?.size ?? 0) / limits.bodyRateMin * 1000;
        if (this.#bodyWaitedMs + waitedMs > allowedMs) this.#tooSlow("body");
        return;
      }
      case "end":
        if (waitedMs > LINGER_MS) this.close();
    }
  }

  /**
   * Time for which the connection has been idle, or has been waiting for the rest of a head. Undefined while a request
   * runs.
   */
  unusedMs(nowMs: number): { kind: "idle" | "slow"; ms: number } | undefined {
    if (this.#waits === "request") return { kind: "idle", ms: nowMs - this.#sinceMs };
    if (this.#waits === "head") return { kind: "slow", ms: nowMs - this.#sinceMs };
  }

  /** Closes the connection to free its slot for another client. */
  giveWay(): void {
    if (this.#waits === "head") this.#tooSlow("head");
    else this.close();
  }

  /** A reply that the server makes itself. */
  #failure(status: number, text: string): Reply {
    return textReply(status, text, this.options.ownHeaders);
  }

  /** Replies without reading a request, then closes the connection. */
  refuse(reply: Reply): Promise<void> {
    return this.#refusing = this.#refuse(reply);
  }

  async #refuse(reply: Reply): Promise<void> {
    try {
      this.#isLast = true;
      await this.#send(reply, undefined);
      await this.#linger();
    } catch {
      // the client has gone
    } finally {
      this.close();
    }
  }

  #wait(what: Waits): void {
    this.#waits = what;
    this.#sinceMs = performance.now();
  }

  get awaitsBody(): boolean {
    return this.#waits === "body";
  }

  tooSlow(reason: string): void {
    if (this.awaitsBody) this.#tooSlow("body", reason);
  }

  #tooSlow(part: "head" | "body", reason?: string): void {
    this.#wait("end");
    this.#request?.abort();
    this.onSlotFree();
    this.refuse(
      this.#failure(408, `the ${part} of the request took too long${reason === undefined ? "" : `: ${reason}`}`),
    );
  }

  /** Returns false when the client has closed the connection. */
  async #serveOne(): Promise<boolean> {
    let head: RequestHead | undefined;
    try {
      head = await this.#readHead();
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      this.#isLast = true;
      await this.#send(this.#failure(error.status, error.message), undefined);
      return true;
    }
    if (head === undefined) return false;
    const body = this.#body = head.bodySize === 0
      ? new BodyReader(NO_INPUT, 0)
      : new BodyReader(this.#guarded(head), head.bodySize, () => this.#watch(request));
    const request = this.#request = new HttpRequest(head, body, this.connection.remoteAddr, this.isSecure, this);
    if (!head.keepsAlive) this.#isLast = true;
    try {
      // The client may send the body only after the earlier replies.
      if (!body.isWhole) await this.#flushHeld();
      this.#waits = "work";
      const answer = this.#answer(request);
      // Most answers come earlier, in the same turn.
      if (answer instanceof Promise && body.isWhole) setImmediate(this.#watch, request);
      if (answer instanceof Promise && this.#output.size > 0) await this.#flushBefore(answer);
      // The await lets other connections handle their requests first: replies that are written together wake a client once.
      await this.#reply(await answer, head, body);
    } finally {
      request.onEnd?.();
      this.#output.shrink();
    }
    this.#request = undefined;
    this.#hasServed = true;
    return true;
  }

  /** Writes earlier replies while the answer is made. */
  async #flushBefore(answer: Promise<Reply>): Promise<void> {
    try {
      await this.#flush();
      if (this.#waits === "write") this.#wait("work");
    } catch (error) {
      answer.then(discard, () => {});
      throw error;
    }
  }

  async #reply(reply: Reply, head: RequestHead, body: BodyReader): Promise<void> {
    if (reply.isLast) this.#isLast = true;
    try {
      if (this.#waits === "end" || this.#isClosed) throw new ConnectionLostError();
      // A client that waits for `100 Continue` may omit the body now.
      if (!body.isWhole && !this.#isLast && (this.#awaitsContinue || !await this.#dropRest(body))) this.#isLast = true;
      await this.#send(reply, head);
    } catch (error) {
      await discard(reply);
      throw error;
    }
  }

  async #readHead(): Promise<RequestHead | undefined> {
    const input = this.#input;
    // The TLS handshake counts as part of the first head.
    this.#wait(this.isSecure && !this.#hasServed ? "head" : "request");
    // Empty lines before a request are skipped: some clients send one after a body.
    for (let lines = 0; lines < 4; lines++) {
      while (input.size === 0 || input.size === 1 && input.at(0) === 13) {
        if (!await this.#fill()) return undefined;
      }
      if (input.at(0) !== 13 || input.at(1) !== 10) break;
      input.skip(2);
    }
    // The time counts from the first byte. A head that is there as a whole needs no clock.
    this.#waits = "head";
    let isTimed = false;
    const end = new HeadEnd();
    const { headSizeMax } = this.options.limits;
    for (;;) {
      const { bytes } = input, size = end.find(bytes);
      if (size !== undefined && size <= headSizeMax) {
        const head = this.#heads.parse(bytes.subarray(0, size), end.requestLineSize);
        input.skip(size);
        return head;
      }
      if (input.size > headSizeMax) {
        throw end.requestLineSize < headSizeMax
          ? new RequestError(431, `the headers are longer than ${headSizeMax} bytes`)
          : new RequestError(414, `the request line is longer than ${headSizeMax} bytes`);
      }
      if (!isTimed) this.#wait("head");
      isTimed = true;
      if (!await this.#fill() || this.#waits !== "head") return undefined;
    }
  }

  /** Waits for more of the client's bytes. False if there are none, or if it need not send them any more. */
  async #fill(): Promise<boolean> {
    const waits = this.#waits;
    if (this.#output.size > 0) {
      await this.#flush();
      if (this.#waits === "write") this.#wait(waits);
    }
    if (this.#hasServed) this.options.sockets?.onAnswered();
    return !this.#isLast && await this.#input.fill();
  }

  /** The input for a body. Its reads are timed, and the first one sends `100 Continue` if the client expects that. */
  #guarded(head: RequestHead): BodyInput {
    this.#awaitsContinue = head.expectsContinue && head.bodySize !== 0;
    this.#bodyWaitedMs = 0;
    const timed = async <T>(read: () => Promise<T>): Promise<T> => {
      if (this.#waits === "end" || this.#isClosed) throw new ConnectionLostError();
      if (this.#awaitsContinue) {
        this.#awaitsContinue = false;
        await this.#write(CONTINUE);
      }
      this.#wait("body");
      try {
        return await read();
      } catch (error) {
        if (error instanceof ConnectionLostError) this.close();
        throw error;
      } finally {
        if (this.#waits === "body") {
          this.#bodyWaitedMs += performance.now() - this.#sinceMs;
          this.#wait("work");
        }
      }
    };
    const input = this.#input;
    return {
      readInto: (into) => timed(() => input.readInto(into)),
      line: (sizeMax) => timed(() => input.line(sizeMax)),
      get bytes() {
        return input.bytes;
      },
      skip: (size) => input.skip(size),
    };
  }

  /** Reads ahead while a request runs, because a disconnect is only noticed by the end of the stream. */
  readonly #watch = async (request: HttpRequest): Promise<void> => {
    const input = this.#input;
    while (this.#request === request && input.size < AHEAD_MAX) {
      if (await input.fill()) continue;
      if (this.#request === request) request.abort();
      return;
    }
  };

  #answer(request: HttpRequest): Reply | Promise<Reply> {
    try {
      const reply = this.options.handle(request);
      return reply instanceof Promise ? reply.catch(this.#failed) : reply;
    } catch (error) {
      return this.#failed(error);
    }
  }

  /** The reply for an error of a handler. */
  readonly #failed = (error: unknown): Reply => {
    if (error instanceof RequestError) {
      this.#isLast = true;
      return this.#failure(error.status, error.message);
    }
    if (error instanceof ConnectionLostError) throw error;
    this.options.onError(error);
    return this.#failure(500, "internal server error");
  };

  /** Reads and drops the rest of a body that no handler read. Returns false if it is too long. */
  async #dropRest(body: BodyReader): Promise<boolean> {
    if (body.sizeLeft > DROPPED_MAX) return false;
    const into = new Uint8Array(8192);
    try {
      for (let dropped = 0; !body.isWhole;) {
        dropped += await body.readInto(into);
        if (dropped > DROPPED_MAX) return false;
      }
      return true;
    } catch (error) {
      if (error instanceof RequestError) return false;
      throw error;
    }
  }

  /** @param head undefined if the request could not be read */
  #send(reply: Reply, head: RequestHead | undefined): Promise<void> | undefined {
    const { body = [] } = reply;
    const output = this.#output;
    const parts = body instanceof Uint8Array ? [body] : Array.isArray(body) ? body : undefined;
    const isOld = head?.minor === 0;
    const framing = framingOf(reply, parts && sizeOf(parts), isOld);
    if (framing.kind === "close") this.#isLast = true;
    const addHead = () => output.head(reply, framing, this.#isLast ? "close" : isOld ? "keep-alive" : undefined);
    const isEmpty = head?.method === "HEAD" || framing.kind === "none";
    if (parts === undefined && !isEmpty) {
      return this.#stream(addHead, body as AsyncIterable<Uint8Array>, framing.kind === "chunked");
    }
    const isFirst = output.size === 0;
    addHead();
    if (isEmpty) return this.#flushEmpty(reply);
    if (framing.kind === "chunked") {
      output.chunk(parts!);
      output.add(LAST_CHUNK);
    } else {
      for (const part of parts!) output.add(part);
    }
    return this.#isHeld(isFirst) ? undefined : this.#flush();
  }

  /** True if the next request is there, whose reply can be written together with those in the output. */
  #isHeld(isFirst: boolean): boolean {
    if (this.#input.size === 0 || this.#isLast || this.#output.size > HELD_BYTES_MAX) return false;
    if (!isFirst) return performance.now() - this.#heldSinceMs < HELD_MS_MAX;
    this.#heldSinceMs = performance.now();
    return true;
  }

  async #flushEmpty(reply: Reply): Promise<void> {
    await this.#flush();
    await discard(reply);
  }

  async #flushHeld(): Promise<void> {
    if (this.#output.size > 0) await this.#flush();
  }

  async #stream(addHead: () => void, body: AsyncIterable<Uint8Array>, isChunked: boolean): Promise<void> {
    const output = this.#output;
    try {
      await this.#flushHeld();
      addHead();
      for await (const piece of body) {
        if (isChunked) output.chunk([piece]);
        else output.add(piece);
        await this.#flush();
        this.#wait("work");
        // For a client that reads slowly, its disconnect is noticed here at the latest.
        if (this.#isClosed) throw new ConnectionLostError();
      }
    } catch (error) {
      // The head is already sent, so only a broken connection can show that something is missing.
      const hasGone = this.#isClosed || this.#input.isOver;
      this.close();
      throw hasGone ? new ConnectionLostError() : error;
    }
    if (isChunked) output.add(LAST_CHUNK);
    if (output.size > 0) await this.#flush();
  }

  /** Returns a promise if it waits for the client. */
  #flush(): Promise<void> | undefined {
    const { bytes } = this.#output;
    // It is written before anything is added again.
    this.#output.clear();
    return this.#write(bytes);
  }

  #write(bytes: Uint8Array): Promise<void> | undefined {
    const writing = this.connection.write(bytes);
    if (writing !== bytes.length) return this.#writeRest(bytes, writing);
  }

  async #writeRest(bytes: Uint8Array, writing: number | Promise<number>): Promise<void> {
    if (this.#waits !== "end") this.#wait("write");
    try {
      let at = await writing;
      while (at < bytes.length) {
        at += await this.connection.write(bytes.subarray(at));
        if (this.#waits !== "end" && at < bytes.length) this.#sinceMs = performance.now();
      }
    } catch {
      throw new ConnectionLostError("the client has disconnected");
    }
  }

  /**
   * Waits for the client to close: closing a connection with unread bytes would discard the reply on the way (TCP
   * reset).
   */
  async #linger(): Promise<void> {
    this.#wait("end");
    this.onSlotFree();
    if (this.#input.isOver) return;
    await this.connection.closeWrite().catch(() => {});
    while (await this.#input.fill()) this.#input.skip(this.#input.size);
  }
}

/** Ends the query of a reply that was not sent completely. */
async function discard({ body }: Reply): Promise<void> {
  if (body !== undefined && Symbol.asyncIterator in body) await body[Symbol.asyncIterator]().return?.();
}

/** The input of requests without a body. */
const NO_INPUT: BodyInput = {
  readInto: () => Promise.reject(new ConnectionLostError()),
  line: () => Promise.reject(new ConnectionLostError()),
  bytes: new Uint8Array(0),
  skip: () => {},
};

const CONTINUE = new TextEncoder().encode("HTTP/1.1 100 Continue\r\n\r\n");

function framingOf(reply: Reply, size: number | undefined, isOld: boolean): Framing {
  if (isBodyless(reply.status)) return { kind: "none" };
  if (size !== undefined && (isOld || !reply.isChunked)) return { kind: "length", size };
  return { kind: isOld ? "close" : "chunked" };
}
