/** Finds the distinct values of a column for a dictionary. */
import type { SharedHeap } from "../../storage/heap.ts";
import { mix } from "../../types/hash.ts";

export interface Distinct {
  /** For each value its place among the distinct ones. */
  indexes: Int32Array<ArrayBuffer>;
  /** For each distinct value the first place where it is. */
  firsts: Int32Array<ArrayBuffer>;
}

/** A larger dictionary saves little. */
const DISTINCT_MAX = 1 << 16;
/** Number of values for which a table has room at first, if there are so many: of a sample. */
const FIRST_ROOM = 1024;
/** Steps over occupied slots for each value, on average, after which values are too unlike what the hash is for. */
const STEPS_MAX = 8;

/** An open hash table of the distinct values found. A slot has 1 + the number of a value, or 0. */
class Found {
  count = 0;
  slots: Int32Array;
  mask: number;
  firsts: Int32Array;
  private hashes: Int32Array;

  constructor(valueCount: number) {
    const room = 2 ** Math.ceil(Math.log2(Math.max(1, Math.min(valueCount, FIRST_ROOM))));
    this.slots = new Int32Array(2 * room);
    this.mask = 2 * room - 1;
    this.firsts = new Int32Array(room);
    this.hashes = new Int32Array(room);
  }

  /** Returns the number of the new value. */
  add(slot: number, hash: number, first: number): number {
    const { count } = this;
    if (count === this.firsts.length) slot = this.grow(hash);
    this.slots[slot] = count + 1;
    this.firsts[count] = first;
    this.hashes[count] = hash;
    return this.count++;
  }

  /** Returns the free slot for a value of this hash. */
  private grow(hash: number): number {
    const { count, firsts, hashes } = this, size = 2 * this.slots.length, mask = size - 1, slots = new Int32Array(size);
    const free = (hash: number) => {
      let slot = hash & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      return slot;
    };
    for (let number = 0; number < count; number++) slots[free(hashes[number])] = number + 1;
    this.firsts = new Int32Array(size / 2);
    this.firsts.set(firsts);
    this.hashes = new Int32Array(size / 2);
    this.hashes.set(hashes);
    this.slots = slots;
    this.mask = mask;
    return free(hash);
  }
}

/** Distinct cells. Undefined if there are more than `distinctMax`, or if their hashes are often the same. */
export function distinctCells(
  words: Int32Array,
  wordsPerCell: number,
  count: number,
  distinctMax: number,
): Distinct | undefined {
  const indexes = new Int32Array(count), found = new Found(count), max = Math.min(distinctMax, DISTINCT_MAX);
  let steps = STEPS_MAX * count;
  for (let k = 0; k < count; k++) {
    const cell = k * wordsPerCell;
    let hash = 0;
    for (let word = cell; word < cell + wordsPerCell; word++) hash = Math.imul(hash ^ words[word], 0x9e3779b1);
    hash = mix(hash);
    let slot = hash & found.mask, number = found.slots[slot] - 1;
    while (number >= 0) {
      if (equalCells(words, found.firsts[number] * wordsPerCell, cell, wordsPerCell)) break;
      if (--steps < 0) return undefined;
      slot = (slot + 1) & found.mask;
      number = found.slots[slot] - 1;
    }
    if (number < 0) {
      if (found.count >= max) return undefined;
      number = found.add(slot, hash, k);
    }
    indexes[k] = number;
  }
  return { indexes, firsts: found.firsts.slice(0, found.count) };
}

function equalCells(words: Int32Array, a: number, b: number, wordsPerCell: number): boolean {
  for (let word = 0; word < wordsPerCell; word++) if (words[a + word] !== words[b + word]) return false;
  return true;
}

/** Distinct ones of places below `placeCount`. */
export function distinctPlaces(places: Int32Array, count: number, placeCount: number): Distinct {
  const indexes = new Int32Array(count), numbers = new Int32Array(placeCount);
  const firsts = new Int32Array(Math.min(count, placeCount));
  let found = 0;
  for (let k = 0; k < count; k++) {
    let number = numbers[places[k]];
    if (number === 0) {
      firsts[found++] = k;
      number = numbers[places[k]] = found;
    }
    indexes[k] = number - 1;
  }
  return { indexes, firsts: firsts.subarray(0, found) };
}

/** Distinct texts of pairs. Undefined if they have more than `bytesMax` bytes, or if their hashes are often the same. */
export function distinctTexts(
  { u8 }: SharedHeap,
  pairs: Int32Array,
  count: number,
  bytesMax: number,
): Distinct | undefined {
  const indexes = new Int32Array(count), found = new Found(count);
  let steps = STEPS_MAX * count, bytes = 0;
  for (let k = 0; k < count; k++) {
    const address = pairs[2 * k] >>> 0, length = pairs[2 * k + 1];
    // A text is often where that of the row before is.
    if (k > 0 && pairs[2 * k - 1] === length && pairs[2 * k - 2] === pairs[2 * k]) {
      indexes[k] = indexes[k - 1];
      continue;
    }
    let hash = length;
    for (let at = address; at < address + length; at++) hash = Math.imul(hash ^ u8[at], 0x01000193);
    hash = mix(hash);
    let slot = hash & found.mask, number = found.slots[slot] - 1;
    while (number >= 0) {
      const first = 2 * found.firsts[number];
      if (pairs[first + 1] === length && equalBytes(u8, pairs[first] >>> 0, address, length)) break;
      if (--steps < 0) return undefined;
      slot = (slot + 1) & found.mask;
      number = found.slots[slot] - 1;
    }
    if (number < 0) {
      bytes += length;
      if (found.count >= DISTINCT_MAX || bytes > bytesMax) return undefined;
      number = found.add(slot, hash, k);
    }
    indexes[k] = number;
  }
  return { indexes, firsts: found.firsts.slice(0, found.count) };
}

function equalBytes(u8: Uint8Array, a: number, b: number, length: number): boolean {
  if (a === b) return true;
  for (let k = 0; k < length; k++) if (u8[a + k] !== u8[b + k]) return false;
  return true;
}
