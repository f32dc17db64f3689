/**
 * The postings of a stored chunk of symbols: for each code that the segment has, the rows that have it. They follow the encoded codes in
 * the chunk's extent, so that they are written, moved and removed with them, and programs without postings read the codes as before:
 *
 *     codes       as `ChunkCodec.encode` makes them
 *     blocks      for each code, ascending: difference to the code before, number of rows, and for each row the difference to the row
 *                 before; the first code of a block and the first row of a code as they are. All numbers are LEB128
 *     set         a bit for each code from the first one on, 1 if the segment has it; empty if the codes are too far apart
 *     directory   for each block: its first code i32, offset in the blocks u32, size u32, crc u32
 *     tail        magic u32, size of the codes u32, crc of the codes u32, number of blocks u32, size of the set u32, crc of the set u32,
 *                 crc of directory and tail so far u32, 0 u32
 *
 * A code is found by the directory and one block, so looking it up takes two short reads, or one if the directory is known. The set
 * tells which of many codes there are. NULL is code -1.
 */
import { crc32 } from "../bytes.ts";
import type { FoundRows } from "../contract.ts";
import type { SharedHeap } from "../heap.ts";

const MAGIC = 0x54534f50; // "POST"
const TAIL_BYTES = 32, ENTRY_BYTES = 16;
const SET_BYTES_MAX = 8192;
/** A block ends with the code that fills it. */
const BLOCK_ROWS = 512;
/** Rows of a segment are fewer than 2^16. */
const ROW_VALUES = 65_536;
/** A code and its count take at most 5 and 3 bytes, and each row at most 3. */
const CODE_BYTES_MAX = 8, ROW_BYTES_MAX = 3;
/** Bytes that are read first: the tail and the directory. */
const TAIL_BYTES_MAX = TAIL_BYTES + ENTRY_BYTES * (ROW_VALUES / BLOCK_ROWS + 1);

/** Segments with fewer rows, or with fewer codes, are scanned as fast. */
export const POSTINGS_ROWS_MIN = 1024;
const CODES_MIN = 32;

let made = new Uint8Array(0);

/**
 * Makes the postings of a chunk of `rowCount` codes in the shared memory at `address`, which follow its encoded codes. Undefined if they
 * would not pay. Valid until the next call.
 */
export function makePostings(
  heap: SharedHeap,
  address: number,
  rowCount: number,
  codes: Uint8Array,
): Uint8Array | undefined {
  if (rowCount < POSTINGS_ROWS_MIN) return undefined;
  // A copy, because views of shared memory are slower.
  const { rows, codes: sorted } = sortedByCode(heap.i32.slice(address / 4, address / 4 + rowCount));
  let codeCount = 1;
  for (let k = 1; k < rowCount; k++) if (sorted[k] !== sorted[k - 1]) codeCount++;
  if (codeCount < CODES_MIN) return undefined;
  const sizeMax = codeCount * CODE_BYTES_MAX + rowCount * ROW_BYTES_MAX + SET_BYTES_MAX + TAIL_BYTES_MAX;
  if (made.length < sizeMax) made = new Uint8Array(sizeMax);
  const out = made;
  let at = 0;
  const blocks: { code: number; at: number; end: number }[] = [];
  let inBlock = BLOCK_ROWS, last = 0;
  for (let from = 0, to = 0; from < rowCount; from = to) {
    const code = sorted[from]!;
    for (to = from + 1; to < rowCount && sorted[to] === code;) to++;
    if (inBlock >= BLOCK_ROWS) {
      blocks.push({ code, at, end: at });
      inBlock = 0;
      last = code;
    }
    at = put(out, at, code - last);
    at = put(out, at, to - from);
    for (let k = from, before = 0; k < to; before = rows[k++]!) {
      const step = rows[k]! - before;
      if (step < 128) out[at++] = step;
      else if (step < 16_384) {
        out[at] = 128 | (step & 127);
        out[at + 1] = step >>> 7;
        at += 2;
      } else at = put(out, at, step);
    }
    last = code;
    inBlock += to - from;
    blocks.at(-1)!.end = at;
  }
  const set = setOf(sorted);
  out.set(set, at);
  at += set.length;
  const tail = new DataView(out.buffer, at, blocks.length * ENTRY_BYTES + TAIL_BYTES);
  blocks.forEach((block, k) => {
    tail.setInt32(ENTRY_BYTES * k, block.code, true);
    tail.setUint32(ENTRY_BYTES * k + 4, block.at, true);
    tail.setUint32(ENTRY_BYTES * k + 8, block.end - block.at, true);
    tail.setUint32(ENTRY_BYTES * k + 12, crc32(out.subarray(block.at, block.end)), true);
  });
  const tailAt = ENTRY_BYTES * blocks.length;
  tail.setUint32(tailAt, MAGIC, true);
  tail.setUint32(tailAt + 4, codes.length, true);
  tail.setUint32(tailAt + 8, crc32(codes), true);
  tail.setUint32(tailAt + 12, blocks.length, true);
  tail.setUint32(tailAt + 16, set.length, true);
  tail.setUint32(tailAt + 20, crc32(set), true);
  tail.setUint32(tailAt + 24, crc32(out.subarray(at, at + tailAt + 24)), true);
  tail.setUint32(tailAt + 28, 0, true);
  return out.subarray(0, at + tailAt + TAIL_BYTES);
}

function setOf(sorted: Int32Array): Uint8Array {
  const low = sorted[0]!, sizeBytes = Math.ceil((sorted.at(-1)! - low + 1) / 8);
  if (sizeBytes > SET_BYTES_MAX) return new Uint8Array(0);
  const set = new Uint8Array(sizeBytes);
  for (let k = 0; k < sorted.length; k++) set[(sorted[k]! - low) >>> 3]! |= 1 << ((sorted[k]! - low) & 7);
  return set;
}

/** Writes a number at `at`, and returns where it ends. */
function put(out: Uint8Array, at: number, value: number): number {
  for (; value > 127; value >>>= 7) out[at++] = 128 | (value & 127);
  out[at] = value;
  return at + 1;
}

/** The rows in order of their codes, and these codes; rows of one code ascend. */
function sortedByCode(values: Int32Array): { rows: Uint16Array; codes: Int32Array } {
  const { length } = values;
  let low = values[0]!, high = low;
  for (let k = 1; k < length; k++) {
    if (values[k]! < low) low = values[k]!;
    if (values[k]! > high) high = values[k]!;
  }
  let rows = new Uint16Array(length), codes = values;
  for (let k = 0; k < length; k++) rows[k] = k;
  // Counting sort by 16 bits at a time, from the lowest on.
  for (let shift = 0; shift === 0 || (high - low) / 2 ** shift >= 1; shift += 16) {
    const digits = Math.min(ROW_VALUES, Math.floor((high - low) / 2 ** shift) + 1);
    const ends = new Uint32Array(digits + 1),
      sortedRows = new Uint16Array(length),
      sortedCodes = new Int32Array(length);
    for (let k = 0; k < length; k++) ends[((codes[k]! - low) >>> shift & 0xffff) + 1]!++;
    for (let k = 1; k <= digits; k++) ends[k]! += ends[k - 1]!;
    for (let k = 0; k < length; k++) {
      const code = codes[k]!, to = ends[(code - low) >>> shift & 0xffff]!++;
      sortedRows[to] = rows[k]!;
      sortedCodes[to] = code;
    }
    rows = sortedRows;
    codes = sortedCodes;
  }
  return { rows, codes };
}

/** The bytes of an extent of `sizeBytes`: reads into `into` from offset `at` of it. */
export type ReadExtent = (into: Uint8Array, at: number) => void;

/** What is read of a chunk with postings does not have the checksum that it was written with. */
export class DamagedPostingsError extends Error {
  override readonly name = "DamagedPostingsError";
}

interface Tail {
  codesBytes: number;
  codesCrc: number;
  setBytes: number;
  setCrc: number;
  directory: Uint8Array;
}

const tail = new Uint8Array(TAIL_BYTES_MAX);
let block = new Uint8Array(SET_BYTES_MAX);

function readTail(read: ReadExtent, sizeBytes: number): Tail {
  const size = Math.min(sizeBytes, TAIL_BYTES_MAX), bytes = tail.subarray(0, size);
  read(bytes, sizeBytes - size);
  const view = new DataView(tail.buffer, 0, size), tailAt = size - TAIL_BYTES;
  const directoryAt = tailAt - ENTRY_BYTES * view.getUint32(tailAt + 12, true);
  const isWhole = view.getUint32(tailAt, true) === MAGIC && directoryAt >= 0 &&
    crc32(bytes.subarray(directoryAt, tailAt + 24)) === view.getUint32(tailAt + 24, true);
  if (!isWhole) throw new DamagedPostingsError();
  return {
    codesBytes: view.getUint32(tailAt + 4, true),
    codesCrc: view.getUint32(tailAt + 8, true),
    setBytes: view.getUint32(tailAt + 16, true),
    setCrc: view.getUint32(tailAt + 20, true),
    directory: bytes.subarray(directoryAt, tailAt),
  };
}

/** Size and checksum of the codes alone. @throws {DamagedPostingsError} */
export function codesPart(read: ReadExtent, sizeBytes: number): { sizeBytes: number; crc: number } {
  const { codesBytes, codesCrc } = readTail(read, sizeBytes);
  return { sizeBytes: codesBytes, crc: codesCrc };
}

/** A head begins with these words. The directory and the set follow. */
const HEAD = { codesBytes: 0, blockCount: 1, setBytes: 2 } as const;
const HEAD_BYTES = 16;
export const HEAD_BYTES_MAX = HEAD_BYTES + TAIL_BYTES_MAX + SET_BYTES_MAX;
const head = new Uint8Array(HEAD_BYTES_MAX);

/**
 * What has to be known of a chunk to look rows up: the size of its codes, the directory and the set. Valid until the next call.
 * @throws {DamagedPostingsError}
 */
export function readHead(read: ReadExtent, sizeBytes: number): Uint8Array {
  const { codesBytes, setBytes, setCrc, directory } = readTail(read, sizeBytes);
  const setAt = HEAD_BYTES + directory.length, set = head.subarray(setAt, setAt + setBytes);
  if (setBytes > 0) read(set, sizeBytes - TAIL_BYTES - directory.length - setBytes);
  if (crc32(set) !== setCrc) throw new DamagedPostingsError();
  const words = wordsOf(head);
  words[HEAD.codesBytes] = codesBytes;
  words[HEAD.blockCount] = directory.length / ENTRY_BYTES;
  words[HEAD.setBytes] = setBytes;
  head.set(directory, HEAD_BYTES);
  return head.subarray(0, setAt + setBytes);
}

/** All but the set. */
function wordsOf(head: Uint8Array): Int32Array {
  return new Int32Array(head.buffer, head.byteOffset, Math.floor(head.length / 4));
}

/** Those of `wanted` that the segment has. Undefined if that can only be found by looking them up. `head`: of `readHead`, or a longer copy. */
export function presentCodes(head: Uint8Array, wanted: readonly number[]): number[] | undefined {
  const words = wordsOf(head), setBits = 8 * words[HEAD.setBytes]!;
  if (setBits === 0) return undefined;
  const low = words[HEAD_BYTES / 4]!,
    setAt = HEAD_BYTES + ENTRY_BYTES * words[HEAD.blockCount]!,
    present: number[] = [];
  for (let k = 0; k < wanted.length; k++) {
    const bit = wanted[k]! - low;
    if (bit >= 0 && bit < setBits && (head[setAt + (bit >>> 3)]! >>> (bit & 7) & 1) === 1) present.push(wanted[k]!);
  }
  return present;
}

class Found implements FoundRows {
  count = 0;
  rows = new Int32Array(1024);
  codes = new Int32Array(1024);

  add(row: number, code: number): void {
    if (this.count === this.rows.length) {
      const { rows, codes } = this;
      this.rows = new Int32Array(2 * rows.length);
      this.codes = new Int32Array(2 * rows.length);
      this.rows.set(rows);
      this.codes.set(codes);
    }
    this.rows[this.count] = row;
    this.codes[this.count++] = code;
  }

  /** Sorts by rows. */
  sort(): void {
    const order = Float64Array.from({ length: this.count }, (_, k) => this.rows[k] * 2 ** 32 + (this.codes[k] >>> 0));
    order.sort();
    for (let k = 0; k < this.count; k++) {
      this.rows[k] = Math.floor(order[k] / 2 ** 32);
      this.codes[k] = order[k] % 2 ** 32 | 0;
    }
  }
}

/** Each thread has one. */
const found = new Found();

/**
 * Finds the rows that have one of `wanted`, ascending codes. Undefined if there are more than `rowsMax`. Valid until the next call. `head`: of
 * `readHead`, or a longer copy.
 * @throws {DamagedPostingsError}
 */
export function findRows(
  head: Uint8Array,
  read: ReadExtent,
  wanted: readonly number[],
  rowsMax: number,
): FoundRows | undefined {
  found.count = 0;
  const words = wordsOf(head), codesBytes = words[HEAD.codesBytes]!, blockCount = words[HEAD.blockCount]!;
  const entryOf = (block: number) => (HEAD_BYTES + ENTRY_BYTES * block) / 4;
  let loaded = -1, at = 0, end = 0, code = 0, codesFound = 0;
  for (const each of wanted) {
    let low = 0, high = blockCount;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (words[entryOf(middle)]! <= each) low = middle + 1;
      else high = middle;
    }
    if (low === 0) continue;
    if (low - 1 !== loaded) {
      loaded = low - 1;
      const entry = entryOf(loaded);
      end = words[entry + 2]!;
      if (end > block.length) block = new Uint8Array(2 * end);
      const bytes = block.subarray(0, end);
      read(bytes, codesBytes + words[entry + 1]!);
      if (crc32(bytes) !== words[entry + 3]! >>> 0) throw new DamagedPostingsError();
      at = 0;
      code = words[entry]!;
    }
    const numbers = block;
    while (at < end) {
      // Numbers of one byte are read here, because most are.
      let gap = numbers[at]!, next = at + 1;
      if (gap > 127) [gap, next] = take(numbers, at);
      if (code + gap > each) break;
      code += gap;
      let count = numbers[next]!;
      if (count > 127) [count, at] = take(numbers, next);
      else at = next + 1;
      if (code === each) {
        if (found.count + count > rowsMax) return undefined;
        for (let k = 0, row = 0; k < count; k++) {
          let step = numbers[at++]!;
          if (step > 127) [step, at] = take(numbers, at - 1);
          found.add(row += step, code);
        }
        codesFound++;
        break;
      }
      for (let k = 0; k < count;) if (numbers[at++]! < 128) k++;
    }
  }
  if (codesFound > 1) found.sort();
  return found;
}

/** A number, and where it ends. */
function take(bytes: Uint8Array, at: number): [value: number, end: number] {
  let value = 0, shift = 0;
  for (;; shift += 7) {
    const byte = bytes[at++]!;
    value |= (byte & 127) << shift;
    if (byte < 128) return [value >>> 0, at];
  }
}
