/**
 * A body of several parts, read as it arrives.
 *
 *     body    [preamble CRLF] part* "--" boundary "--"
 *     part    "--" boundary CRLF (header CRLF)* CRLF bytes CRLF
 *
 * @see https://www.rfc-editor.org/rfc/rfc7578
 */
import { joinedBytes } from "../../bytes.ts";
import { size } from "../../config/mod.ts";

export const multipartSettings = {
  headerSizeMax: size("http.multipart.header.buffer.size", "512", "Maximum size of the head of a part of a request.", {
    min: 64,
  }),
};

/** Each part costs some work, even an empty one. */
const PARTS_MAX = 1_000;

/** The body violates the format, or a limit. */
export class MultipartError extends Error {}

export interface Part {
  name: string;
  /** Undefined if the part is not a file. */
  fileName: string | undefined;
  /** The part's bytes. Bytes that are not read are skipped. */
  bytes: AsyncIterable<Uint8Array>;
}

/** The boundary in a Content-Type. Undefined if the body is not multipart. */
export function boundaryOf(contentType: string | null): string | undefined {
  const match = /^multipart\/form-data\s*;(?:.*;)?\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(
    contentType ?? "",
  );
  return match?.[1] ?? match?.[2];
}

const CR = 0x0d, LF = 0x0a, DASH = 0x2d;
const utf8 = new TextDecoder();

/** The parts of `body`, whose pieces are used until the next one is asked for, one after the other. @throws {MultipartError} and what `body` throws. */
export async function* partsOf(
  body: AsyncIterable<Uint8Array>,
  boundary: string,
  headerSizeMax: number,
): AsyncGenerator<Part, undefined> {
  const reader = new Reader(body, new TextEncoder().encode(`\r\n--${boundary}`));
  // The first boundary has no line end before it.
  reader.prepend(new Uint8Array([CR, LF]));
  await reader.skipToBoundary();
  for (let count = 1;; count++) {
    const next = await reader.take(2);
    if (next[0] === DASH && next[1] === DASH) return;
    if (count > PARTS_MAX) throw new MultipartError(`the body has more than ${PARTS_MAX} parts`);
    if (next[0] !== CR || next[1] !== LF) throw new MultipartError("a boundary of the body does not end its line");
    const { name, fileName } = fieldOf(await reader.headers(headerSizeMax));
    if (name === undefined) throw new MultipartError("a part has no Content-Disposition with a name");
    const bytes = reader.bytes();
    yield { name, fileName, bytes: { [Symbol.asyncIterator]: () => ({ next: () => bytes.next() }) } };
    while (!(await bytes.next()).done);
  }
}

class Reader {
  private buffer: Uint8Array = new Uint8Array(0);
  private readonly source: AsyncIterator<Uint8Array>;

  constructor(body: AsyncIterable<Uint8Array>, private readonly mark: Uint8Array) {
    this.source = body[Symbol.asyncIterator]();
  }

  prepend(bytes: Uint8Array): void {
    this.buffer = joinedBytes([bytes, this.buffer]);
  }

  async take(size: number): Promise<Uint8Array> {
    while (this.buffer.length < size) await this.more();
    const taken = this.buffer.subarray(0, size);
    this.buffer = this.buffer.subarray(size);
    return taken;
  }

  async skipToBoundary(): Promise<void> {
    for await (const _ of this.bytes());
  }

  /** Bytes up to the next boundary, which is skipped. */
  async *bytes(): AsyncGenerator<Uint8Array, undefined> {
    for (;;) {
      const { at, isWhole } = this.findMark();
      if (at > 0) {
        const bytes = this.buffer.subarray(0, at);
        this.buffer = this.buffer.subarray(at);
        yield bytes;
      }
      if (isWhole) {
        this.buffer = this.buffer.subarray(this.mark.length);
        return;
      }
      await this.more();
    }
  }

  /** The lines of a part's head. */
  async headers(sizeMax: number): Promise<string[]> {
    const lines: string[] = [];
    for (let size = 0;;) {
      const line = await this.line(sizeMax - size);
      if (line === "") return lines;
      size += line.length + 2;
      lines.push(line);
    }
  }

  private async line(sizeMax: number): Promise<string> {
    for (let from = 0;;) {
      const at = this.buffer.indexOf(LF, from);
      if (at > sizeMax || at < 0 && this.buffer.length > sizeMax) {
        throw new MultipartError("the head of a part is longer than http.multipart.header.buffer.size");
      }
      if (at >= 0) {
        const line = this.buffer.subarray(0, at > 0 && this.buffer[at - 1] === CR ? at - 1 : at);
        this.buffer = this.buffer.subarray(at + 1);
        return utf8.decode(line);
      }
      from = this.buffer.length;
      await this.more();
    }
  }

  /** Where the boundary is, or could begin at the end of the buffer. */
  private findMark(): { at: number; isWhole: boolean } {
    const { buffer, mark } = this;
    for (let at = buffer.indexOf(CR); at >= 0; at = buffer.indexOf(CR, at + 1)) {
      const size = Math.min(mark.length, buffer.length - at);
      let matched = 1;
      while (matched < size && buffer[at + matched] === mark[matched]) matched++;
      if (matched === mark.length) return { at, isWhole: true };
      if (matched === buffer.length - at) return { at, isWhole: false };
    }
    return { at: buffer.length, isWhole: false };
  }

  private async more(): Promise<void> {
    // A copy, because the source frees its last piece.
    const kept = this.buffer.slice();
    const { done, value } = await this.source.next();
    if (done) throw new MultipartError("the body ends within a part");
    this.buffer = kept.length === 0 ? value : joinedBytes([kept, value]);
  }
}

function fieldOf(headers: readonly string[]): { name: string | undefined; fileName: string | undefined } {
  const disposition = headers.find((line) => /^content-disposition\s*:/i.test(line)) ?? "";
  const value = (key: string) => {
    const match = new RegExp(`;\\s*${key}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]+))`, "i").exec(disposition);
    return match === null ? undefined : match[1]?.replaceAll(/\\(["\\])/g, "$1") ?? match[2];
  };
  return { name: value("name"), fileName: value("filename") };
}
