/** The distinct symbols of a column, found by their bytes. */

const FIRST_SLOTS = 256;

export class SymbolTable {
  private slots = new Int32Array(FIRST_SLOTS).fill(-1);
  private hashes: number[] = [];
  private starts: number[] = [];
  private bytes = new Uint8Array(4096);
  private size = 0;

  /** Returns the code of a symbol. `isValid` is called for new symbols. -1 if it is not valid. */
  code(
    from: Uint8Array,
    start: number,
    end: number,
    isValid: (bytes: Uint8Array, from: number, to: number) => boolean,
  ): number {
    let hash = 0x811c9dc5;
    for (let at = start; at < end; at++) hash = Math.imul(hash ^ from[at], 0x01000193);
    const mask = this.slots.length - 1;
    let slot = (hash ^ hash >>> 15) & mask;
    for (; this.slots[slot] >= 0; slot = (slot + 1) & mask) {
      const code = this.slots[slot];
      if (this.hashes[code] === hash && this.equals(code, from, start, end)) return code;
    }
    if (!isValid(from, start, end)) return -1;
    return this.add(hash, slot, from.subarray(start, end));
  }

  get heap(): Uint8Array {
    return this.bytes.subarray(0, this.size);
  }

  /** Offset and length of each symbol, by code. */
  get pairs(): Int32Array {
    const pairs = new Int32Array(2 * this.starts.length);
    this.starts.forEach((start, code) => {
      pairs[2 * code] = start;
      pairs[2 * code + 1] = this.endOf(code) - start;
    });
    return pairs;
  }

  private endOf(code: number): number {
    return this.starts[code + 1] ?? this.size;
  }

  private equals(code: number, from: Uint8Array, start: number, end: number): boolean {
    const own = this.starts[code];
    if (this.endOf(code) - own !== end - start) return false;
    for (let at = start; at < end; at++) if (this.bytes[own + at - start] !== from[at]) return false;
    return true;
  }

  private add(hash: number, slot: number, symbol: Uint8Array): number {
    const code = this.starts.length;
    if (this.size + symbol.length > this.bytes.length) {
      const larger = new Uint8Array(2 * (this.size + symbol.length));
      larger.set(this.heap);
      this.bytes = larger;
    }
    this.bytes.set(symbol, this.size);
    this.starts.push(this.size);
    this.hashes.push(hash);
    this.size += symbol.length;
    this.slots[slot] = code;
    if (2 * this.starts.length > this.slots.length) this.rehash();
    return code;
  }

  private rehash(): void {
    const slots = new Int32Array(2 * this.slots.length).fill(-1), mask = slots.length - 1;
    this.hashes.forEach((hash, code) => {
      let slot = (hash ^ hash >>> 15) & mask;
      while (slots[slot] >= 0) slot = (slot + 1) & mask;
      slots[slot] = code;
    });
    this.slots = slots;
  }
}
