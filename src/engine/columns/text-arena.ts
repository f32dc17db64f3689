/**
 * Texts that outlive their batch. A text value in a batch points into a segment that is only pinned until the next batch, so its
 * bytes are copied into blocks of the query.
 */
import { pollLongText } from "../long-texts.ts";
import type { Workspace } from "./workspace.ts";

/**
 * Caches the last result for a text pair. Entries overwrite each other, so that texts that never recur cost no more.
 */
export class PairCache {
  private readonly addresses = new Uint32Array(1024);
  private readonly lengths = new Int32Array(1024);
  readonly values = new Int32Array(1024);

  /** The slot in which the pair would be. */
  slot(address: number, length: number): number {
    return (Math.imul(address ^ length, 0x9e3779b1) >>> 22) & 1023;
  }

  holds(slot: number, address: number, length: number): boolean {
    return this.addresses[slot] === address && this.lengths[slot] === length;
  }

  put(slot: number, address: number, length: number, value: number): void {
    this.addresses[slot] = address;
    this.lengths[slot] = length;
    this.values[slot] = value;
  }

  clear(): void {
    this.lengths.fill(-2);
  }
}

/** Bytes of texts that outlive their batch. */
export class TextArena {
  private blocks: number[] = [];
  private next = 0;
  private end = 0;
  private blockSizeBytes = 16_384;
  usedBytes = 0;
  private cache?: PairCache;

  constructor(private readonly space: Workspace) {}

  private get copies(): PairCache {
    return this.cache ??= new PairCache();
  }

  /** Allocates `length` bytes and returns the address. */
  reserve(length: number): number {
    if (this.next + length > this.end) {
      if (this.blockSizeBytes < 1 << 20) this.blockSizeBytes *= 2;
      const size = Math.max(this.blockSizeBytes, length);
      this.next = this.space.allocate(size);
      this.end = this.next + size;
      this.blocks.push(this.next);
    }
    const address = this.next;
    this.next += length;
    this.usedBytes += length;
    return address;
  }

  /** Gives back the last bytes of what was reserved last. */
  giveBack(length: number): void {
    this.next -= length;
    this.usedBytes -= length;
  }

  copy(address: number, length: number): number {
    const to = this.reserve(length), u8 = this.space.heap.u8;
    if (length > 24) u8.copyWithin(to, address, address + length);
    else for (let i = 0; i < length; i++) u8[to + i] = u8[address + i];
    return to;
  }

  encode(text: string | Uint8Array): [address: number, length: number] {
    const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
    const address = this.reserve(bytes.length);
    this.space.heap.u8.set(bytes, address);
    return [address, bytes.length];
  }

  /**
   * Copies the bytes of the text pairs at `target` into the arena. Neighbouring rows mostly have neighbouring bytes, so
   * the whole range is copied at once unless much of it is unused.
   */
  adopt(target: number, rowCount: number): void {
    const { u32, i32 } = this.space.heap, from = target >>> 2, to = from + rowCount * 2;
    let low = 0xffffffff, high = 0, total = 0;
    for (let at = from; at < to; at += 2) {
      const length = i32[at + 1];
      if (length <= 0) continue;
      const address = u32[at];
      if (address < low) low = address;
      if (address + length > high) high = address + length;
      total += length;
    }
    if (total === 0) return;
    pollLongText(total);
    if (high - low <= total + 4_096) {
      const shift = this.copy(low, high - low) - low;
      for (let at = from; at < to; at += 2) if (i32[at + 1] > 0) u32[at] += shift;
    } else {
      // Texts of a dictionary are copied once for each batch.
      const copies = this.copies;
      copies.clear();
      for (let at = from; at < to; at += 2) {
        const length = i32[at + 1], address = u32[at];
        if (length <= 0) continue;
        const slot = copies.slot(address, length);
        if (!copies.holds(slot, address, length)) copies.put(slot, address, length, this.copy(address, length));
        u32[at] = copies.values[slot];
      }
    }
  }

  release(): void {
    for (const address of this.blocks) this.space.free(address);
    this.blocks = [];
    this.next = this.end = this.usedBytes = 0;
    this.blockSizeBytes = 16_384;
  }
}
