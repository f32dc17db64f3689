import { ProtocolError } from "../../errors.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Maximum length of most names of statements and portals. A loop is faster for them than TextDecoder. */
const SHORT_LENGTH = 24;
const NO_BYTES = new Uint8Array(0);
/** Nobody adds to the list of a message. */
const NONE: never[] = [];

/**
 * Reads the fields of a message in order. Each method throws `ProtocolError` if the field is invalid. One reader serves all messages
 * of a connection.
 */
export class Reader {
  private source: Uint8Array = NO_BYTES;
  private at = 0;
  private to = 0;

  constructor(body: Uint8Array = NO_BYTES) {
    this.open(body, 0, body.length);
  }

  /** Goes to the message at [from, to) of the bytes. */
  open(bytes: Uint8Array, from: number, to: number): void {
    this.source = bytes;
    this.at = from;
    this.to = to;
  }

  get isAtEnd(): boolean {
    return this.at === this.to;
  }

  byte(): number {
    return this.source[this.take(1)]!;
  }

  uint16(): number {
    const at = this.take(2), bytes = this.source;
    return bytes[at]! << 8 | bytes[at + 1]!;
  }

  int16(): number {
    return this.uint16() << 16 >> 16;
  }

  int32(): number {
    const at = this.take(4), bytes = this.source;
    return bytes[at]! << 24 | bytes[at + 1]! << 16 | bytes[at + 2]! << 8 | bytes[at + 3]!;
  }

  bytes(size: number): Uint8Array {
    if (size < 0) throw new ProtocolError(`invalid field size ${size} in a message`);
    const from = this.take(size);
    return this.source.subarray(from, from + size);
  }

  /** int32 size, then that many bytes; size -1 is null. */
  nullableBytes(): Uint8Array | null {
    const size = this.int32();
    return size === -1 ? null : this.bytes(size);
  }

  /** UTF-8 up to a zero byte. */
  cstring(): string {
    const { source, at: from, to } = this;
    const end = from < to && source[from] === 0 ? from : source.indexOf(0, from);
    if (end < 0 || end >= to) throw new ProtocolError("a string in a message has no end");
    this.at = end + 1;
    return end === from ? "" : decodeText(source, from, end);
  }

  /** An unsigned count of 16 bits (PostgreSQL allows 65535 arguments), then that many items. */
  list16<Item>(item: (reader: Reader) => Item): Item[] {
    const count = this.uint16();
    if (count === 0) return NONE;
    const items: Item[] = [];
    for (let index = 0; index < count; index++) items.push(item(this));
    return items;
  }

  /** The bytes up to the end of the message. */
  rest(): Uint8Array {
    return this.bytes(this.to - this.at);
  }

  end(): void {
    const left = this.to - this.at;
    if (left > 0) throw new ProtocolError(`a message is longer than its fields: it has ${left} excess bytes`);
  }

  private take(size: number): number {
    const from = this.at;
    if (from + size > this.to) throw new ProtocolError("a message is shorter than its fields");
    this.at = from + size;
    return from;
  }
}

/** @throws {ProtocolError} 22021 if the bytes are not UTF-8. */
export function decodeText(bytes: Uint8Array, from = 0, to: number = bytes.length): string {
  if (to - from <= SHORT_LENGTH) {
    let text = "", at = from;
    while (at < to && bytes[at]! < 0x80) text += String.fromCharCode(bytes[at++]!);
    if (at === to) return text;
  }
  try {
    return utf8.decode(bytes.subarray(from, to));
  } catch {
    throw new ProtocolError("a text is not UTF-8", "22021");
  }
}
