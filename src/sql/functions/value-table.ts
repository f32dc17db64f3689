/**
 * The distinct values of each group, in typed arrays, without an object for each row. Values of up to 64 bits are two words; texts
 * and 128-bit values are bytes in an arena. SYMBOL columns are codes of one dictionary; without groups, one bit for each code
 * suffices.
 *
 *     slots      entry + 1 (0: free), low word, high word, group: a successful probe touches one cache line
 *     entries    group, low, high in order of first appearance; row counts if requested
 *
 * For values stored as bytes, an entry's low is the offset in the arena and high the length; a slot has the hash instead of low.
 */
import { type Layout, LAYOUT_WIDTH, layoutOf } from "../../types/mod.ts";
import type { Dictionary } from "../../storage/contract.ts";
import type { BatchColumn, BatchOut, FunctionContext } from "./entry.ts";
import { grownBytes, needLarge } from "./sizes.ts";
import { offsetOf, viewOf, viewsOf } from "./memory-views.ts";

const SLOT_WORDS = 4;
const POLL_ROWS = 4096;

export class ValueTable {
  /** Number of entries. */
  count = 0;
  private groups = new Int32Array(64);
  private low = new Int32Array(64);
  private high = new Int32Array(64);
  /** Row count of each entry, if `counting`. */
  counts: Float64Array;
  private slots = new Int32Array(128 * SLOT_WORDS);
  private slotMask = 127;
  private arena = new Uint8Array(256);
  private arenaUsed = 0;
  /** For codes without groups: whether each code occurred. */
  private seen = new Uint8Array(0);
  private dictionary: Dictionary | undefined;
  private readonly layout: Layout;
  private readonly asBytes: boolean;

  constructor(readonly type: string, private readonly context: FunctionContext, private readonly counting = false) {
    this.layout = layoutOf(type);
    this.asBytes = this.layout === "i128" || this.layout === "i256" || this.layout === "text";
    this.counts = new Float64Array(counting ? 64 : 0);
  }

  sizeBytes(): number {
    return this.groups.length * 12 + this.counts.length * 8 + this.slots.length * 4 + this.arena.length +
      this.seen.length;
  }

  group(entry: number): number {
    return this.groups[entry];
  }

  /** Adds a column's non-null values. */
  add(groups: Int32Array | undefined, column: BatchColumn, rowCount: number): void {
    const { i32 } = this.context.heap;
    const views = viewsOf(this.context.heap.u8);
    const { values, address } = column;
    for (let from = 0; from < rowCount; from += POLL_ROWS) {
      this.context.poll();
      const to = Math.min(rowCount, from + POLL_ROWS);
      switch (this.layout) {
        case "i64":
          for (let row = from, word = (address >>> 2) + 2 * from; row < to; row++, word += 2) {
            const low = i32[word], high = i32[word + 1];
            if (low !== 0 || high !== -0x80000000) this.addWords(groups === undefined ? 0 : groups[row], low, high);
          }
          break;
        case "f64":
          for (let row = from, word = (address >>> 2) + 2 * from; row < to; row++, word += 2) {
            const value = values[row];
            if (value - value !== 0) continue; // NaN and infinities are null
            this.addWords(groups === undefined ? 0 : groups[row], i32[word], value === 0 ? 0 : i32[word + 1]);
          }
          break;
        case "f32":
          for (let row = from, word = (address >>> 2) + from; row < to; row++, word++) {
            const value = values[row];
            if (value - value === 0) {
              this.addWords(groups === undefined ? 0 : groups[row], value === 0 ? 0 : i32[word], 0);
            }
          }
          break;
        case "text":
          for (let row = from, pair = 2 * from; row < to; row++, pair += 2) {
            const length = values[pair + 1];
            if (length < 0) continue;
            this.addBytes(
              groups === undefined ? 0 : groups[row],
              viewOf(views, column, row),
              offsetOf(column, row),
              length,
            );
          }
          break;
        case "symbol":
          this.dictionary = column.dictionary;
          if (groups === undefined && !this.counting) this.addCodes(values, from, to);
          else {for (let row = from; row < to; row++) {
              if (values[row] >= 0) this.addWords(groups === undefined ? 0 : groups[row], values[row], 0);
            }}
          break;
        case "i128":
        case "i256": {
          const width = LAYOUT_WIDTH[this.layout];
          const bytes = address < 0x80000000 ? views.low : views.high, start = address & 0x7fffffff;
          for (let row = from; row < to; row++) {
            if (!column.isNull(row)) {
              this.addBytes(groups === undefined ? 0 : groups[row], bytes, start + width * row, width);
            }
          }
          break;
        }
        default: {
          const none = this.type === "INT" ? -0x80000000 : this.type === "CHAR" || this.type === "IPv4" ? 0 : undefined;
          for (let row = from; row < to; row++) {
            const value = values[row];
            if (value !== none) this.addWords(groups === undefined ? 0 : groups[row], value, 0);
          }
        }
      }
    }
  }

  private addCodes(codes: Int32Array, from: number, to: number): void {
    const needed = this.dictionary?.count ?? 0;
    if (this.seen.length < needed) {
      const grown = new Uint8Array(needed);
      grown.set(this.seen);
      this.seen = grown;
    }
    const { seen } = this;
    for (let row = from; row < to; row++) {
      const code = codes[row];
      if (code >= 0 && seen[code] === 0) {
        seen[code] = 1;
        this.addWords(0, code, 0);
      }
    }
  }

  /** Returns the entry of a value, adding it if it is new. */
  private addWords(group: number, low: number, high: number): number {
    const { slots, slotMask } = this;
    let slot = hashOf(group, low, high) & slotMask;
    for (;; slot = (slot + 1) & slotMask) {
      const at = slot * SLOT_WORDS;
      const entry = slots[at] - 1;
      if (entry < 0) return this.append(at, group, low, high, low, high);
      if (slots[at + 1] === low && slots[at + 2] === high && slots[at + 3] === group) {
        if (this.counting) this.counts[entry]++;
        return entry;
      }
    }
  }

  private addBytes(group: number, bytes: Uint8Array, from: number, length: number): number {
    let hash = length;
    for (let i = from; i < from + length; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
    const { slots, slotMask } = this;
    let slot = hashOf(group, hash, length) & slotMask;
    for (;; slot = (slot + 1) & slotMask) {
      const at = slot * SLOT_WORDS;
      const entry = slots[at] - 1;
      if (entry < 0) return this.append(at, group, hash, length, this.keep(bytes, from, length), length);
      if (
        slots[at + 1] === hash && slots[at + 2] === length && slots[at + 3] === group &&
        this.equals(this.low[entry], bytes, from, length)
      ) {
        if (this.counting) this.counts[entry]++;
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
    this.arena = grownBytes(this.arena, at, at + length, this.context.memory);
    for (let i = 0; i < length; i++) this.arena[at + i] = bytes[from + i];
    this.arenaUsed += length;
    return at;
  }

  /** `word1` and `word2` are stored in the slot at `at`, low and high in the entry. */
  private append(at: number, group: number, word1: number, word2: number, low: number, high: number): number {
    const entry = this.count++;
    if (entry === this.groups.length) this.grow();
    this.groups[entry] = group;
    this.low[entry] = low;
    this.high[entry] = high;
    if (this.counting) this.counts[entry] = 1;
    const { slots } = this;
    slots[at] = entry + 1;
    slots[at + 1] = word1;
    slots[at + 2] = word2;
    slots[at + 3] = group;
    if (this.count * 2 > this.slotMask) this.rehash();
    return entry;
  }

  private grow(): void {
    const size = this.groups.length * 2;
    needLarge(size * 20, this.context.memory);
    const words = (old: Int32Array<ArrayBuffer>) => {
      const grown = new Int32Array(size);
      grown.set(old);
      return grown;
    };
    this.groups = words(this.groups);
    this.low = words(this.low);
    this.high = words(this.high);
    if (this.counting) {
      const counts = new Float64Array(size);
      counts.set(this.counts);
      this.counts = counts;
    }
  }

  private rehash(): void {
    const old = this.slots;
    const mask = this.slotMask * 2 + 1;
    needLarge((mask + 1) * SLOT_WORDS * 4, this.context.memory);
    const slots = new Int32Array((mask + 1) * SLOT_WORDS);
    for (let from = 0; from < old.length; from += SLOT_WORDS) {
      if (old[from] === 0) continue;
      let slot = hashOf(old[from + 3], old[from + 1], old[from + 2]) & mask;
      while (slots[slot * SLOT_WORDS] !== 0) slot = (slot + 1) & mask;
      const at = slot * SLOT_WORDS;
      slots[at] = old[from];
      slots[at + 1] = old[from + 1];
      slots[at + 2] = old[from + 2];
      slots[at + 3] = old[from + 3];
    }
    this.slots = slots;
    this.slotMask = mask;
  }

  /** Adds another table's entries with their counts, in their order. */
  merge(later: ValueTable, mapping: Int32Array): void {
    this.dictionary ??= later.dictionary;
    for (let entry = 0; entry < later.count; entry++) {
      const group = mapping[later.groups[entry]];
      const here = this.asBytes
        ? this.addBytes(group, later.arena, later.low[entry], later.high[entry])
        : this.addWords(group, later.low[entry], later.high[entry]);
      if (this.counting) this.counts[here] += later.counts[entry] - 1; // adding has counted one row
    }
  }

  /** Copies an entry's value to row `row` of a column of the same type (SYMBOL: as text). */
  write(entry: number, out: BatchOut, row: number): void {
    const { layout, context: { heap: { i32, u8 } } } = this, width = LAYOUT_WIDTH[layout], word = out.address >>> 2;
    if (layout === "text" || layout === "symbol") out.setText(row, this.bytes(entry));
    else if (width > 8) u8.set(this.bytes(entry), out.address + width * row);
    else if (width === 8) {
      i32[word + 2 * row] = this.low[entry];
      i32[word + 2 * row + 1] = this.high[entry];
    } else if (width === 4) i32[word + row] = this.low[entry];
    else out.values[row] = this.low[entry];
  }

  /** The bytes of a text entry, as a view. */
  bytes(entry: number): Uint8Array {
    if (this.asBytes) return this.arena.subarray(this.low[entry], this.low[entry] + this.high[entry]);
    const { u32, i32, u8 } = this.context.heap;
    const pair = ((this.dictionary?.entries ?? 0) >>> 2) + 2 * this.low[entry];
    return u8.subarray(u32[pair], u32[pair] + i32[pair + 1]);
  }
}

function hashOf(group: number, low: number, high: number): number {
  let hash = Math.imul(low ^ Math.imul(high, 0x85ebca6b) ^ Math.imul(group, 0x27d4eb2f), 0x9e3779b1);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  return hash ^ (hash >>> 13);
}
