/**
 * Reads Thrift's compact protocol: the footer of a file and the headers of its pages. Each read takes at least a byte, so that a list cannot
 * claim more elements than there are bytes.
 * @see https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
 */
import { ParquetError } from "./error.ts";

export const TRUE = 1, FALSE = 2, BYTE = 3, I16 = 4, I64 = 6, DOUBLE = 7, BINARY = 8, LIST = 9, SET = 10, STRUCT = 12;

/** More than those of all known fields. */
const DEPTH_MAX = 16;

/** @throws {RangeError} where the bytes end too early */
export class CompactReader {
  at = 0;

  /** @param what of the file it is, for errors */
  constructor(private readonly bytes: Uint8Array, private readonly what: string) {}

  byte(): number {
    if (this.at >= this.bytes.length) throw new RangeError(`${this.what} ends too early`);
    return this.bytes[this.at++];
  }

  private pass(length: number): void {
    if (!(length <= this.bytes.length - this.at)) throw new RangeError(`${this.what} ends too early`);
    this.at += length;
  }

  private varint(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw new ParquetError(`a number in ${this.what} is too long`);
  }

  /** A zigzag-encoded integer. */
  integer(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  /** A view. */
  binary(): Uint8Array {
    const length = this.varint(), from = this.at;
    this.pass(length);
    return this.bytes.subarray(from, this.at);
  }

  struct(field: (id: number, type: number) => void): void {
    for (let id = 0;;) {
      const head = this.byte();
      if (head === 0) return;
      id = head >>> 4 === 0 ? this.integer() : id + (head >>> 4);
      field(id, head & 15);
    }
  }

  /** Reads the elements one by one. */
  list(element: (type: number) => void): void {
    const head = this.byte(), count = head >>> 4 === 15 ? this.varint() : head >>> 4;
    for (let k = 0; k < count; k++) element(head & 15);
  }

  skip(type: number, depth = 0): void {
    if (depth > DEPTH_MAX) throw new ParquetError(`${this.what} is nested too deeply`);
    if (type === TRUE || type === FALSE) return;
    if (type === BYTE) this.pass(1);
    else if (type >= I16 && type <= I64) this.varint();
    else if (type === DOUBLE) this.pass(8);
    else if (type === BINARY) this.pass(this.varint());
    else if (type === LIST || type === SET) {
      // In a list, a boolean is a byte.
      this.list((element) => this.skip(element === TRUE || element === FALSE ? BYTE : element, depth + 1));
    } else if (type === STRUCT) this.struct((_, inner) => this.skip(inner, depth + 1));
    else throw new ParquetError(`${this.what} has a field of unknown type ${type}`);
  }
}
