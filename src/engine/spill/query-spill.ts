/**
 * What a query keeps on disk when its memory is short. Each thread appends blocks to a file of its own, and every thread of the query can
 * read them:
 *
 *     block   u32 size, u32 CRC-32 of the bytes, the bytes
 *
 * The files are in a directory of the query. The leading thread removes it when the query ends or fails; the next start removes what
 * a killed process has left.
 */
import { CorruptFileError, DiskFullError, SqlError, SQLSTATE } from "../../errors.ts";
import { type File, type Files, readFully, SHARED_WORD, type SharedHeap, writeFully } from "../../storage/mod.ts";
import { crc32 } from "node:zlib";
import type { Piece, Spill, SpilledBlock, SpillPlace } from "../contract.ts";
import { SLOT, slotWord } from "../slot.ts";

const HEADER_BYTES = 8;
/** Smaller blocks are collected in a buffer of this size, which is not part of the query's memory. */
const BUFFER_BYTES = 1 << 20;
/** Unit of the counters in shared memory. */
export const SPILL_UNIT_BYTES = 1_024;

const DIRECTORY = /^query-\d+$/;

/** Removes what a process that was killed has left. */
export function removeSpilled(files: Files, root: string): void {
  if (!files.exists(root)) return;
  for (const name of files.list(root)) if (DIRECTORY.test(name)) files.removeDirectory(`${root}/${name}`);
}

export class QuerySpill implements Spill {
  /** The file of this thread. */
  private own?: { number: number; file: File; written: number; buffer: Uint8Array; used: number };
  private readonly opened = new Map<number, File>();
  constructor(
    private readonly heap: SharedHeap,
    private readonly files: Files,
    private readonly place: SpillPlace,
    private slot: number,
  ) {}

  private get directory(): string {
    return `${this.place.root}/query-${this.slot}`;
  }

  /** True if a thread of the query has written something. */
  get isUsed(): boolean {
    return Atomics.load(this.heap.i32, slotWord(this.slot, SLOT.spilledUnits)) > 0;
  }

  /** For another query, which has this slot, after one that has written nothing. */
  moveTo(slot: number): void {
    this.slot = slot;
  }

  private pathOf(number: number): string {
    return `${this.directory}/${number}`;
  }

  private get ownFile() {
    if (this.own === undefined) {
      const { files, directory } = this, number = crypto.getRandomValues(new Uint32Array(1))[0];
      // `close` removes the directory if anything was counted.
      this.take(1);
      this.guarded(() => files.makeDirectory(directory));
      const file = this.guarded(() => files.open(this.pathOf(number), "create"));
      this.own = { number, file, written: 0, buffer: new Uint8Array(BUFFER_BYTES), used: 0 };
    }
    return this.own;
  }

  write(pieces: readonly Piece[]): SpilledBlock {
    const own = this.ownFile, { u8 } = this.heap;
    const parts = pieces.map(([address, sizeBytes]) => u8.subarray(address, address + sizeBytes));
    const sizeBytes = parts.reduce((sum, { length }) => sum + length, 0);
    const header = new Uint8Array(HEADER_BYTES), view = new DataView(header.buffer);
    view.setUint32(0, sizeBytes, true);
    view.setUint32(4, parts.reduce((crc, part) => crc32(part, crc), 0), true);
    if (own.used + HEADER_BYTES + sizeBytes > BUFFER_BYTES) this.flush();
    const block: SpilledBlock = { file: own.number, offset: own.written + own.used, sizeBytes };
    if (HEADER_BYTES + sizeBytes > BUFFER_BYTES) this.append([header, ...parts]);
    else {
      for (const part of [header, ...parts]) {
        own.buffer.set(part, own.used);
        own.used += part.length;
      }
    }
    return block;
  }

  countPart(): void {
    Atomics.add(this.heap.i64, SHARED_WORD.spilledPartsTotal / 2, 1n);
  }

  flush(): void {
    const { own } = this;
    if (own === undefined || own.used === 0) return;
    const bytes = own.buffer.subarray(0, own.used);
    own.used = 0;
    this.append([bytes]);
  }

  private append(buffers: readonly Uint8Array[]): void {
    const own = this.own!, sizeBytes = buffers.reduce((sum, { length }) => sum + length, 0);
    const units = Math.ceil(sizeBytes / SPILL_UNIT_BYTES);
    this.take(units);
    this.guarded(() => writeFully(own.file, buffers, own.written));
    Atomics.add(this.heap.i64, SHARED_WORD.spilledUnitsTotal / 2, BigInt(units));
    own.written += sizeBytes;
  }

  /** Counts space before it is written. */
  private take(units: number): void {
    const { heap: { i32 }, place: { limitBytes } } = this;
    Atomics.add(i32, slotWord(this.slot, SLOT.spilledUnits), units);
    const before = Atomics.add(i32, SHARED_WORD.spilledUnits, units);
    if ((before + units) * SPILL_UNIT_BYTES <= limitBytes) return;
    throw new SqlError(
      `the query's memory limit (cairo.query.memory.limit) is reached, and so is the space of all queries on disk: ${limitBytes} bytes (query.spill.limit)`,
      0,
      SQLSTATE.configurationLimitExceeded,
    );
  }

  /** A full disk is the query's failure. */
  private guarded<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      if (!(error instanceof DiskFullError)) throw error;
      throw new SqlError(
        `the query's memory limit (cairo.query.memory.limit) is reached, and the disk is full: ${error.path}`,
        0,
        SQLSTATE.diskFull,
      );
    }
  }

  read({ file: number, offset, sizeBytes }: SpilledBlock, address: number): void {
    const file = this.fileOf(number), header = new Uint8Array(HEADER_BYTES), view = new DataView(header.buffer);
    const bytes = this.heap.u8.subarray(address, address + sizeBytes);
    const isWhole = readFully(file, header, offset) === HEADER_BYTES && view.getUint32(0, true) === sizeBytes &&
      readFully(file, bytes, offset + HEADER_BYTES) === sizeBytes;
    if (!isWhole || view.getUint32(4, true) !== crc32(bytes)) {
      throw new CorruptFileError(file.path, `the block at ${offset} is damaged`);
    }
  }

  private fileOf(number: number): File {
    if (number === this.own?.number) {
      this.flush();
      return this.own.file;
    }
    let file = this.opened.get(number);
    if (file === undefined) this.opened.set(number, file = this.files.open(this.pathOf(number), "read"));
    return file;
  }

  /** Closes the files of this thread. The leading thread removes those of all, when no other works on the query any more. */
  close(leads: boolean): void {
    for (const file of this.opened.values()) file.close();
    this.opened.clear();
    this.own?.file.close();
    this.own = undefined;
    if (!leads) return;
    const { i32 } = this.heap, units = Atomics.exchange(i32, slotWord(this.slot, SLOT.spilledUnits), 0);
    if (units === 0) return;
    this.files.removeDirectory(this.directory);
    Atomics.sub(i32, SHARED_WORD.spilledUnits, units);
  }
}
