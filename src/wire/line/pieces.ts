/** Splits a stream of bytes into pieces of whole lines. */
import { free } from "./columns.ts";
import { lineTooLong } from "./parser.ts";

const LF = 0x0a;
/** The end of the last whole line of some bytes; 0: there is none. */
export type EndOfLines = (bytes: Uint8Array) => number;

const endOfLines: EndOfLines = (bytes) => bytes.lastIndexOf(LF) + 1;
/** Pieces have this size or a little more, except at the end of the stream and for long lines. */
const PIECE_BYTES = 1 << 21;
const FIRST_BYTES = 1 << 16;

export interface Piece {
  /** The buffer may be transferred, and must be passed back to `done`. */
  bytes: Uint8Array<ArrayBuffer>;
  /** True if more bytes follow. The piece ends with a line end, which may be within a value. */
  isContinued: boolean;
}

/**
 * Reads only as much as a piece needs. `next` returns a piece, and `done` reports how much of it was parsed. The rest
 * is part of the next piece.
 */
export class LinePieces {
  private buffer: Uint8Array<ArrayBuffer>;
  private used = 0;
  /** Minimum size of the next piece. */
  private wanted: number;
  private hasEnded = false;
  /** Bytes that followed the piece being parsed. */
  private tail = new Uint8Array(0);
  private readonly source: AsyncIterator<Uint8Array>;

  /** `sizeBytes`: size of the stream, if known. */
  constructor(
    source: AsyncIterable<Uint8Array>,
    private readonly lineSizeMax: number,
    sizeBytes = FIRST_BYTES,
    private readonly pieceBytes = PIECE_BYTES,
    private readonly endOf: EndOfLines = endOfLines,
  ) {
    this.source = source[Symbol.asyncIterator]();
    this.wanted = pieceBytes;
    this.buffer = new Uint8Array(Math.min(sizeBytes, pieceBytes + FIRST_BYTES));
  }

  /**
   * Returns undefined at the end. `line`: number of the piece's first line. @throws {LineError} for a line that is too
   * long.
   */
  async next(line: number): Promise<Piece | undefined> {
    for (;;) {
      while (!this.hasEnded && this.used < this.wanted) await this.read();
      if (this.hasEnded) return this.used === 0 ? undefined : this.take(this.used);
      const end = this.endOf(this.buffer.subarray(0, this.used));
      if (end > 0) return this.take(end);
      if (this.used > this.lineSizeMax) throw lineTooLong(line, this.lineSizeMax);
      this.wanted = Math.min(2 * this.used, this.lineSizeMax + 1);
    }
  }

  /** `bytes`: the bytes of the piece. `line`: number of the line after `doneBytes`. @throws {LineError} as `next`. */
  done(bytes: Uint8Array<ArrayBuffer>, doneBytes: number, line: number): void {
    const left = bytes.length - doneBytes;
    if (doneBytes === 0) {
      // The first line continues after the piece.
      if (left > this.lineSizeMax) throw lineTooLong(line, this.lineSizeMax);
      this.wanted = 2 * (left + this.tail.length);
    } else this.wanted = this.pieceBytes;
    this.buffer = new Uint8Array(bytes.buffer);
    if (left > 0) this.buffer.copyWithin(0, doneBytes, bytes.length);
    this.used = left;
    this.append(this.tail);
    this.tail = new Uint8Array(0);
  }

  /** Frees the buffer. All pieces must be `done`. */
  close(): void {
    free(this.buffer.buffer);
  }

  private take(end: number): Piece {
    this.tail = this.buffer.slice(end, this.used);
    return { bytes: this.buffer.subarray(0, end), isContinued: !this.hasEnded || this.tail.length > 0 };
  }

  private async read(): Promise<void> {
    const { done, value } = await this.source.next();
    if (done) this.hasEnded = true;
    else this.append(value);
  }

  private append(bytes: Uint8Array): void {
    const size = this.used + bytes.length;
    if (size > this.buffer.length) {
      const larger = new Uint8Array(Math.max(size, Math.min(2 * this.buffer.length, this.wanted + FIRST_BYTES)));
      larger.set(this.buffer.subarray(0, this.used));
      free(this.buffer.buffer);
      this.buffer = larger;
    }
    this.buffer.set(bytes, this.used);
    this.used = size;
  }
}
