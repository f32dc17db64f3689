import { ProtocolError } from "../../errors.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** Maximum length of most names of statements and portals. A loop is faster for them than TextDecoder. */
const SHORT_LENGTH = 24;

/** Reads the fields of a message in order. Each method throws `ProtocolError` if the field is invalid. */
export class Reader {
  private at = 0;
  private readonly view: DataView;

  constructor(private readonly body: Uint8Array) {
    this.view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  }

  get isAtEnd(): boolean {
    return this.at === this.body.length;
  }

  byte(): number {
    return this.view.getUint8(this.take(1));
  }

  int16(): number {
    return this.view.getInt16(this.take(2));
  }

  int32(): number {
    return this.view.getInt32(this.take(4));
  }

  bytes(size: number): Uint8Array {
    if (size < 0) throw new ProtocolError(`invalid field size ${size} in a message`);
    const from = this.take(size);
    return this.body.subarray(from, from + size);
  }

  /** int32 size, then that many bytes; size -1 is null. */
  nullableBytes(): Uint8Array | null {
    const size = this.int32();
    return size === -1 ? null : this.bytes(size);
  }

  /** UTF-8 up to a zero byte. */
  cstring(): string {
    const end = this.body.indexOf(0, this.at);
    if (end < 0) throw new ProtocolError("a string in a message has no end");
    const from = this.take(end + 1 - this.at);
    return decodeText(this.body, from, end);
  }

  /** An unsigned count of 16 bits (PostgreSQL allows 65535 arguments), then that many items. */
  list16<Item>(item: () => Item): Item[] {
    const count = this.view.getUint16(this.take(2));
    const items: Item[] = [];
    for (let index = 0; index < count; index++) items.push(item());
    return items;
  }

  end(): void {
    const left = this.body.length - this.at;
    if (left > 0) throw new ProtocolError(`a message is longer than its fields: it has ${left} excess bytes`);
  }

  private take(size: number): number {
    const from = this.at;
    if (from + size > this.body.length) throw new ProtocolError("a message is shorter than its fields");
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
