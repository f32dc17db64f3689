/** Replies: heads, text and JSON errors, and bodies that stream at the reader's pace. */
import { CorruptFileError, DiskFullError, SqlError, SQLSTATE } from "../../errors.ts";
import type { Chunk } from "../../door.ts";

const JSON_TYPE = "application/json; charset=utf-8";
const encoder = new TextEncoder();

export type HeaderList = [name: string, value: string][];

/** Chunked, as clients of this interface expect, although the size of a small body is known. */
const CHUNKED: HeaderList[number] = ["transfer-encoding", "chunked"];

/** Bytes that a response may keep. A view of shared memory is not copied by the server, and would change under its hands. */
export function ownBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer ? bytes as Uint8Array<ArrayBuffer> : bytes.slice();
}

export function textReply(status: number, text: string): Response {
  return new Response(encoder.encode(`${text}\r\n`), {
    status,
    headers: [["content-type", "text/plain; charset=utf-8"], CHUNKED],
  });
}

export function jsonReply(body: string, status = 200, keepAlive = "timeout=5, max=10000"): Response {
  return new Response(encoder.encode(body), {
    status,
    headers: [["content-type", JSON_TYPE], CHUNKED, ["keep-alive", keepAlive]],
  });
}

/** With a length, for the small documents that clients read with simple means. */
export function documentReply(body: string | Uint8Array, contentType: string): Response {
  const bytes = typeof body === "string" ? encoder.encode(body) : ownBytes(body);
  return new Response(bytes, { headers: [["content-type", contentType], ["content-length", String(bytes.length)]] });
}

export function notFound(): Response {
  return textReply(404, "Not Found");
}

export function methodNotSupported(method: string): Response {
  return textReply(405, `Method ${method} not supported`);
}

/** The fields of a failed statement. What is not the client's fault has no position of its own. */
export function errorFields(error: unknown): { status: number; message: string; position: number } {
  if (error instanceof SqlError) {
    const forbidden = error.sqlState === SQLSTATE.insufficientPrivilege || error.sqlState === SQLSTATE.readOnly;
    const status = forbidden ? 403 : error.sqlState === SQLSTATE.internal ? 500 : 400;
    return { status, message: error.message, position: error.position };
  }
  const status = 500;
  if (error instanceof CorruptFileError || error instanceof DiskFullError) {
    return { status, message: error.message, position: 0 };
  }
  return { status, message: `internal error: ${error instanceof Error ? error.message : String(error)}`, position: 0 };
}

export function queryError(query: string, message: string, position: number, status = 400): Response {
  return jsonReply(JSON.stringify({ query, error: message, position }), status);
}

/** Is it a failure that is not the client's? Those are logged and counted. */
export function isUnhandled(error: unknown): boolean {
  return !(error instanceof SqlError);
}

/** What ends a body without a place for its error, which has been told elsewhere. */
export class BrokenOff extends Error {}

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
export async function rowsReply(body: Body): Promise<Response> {
  const chunks = body.chunks[Symbol.asyncIterator]();
  const first = await chunks.next();
  const second = first.done ? first : await chunks.next();
  if (!first.done) body.onChunk(first.value);
  const headers: HeaderList = [["content-type", body.contentType], ...body.headers, CHUNKED, [
    "keep-alive",
    body.keepAlive,
  ]];
  if (body.gzip) headers.push(["content-encoding", "gzip"]);
  let rowCount = first.done ? 0 : first.value.rows;
  if (second.done) {
    const bytes = join(body.head, first.done ? undefined : first.value.bytes, body.tail(rowCount));
    body.onEnd("queriesCompleted");
    return new Response(body.gzip ? compressed(new Response(bytes).body!) : bytes, { headers });
  }
  const waiting: Uint8Array<ArrayBuffer>[] = [
    join(body.head, (first as IteratorYieldResult<Chunk>).value.bytes, ""),
    ownBytes(second.value.bytes),
  ];
  rowCount += second.value.rows;
  body.onChunk(second.value);
  let sent: Uint8Array<ArrayBuffer> | undefined;
  let isGone = false;
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      // The server holds the bytes of the last chunk by itself now; without this they would stay until some later collection,
      // which at 200 MB/s were hundreds of megabytes. A compressing stream may not have read them yet.
      if (!body.gzip && sent?.byteLength === sent?.buffer.byteLength) sent?.buffer.transfer(0);
      const give = (bytes: Uint8Array<ArrayBuffer>) => controller.enqueue(sent = bytes);
      const ready = waiting.shift();
      if (ready !== undefined) return give(ready);
      try {
        const next = await chunks.next();
        // The reader left meanwhile.
        if (isGone) return;
        if (!next.done) {
          rowCount += next.value.rows;
          body.onChunk(next.value);
          return give(ownBytes(next.value.bytes));
        }
        const tail = bytesOf(body.tail(rowCount));
        body.onEnd("queriesCompleted");
        if (tail.length > 0) controller.enqueue(tail);
        controller.close();
      } catch (error) {
        if (isGone) return;
        const tail = body.errorTail(error, rowCount);
        if (tail === undefined) return controller.error(new BrokenOff());
        controller.enqueue(encoder.encode(tail));
        controller.close();
      }
    },
    async cancel() {
      isGone = true;
      body.onEnd("queriesCancelled");
      await chunks.return?.();
    },
  }, { highWaterMark: 0 });
  return new Response(body.gzip ? compressed(stream) : stream, { headers });
}

function compressed(body: ReadableStream<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  return body.pipeThrough(new CompressionStream("gzip"));
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
