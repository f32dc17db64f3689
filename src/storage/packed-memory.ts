/**
 * A memory that has packed frames alone. Kernels do not see it: threads copy from it to the first memory.
 *
 * Frames are evicted at random places and replaced by others of similar sizes. Blocks of exact sizes, each from the smallest free run that is large
 * enough, then fill the memory to 95 %. The buddy blocks of the heap, which are halved and aligned, filled it to 50 to 60 % (chunks of trades).
 *
 *     words 0 …    counters, words of the pool (`SHARED_WORD`), the first free run of each length
 *     then         a word for each unit of 4 KiB: at the ends of a run its length, negative if it is in use
 *     then         units. A free run begins with the next and the previous one in its list.
 *
 * The lock of the pool guards all of it.
 */
import { assert } from "../assert.ts";
import { PAGE_BYTES } from "../wasm/assembler.ts";
import { MEMORY_BYTES_MAX, SHARED_WORD } from "./heap.ts";

const UNIT_BYTES = 4096;
const UNIT_COUNT = 0, USED_UNITS = 1;
/** Longer free runs have one list. */
const LENGTH_MAX = 128;
const HEADS = SHARED_WORD.poolState + 64;
const RUNS = HEADS + LENGTH_MAX + 2;
const NONE = -1;

export class PackedMemory {
  readonly u8: Uint8Array;
  readonly i32: Int32Array;
  /** Address of the first unit. */
  private readonly base: number;

  /** Wraps a buffer that `createPackedMemory` has formatted. Every thread makes its own wrapper of the same buffer. */
  constructor(readonly buffer: SharedArrayBuffer) {
    this.u8 = new Uint8Array(buffer);
    this.i32 = new Int32Array(buffer);
    const unitsInAll = Math.floor(buffer.byteLength / UNIT_BYTES);
    this.base = Math.ceil((RUNS + unitsInAll) * 4 / UNIT_BYTES) * UNIT_BYTES;
  }

  format(): void {
    const units = Math.floor((this.u8.length - this.base) / UNIT_BYTES);
    this.i32.fill(NONE, HEADS, RUNS);
    this.i32[UNIT_COUNT] = units;
    this.link(0, units);
  }

  sizeBytes(): number {
    return this.i32[UNIT_COUNT] * UNIT_BYTES;
  }

  usedBytes(): number {
    return this.i32[USED_UNITS] * UNIT_BYTES;
  }

  /** Address of a block of `sizeBytes` rounded up to 4 KiB; undefined if there is none. */
  tryAllocateExact(sizeBytes: number): number | undefined {
    const length = unitsOf(sizeBytes);
    for (let list = Math.min(length, LENGTH_MAX + 1); list <= LENGTH_MAX + 1; list++) {
      let unit = this.i32[HEADS + list];
      while (unit !== NONE && this.i32[RUNS + unit] < length) unit = this.i32[this.wordOf(unit)];
      if (unit === NONE) continue;
      const found = this.unlink(unit);
      if (found > length) this.link(unit + length, found - length);
      this.mark(unit, length, -length);
      this.i32[USED_UNITS] += length;
      return this.base + unit * UNIT_BYTES;
    }
    return undefined;
  }

  freeExact(address: number, sizeBytes: number): void {
    const { i32 } = this, length = unitsOf(sizeBytes);
    let from = (address - this.base) / UNIT_BYTES, to = from + length;
    assert(i32[RUNS + from] === -length, "a block is freed once, with the size it was allocated with");
    i32[USED_UNITS] -= length;
    this.mark(from, length, 0);
    if (to < i32[UNIT_COUNT] && i32[RUNS + to] > 0) to += this.unlink(to);
    if (from > 0 && i32[RUNS + from - 1] > 0) from -= this.unlink(from - i32[RUNS + from - 1]);
    this.link(from, to - from);
  }

  private wordOf(unit: number): number {
    return (this.base + unit * UNIT_BYTES) / 4;
  }

  private mark(unit: number, length: number, value: number): void {
    this.i32[RUNS + unit] = this.i32[RUNS + unit + length - 1] = value;
  }

  /** Makes a free run. */
  private link(unit: number, length: number): void {
    const { i32 } = this, head = HEADS + Math.min(length, LENGTH_MAX + 1), word = this.wordOf(unit), next = i32[head];
    this.mark(unit, length, length);
    i32[word] = next;
    i32[word + 1] = NONE;
    if (next !== NONE) i32[this.wordOf(next) + 1] = unit;
    i32[head] = unit;
  }

  /** Takes a free run from its list, and returns its length. */
  private unlink(unit: number): number {
    const { i32 } = this, length = i32[RUNS + unit], word = this.wordOf(unit);
    const next = i32[word], previous = i32[word + 1];
    if (previous === NONE) i32[HEADS + Math.min(length, LENGTH_MAX + 1)] = next;
    else i32[this.wordOf(previous)] = next;
    if (next !== NONE) i32[this.wordOf(next) + 1] = previous;
    return length;
  }
}

function unitsOf(sizeBytes: number): number {
  return Math.max(1, Math.ceil(sizeBytes / UNIT_BYTES));
}

/**
 * V8 counts the size of each `WebAssembly.Memory` as external memory of its thread, and collects all the time when all of them exceed its
 * limit. Therefore threads get the buffer, and this one a clone of it: the buffer itself refers to the `WebAssembly.Memory`.
 */
export function createPackedMemory(sizeBytes: number): PackedMemory {
  const pages = Math.floor(Math.min(sizeBytes, MEMORY_BYTES_MAX) / PAGE_BYTES);
  const buffer = structuredClone(new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }).buffer);
  const memory = new PackedMemory(buffer as unknown as SharedArrayBuffer);
  memory.format();
  return memory;
}
