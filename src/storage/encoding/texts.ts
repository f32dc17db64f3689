/**
 * A stored chunk of texts, encoded. Texts that repeat are stored once, as entries of a dictionary of the chunk. Otherwise each row has
 * an entry.
 *
 *     header, 32 bytes:
 *        0  u32 magic     4  u32 rows     8  u32 bytes of all entries     12  u32 bytes of the lengths     16  u32 bytes of the codes
 *       20  u32 blocks
 *     lengths of the entries, -1 for NULL, as `ChunkCodec.encodeIntegers` makes them
 *     with a dictionary: its code for each row, -1 for NULL, likewise
 *     stored size of each block, u32; zeros up to a multiple of 16
 *     blocks: 64 KiB of the entries each, by zstd. A block of its full size is stored as it is
 *
 * In memory the entries follow the pairs. Pairs of equal texts can refer to the same entry.
 */
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { assert } from "../../assert.ts";
import { align } from "../bytes.ts";
import type { SharedHeap } from "../heap.ts";
import type { ChunkCodec } from "./chunk.ts";
import { encodingBit } from "./encodings.ts";

const MAGIC = 0x54585450; // "PTXT"
const HEADER_BYTES = 32, ALIGN = 16;
const BLOCK_BYTES = 65_536;
/** Higher levels take several times as long and save a few percent. By default zlib would return a block in several pieces. */
const COMPRESSION = { chunkSize: BLOCK_BYTES, params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** A byte more: at its full size, zlib would look for a second piece. */
const DECOMPRESSION = { chunkSize: BLOCK_BYTES + 1 };
/** Texts that shrink by less are stored without encoding, and loading them decodes nothing. */
const SHRINKS_TO = 0.9;
/** After a block that does not shrink, this many blocks are stored without a try. */
const UNTRIED = 7;
/** A dictionary has at most half as many entries as rows. Above that it is given up early, from this row on. */
const DICTIONARY_CHECKED_FROM = 2048;
/** Rows of a step that looks for texts that repeat. */
const DICTIONARY_STEP = 8192;

export interface EncodedTexts {
  parts: Uint8Array[];
  /** Bits of `encodings.ts`. */
  encodings: number;
  entryBytes: number;
  /** Bytes of all rows' texts. */
  textBytes: number;
}

interface Dictionary {
  codes: Int32Array;
  /** The first row with each entry. */
  rows: number[];
}

/** Encodes and decodes texts. `codec` is used for lengths and codes. */
export class TextCodec {
  constructor(private readonly heap: SharedHeap, private readonly codec: ChunkCodec) {}

  /**
   * Encodes the texts whose pairs are at `address`, in steps of some rows and then of a block. Returns undefined if they would not become clearly smaller.
   * `codec` is not used across two steps.
   */
  *encodeSteps(address: number, rowCount: number): Generator<void, EncodedTexts | undefined> {
    const pairs = this.heap.i32.slice(address / 4, address / 4 + 2 * rowCount);
    let textBytes = 0;
    for (let k = 1; k < pairs.length; k += 2) textBytes += Math.max(0, pairs[k]);
    const dictionary = yield* this.dictionaryOf(pairs, rowCount);
    const lengths = Int32Array.from(
      { length: dictionary?.rows.length ?? rowCount },
      (_, k) => pairs[2 * (dictionary?.rows[k] ?? k) + 1],
    );
    const entries = this.gather(pairs, dictionary?.rows, lengths);
    const blocks = yield* compress(entries);
    const storedLengths = this.codec.encodeIntegers(lengths);
    const storedCodes = dictionary === undefined ? new Uint8Array(0) : this.codec.encodeIntegers(dictionary.codes);
    const head = new Uint32Array(HEADER_BYTES / 4);
    head.set([MAGIC, rowCount, entries.length, storedLengths.length, storedCodes.length, blocks.length]);
    const sizes = new Uint32Array(align(4 * blocks.length, ALIGN) / 4);
    sizes.set(blocks.map(({ length }) => length));
    const parts = [new Uint8Array(head.buffer), storedLengths, storedCodes, new Uint8Array(sizes.buffer), ...blocks];
    if (bytesOf(parts) >= SHRINKS_TO * (8 * rowCount + textBytes)) return undefined;
    const ofRows = dictionary === undefined ? 0 : encodingBit("dictionary");
    const ofEntries = bytesOf(blocks) < entries.length ? encodingBit("zstd") : 0;
    return { parts, encodings: ofRows | ofEntries || encodingBit("raw"), entryBytes: entries.length, textBytes };
  }

  /** Decodes what `encode` has made to pairs at `address`, followed by the entries. */
  decode(bytes: Uint8Array, address: number, rowCount: number): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length), { u8 } = this.heap;
    const [magic, rows, entryBytes, lengthsBytes, codesBytes, blockCount] = [0, 1, 2, 3, 4, 5].map((k) =>
      view.getUint32(4 * k, true)
    );
    assert(magic === MAGIC, "encoded texts begin with their magic");
    assert(rows === rowCount, "encoded texts have as many rows as their segment");
    let at = HEADER_BYTES;
    const take = (sizeBytes: number) => bytes.subarray(at, at += sizeBytes);
    const lengths = this.codec.decodeIntegers(take(lengthsBytes));
    const codes = codesBytes === 0 ? undefined : this.codec.decodeIntegers(take(codesBytes));
    const sizesAt = at, entriesAt = address + 8 * rowCount;
    at += align(4 * blockCount, ALIGN);
    for (let k = 0; k < blockCount; k++) {
      const from = k * BLOCK_BYTES, sizeBytes = Math.min(BLOCK_BYTES, entryBytes - from);
      const stored = take(view.getUint32(sizesAt + 4 * k, true));
      const block = stored.length === sizeBytes ? stored : zstdDecompressSync(stored, DECOMPRESSION);
      assert(block.length === sizeBytes, "a block of texts has its size");
      u8.set(block, entriesAt + from);
    }
    this.writePairs(address, rowCount, lengths, codes, entriesAt);
  }

  private writePairs(
    address: number,
    rowCount: number,
    lengths: Int32Array,
    codes: Int32Array | undefined,
    entriesAt: number,
  ): void {
    const starts = new Float64Array(lengths.length);
    for (let k = 0, at = entriesAt; k < lengths.length; k++) {
      starts[k] = at;
      if (lengths[k] > 0) at += lengths[k];
    }
    const { i32 } = this.heap;
    for (let row = 0, out = address / 4; row < rowCount; row++, out += 2) {
      const entry = codes === undefined ? row : codes[row];
      const length = entry < 0 ? -1 : lengths[entry];
      i32[out] = length > 0 ? starts[entry] : 0;
      i32[out + 1] = length;
    }
  }

  /** Returns undefined if too few texts repeat. */
  private *dictionaryOf(pairs: Int32Array, rowCount: number): Generator<void, Dictionary | undefined> {
    const codes = new Int32Array(rowCount), rows: number[] = [], hashes: number[] = [];
    const slots = new Int32Array(2 ** Math.ceil(Math.log2(2 * rowCount + 2))), mask = slots.length - 1;
    for (let row = 0; row < rowCount; row++) {
      const length = pairs[2 * row + 1];
      if (length < 0) {
        codes[row] = -1;
        continue;
      }
      const hash = this.hash(pairs[2 * row] >>> 0, length);
      let slot = hash & mask, entry = slots[slot] - 1;
      while (entry >= 0 && !(hashes[entry] === hash && this.equals(pairs, rows[entry], row))) {
        entry = slots[slot = (slot + 1) & mask] - 1;
      }
      if (entry < 0) {
        entry = rows.push(row) - 1;
        hashes.push(hash);
        slots[slot] = rows.length;
        if (2 * rows.length > Math.max(row, DICTIONARY_CHECKED_FROM)) return undefined;
      }
      codes[row] = entry;
      if (row % DICTIONARY_STEP === 0) yield;
    }
    return rows.length === 0 || 2 * rows.length > rowCount ? undefined : { codes, rows };
  }

  private hash(address: number, length: number): number {
    const { u8 } = this.heap;
    let hash = 0x811c9dc5;
    for (let at = address, end = address + length; at < end; at++) hash = Math.imul(hash ^ u8[at], 0x01000193);
    return hash ^ (hash >>> 15);
  }

  private equals(pairs: Int32Array, a: number, b: number): boolean {
    const length = pairs[2 * a + 1], { u8 } = this.heap;
    if (pairs[2 * b + 1] !== length) return false;
    const atA = pairs[2 * a] >>> 0, atB = pairs[2 * b] >>> 0;
    for (let k = 0; k < length; k++) if (u8[atA + k] !== u8[atB + k]) return false;
    return true;
  }

  /** The texts of these rows, or of all, one after the other. */
  private gather(pairs: Int32Array, rows: readonly number[] | undefined, lengths: Int32Array): Uint8Array {
    let sizeBytes = 0;
    for (const length of lengths) sizeBytes += Math.max(0, length);
    const gathered = new Uint8Array(sizeBytes), { u8 } = this.heap;
    // Texts that are contiguous are copied as one run.
    let runStart = 0, runEnd = 0, at = 0;
    const copyRun = () => {
      if (runEnd > runStart) gathered.set(u8.subarray(runStart, runEnd), at - (runEnd - runStart));
    };
    for (let k = 0; k < lengths.length; k++) {
      if (lengths[k] <= 0) continue;
      const from = pairs[2 * (rows === undefined ? k : rows[k])] >>> 0;
      if (from !== runEnd) {
        copyRun();
        runStart = from;
      }
      runEnd = from + lengths[k];
      at += lengths[k];
    }
    copyRun();
    return gathered;
  }
}

function bytesOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, { length }) => sum + length, 0);
}

function* compress(bytes: Uint8Array): Generator<void, Uint8Array[]> {
  const blocks: Uint8Array[] = [];
  let untried = 0;
  for (let from = 0; from < bytes.length; from += BLOCK_BYTES) {
    const block = bytes.subarray(from, from + BLOCK_BYTES);
    const compressed = untried > 0 ? block : zstdCompressSync(block, COMPRESSION);
    const isSmaller = compressed.length < SHRINKS_TO * block.length;
    untried = isSmaller ? 0 : untried > 0 ? untried - 1 : UNTRIED;
    blocks.push(isSmaller ? compressed : block);
    yield;
  }
  return blocks;
}
