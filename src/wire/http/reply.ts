/** Replies: heads, text and JSON errors, and bodies that stream at the reader's pace. */
import { CorruptFileError, DiskFullError, SqlError, SQLSTATE } from "../../errors.ts";
import { gzipSync } from "node:zlib";
import type { Chunk } from "../../door.ts";
import type { HeaderList, Reply } from "./server/mod.ts";

const JSON_TYPE = "application/json; charset=utf-8";
const encoder = new TextEncoder();

/** Bytes that a socket may send: a view of shared memory would change under its hands. */
export function ownBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer ? bytes as Uint8Array<ArrayBuffer> : bytes.slice();
}

export function textReply(status: number, text: string): Reply {
  return { status, headers: [["Content-Type", "text/plain; charset=utf-8"]], body: encoder.encode(`${text}\r\n`) };
}

export function jsonReply(body: string, status = 200, keepAlive = "timeout=5, max=10000"): Reply {
  return {
    status,
    headers: [["Content-Type", JSON_TYPE], ["Keep-Alive", keepAlive]],
    body: encoder.encode(body),
  };
}

/** With a length, for the small documents that clients read with simple means. */
export function documentReply(body: string | Uint8Array, contentType: string): Reply {
  const bytes = typeof body === "string" ? encoder.encode(body) : ownBytes(body);
  return {
    status: 200,
    headers: [["Content-Type", contentType], ["Content-Length", String(bytes.length)]],
    body: bytes,
  };
}

export function notFound(): Reply {
  return textReply(404, "Not Found");
}

export function methodNotSupported(method: string): Reply {
  return textReply(405, `Method ${method} not supported`);
}

/** The fields of a failed statement. What is not the client's fault has no position of its own. */
export function errorFields(error: unknown): { status: number; message: string; position: number } {
  if (error instanceof SqlError) {
    const forbidden = error.sqlState === SQLSTATE.insufficientPrivilege || error.sqlState === SQLSTATE.readOnly;
    return { status: forbidden ? 403 : 400, message: error.message, position: error.position };
  }
  const status = 500;
  if (error instanceof CorruptFileError || error instanceof DiskFullError) {
    return { status, message: error.message, position: 0 };
  }
  return { status, message: `internal error: ${error instanceof Error ? error.message : String(error)}`, position: 0 };
}

export function queryError(query: string, message: string, position: number, status = 400): Reply {
  return jsonReply(JSON.stringify({ query, error: message, position }), status);
}

/** Is it a failure that is not the client's? Those are logged and counted. */
export function isUnhandled(error: unknown): boolean {
  return !(error instanceof SqlError);
}

export interface Body {
  contentType: string;
  headers: HeaderList;
  head: string | Uint8Array;
  chunks: AsyncIterable<Chunk>;
  /** The end of the document, after `rowCount` rows. */
  tail(rowCount: number): string | Uint8Array<ArrayBuffer>;
  /** The end of a document that broke off; undefined lets the connection break. */
  errorTail(error: unknown, rowCount: number): string | undefined;
  gzip: boolean;
  keepAlive: string;
  /** Told of each chunk that goes out. */
  onChunk(chunk: Chunk): void;
  /** Told when the last byte was made, and when the client has gone before; errors go through `errorTail`. */
  onEnd(how: "queriesCompleted" | "queriesCancelled"): void;
}

/**
 * A reply whose rows come from a running query. A failure before anything is sent is thrown. A result of at most one chunk is
 * sent at once, without the cost of a stream; otherwise each chunk is asked for when the reader has taken the one before.
 */
export async function rowsReply(body: Body): Promise<Reply> {
  const chunks = body.chunks[Symbol.asyncIterator]();
  const first = await chunks.next();
  const second = first.done ? first : await chunks.next();
  if (!first.done) body.onChunk(first.value);
  const headers: HeaderList = [["Content-Type", body.contentType], ...body.headers, ["Keep-Alive", body.keepAlive]];
  if (body.gzip) headers.push(["Content-Encoding", "gzip"]);
  if (second.done) {
    const rowCount = first.done ? 0 : first.value.rows;
    const bytes = join(body.head, first.done ? undefined : first.value.bytes, body.tail(rowCount));
    body.onEnd("queriesCompleted");
    return { status: 200, headers, body: body.gzip ? gzipSync(bytes) : bytes };
  }
  const pieces = streamed(body, [(first as IteratorYieldResult<Chunk>).value, second.value], chunks);
  return { status: 200, headers, body: body.gzip ? compressed(pieces) : released(pieces) };
}

async function* streamed(
  body: Body,
  [first, second]: [Chunk, Chunk],
  chunks: AsyncIterator<Chunk>,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  let rowCount = first.rows, isOver = false;
  try {
    yield join(body.head, first.bytes, "");
    for (let chunk = second;;) {
      rowCount += chunk.rows;
      body.onChunk(chunk);
      yield ownBytes(chunk.bytes);
      const next = await chunks.next();
      if (next.done) break;
      chunk = next.value;
    }
    const tail = bytesOf(body.tail(rowCount));
    isOver = true;
    body.onEnd("queriesCompleted");
    if (tail.length > 0) yield tail;
  } catch (error) {
    isOver = true;
    const tail = body.errorTail(error, rowCount);
    if (tail === undefined) throw error;
    yield encoder.encode(tail);
  } finally {
    if (!isOver) body.onEnd("queriesCancelled");
    await chunks.return?.();
  }
}

/**
 * Gives the memory of a piece back once it was sent: otherwise it would stay until some later collection, which at 200 MB/s
 * were hundreds of megabytes.
 */
async function* released(pieces: AsyncGenerator<Uint8Array<ArrayBuffer>>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) {
    yield piece;
    if (piece.byteLength === piece.buffer.byteLength) piece.buffer.transfer(0);
  }
}

function compressed(pieces: AsyncGenerator<Uint8Array<ArrayBuffer>>): AsyncIterable<Uint8Array> {
  return ReadableStream.from(pieces).pipeThrough(new CompressionStream("gzip"));
}

function bytesOf(text: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return typeof text === "string" ? encoder.encode(text) : ownBytes(text);
}

function join(
  head: string | Uint8Array,
  bytes: Uint8Array | undefined,
  tail: string | Uint8Array,
): Uint8Array<ArrayBuffer> {
  const before = bytesOf(head), after = bytesOf(tail);
  const size = bytes?.length ?? 0;
  const whole = new Uint8Array(before.length + size + after.length);
  whole.set(before);
  if (bytes !== undefined) whole.set(bytes, before.length);
  whole.set(after, before.length + size);
  return whole;
}
