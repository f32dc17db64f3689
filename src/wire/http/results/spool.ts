/**
 * Encoded rows of one result. The first ones are in memory; once there are many, all are in a file. Rows are lines of
 * JSON, `[…]`, joined by a comma and a line feed (`isLines` of the encoding). Files are read and written only by
 * asynchronous calls.
 */
import { dirname } from "node:path";
import { assert } from "../../../assert.ts";
import { joinedBytes, writeAll } from "../../../bytes.ts";
import { asDiskFull } from "../../../errors.ts";

/** Consecutive rows in the file, or in memory if there is no file yet. */
interface Block {
  firstRow: number;
  rowCount: number;
  /** Position in the file. */
  position: number;
  sizeBytes: number;
  /** The rows with their separators, until they are written. */
  parts?: Uint8Array[];
}

export interface RowRange {
  rowCount: number;
  /** The rows, joined by a comma and a line feed. */
  parts: Uint8Array[];
}

/** Smaller results need no file. */
const MEMORY_BYTES = 1 << 20;
/** Approximate size of a block, which is the unit of reads from the file. */
export const BLOCK_BYTES = 256 << 10;
/** A range ends with the block in which it exceeds this size, but has at least one row. */
const RANGE_BYTES_MAX = 4 << 20;
const COMMA = 0x2c, LINE_FEED = 0x0a;
const SEPARATOR = Uint8Array.of(COMMA, LINE_FEED);
const PRIVATE_FILE = 0o600, PRIVATE_DIRECTORY = 0o700;

export class Spool {
  rowCount = 0;
  sizeBytes = 0;
  private readonly blocks: Block[] = [];
  /** Index of the first block that is not written. */
  private written = 0;
  private file: Deno.FsFile | undefined;
  private hasFile = false;
  private isRemoved = false;
  private writing: Promise<void> | undefined;

  constructor(readonly path: string) {}

  /**
   * Adds a chunk of the encoder. Resolves when the next one can be added.
   * @throws {DiskFullError}
   */
  async add(bytes: Uint8Array, rowCount: number): Promise<void> {
    if (rowCount === 0 || this.isRemoved) return;
    // A separator precedes all rows except the first. A copy is needed, because shared memory would change.
    const rows = this.rowCount === 0 ? bytes.slice() : bytes.slice(SEPARATOR.length);
    const last = this.blocks.at(-1);
    if (last?.parts !== undefined && last.sizeBytes + rows.length <= BLOCK_BYTES) {
      last.parts.push(SEPARATOR, rows);
      last.sizeBytes += SEPARATOR.length + rows.length;
      last.rowCount += rowCount;
    } else {
      const position = last === undefined ? 0 : endOf(last) + SEPARATOR.length;
      this.blocks.push({ firstRow: this.rowCount, rowCount, position, sizeBytes: rows.length, parts: [rows] });
    }
    this.rowCount += rowCount;
    this.sizeBytes += rows.length;
    if (this.sizeBytes > MEMORY_BYTES) await this.write(this.blocks.length - 1);
  }

  /** Called after the last row. */
  async end(): Promise<void> {
    if (this.hasFile) await this.store();
  }

  /**
   * Writes all rows to the file, joined by a comma and a line feed. Called after the last row. Returns the file's size.
   * @throws {DiskFullError}
   */
  async store(): Promise<number> {
    await (this.writing ??= this.writeRest());
    const last = this.blocks.at(-1);
    return last === undefined ? 0 : endOf(last);
  }

  private async writeRest(): Promise<void> {
    try {
      if (!this.isRemoved) await this.write(this.blocks.length);
    } finally {
      this.file?.close();
      this.file = undefined;
    }
  }

  /** True if all rows are in memory. */
  get isInMemory(): boolean {
    return !this.hasFile;
  }

  /** Returns the rows from `first` on: at most `count`, at most some megabytes, and only those that already exist. */
  async read(first: number, count: number): Promise<RowRange> {
    const range: RowRange = { rowCount: 0, parts: [] };
    const end = Math.min(this.rowCount, first + count);
    let sizeBytes = 0;
    for (let row = first, at = this.blockOf(first); row < end && sizeBytes < RANGE_BYTES_MAX; at++) {
      const block = this.blocks[at]!;
      const bytes = block.parts === undefined ? await this.readBlock(block) : joinedBytes(block.parts);
      const rows = rowsOf(bytes, row - block.firstRow, Math.min(end - block.firstRow, block.rowCount), block.rowCount);
      if (range.parts.length > 0) range.parts.push(SEPARATOR);
      range.parts.push(rows);
      sizeBytes += rows.length;
      const next = Math.min(end, block.firstRow + block.rowCount);
      range.rowCount += next - row;
      row = next;
    }
    return range;
  }

  async remove(): Promise<void> {
    if (this.isRemoved) return;
    this.isRemoved = true;
    this.blocks.length = this.rowCount = this.sizeBytes = 0;
    this.file?.close();
    this.file = undefined;
    if (!this.hasFile) return;
    try {
      await Deno.remove(this.path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }

  /** Index of the block with the row. */
  private blockOf(row: number): number {
    let low = 0, high = this.blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.blocks[middle]!.firstRow <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Writes the blocks before `end`. */
  private async write(end: number): Promise<void> {
    try {
      if (!this.hasFile) {
        await Deno.mkdir(dirname(this.path), { recursive: true, mode: PRIVATE_DIRECTORY });
        this.hasFile = true;
        this.file = await Deno.open(this.path, { write: true, createNew: true, mode: PRIVATE_FILE });
      }
      for (; this.written < end && !this.isRemoved; this.written++) {
        const block = this.blocks[this.written]!;
        const bytes = joinedBytes(block.parts!);
        await writeAll(this.file!, this.written === 0 ? bytes : joinedBytes([SEPARATOR, bytes]));
        block.parts = undefined;
      }
    } catch (error) {
      // The error is expected if a removal has closed the file.
      if (!this.isRemoved) throw asDiskFull(this.path, error);
    }
  }

  private async readBlock({ position, sizeBytes }: Block): Promise<Uint8Array> {
    // Opens the file separately, because reading moves the position.
    using file = await Deno.open(this.path);
    await file.seek(position, Deno.SeekMode.Start);
    const bytes = new Uint8Array(sizeBytes);
    for (let at = 0; at < sizeBytes;) {
      const count = await file.read(bytes.subarray(at));
      if (count === null) throw new Error(`${this.path} ends at ${position + at}: expected ${position + sizeBytes}`);
      at += count;
    }
    return bytes;
  }
}

const endOf = ({ position, sizeBytes }: Block): number => position + sizeBytes;

/** Rows [from, to) of a block. Line feeds occur only between rows. */
function rowsOf(bytes: Uint8Array, from: number, to: number, rowCount: number): Uint8Array {
  let start = 0;
  for (let row = 0; row < from; row++) start = bytes.indexOf(LINE_FEED, start) + 1;
  if (to === rowCount) return bytes.subarray(start);
  let end = start;
  for (let row = from; row < to; row++) end = bytes.indexOf(LINE_FEED, end) + 1;
  assert(end > start, "a block has fewer rows than in its index");
  return bytes.subarray(start, end - SEPARATOR.length);
}
