const KEPT_BYTES = 8 << 20;

/** A buffer that grows: encoders write into `bytes` at offsets of their own and ask for room ahead. */
export class ByteSink {
  bytes: Uint8Array<ArrayBuffer>;
  /** What the fixed-size rest of a row may take: writers of variable size keep this much free behind them. */
  rowSlack = 64;

  constructor(capacity: number) {
    this.bytes = new Uint8Array(capacity);
  }

  /** A copy of the first `size` bytes. A buffer that grew for one long row is not kept. */
  take(size: number): Uint8Array<ArrayBuffer> {
    const taken = this.bytes.slice(0, size);
    if (this.bytes.length > KEPT_BYTES) this.bytes = new Uint8Array(KEPT_BYTES);
    return taken;
  }

  /** Makes `bytes` at least `size + rowSlack` long; what was written stays. */
  ensure(size: number): Uint8Array<ArrayBuffer> {
    const needed = size + this.rowSlack;
    if (needed > this.bytes.length) {
      const larger = new Uint8Array(Math.max(needed, this.bytes.length * 2));
      larger.set(this.bytes);
      this.bytes = larger;
    }
    return this.bytes;
  }
}

export function asciiBytes(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
