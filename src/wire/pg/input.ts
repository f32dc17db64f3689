/**
 * Splits a client's bytes into messages. The next read is always pending while messages are processed, so that a
 * disconnect is noticed during a query. At most one buffer is read ahead.
 */
import { ProtocolError } from "../../errors.ts";

/** If less space is free in the buffer, the next read uses a new one. */
const FREE_MIN = 4_096;

export interface RawMessage {
  /** 0 for messages of the start-up, which have no type. */
  type: number;
  /** A view of the buffer, valid until the next `fill`. */
  body: Uint8Array;
}

/** The reading side of a connection. */
export interface ByteReader {
  read(into: Uint8Array): Promise<number | null>;
}

export class Input {
  private buffer: Uint8Array<ArrayBuffer>;
  /** Offsets of the next message, of the end of the last complete one, and of the end of the data. */
  private start = 0;
  private complete = 0;
  private end = 0;
  /** The pending read, to offset `at` of its buffer. A new buffer starts with the bytes from `from` of the old one. */
  private ahead:
    | { buffer: Uint8Array<ArrayBuffer>; at: number; from: number; count: Promise<number | null> }
    | undefined;
  private typed = false;
  /** Number of bytes received. */
  byteCount = 0;

  /**
   * @param onGone is called when the client has closed or broken the connection
   * @param first has been read of the connection already
   */
  constructor(
    private readonly reader: ByteReader,
    private sizeMax: number,
    private readonly onGone: () => void,
    private readonly capacity = 65_536,
    first = new Uint8Array(0),
  ) {
    this.buffer = new Uint8Array(Math.max(capacity, first.length));
    this.buffer.set(first);
    this.byteCount = this.end = first.length;
  }

  /** Starts the phase in which messages have a type and the given maximum size. */
  endStartUp(sizeMax: number): void {
    this.typed = true;
    this.sizeMax = sizeMax;
    this.scan();
  }

  /** Waits for at least one complete message; false if the connection has ended. */
  async fill(): Promise<boolean> {
    if (this.start === this.complete) this.scan();
    while (this.start === this.complete) {
      this.readAhead();
      const { buffer, at, from, count } = this.ahead!;
      const read = await count.catch(() => null);
      this.ahead = undefined;
      if (read === null) return false;
      this.byteCount += read;
      if (buffer !== this.buffer) {
        this.buffer = buffer;
        this.start -= from;
      }
      this.end = at + read;
      this.scan();
    }
    this.readAhead();
    return true;
  }

  /** The next complete message, if there is one. */
  next(): RawMessage | undefined {
    if (this.start === this.complete) return undefined;
    const size = this.sizeAt(this.start);
    const from = this.start + (this.typed ? 5 : 4);
    const type = this.typed ? this.buffer[this.start]! : 0;
    this.start += size;
    return { type, body: this.buffer.subarray(from, this.start) };
  }

  /** The type of the message after the one that `next` returned last; undefined if it is incomplete. */
  get nextType(): number | undefined {
    return this.start === this.complete ? undefined : this.buffer[this.start];
  }

  /** Finds the end of the last complete message. */
  private scan(): void {
    this.complete = this.start;
    while (this.complete < this.end) {
      const size = this.sizeAt(this.complete);
      if (size === 0 || this.complete + size > this.end) break;
      this.complete += size;
      // The message after a start-up message may already have the other format.
      if (!this.typed) break;
    }
  }

  /** Size of the message at `at`, with its header; 0 if the header is incomplete. */
  private sizeAt(at: number): number {
    const sizeAt = at + (this.typed ? 1 : 0);
    if (sizeAt + 4 > this.end) return 0;
    const { buffer } = this;
    const size =
      ((buffer[sizeAt]! << 24) | (buffer[sizeAt + 1]! << 16) | (buffer[sizeAt + 2]! << 8) | buffer[sizeAt + 3]!) >>> 0;
    if (size < 4) throw new ProtocolError(`invalid message size ${size}`);
    if (size > this.sizeMax) {
      throw new ProtocolError(`a message of ${size} bytes exceeds the limit of ${this.sizeMax}`, "54000");
    }
    return size + (this.typed ? 1 : 0);
  }

  private readAhead(): void {
    if (this.ahead !== undefined) return;
    const partial = this.end - this.complete;
    const wanted = this.typed ? Math.max(this.sizeAt(this.complete), 5) : FREE_MIN;
    let { buffer, end: at } = this;
    if (buffer.length - at < FREE_MIN || this.complete + wanted > buffer.length) {
      buffer = new Uint8Array(Math.max(this.capacity, wanted + FREE_MIN));
      buffer.set(this.buffer.subarray(this.complete, this.end));
      at = partial;
    }
    const count = this.reader.read(buffer.subarray(at));
    count.then((read) => read === null && this.onGone(), this.onGone);
    this.ahead = { buffer, at, from: this.complete, count };
  }
}
