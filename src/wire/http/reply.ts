/** Makes replies: heads, text and JSON errors, and bodies that are streamed at the reader's pace. */
import { CorruptFileError, DiskFullError, SqlError, SQLSTATE } from "../../errors.ts";
import type { Chunk, ResultColumn } from "../../api.ts";
import { typeOf } from "../../types/mod.ts";
import { arrayDimensions } from "../../types/wide.ts";
import { BrokenReplyError, headerLines, type HeaderList, type Reply, textReply } from "../http1/mod.ts";
import { compressed, CompressedStream, type ContentCoding } from "./compression.ts";

const JSON_TYPE: HeaderList[number] = ["Content-Type", "application/json; charset=utf-8"];
const encoder = new TextEncoder();

/** The interface adds the Keep-Alive header to it. */
export function jsonReply(body: string, status = 200): Reply {
  return {
    status,
    headers: [JSON_TYPE],
    body: encoder.encode(body),
    // Clients of this interface expect chunks, although the size is known.
    isChunked: true,
  };
}

/** True for a reply of `jsonReply`. */
export function isJsonReply({ headers }: Reply): boolean {
  return headers[0] === JSON_TYPE;
}

/** A reply with Content-Length, for small documents that clients read with simple HTTP code. */
export function documentReply(body: string | Uint8Array, contentType: string): Reply {
  return { status: 200, headers: [["Content-Type", contentType]], body: bytesOf(body) };
}

export function notFound(): Reply {
  return textReply(404, "Not Found");
}

export function methodNotSupported(method: string): Reply {
  return textReply(405, `Method ${method} not supported`);
}

/** 507 Insufficient Storage. Clients of the line protocol retry. */
export const DISK_FULL_STATUS = 507;

/** The fields of a failed statement. Only client errors have a position. */
export function errorFields(error: unknown): { status: number; message: string; position: number } {
  if (error instanceof SqlError) {
    const forbidden = error.sqlState === SQLSTATE.insufficientPrivilege || error.sqlState === SQLSTATE.readOnly;
    const status = forbidden
      ? 403
      : error.sqlState === SQLSTATE.internal
      ? 500
      : error.sqlState === SQLSTATE.diskFull
      ? DISK_FULL_STATUS
      : 400;
    return { status, message: error.message, position: error.position };
  }
  const status = error instanceof DiskFullError ? DISK_FULL_STATUS : 500;
  if (error instanceof CorruptFileError || error instanceof DiskFullError) {
    return { status, message: error.message, position: 0 };
  }
  return { status, message: `internal error: ${error instanceof Error ? error.message : String(error)}`, position: 0 };
}

export function queryError(query: string, message: string, position: number, status = 400): Reply {
  return jsonReply(JSON.stringify({ query, error: message, position }), status);
}

/** A column as replies with rows describe it. */
export function columnJson(column: ResultColumn): string {
  const dimensions = arrayDimensions(column.type);
  const array = dimensions > 0 ? `,"dim":${dimensions},"elemType":"DOUBLE"` : "";
  return `{"name":${JSON.stringify(column.name)},"type":${JSON.stringify(typeOf(column.type).name)}${array}}`;
}

/** True for failures that are neither the client's nor caused by a full disk. These are logged and counted. */
export function isUnhandled(error: unknown): boolean {
  return !(error instanceof SqlError || error instanceof DiskFullError);
}

export interface Body {
  contentType: string;
  headers: HeaderList;
  head: string | Uint8Array;
  chunks: AsyncIterable<Chunk>;
  /** All chunks, if the query has ended already. */
  ready?: readonly Chunk[];
  /** The end of the document, after `rowCount` rows. */
  tail(rowCount: number): string | Uint8Array<ArrayBuffer>;
  /** The end of a document that failed midway. Undefined: abort the connection. */
  errorTail(error: unknown, rowCount: number): string | undefined;
  /** The coding that the client accepts. */
  coding: ContentCoding | undefined;
  keepAlive: string;
  /** Called for each chunk that is sent. */
  onChunk(chunk: Chunk): void;
  /** Called when the last byte is produced, or when the client leaves earlier; errors go to `errorTail`. */
  onEnd(how: "queriesCompleted" | "queriesCancelled"): void;
}

/**
 * A reply whose rows come from a running query. A failure before anything is sent is thrown. A result of at most one
 * small chunk is sent at once. Otherwise each chunk is requested when the client has taken the previous one.
 */
export function rowsReply(body: Body): Reply | Promise<Reply> {
  const { ready } = body;
  return ready !== undefined && ready.length <= 1 ? wholeReply(body, ready[0]) : begunReply(body);
}

/** A stream frees the buffers of larger chunks. */
const WHOLE_BYTES_MAX = 1 << 20;

async function begunReply(body: Body): Promise<Reply> {
  const chunks = body.chunks[Symbol.asyncIterator]();
  const first = await chunks.next();
  const second = first.done ? first : await chunks.next();
  if (first.done) return wholeReply(body, undefined);
  if (second.done && first.value.bytes.length <= WHOLE_BYTES_MAX) return wholeReply(body, first.value);
  const { coding, headers } = body, lines = [sharedLines(body)];
  const head = bytesOf(body.head);
  const rows = new RowStream(body, chunks, head, second.done ? [first.value] : [first.value, second.value]);
  if (coding === undefined) return { status: 200, headers, lines, body: rows };
  const compressing = new CompressedStream(rows, coding);
  return { status: 200, headers: [...headers, ["Content-Encoding", coding]], lines, body: compressing };
}

/** The headers that most replies of a route share, by their values. */
const shared = new Map<string, string>();
const SHARED_MAX = 64;

function sharedLines({ contentType, keepAlive }: Body): string {
  const key = `${contentType}\n${keepAlive}`;
  let lines = shared.get(key);
  if (lines === undefined) {
    lines = headerLines([["Content-Type", contentType], ["Keep-Alive", keepAlive]]);
    if (shared.size < SHARED_MAX) shared.set(key, lines);
  }
  return lines;
}

/** A document with all of its rows. */
function wholeReply(body: Body, chunk: Chunk | undefined): Reply {
  const { coding, headers } = body, lines = [sharedLines(body)];
  if (chunk !== undefined) body.onChunk(chunk);
  const bytes = chunk === undefined ? NOTHING : ownBytes(chunk.bytes);
  const parts = [bytesOf(body.head), bytes, bytesOf(body.tail(chunk?.rows ?? 0))];
  body.onEnd("queriesCompleted");
  const small = coding === undefined ? undefined : compressed(parts, coding);
  if (small === undefined) return { status: 200, headers, lines, body: parts, isChunked: true };
  return { status: 200, headers: [...headers, ["Content-Encoding", coding!]], lines, body: small, isChunked: true };
}

/** Head, chunks and tail of a document, each produced on request. */
class RowStream implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array> {
  #rowCount = 0;
  #hasHead = false;
  #hasEnded = false;
  #sent: Uint8Array | undefined;
  private readonly ready: Chunk[];

  /**
   * @param ready chunks that were already produced
   */
  constructor(
    private readonly body: Body,
    private readonly chunks: AsyncIterator<Chunk>,
    private readonly head: Uint8Array,
    ready: readonly Chunk[],
  ) {
    this.ready = ready.map((chunk) => ({ ...chunk, bytes: ownBytes(chunk.bytes) }));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#hasEnded) return { done: true, value: undefined };
    this.#release();
    if (!this.#hasHead) {
      this.#hasHead = true;
      if (this.head.length > 0) return { done: false, value: this.head };
    }
    const ready = this.ready.shift();
    if (ready !== undefined) return this.#give(ready);
    try {
      const next = await this.chunks.next();
      if (this.#hasEnded) return { done: true, value: undefined };
      if (!next.done) return this.#give(next.value);
      const tail = bytesOf(this.body.tail(this.#rowCount));
      this.#end("queriesCompleted");
      return tail.length > 0 ? { done: false, value: tail } : { done: true, value: undefined };
    } catch (error) {
      if (this.#hasEnded) return { done: true, value: undefined };
      this.#hasEnded = true;
      const tail = this.body.errorTail(error, this.#rowCount);
      if (tail === undefined) throw new BrokenReplyError();
      return { done: false, value: encoder.encode(tail) };
    }
  }

  /** The client has left. */
  async return(): Promise<IteratorResult<Uint8Array>> {
    if (!this.#hasEnded) {
      this.#end("queriesCancelled");
      await this.chunks.return?.();
    }
    return { done: true, value: undefined };
  }

  #end(how: "queriesCompleted" | "queriesCancelled"): void {
    this.#hasEnded = true;
    this.body.onEnd(how);
  }

  #give(chunk: Chunk): IteratorResult<Uint8Array> {
    this.#rowCount += chunk.rows;
    this.body.onChunk(chunk);
    this.#sent = chunk.bytes;
    return { done: false, value: chunk.bytes };
  }

  /**
   * Frees the previous chunk's buffer at once. Left to the garbage collector, hundreds of megabytes accumulated at 200
   * MB/s.
   */
  #release(): void {
    const buffer = this.#sent?.buffer;
    if (buffer instanceof ArrayBuffer && this.#sent?.byteLength === buffer.byteLength) buffer.transfer(0);
    this.#sent = undefined;
  }
}

const NOTHING = new Uint8Array(0);
/** A call of the encoder takes longer than a loop over this many characters. */
const SHORT_TEXT_MAX = 64;

function shortText(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code > 0x7f) return encoder.encode(text);
    bytes[at] = code;
  }
  return bytes;
}

function bytesOf(text: string | Uint8Array): Uint8Array {
  if (typeof text !== "string") return text;
  return text.length <= SHORT_TEXT_MAX ? shortText(text) : encoder.encode(text);
}

/** Returns bytes that may be kept: copies a view of shared memory, which could change while it waits. */
function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.buffer instanceof ArrayBuffer ? bytes : bytes.slice();
}
