/**
 * Maps equal keys to equal small numbers, for time joins, set operations, partitions and LATEST.
 *
 * A row's key is written as i32 words. Texts and symbols are represented by the number of an interned text, so that symbols of
 * different dictionaries and plain text can be compared. The words are then looked up in one hash table. Null equals null, -0
 * equals 0, and there is one NaN.
 */
import type { Dictionary } from "../storage/contract.ts";
import type { SharedHeap } from "../storage/heap.ts";
import { type Layout, layoutOf, typeOf } from "../types/mod.ts";
import { mix } from "../types/hash.ts";
import { pollLongText } from "./long-texts.ts";
import { PairCache, POLL_ROWS, TextArena, type Workspace } from "./columns.ts";
import type { Vector } from "./contract.ts";

/** Texts by number, in order of first appearance. */
export class TextInterner {
  count = 0;
  /** Pairs (address, length) by number. */
  pairs: Int32Array;
  private hashes: Int32Array;
  private slots: Int32Array;
  private readonly arena: TextArena;
  private readonly heap: SharedHeap;

  constructor(private readonly space: Workspace) {
    this.heap = space.heap;
    this.pairs = space.words(512);
    this.hashes = space.words(256);
    this.slots = space.words(512).fill(0);
    this.arena = new TextArena(space);
  }

  /** -1 for null; -2 for an unknown text without `insert`. */
  number(address: number, length: number, insert: boolean): number {
    if (length < 0) return -1;
    const { u8 } = this.heap;
    pollLongText(length);
    let hash = length;
    for (let i = 0; i < length; i++) hash = Math.imul(hash ^ u8[address + i], 0x01000193);
    hash = mix(hash);
    const mask = this.slots.length - 1;
    const { slots, hashes, pairs } = this;
    let slot = hash & mask;
    for (let found = slots[slot]; found !== 0; found = slots[slot = (slot + 1) & mask]) {
      const id = found - 1;
      if (hashes[id] === hash && pairs[id * 2 + 1] === length) {
        const other = pairs[id * 2] >>> 0;
        let i = 0;
        while (i < length && u8[other + i] === u8[address + i]) i++;
        if (i === length) return id;
      }
    }
    if (!insert) return -2;
    const id = this.count++;
    if (id >= this.hashes.length) {
      this.hashes = this.space.grow(this.hashes, this.hashes.length * 2);
      this.pairs = this.space.grow(this.pairs, this.pairs.length * 2);
    }
    this.hashes[id] = hash;
    this.pairs[id * 2] = this.arena.copy(address, length);
    this.pairs[id * 2 + 1] = length;
    slots[slot] = id + 1;
    if (this.count * 2 > this.slots.length) this.rehash();
    return id;
  }

  private rehash(): void {
    const longer = this.space.words(this.slots.length * 2).fill(0), mask = longer.length - 1;
    for (let id = 0; id < this.count; id++) {
      let slot = this.hashes[id] & mask;
      while (longer[slot] !== 0) slot = (slot + 1) & mask;
      longer[slot] = id + 1;
    }
    this.space.freeWords(this.slots);
    this.slots = longer;
  }
}

const UNKNOWN = -3;

interface CodeNumbers {
  dictionary: Dictionary;
  /** By code: the text's number, UNKNOWN, or -2 if it was unknown at `internerCount` texts. */
  numbers: Int32Array;
  internerCount: number;
}

/** Numbers for the texts of one key column, of either layout. */
class TextKeys {
  readonly interner: TextInterner;
  private readonly known = new PairCache();
  private readonly caches: CodeNumbers[] = [];

  constructor(private readonly space: Workspace) {
    this.interner = new TextInterner(space);
  }

  writeText(address: number, rowCount: number, out: Int32Array, at: number, stride: number, insert: boolean): void {
    const { u32, i32 } = this.space.heap;
    // Texts from a dictionary have recurring pairs. The cache is only valid for one batch, because memory may be
    // overwritten between batches.
    const known = this.known;
    known.clear();
    for (let row = 0, pair = address >>> 2; row < rowCount; row++, pair += 2, at += stride) {
      const textAddress = u32[pair], length = i32[pair + 1];
      const slot = known.slot(textAddress, length);
      if (!known.holds(slot, textAddress, length)) {
        known.put(slot, textAddress, length, this.interner.number(textAddress, length, insert));
      }
      out[at] = known.values[slot];
    }
  }

  writeSymbols(vector: Vector, rowCount: number, out: Int32Array, at: number, stride: number, insert: boolean): void {
    const cache = this.cacheOf(vector.dictionary!);
    if (cache.internerCount !== this.interner.count) {
      for (let code = 0; code < cache.numbers.length; code++) {
        if (cache.numbers[code] === -2) cache.numbers[code] = UNKNOWN;
      }
      cache.internerCount = this.interner.count;
    }
    const { u32, i32 } = this.space.heap, { numbers } = cache, entries = cache.dictionary.entries >>> 2;
    for (let row = 0, code = vector.address >>> 2; row < rowCount; row++, at += stride) {
      const c = i32[code + row];
      if (c < 0) {
        out[at] = -1;
        continue;
      }
      let number = numbers[c];
      if (number === UNKNOWN || (number === -2 && insert)) {
        number = numbers[c] = this.interner.number(u32[entries + c * 2], i32[entries + c * 2 + 1], insert);
      }
      out[at] = number;
    }
    cache.internerCount = this.interner.count;
  }

  private cacheOf(dictionary: Dictionary): CodeNumbers {
    for (const cache of this.caches) {
      if (cache.dictionary.entries === dictionary.entries && cache.dictionary.count === dictionary.count) return cache;
    }
    const numbers = this.space.words(Math.max(1, dictionary.count)).fill(UNKNOWN);
    const cache = { dictionary, numbers, internerCount: this.interner.count };
    this.caches.push(cache);
    return cache;
  }
}

function wordsOf(layout: Layout, width: number): number {
  return layout === "text" || layout === "symbol" ? 1 : Math.max(1, width >>> 2);
}

/** Rows whose slots are loaded together, in tables of at least this many slots: smaller ones are in a cache. */
const AHEAD_ROWS = 256, AHEAD_SLOTS_MIN = 1 << 18;
/** Keys of at most this many words are compared without comparing their hashes first. */
const SHORT_WORDS = 4;

/** Groups of equal keys, numbered densely in order of first appearance. */
export class KeyTable {
  count = 0;
  private readonly wordCount: number;
  private readonly texts: (TextKeys | undefined)[];
  private words: Int32Array;
  private result: Int32Array;
  private keys: Int32Array;
  private hashes: Int32Array;
  private slots: Int32Array;
  /** Of a single key: the group of null, and of each text by its number; -1 for none. */
  private byNumber: Int32Array;

  constructor(types: readonly string[], private readonly space: Workspace, private readonly poll: () => void) {
    this.texts = types.map((type) => {
      const layout = layoutOf(type);
      return layout === "text" || layout === "symbol" ? new TextKeys(space) : undefined;
    });
    this.wordCount = types.reduce((sum, type) => sum + wordsOf(layoutOf(type), typeOf(type).width), 0);
    this.words = space.words(Math.max(1, this.wordCount)); // a first batch of one row must fit: stores past the end are silently lost
    this.result = space.words(1);
    this.keys = space.words(256 * Math.max(1, this.wordCount));
    this.hashes = space.words(256);
    this.slots = space.words(1024).fill(0);
    this.byNumber = space.words(256).fill(-1);
  }

  /**
   * Returns the group of each row; -1 for unknown keys without `insert`. New groups are numbered from the old `count`
   * on, in order of their first rows. The view is valid until the next call.
   */
  groups(columns: readonly Vector[], rowCount: number, insert: boolean): Int32Array {
    if (this.result.length < rowCount) {
      this.space.freeWords(this.words);
      this.space.freeWords(this.result);
      this.words = this.space.words(rowCount * Math.max(1, this.wordCount));
      this.result = this.space.words(rowCount);
    }
    if (this.wordCount === 0) {
      if (insert && rowCount > 0) this.count = 1;
      this.result.fill(this.count > 0 ? 0 : -1, 0, rowCount);
    } else {
      this.writeWords(columns, rowCount, insert);
      if (this.wordCount === 1 && this.texts[0] !== undefined) this.lookUpNumbers(this.texts[0], rowCount, insert);
      else this.lookUp(rowCount, insert);
    }
    return this.result;
  }

  private writeWords(columns: readonly Vector[], rowCount: number, insert: boolean): void {
    const { i8, i16, i32 } = this.space.heap, out = this.words, stride = this.wordCount;
    let first = 0;
    for (let c = 0; c < columns.length; c++) {
      const vector = columns[c], layout = layoutOf(vector.type), { address } = vector;
      let at = first;
      switch (layout) {
        case "i8":
          for (let row = 0; row < rowCount; row++, at += stride) out[at] = i8[address + row];
          break;
        case "i16":
          for (let row = 0, from = address >>> 1; row < rowCount; row++, at += stride) out[at] = i16[from + row];
          break;
        case "i32":
          for (let row = 0, from = address >>> 2; row < rowCount; row++, at += stride) out[at] = i32[from + row];
          break;
        case "f32":
          for (let row = 0, from = address >>> 2; row < rowCount; row++, at += stride) {
            const bits = i32[from + row];
            out[at] = bits === -0x80000000 ? 0 : (bits & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : bits;
          }
          break;
        case "f64":
          for (let row = 0, from = address >>> 2; row < rowCount; row++, at += stride, from += 2) {
            let low = i32[from], high = i32[from + 1];
            const magnitude = high & 0x7fffffff;
            if (magnitude > 0x7ff00000 || (magnitude === 0x7ff00000 && low !== 0)) {
              low = 0;
              high = 0x7ff80000;
            } else if (magnitude === 0 && low === 0) high = 0;
            out[at] = low;
            out[at + 1] = high;
          }
          break;
        case "text":
          this.texts[c]!.writeText(address, rowCount, out, at, stride, insert);
          break;
        case "symbol":
          this.texts[c]!.writeSymbols(vector, rowCount, out, at, stride, insert);
          break;
        default: {
          const n = typeOf(vector.type).width >>> 2;
          for (let row = 0, from = address >>> 2; row < rowCount; row++, at += stride) {
            for (let k = 0; k < n; k++) out[at + k] = i32[from++];
          }
        }
      }
      first += wordsOf(layout, typeOf(vector.type).width);
    }
  }

  /** One key, whose words are numbers of texts. */
  private lookUpNumbers({ interner }: TextKeys, rowCount: number, insert: boolean): void {
    const { words, result } = this;
    if (interner.count >= this.byNumber.length) {
      this.byNumber = this.space.grow(this.byNumber, Math.max(interner.count + 1, 2 * this.byNumber.length), -1);
    }
    const { byNumber } = this;
    for (let row = 0; row < rowCount; row++) {
      if (row % POLL_ROWS === 0) this.poll();
      const number = words[row];
      let group = number === -2 ? -1 : byNumber[number + 1];
      if (group < 0 && insert) group = byNumber[number + 1] = this.count++;
      result[row] = group;
    }
  }

  private lookUp(rowCount: number, insert: boolean): void {
    for (let from = 0; from < rowCount; from += AHEAD_ROWS) {
      if (from % POLL_ROWS === 0) this.poll();
      this.lookUpSome(from, Math.min(rowCount, from + AHEAD_ROWS), insert);
    }
  }

  /** The hashes of the next rows, whose slots are loaded together: one load does not wait for the other then. */
  private readonly ahead = new Int32Array(AHEAD_ROWS);

  private lookUpSome(from: number, to: number, insert: boolean): void {
    const { words, result, ahead } = this, n = this.wordCount;
    let mask = this.slots.length - 1;
    for (let row = from, at = from * n; row < to; row++, at += n) {
      let hash = words[at];
      for (let k = 1; k < n; k++) hash = Math.imul(hash, 0x9e3779b1) ^ words[at + k];
      ahead[row - from] = mix(hash);
    }
    if (mask >= AHEAD_SLOTS_MIN) this.load(to - from);
    for (let row = from, at = from * n; row < to; row++, at += n) {
      const hash = ahead[row - from], { slots, keys, hashes } = this;
      let slot = hash & mask, group = -1;
      for (let found = slots[slot]; found !== 0; found = slots[slot = (slot + 1) & mask]) {
        // The hash of a short key would be one more load from memory.
        if (n > SHORT_WORDS && hashes[found - 1] !== hash) continue;
        let k = 0;
        const key = (found - 1) * n;
        while (k < n && keys[key + k] === words[at + k]) k++;
        if (k === n) {
          group = found - 1;
          break;
        }
      }
      if (group < 0 && insert) {
        group = this.count++;
        slots[slot] = group + 1;
        if (group >= hashes.length) {
          this.hashes = this.space.grow(hashes, hashes.length * 2);
          this.keys = this.space.grow(keys, keys.length * 2);
        }
        this.hashes[group] = hash;
        for (let k = 0; k < n; k++) this.keys[group * n + k] = words[at + k];
        if (this.count * 2 > slots.length) {
          this.rehash();
          mask = this.slots.length - 1;
        }
      }
      result[row] = group;
    }
  }

  /** Loads the slots of the next rows and the keys that they lead to. */
  private load(rowCount: number): void {
    const { ahead, slots, keys, wordCount } = this, mask = slots.length - 1;
    let sum = 0;
    for (let k = 0; k < rowCount; k++) sum += slots[ahead[k] & mask];
    for (let k = 0; k < rowCount; k++) {
      const found = slots[ahead[k] & mask];
      if (found !== 0) sum ^= keys[(found - 1) * wordCount];
    }
    this.loaded = sum;
  }

  /** Nothing reads it: what is loaded must not be removed as unused. */
  loaded = 0;

  private rehash(): void {
    const longer = this.space.words(this.slots.length * 2).fill(0), mask = longer.length - 1;
    for (let group = 0; group < this.count; group++) {
      let slot = this.hashes[group] & mask;
      while (longer[slot] !== 0) slot = (slot + 1) & mask;
      longer[slot] = group + 1;
    }
    this.space.freeWords(this.slots);
    this.slots = longer;
  }
}
