/**
 * Encodes the server's messages. They are collected in one buffer and sent in one write; large chunks of rows are sent
 * as they are.
 * @see https://www.postgresql.org/docs/current/protocol-message-formats.html
 */
import type { ResultColumn } from "../../api.ts";
import type { ByteConnection } from "../byte-connection.ts";
import { typeOf } from "../../types/mod.ts";
import { modifierOf } from "../../types/pg-modifiers.ts";
import { connectionLost, type ErrorFields } from "./failure.ts";
import type { Format } from "./messages.ts";

const utf8 = new TextEncoder();
const CAPACITY = 16_384;
/** Up to this length, a loop is faster than TextEncoder. */
const SHORT_LENGTH = 32;
/** Rows up to this size are copied into the buffer; larger ones are sent directly. */
const COPIED_MAX = 16_384;

/** The writing side of a connection. */
type ByteWriter = Pick<ByteConnection, "write">;

export class Output {
  private bytes: Uint8Array<ArrayBuffer> = new Uint8Array(CAPACITY);
  /** End of the space that messages may use: none while the buffer is sent. */
  private limit = CAPACITY;
  private at = 0;
  private start = 0;
  /** The part of the buffer that was sent last. Most answers of a connection have the same size. */
  private part: Uint8Array<ArrayBuffer> = this.bytes;
  private partOf: Uint8Array<ArrayBuffer> = this.bytes;
  /** Bytes sent by `rows`. */
  rowBytes = 0;
  /** Number of pending writes. A second one could be mixed into the first. */
  private writing = 0;
  /** Pending while a notice is sent beside a running statement. */
  private noticing: Promise<void> | undefined;
  /** performance.now() at the start of a write that the client has not accepted yet. */
  sendingSince: number | undefined;

  /** If the buffer exceeds `fullBytes`, it is sent before more is added. */
  constructor(private readonly writer: ByteWriter, private readonly fullBytes = 65_536) {}

  /** True if the buffer should be sent before more is added. */
  get isFull(): boolean {
    return this.at >= this.fullBytes;
  }

  /** True while something is being sent. */
  get isSending(): boolean {
    return this.writing > 0;
  }

  /** Sends the buffer and waits for the reader. */
  async flush(): Promise<void> {
    if (this.noticing !== undefined) await this.noticing;
    const sending = this.send(performance.now());
    if (sending !== undefined) await this.sent(await written(sending));
  }

  /**
   * Begins to send the buffer; nothing else may be under way. Returns the number of sent bytes, which the caller hands to
   * `sent`: a promise if they have to wait for the client, and undefined if there is nothing to send.
   */
  send(nowMs: number): number | Promise<number> | undefined {
    const { bytes, at } = this;
    if (at === 0) return undefined;
    if (this.partOf !== bytes || this.part.length !== at) {
      this.partOf = bytes;
      this.part = bytes.subarray(0, at);
    }
    this.at = this.limit = 0;
    this.writing++;
    this.sendingSince = nowMs;
    return this.writer.write(this.part);
  }

  /** Ends what `send` has begun. Returns a promise if something is left to be sent. */
  sent(count: number): Promise<void> | undefined {
    const { part } = this;
    if (count < part.length) return this.sendRest(part, count);
    this.reuse(this.partOf);
  }

  private async sendRest(part: Uint8Array<ArrayBuffer>, from: number): Promise<void> {
    const bytes = this.partOf;
    await this.writeAll(part.subarray(from));
    this.reuse(bytes);
  }

  /** A buffer that was sent. Messages that were added meanwhile are in another one. */
  private reuse(bytes: Uint8Array<ArrayBuffer>): void {
    this.writing--;
    this.sendingSince = undefined;
    if (bytes === this.bytes) {
      // One that has grown is not kept.
      if (bytes.length > CAPACITY) this.bytes = spare();
      this.limit = this.bytes.length;
    } else if (bytes.length === CAPACITY && SPARE.length < SPARE_COUNT_MAX) SPARE.push(bytes);
  }

  /** True if `rows` need not wait for the client with these. */
  hasRoom({ length }: Pick<Uint8Array, "length">): boolean {
    return length <= COPIED_MAX && this.at + length < this.fullBytes;
  }

  /** Sends encoded DataRow messages, which the caller must not use any more. Returns a promise if it has to wait. */
  rows(bytes: Uint8Array): Promise<void> | undefined {
    this.rowBytes += bytes.length;
    if (bytes.length <= COPIED_MAX) {
      this.raw(bytes);
      return this.isFull ? this.flush() : undefined;
    }
    return this.sendOn(bytes);
  }

  /**
   * Whole buffers are released at once. Otherwise, at hundreds of megabytes per second, they would accumulate until the
   * next garbage collection.
   */
  private async sendOn(bytes: Uint8Array): Promise<void> {
    this.writing++;
    try {
      await this.flush();
      await this.writeAll(bytes);
    } finally {
      this.writing--;
    }
    if (bytes.buffer instanceof ArrayBuffer && bytes.byteLength === bytes.buffer.byteLength) bytes.buffer.transfer(0);
  }

  private async writeAll(bytes: Uint8Array): Promise<void> {
    for (let from = 0; from < bytes.length;) {
      this.sendingSince = performance.now();
      from += await written(this.writer.write(from === 0 ? bytes : bytes.subarray(from)));
    }
    this.sendingSince = undefined;
  }

  authenticationCleartextPassword(): void {
    this.begin("R");
    this.int32(3);
    this.end();
  }

  authenticationSasl(mechanisms: readonly string[]): void {
    this.begin("R");
    this.int32(10);
    for (const name of mechanisms) this.cstring(name);
    this.byte(0);
    this.end();
  }

  authenticationSaslContinue(data: Uint8Array): void {
    this.begin("R");
    this.int32(11);
    this.raw(data);
    this.end();
  }

  authenticationSaslFinal(data: Uint8Array): void {
    this.begin("R");
    this.int32(12);
    this.raw(data);
    this.end();
  }

  authenticationOk(): void {
    this.begin("R");
    this.int32(0);
    this.end();
  }

  /** `version`: the newest supported one, major << 16 | minor. */
  negotiateProtocolVersion(version: number, unknownOptions: string[]): void {
    this.begin("v");
    this.int32(version);
    this.int32(unknownOptions.length);
    for (const name of unknownOptions) this.cstring(name);
    this.end();
  }

  parameterStatus(name: string, value: string): void {
    this.begin("S");
    this.cstring(name);
    this.cstring(value);
    this.end();
  }

  backendKeyData(pid: number, key: number): void {
    this.begin("K");
    this.int32(pid);
    this.int32(key);
    this.end();
  }

  /** I idle, T in a transaction, E in one that failed. */
  readyForQuery(status: "I" | "T" | "E"): void {
    this.begin("Z");
    this.byte(status.charCodeAt(0));
    this.end();
  }

  parseComplete(): void {
    this.bare("1");
  }

  bindComplete(): void {
    this.bare("2");
  }

  closeComplete(): void {
    this.bare("3");
  }

  noData(): void {
    this.bare("n");
  }

  portalSuspended(): void {
    this.bare("s");
  }

  emptyQueryResponse(): void {
    this.bare("I");
  }

  copyOutResponse(columnCount: number, format: Format): void {
    this.begin("H");
    this.byte(format);
    this.int16(columnCount);
    for (let k = 0; k < columnCount; k++) this.int16(format);
    this.end();
  }

  copyData(bytes: Uint8Array): void {
    this.begin("d");
    this.raw(bytes);
    this.end();
  }

  copyDone(): void {
    this.bare("c");
  }

  commandComplete(tag: string): void {
    this.begin("C");
    this.cstring(tag);
    this.end();
  }

  parameterDescription(oids: readonly number[]): void {
    this.begin("t");
    this.int16(oids.length);
    for (const oid of oids) this.int32(oid);
    this.end();
  }

  rowDescription(columns: readonly ResultColumn[], formats: readonly Format[]): void {
    this.begin("T");
    this.int16(columns.length);
    for (let index = 0; index < columns.length; index++) {
      const column = columns[index]!;
      const type = typeOf(column.type);
      this.cstring(column.name);
      this.int32(0); // no table
      this.int16(index + 1);
      this.int32(type.pgOid);
      this.int16(type.pgSize);
      this.int32(modifierOf(column.type));
      this.int16(formats[index] ?? 0);
    }
    this.end();
  }

  errorResponse({ severity, code, message, position }: ErrorFields): void {
    this.begin("E");
    this.field("S", severity);
    this.field("V", severity);
    this.field("C", code);
    this.field("M", message);
    if (position !== undefined) this.field("P", String(position));
    this.byte(0);
    this.end();
  }

  /** Sends a notice while a statement runs, immediately or with the next write. Skipped if the client does not read. */
  noticeMeanwhile(message: string): void {
    if (this.isFull) return;
    this.noticeResponse(message);
    if (this.writing > 0) return;
    // If the client has disconnected, the statement ends in another way.
    this.noticing = this.flush().catch(() => {}).finally(() => this.noticing = undefined);
  }

  /** Sends a notice in addition to the answer. */
  noticeResponse(message: string): void {
    this.begin("N");
    this.field("S", "NOTICE");
    this.field("V", "NOTICE");
    this.field("C", "00000");
    this.field("M", message);
    this.byte(0);
    this.end();
  }

  private field(name: string, value: string): void {
    this.byte(name.charCodeAt(0));
    this.cstring(value);
  }

  private bare(type: string): void {
    this.begin(type);
    this.end();
  }

  private begin(type: string): void {
    this.byte(type.charCodeAt(0));
    this.start = this.at;
    this.int32(0);
  }

  private end(): void {
    const { bytes, start, at } = this, size = at - start;
    bytes[start] = size >>> 24;
    bytes[start + 1] = size >>> 16;
    bytes[start + 2] = size >>> 8;
    bytes[start + 3] = size;
  }

  private byte(value: number): void {
    this.reserve(1);
    this.bytes[this.at++] = value;
  }

  private int16(value: number): void {
    this.reserve(2);
    const { bytes, at } = this;
    bytes[at] = value >>> 8;
    bytes[at + 1] = value;
    this.at = at + 2;
  }

  private int32(value: number): void {
    this.reserve(4);
    const { bytes, at } = this;
    bytes[at] = value >>> 24;
    bytes[at + 1] = value >>> 16;
    bytes[at + 2] = value >>> 8;
    bytes[at + 3] = value;
    this.at = at + 4;
  }

  private raw(bytes: Uint8Array): void {
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** Zero bytes are removed, because they would end the text. */
  private cstring(text: string): void {
    const { length } = text;
    this.reserve(length * 3 + 1);
    if (length <= SHORT_LENGTH) {
      const { bytes } = this;
      let { at } = this, index = 0;
      for (let code; index < length && (code = text.charCodeAt(index)) > 0 && code < 0x80; index++) bytes[at++] = code;
      if (index === length) {
        bytes[at] = 0;
        this.at = at + 1;
        return;
      }
    }
    const clean = text.includes("\0") ? text.replaceAll("\0", "") : text;
    this.at += utf8.encodeInto(clean, this.bytes.subarray(this.at)).written;
    this.bytes[this.at++] = 0;
  }

  private reserve(size: number): void {
    if (this.at + size > this.limit) this.grow(size);
  }

  private grow(size: number): void {
    const { bytes, at } = this;
    if (this.limit === 0) {
      // The buffer is being sent.
      this.bytes = spare();
      this.limit = CAPACITY;
    }
    if (at + size <= this.limit) return;
    const larger = new Uint8Array(Math.max(at + size, this.bytes.length * 2));
    if (at > 0) larger.set(bytes);
    this.bytes = larger;
    this.limit = larger.length;
  }
}

/** Unused buffers, shared by all connections. */
const SPARE: Uint8Array<ArrayBuffer>[] = [];
const SPARE_COUNT_MAX = 16;

function spare(): Uint8Array<ArrayBuffer> {
  return SPARE.pop() ?? new Uint8Array(CAPACITY);
}

/** The result of a write. @throws {ConnectionLost} */
async function written(writing: number | Promise<number>): Promise<number> {
  try {
    return await writing;
  } catch (cause) {
    throw connectionLost(cause);
  }
}
