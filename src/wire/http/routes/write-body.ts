/** The body of a line-protocol request, read as it is processed: its limits, and the errors for violations. */
import { createGunzip } from "node:zlib";
import type { LineBody } from "../../../api.ts";
import type { HttpRequest } from "../../http1/mod.ts";
import { partsOf } from "../multipart.ts";
import { free } from "../../line/mod.ts";

/** The body is unacceptable, regardless of its lines. */
export class BodyError extends Error {
  constructor(readonly status: 413 | 415, message: string) {
    super(message);
  }
}

/** Yield to other work at this interval: a body that arrives as fast as it is read would block the thread. */
const TURN_MS = 4;

export class ReceivedBody implements LineBody {
  readonly sizeBytes: number | undefined;
  sender?: LineBody["sender"];
  bytesRead = 0;
  private turnEndsMs = performance.now() + TURN_MS;
  private last: Uint8Array | undefined;
  private reading: Promise<unknown> | undefined;

  constructor(private readonly request: HttpRequest, private readonly sizeMax: number) {
    const declared = request.headers.get("content-length");
    this.sizeBytes = declared === null ? undefined : Number(declared);
  }

  /** Has no `return`, so that leaving a loop early does not end the connection. */
  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return { next: () => this.next() };
  }

  /** Reads and discards the rest. */
  async drain(): Promise<void> {
    try {
      while (!(await this.next()).done);
    } catch {
      // too long, or the client has disconnected
    }
  }

  private async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if ((this.sizeBytes ?? 0) > this.sizeMax) throw tooLarge(this.sizeMax);
    if (this.last !== undefined) free(this.last.buffer as ArrayBuffer);
    this.last = undefined;
    const startMs = performance.now();
    if (startMs > this.turnEndsMs) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      this.turnEndsMs = performance.now() + TURN_MS;
    }
    // Inflating may still read when its consumer has failed.
    while (this.reading !== undefined) await this.reading.catch(() => {});
    const reading = this.reading = this.request.read();
    let value: Uint8Array | undefined;
    try {
      value = await reading;
    } finally {
      this.reading = undefined;
    }
    // While this waited for the client, other work could run.
    if (performance.now() - startMs > 1) this.turnEndsMs = performance.now() + TURN_MS;
    if (value === undefined) return NOTHING;
    this.bytesRead += value.length;
    if (this.bytesRead > this.sizeMax) throw tooLarge(this.sizeMax);
    this.last = value;
    return { done: false, value };
  }
}

const LINE_END = new TextEncoder().encode("\n");

/** The lines of all parts of a multipart body, as `curl -F` sends them. @throws {MultipartError} and what `body` throws. */
export async function* linesOfParts(
  body: AsyncIterable<Uint8Array>,
  boundary: string,
  headerSizeMax: number,
): AsyncGenerator<Uint8Array, undefined> {
  for await (const { bytes } of partsOf(body, boundary, headerSizeMax)) {
    yield* bytes;
    yield LINE_END;
  }
}

const NOTHING = { done: true, value: undefined } as const;

const tooLarge = (sizeMax: number) => new BodyError(413, `the body is larger than ${sizeMax} bytes`);

/** Maximum number of bytes inflated at a time, because a small gzip may expand enormously. */
const INFLATED_BYTES = 1 << 18;
/** The ratio is not checked below this size. */
const RATIO_FREE_BYTES = 1 << 24;

/** Inflates a gzip body. */
export function inflated(body: ReceivedBody, sizeMax: number, ratioMax: number): LineBody {
  const source = inflate(body, sizeMax, ratioMax);
  return { [Symbol.asyncIterator]: () => ({ next: () => source.next() }) };
}

async function* inflate(body: ReceivedBody, sizeMax: number, ratioMax: number): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip({ chunkSize: INFLATED_BYTES });
  feed(body, gunzip);
  let size = 0;
  try {
    for await (const bytes of gunzip) {
      size += bytes.length;
      if (size > sizeMax) throw tooLarge(sizeMax);
      if (size > RATIO_FREE_BYTES && size > ratioMax * body.bytesRead) {
        throw new BodyError(
          413,
          `the body is more than ${ratioMax} times as large as its gzip (line.http.inflate.ratio.max)`,
        );
      }
      yield bytes;
    }
  } catch (error) {
    const isOfZlib = (error as { code?: string }).code?.startsWith("Z_");
    // An empty body has no lines, compressed or not.
    if (isOfZlib && body.bytesRead === 0) return;
    throw isOfZlib ? new BodyError(415, "the body is not gzip") : error;
  } finally {
    gunzip.destroy();
  }
}

/** Ends with the body, or when inflating has been abandoned. */
async function feed(body: ReceivedBody, gunzip: ReturnType<typeof createGunzip>): Promise<void> {
  try {
    for await (const bytes of body) {
      if (gunzip.destroyed) return;
      // The next piece overwrites this one.
      await new Promise<void>((resolve) => {
        gunzip.once("close", resolve);
        gunzip.write(bytes, () => {
          gunzip.off("close", resolve);
          resolve();
        });
      });
    }
    gunzip.end();
  } catch (error) {
    gunzip.destroy(error as Error);
  }
}
