/**
 * Splits a client's bytes into messages, which are read where they are in the buffer. While a message takes longer, the next read is
 * already pending, so that a disconnect is noticed during a query. At most one buffer is read ahead.
 */
import { ProtocolError, SQLSTATE } from "../../errors.ts";
import type { Sender } from "../../slow-senders.ts";
import { LARGE_BYTES_MIN, type LargeStatements, type Release } from "../large-statements.ts";
import { Reader } from "./reader.ts";

/** If less space is free in the buffer, the next read uses a new one. */
const FREE_MIN = 4_096;

/** The reading side of a connection. */
export interface ByteReader {
  read(into: Uint8Array): Promise<number | null>;
}

/** A large message and its client. */
class LargeMessage implements Sender {
  release: Release | undefined;
  private readonly slow = Promise.withResolvers<never>();

  /** @param end offset of its end in the buffer */
  constructor(private readonly input: Input, readonly end: number) {
    // It counts only beside a read.
    this.slow.promise.catch(() => {});
  }

  get receivedBytes(): number {
    return this.input.byteCount;
  }

  get isAwaited(): boolean {
    return this.input.awaits(this);
  }

  tooSlow(reason: string): void {
    this.release?.();
    this.slow.reject(new ProtocolError(`the message came too slowly: ${reason}`, SQLSTATE.outOfMemory));
  }

  /** A read of its bytes. @throws {ProtocolError} if they come too slowly. */
  read(bytes: Promise<number | null>): Promise<number | null> {
    return Promise.race([bytes, this.slow.promise]);
  }
}

export class Input {
  private buffer: Uint8Array<ArrayBuffer>;
  /** Offsets of the next message, of the end of the last complete one, and of the end of the data. */
  private start = 0;
  private complete = 0;
  private end = 0;
  /** The pending read, to offset `readAt` of `readBuffer`. A new buffer starts with the bytes from `readFrom` of the old one. */
  private reading: Promise<number | null> | undefined;
  private readBuffer: Uint8Array<ArrayBuffer>;
  private readAt = 0;
  private readFrom = 0;
  private typed = false;
  /** The large message in the buffer, if there is one, and that in `readBuffer`. */
  private large: LargeMessage | undefined;
  private nextLarge: LargeMessage | undefined;
  private isClosed = false;
  /** Size of the largest buffer that is filled again. */
  private readonly keptMax: number;
  /** Number of bytes received. */
  byteCount = 0;
  /** At the start of the body of the message that `next` has returned. Valid until the next `fill`. */
  readonly body = new Reader();

  /**
   * @param onGone is called when the client has closed or broken the connection while a message takes longer
   * @param first has been read of the connection already
   */
  constructor(
    private readonly reader: ByteReader,
    private sizeMax: number,
    private readonly onGone: () => void,
    private readonly capacity = 65_536,
    first = new Uint8Array(0),
    private readonly statements?: LargeStatements,
  ) {
    this.keptMax = Math.max(capacity, first.length, LARGE_BYTES_MIN);
    this.readBuffer = this.buffer = new Uint8Array(Math.max(capacity, first.length));
    this.buffer.set(first);
    this.byteCount = this.end = first.length;
  }

  /** Starts the phase in which messages have a type and the given maximum size. */
  endStartUp(sizeMax: number): void {
    this.typed = true;
    this.sizeMax = sizeMax;
    this.scan();
  }

  /** Waits for at least one complete message, and reads on; false if the connection has ended. */
  async fill(): Promise<boolean> {
    while (!this.isReady) {
      if (!this.received(await this.read().catch(() => null))) return false;
    }
    this.readAhead();
    return true;
  }

  /** True if there is a complete message. */
  get isReady(): boolean {
    if (this.start === this.complete) this.scan();
    return this.start !== this.complete;
  }

  /** The pending read, or a new one. Its result is for `received`. All messages before have been handled. */
  read(): Promise<number | null> {
    if (this.large !== undefined && this.start >= this.large.end) this.leaveLarge(undefined);
    // Nothing is left, so the same buffer is filled from its start again.
    if (this.reading === undefined && this.start === this.end) this.start = this.complete = this.end = 0;
    return this.reading ?? this.readOn();
  }

  /** No more is read. */
  close(): void {
    this.isClosed = true;
    this.nextLarge?.release?.();
    this.leaveLarge(undefined);
  }

  private leaveLarge(next: LargeMessage | undefined): void {
    this.large?.release?.();
    this.large = next;
  }

  /** True if bytes of the message are still to come. */
  awaits(message: LargeMessage): boolean {
    return message === this.nextLarge || (message === this.large && this.end < message.end);
  }

  private readOn(): Promise<number | null> {
    const { complete: from, buffer, end, large } = this;
    const wanted = this.typed ? Math.max(this.sizeAt(from), 5) : FREE_MIN, hasRoom = from + wanted <= buffer.length;
    if (wanted >= LARGE_BYTES_MIN && !hasRoom) return this.reading = this.readLarge(wanted);
    // A buffer is not kept longer than its large message.
    const isKept = buffer.length <= this.keptMax || (large !== undefined && end < large.end);
    return this.reading = isKept && hasRoom && buffer.length - end >= FREE_MIN
      ? this.readInto(buffer, end, from)
      : this.readIntoNew(wanted);
  }

  /** Reads on when there is memory for the large message whose first bytes have come. */
  private async readLarge(wanted: number): Promise<number | null> {
    const message = new LargeMessage(this, wanted);
    message.release = await this.statements?.take(wanted, message);
    if (this.isClosed) message.release?.();
    else this.nextLarge = message;
    return await this.readIntoNew(wanted);
  }

  private readIntoNew(wanted: number): Promise<number | null> {
    const { complete: from, end } = this, buffer = new Uint8Array(Math.max(this.capacity, wanted + FREE_MIN));
    buffer.set(this.buffer.subarray(from, end));
    return this.readInto(buffer, end - from, from);
  }

  private readInto(buffer: Uint8Array<ArrayBuffer>, at: number, from: number): Promise<number | null> {
    this.readBuffer = buffer;
    this.readAt = at;
    this.readFrom = from;
    const bytes = this.reader.read(at === 0 ? buffer : buffer.subarray(at));
    const large = this.nextLarge ?? (this.large !== undefined && this.awaits(this.large) ? this.large : undefined);
    return large === undefined ? bytes : large.read(bytes);
  }

  /** Takes over what was read; null if the connection has ended or is broken. Returns false then. */
  received(count: number | null): boolean {
    this.reading = undefined;
    if (count === null) return false;
    this.byteCount += count;
    if (this.readBuffer !== this.buffer) {
      this.buffer = this.readBuffer;
      this.start -= this.readFrom;
      this.leaveLarge(this.nextLarge);
      this.nextLarge = undefined;
    }
    this.end = this.readAt + count;
    this.scan();
    return true;
  }

  /** Reads on while a message takes longer. The messages that have been received stay where they are. */
  readAhead(): void {
    if (this.reading !== undefined) return;
    this.readOn().then(this.noticeEnd, this.noticeFailure);
  }

  private readonly noticeEnd = (count: number | null): void => {
    if (count === null) this.onGone();
  };

  /** A refusal of the next message is for its reader. */
  private readonly noticeFailure = (error: unknown): void => {
    if (!(error instanceof ProtocolError)) this.onGone();
  };

  /** Goes to the next complete message and returns its type, 0 for messages of the start-up; undefined if there is none. */
  next(): number | undefined {
    const { start, buffer, typed } = this;
    if (start === this.complete) return undefined;
    this.start += this.sizeAt(start);
    this.body.open(buffer, start + (typed ? 5 : 4), this.start);
    return typed ? buffer[start]! : 0;
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
}
