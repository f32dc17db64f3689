const KEPT_BYTES = 8 << 20;

/** A growing buffer. Encoders write into `bytes` at their own offsets and reserve space in advance. */
export class ByteSink {
  bytes: Uint8Array<ArrayBuffer>;
  /** The same bytes, for stores of several of them. */
  view: DataView;
  /** Space for the fixed-size rest of a row: writers of variable size keep this much free behind them. */
  rowSlack = 64;

  private lent: Uint8Array<ArrayBuffer>;
  private lentOf: Uint8Array<ArrayBuffer>;

  constructor(capacity: number) {
    this.lent = this.lentOf = this.bytes = new Uint8Array(capacity);
    this.view = new DataView(this.bytes.buffer);
  }

  /** The first `size` bytes, without a copy. The same object if it is still theirs. */
  lend(size: number): Uint8Array<ArrayBuffer> {
    if (this.lentOf !== this.bytes || this.lent.length !== size) {
      this.lentOf = this.bytes;
      this.lent = this.bytes.subarray(0, size);
    }
    return this.lent;
  }

  /** Returns a copy of the first `size` bytes. Drops a buffer that had grown for one long row. */
  take(size: number): Uint8Array<ArrayBuffer> {
    const taken = this.bytes.slice(0, size);
    if (this.bytes.length > KEPT_BYTES) this.use(new Uint8Array(KEPT_BYTES));
    return taken;
  }

  private use(bytes: Uint8Array<ArrayBuffer>): void {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer);
  }

  /** Makes `bytes` at least `size + rowSlack` long and keeps the contents. */
  ensure(size: number): Uint8Array<ArrayBuffer> {
    const needed = size + this.rowSlack;
    if (needed > this.bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.bytes.length * 2));
      larger.set(this.bytes);
      this.use(larger);
    }
    return this.bytes;
  }
}

export function asciiBytes(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
