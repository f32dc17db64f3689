/**
 * The distinct values of each group, in typed arrays: no object is kept for a row. Values of up to 64 bits are two words; texts and
 * 128-bit values are bytes in an arena. Values of a SYMBOL column are told apart by the address of their dictionary entry.
 */
import { layoutOf } from "../../types/mod.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";

const EMPTY = -1;

export class ValueTable {
  /** Entries in order of first appearance. */
  count = 0;
  private groups = new Int32Array(64);
  private low = new Int32Array(64);
  private high = new Int32Array(64);
  private hashes = new Int32Array(64);
  /** Rows by entry. */
  counts = new Float64Array(64);
  private slots = new Int32Array(128).fill(EMPTY);
  private arena = new Uint8Array(256);
  private arenaUsed = 0;
  private readonly asBytes: boolean;

  constructor(readonly type: string, private readonly context: FunctionContext) {
    const layout = layoutOf(type);
    this.asBytes = layout === "i128" || (layout === "text" && type !== "SYMBOL");
  }

  sizeBytes(): number {
    return this.groups.length * 24 + this.slots.length * 4 + this.arena.length;
  }

  group(entry: number): number {
    return this.groups[entry];
  }

  /** The entry of a row's value in `group`; -1 when it is null. */
  insert(group: number, column: BatchColumn, row: number): number {
    const memory = this.context.heap;
    switch (layoutOf(this.type)) {
      case "i64": {
        const word = (column.address >>> 2) + 2 * row;
        const low = memory.i32[word], high = memory.i32[word + 1];
        return low === 0 && high === -2147483648 ? -1 : this.insertWords(group, low, high);
      }
      case "f64": {
        if (!Number.isFinite(column.values[row])) return -1;
        if (column.values[row] === 0) return this.insertWords(group, 0, 0);
        const word = (column.address >>> 2) + 2 * row;
        return this.insertWords(group, memory.i32[word], memory.i32[word + 1]);
      }
      case "f32":
        if (!Number.isFinite(column.values[row])) return -1;
        return this.insertWords(group, column.values[row] === 0 ? 0 : memory.i32[(column.address >>> 2) + row], 0);
      case "text":
      case "symbol": {
        const length = column.values[2 * row + 1];
        if (length < 0) return -1;
        const address = column.values[2 * row] >>> 0;
        if (!this.asBytes) return this.insertWords(group, address | 0, length);
        return this.insertBytes(group, memory.u8, address, length);
      }
      case "i128": {
        const word = (column.address >>> 2) + 4 * row;
        const words = memory.i32;
        if (
          words[word] === 0 && words[word + 1] === -2147483648 && words[word + 2] === 0 &&
          words[word + 3] === -2147483648
        ) return -1;
        return this.insertBytes(group, memory.u8, column.address + 16 * row, 16);
      }
      default: {
        const value = column.values[row];
        if (
          this.type === "INT" ? value === -2147483648 : (this.type === "CHAR" || this.type === "IPv4") && value === 0
        ) return -1;
        return this.insertWords(group, value, 0);
      }
    }
  }

  private insertWords(group: number, low: number, high: number): number {
    let hash = Math.imul(low ^ Math.imul(high, 0x85ebca6b) ^ Math.imul(group, 0x27d4eb2f), 0x9e3779b1);
    hash ^= hash >>> 15;
    hash = Math.imul(hash, 0x2c1b3c6d);
    hash ^= hash >>> 13;
    const mask = this.slots.length - 1;
    for (let slot = hash & mask;; slot = (slot + 1) & mask) {
      const entry = this.slots[slot];
      if (entry === EMPTY) return this.append(group, low, high, hash, slot);
      if (this.low[entry] === low && this.high[entry] === high && this.groups[entry] === group) {
        this.counts[entry]++;
        return entry;
      }
    }
  }

  private insertBytes(group: number, bytes: Uint8Array, from: number, length: number): number {
    let hash = Math.imul(group, 0x27d4eb2f) ^ length;
    for (let i = from; i < from + length; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
    hash ^= hash >>> 15;
    hash = Math.imul(hash, 0x2c1b3c6d);
    hash ^= hash >>> 13;
    const mask = this.slots.length - 1;
    for (let slot = hash & mask;; slot = (slot + 1) & mask) {
      const entry = this.slots[slot];
      if (entry === EMPTY) {
        const at = this.keep(bytes, from, length);
        return this.append(group, at, length, hash, slot);
      }
      if (
        this.hashes[entry] === hash && this.high[entry] === length && this.groups[entry] === group &&
        this.equals(this.low[entry], bytes, from, length)
      ) {
        this.counts[entry]++;
        return entry;
      }
    }
  }

  private equals(at: number, bytes: Uint8Array, from: number, length: number): boolean {
    for (let i = 0; i < length; i++) if (this.arena[at + i] !== bytes[from + i]) return false;
    return true;
  }

  private keep(bytes: Uint8Array, from: number, length: number): number {
    const at = this.arenaUsed;
    if (at + length > this.arena.length) {
      const grown = new Uint8Array(Math.max(at + length, this.arena.length * 2));
      grown.set(this.arena.subarray(0, at));
      this.arena = grown;
    }
    for (let i = 0; i < length; i++) this.arena[at + i] = bytes[from + i];
    this.arenaUsed += length;
    return at;
  }

  private append(group: number, low: number, high: number, hash: number, slot: number): number {
    const entry = this.count++;
    if (entry === this.groups.length) this.grow();
    this.groups[entry] = group;
    this.low[entry] = low;
    this.high[entry] = high;
    this.hashes[entry] = hash;
    this.counts[entry] = 1;
    this.slots[slot] = entry;
    if (this.count * 2 > this.slots.length) this.rehash();
    return entry;
  }

  private grow(): void {
    const size = this.groups.length * 2;
    const words = (old: Int32Array<ArrayBuffer>) => {
      const grown = new Int32Array(size);
      grown.set(old);
      return grown;
    };
    this.groups = words(this.groups);
    this.low = words(this.low);
    this.high = words(this.high);
    this.hashes = words(this.hashes);
    const counts = new Float64Array(size);
    counts.set(this.counts);
    this.counts = counts;
  }

  private rehash(): void {
    this.slots = new Int32Array(this.slots.length * 2).fill(EMPTY);
    const mask = this.slots.length - 1;
    for (let entry = 0; entry < this.count; entry++) {
      let slot = this.hashes[entry] & mask;
      while (this.slots[slot] !== EMPTY) slot = (slot + 1) & mask;
      this.slots[slot] = entry;
    }
  }

  /** Adds another table's entries, with their counts, in their order. */
  merge(later: ValueTable, mapping: Int32Array): void {
    for (let entry = 0; entry < later.count; entry++) {
      const group = mapping[later.groups[entry]];
      const here = this.asBytes
        ? this.insertBytes(group, later.arena, later.low[entry], later.high[entry])
        : this.insertWords(group, later.low[entry], later.high[entry]);
      this.counts[here] += later.counts[entry] - 1; // inserting has counted one
    }
  }

  /** Copies an entry's value to row `row` of a column of the same type (SYMBOL: as text). */
  write(entry: number, out: BatchOut, row: number): void {
    const words = this.context.heap.i32;
    switch (layoutOf(this.type)) {
      case "i64":
      case "f64":
        words[(out.address >>> 2) + 2 * row] = this.low[entry];
        words[(out.address >>> 2) + 2 * row + 1] = this.high[entry];
        break;
      case "f32":
        words[(out.address >>> 2) + row] = this.low[entry];
        break;
      case "text":
      case "symbol":
        out.setText(row, this.bytes(entry));
        break;
      case "i128":
        this.context.heap.u8.set(this.bytes(entry), out.address + 16 * row);
        break;
      default:
        out.values[row] = this.low[entry];
    }
  }

  /** The bytes of a text entry: a view. */
  bytes(entry: number): Uint8Array {
    if (this.asBytes) return this.arena.subarray(this.low[entry], this.low[entry] + this.high[entry]);
    const address = this.low[entry] >>> 0;
    return this.context.heap.u8.subarray(address, address + this.high[entry]);
  }
}
