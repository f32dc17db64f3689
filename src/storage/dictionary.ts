/**
 * The texts of a SYMBOL column: code k is the k-th text that was added. Entries (text pairs) and bytes are in shared memory for
 * readers; only the writer has the hash table from text to code.
 */
import { CorruptFileError } from "../errors.ts";
import { crc32 } from "./bytes.ts";
import { type Files, readFully, writeFully } from "./files.ts";
import { checkFormat, DICTIONARY_MAGIC, encodeHeader, HEADER_BYTES, headerVersion } from "./format.ts";
import type { MemoryBlock, WriterMemory } from "./memory.ts";

const ARENA_MIN = 4096, ARENA_MAX = 1 << 20;

export class SymbolTable {
  count = 0;
  entries: MemoryBlock;
  private entryCapacity: number;
  private arenas: MemoryBlock[] = [];
  private hashes = new Int32Array(64);
  /** Code + 1, or 0. */
  private slots = new Int32Array(128);
  /** Blocks that were replaced since the last publication. */
  outgrown: MemoryBlock[] = [];
  /** The part that is on disk: number of entries, bytes, and their running CRC. */
  stored = { count: 0, sizeBytes: 0, crc: 0 };

  constructor(private readonly memory: WriterMemory) {
    this.entries = memory.allocate(ARENA_MIN, "dictionary");
    this.entries.refs = 1;
    this.entryCapacity = this.entries.sizeBytes / 8;
  }

  intern(bytes: Uint8Array, offset: number, length: number): number {
    let hash = 0x811c9dc5;
    for (let i = offset, end = offset + length; i < end; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
    hash ^= hash >>> 15;
    const mask = this.slots.length - 1;
    let slot = hash & mask;
    for (let found = this.slots[slot]; found !== 0; found = this.slots[slot = (slot + 1) & mask]) {
      if (this.hashes[found - 1] === hash && this.equals(found - 1, bytes, offset, length)) return found - 1;
    }
    return this.add(hash, slot, bytes, offset, length);
  }

  /**
   * Appends the entries that are not on disk yet (length u32 and bytes each, after a header: `format.ts`) and syncs.
   * Bytes beyond `stored` are leftovers and are overwritten.
   */
  store(files: Files, path: string): void {
    if (this.stored.count === this.count) return;
    const { u32, i32, u8 } = this.memory.heap, pairs = this.entries.address / 4;
    const header = this.stored.sizeBytes === 0 ? encodeHeader(DICTIONARY_MAGIC) : new Uint8Array(0);
    let sizeBytes = header.length;
    for (let code = this.stored.count; code < this.count; code++) sizeBytes += 4 + i32[pairs + 2 * code + 1];
    const bytes = new Uint8Array(sizeBytes);
    const view = new DataView(bytes.buffer);
    bytes.set(header);
    let at = header.length;
    for (let code = this.stored.count; code < this.count; code++) {
      const from = u32[pairs + 2 * code], length = i32[pairs + 2 * code + 1];
      view.setUint32(at, length, true);
      at += 4;
      // Most texts are short, and a view of each would take longer than copying it.
      for (let k = 0; k < length; k++) bytes[at++] = u8[from + k];
    }
    const file = files.open(path, "create");
    try {
      writeFully(file, [bytes], this.stored.sizeBytes);
      file.sync();
    } finally {
      file.close();
    }
    this.stored = {
      count: this.count,
      sizeBytes: this.stored.sizeBytes + sizeBytes,
      crc: crc32(bytes, this.stored.crc),
    };
  }

  load(files: Files, path: string, stored: SymbolTable["stored"]): void {
    if (stored.count === 0) return;
    if (!files.exists(path)) throw new CorruptFileError(path, "the file is missing");
    const bytes = new Uint8Array(stored.sizeBytes);
    const file = files.open(path, "read");
    try {
      if (readFully(file, bytes, 0) < bytes.length) {
        throw new CorruptFileError(path, `it is shorter than ${bytes.length} bytes`);
      }
    } finally {
      file.close();
    }
    if (crc32(bytes) !== stored.crc) throw new CorruptFileError(path, "the checksum does not match");
    const view = new DataView(bytes.buffer);
    const version = headerVersion(bytes, DICTIONARY_MAGIC);
    checkFormat(path, version ?? 0);
    for (let at = version === undefined ? 0 : HEADER_BYTES; at < bytes.length;) {
      const length = view.getUint32(at, true);
      this.intern(bytes, at + 4, length);
      at += 4 + length;
    }
    this.stored = stored;
  }

  /** Frees all memory, as of version `version`. */
  retire(version: number): void {
    for (const block of [this.entries, ...this.arenas, ...this.outgrown]) {
      block.refs = 0;
      this.memory.retire(block, version);
    }
    this.outgrown = [];
  }

  private equals(code: number, bytes: Uint8Array, offset: number, length: number): boolean {
    const { u32, i32, u8 } = this.memory.heap;
    const pair = this.entries.address / 4 + 2 * code;
    if (i32[pair + 1] !== length) return false;
    const from = u32[pair];
    for (let i = 0; i < length; i++) if (u8[from + i] !== bytes[offset + i]) return false;
    return true;
  }

  private add(hash: number, slot: number, bytes: Uint8Array, offset: number, length: number): number {
    const { u32, i32, u8 } = this.memory.heap;
    const arena = this.arenaFor(length);
    if (this.count === this.entryCapacity) this.growEntries();
    const code = this.count;
    const address = arena.address + arena.used;
    u8.set(bytes.subarray(offset, offset + length), address);
    arena.used += length;
    const pair = this.entries.address / 4 + 2 * code;
    u32[pair] = address;
    i32[pair + 1] = length;
    if (code === this.hashes.length) {
      const larger = new Int32Array(2 * code);
      larger.set(this.hashes);
      this.hashes = larger;
    }
    this.hashes[code] = hash;
    this.slots[slot] = code + 1;
    this.count++;
    if (2 * this.count > this.slots.length) this.rehash();
    return code;
  }

  private arenaFor(length: number): MemoryBlock {
    const last = this.arenas.at(-1);
    if (last !== undefined && last.used + length <= last.sizeBytes) return last;
    const size = Math.max(length, last === undefined ? ARENA_MIN : Math.min(ARENA_MAX, 2 * last.sizeBytes));
    const arena = this.memory.allocate(size, "dictionary");
    arena.refs = 1;
    this.arenas.push(arena);
    return arena;
  }

  private growEntries(): void {
    const old = this.entries;
    const larger = this.memory.allocate(2 * old.sizeBytes, "dictionary");
    this.memory.heap.u8.copyWithin(larger.address, old.address, old.address + 8 * this.count);
    larger.refs = 1;
    old.refs = 0;
    this.outgrown.push(old);
    this.entries = larger;
    this.entryCapacity = larger.sizeBytes / 8;
  }

  private rehash(): void {
    const slots = new Int32Array(2 * this.slots.length);
    const mask = slots.length - 1;
    for (let code = 0; code < this.count; code++) {
      let slot = this.hashes[code] & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = code + 1;
    }
    this.slots = slots;
  }
}
