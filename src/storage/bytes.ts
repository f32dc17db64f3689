/** Little-endian records: the encoding of manifests, slots and log payloads. */
import { crc32 as zlibCrc32 } from "node:zlib";
import { assert } from "../assert.ts";

export function crc32(bytes: Uint8Array, seed = 0): number {
  return zlibCrc32(bytes, seed) >>> 0;
}

export function align(value: number, to: number): number {
  return Math.ceil(value / to) * to;
}

const utf8Encoder = new TextEncoder();
const utf8Decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export class ByteWriter {
  private bytes = new Uint8Array(256);
  private view = new DataView(this.bytes.buffer);
  private at = 0;

  u8(value: number): void {
    const at = this.reserve(1); // Before `this.view` is read: growing replaces the view.
    this.view.setUint8(at, value);
  }

  u32(value: number): void {
    const at = this.reserve(4);
    this.view.setUint32(at, value, true);
  }

  i64(value: bigint): void {
    const at = this.reserve(8);
    this.view.setBigInt64(at, value, true);
  }

  /** Writes a whole number below 2^53. */
  size(value: number): void {
    assert(Number.isSafeInteger(value) && value >= 0, "a size is a whole number");
    const at = this.reserve(8);
    this.view.setFloat64(at, value, true);
  }

  f64(value: number): void {
    const at = this.reserve(8);
    this.view.setFloat64(at, value, true);
  }

  text(value: string): void {
    const bytes = utf8Encoder.encode(value);
    this.u32(bytes.length);
    const at = this.reserve(bytes.length);
    this.bytes.set(bytes, at);
  }

  raw(bytes: Uint8Array): void {
    const at = this.reserve(bytes.length);
    this.bytes.set(bytes, at);
  }

  done(): Uint8Array {
    return this.bytes.slice(0, this.at);
  }

  private reserve(count: number): number {
    const at = this.at;
    this.at += count;
    if (this.at > this.bytes.length) {
      const larger = new Uint8Array(Math.max(this.at, 2 * this.bytes.length));
      larger.set(this.bytes);
      this.bytes = larger;
      this.view = new DataView(larger.buffer);
    }
    return at;
  }
}

/** Running out of bytes is an assertion failure: every record's checksum is verified before it is read. */
export class ByteReader {
  private readonly view: DataView;
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  u8(): number {
    return this.view.getUint8(this.take(1));
  }

  u32(): number {
    return this.view.getUint32(this.take(4), true);
  }

  i64(): bigint {
    return this.view.getBigInt64(this.take(8), true);
  }

  size(): number {
    return this.view.getFloat64(this.take(8), true);
  }

  f64(): number {
    return this.view.getFloat64(this.take(8), true);
  }

  text(): string {
    const length = this.u32();
    const at = this.take(length);
    return utf8Decoder.decode(this.bytes.subarray(at, at + length));
  }

  /** Where the next `count` bytes are. */
  skip(count: number): { view: DataView; at: number } {
    return { view: this.view, at: this.take(count) };
  }

  end(): void {
    assert(this.at === this.bytes.length, "all bytes have been read");
  }

  private take(count: number): number {
    const at = this.at;
    this.at += count;
    assert(this.at <= this.bytes.length, "a record ends early");
    return at;
  }
}

/** JSON with 64-bit integers, for small records that change shape between versions. */
export function toJson(value: unknown): Uint8Array {
  return utf8Encoder.encode(JSON.stringify(value, (_, v) => (typeof v === "bigint" ? { $n: v.toString() } : v)));
}

export function fromJson<T>(bytes: Uint8Array): T {
  return JSON.parse(
    utf8Decoder.decode(bytes),
    (_, v) => (v !== null && typeof v === "object" && typeof v.$n === "string" ? BigInt(v.$n) : v),
  );
}
