/**
 * The write-ahead log of the whole database: consecutive files `log/<first LSN>.wal`, each a header and blocks:
 *
 *     file    magic u32 "SWAL", crc u32 of all behind it, first LSN f64, salt u32, crc of the last block before u32, format
 *             version u32, zeros to 64 bytes
 *     block   header (64 bytes), payload padded to 64 bytes, the header again with another magic
 *     header  magic u32, crc u32 of all behind it (seeded with the file's salt), lsn f64, kind u16, flags u16, table id u32,
 *             schema version u32, payload size u32, payload crc u32, crc of the last durable block u32, durable lsn f64, zeros
 *
 * A commit is one or more blocks; the last one is flagged. Every block records which block was the last durable one when it was
 * written. A mark (a header alone) records it again after the sync. So an unreadable block is **damage** if anything valid behind
 * it says that it was durable. Otherwise it is a **torn tail**, and only that is cut off.
 * The salt prevents user data, or the bytes of an older file, from passing as a header. The second header allows reading past a
 * damaged first one.
 */
import { CorruptFileError } from "../errors.ts";
import { align, crc32 } from "./bytes.ts";
import { type File, type Files, join, type ReadableFile, ReadAhead, readFully, writeFully } from "./files.ts";
import { checkFormat, FORMAT_VERSION } from "./format.ts";

const FILE_MAGIC = 0x4c415753;
const HEAD_MAGIC = 0x4b4c4248;
const TAIL_MAGIC = 0x4b4c4254;
const MARK_MAGIC = 0x4b4c424d;
export const BLOCK_HEADER_BYTES = 64;
const ZEROS = new Uint8Array(BLOCK_HEADER_BYTES);

export const BLOCK_KIND = { definition: 1, append: 2, update: 3, delete: 4, abort: 5, access: 6 } as const;
export const FLAG_LAST = 1;

export interface BlockInfo {
  lsn: number;
  kind: number;
  flags: number;
  tableId: number;
  schemaVersion: number;
}

/** Location of a block in a scanned log. */
export interface BlockLocation extends BlockInfo {
  path: string;
  payloadAt: number;
  payloadSize: number;
  payloadCrc: number;
  /** Format version of the file. */
  format: number;
}

interface Header extends BlockInfo {
  magic: number;
  crc: number;
  payloadSize: number;
  payloadCrc: number;
  durableCrc: number;
  durableLsn: number;
}

function encodeHeader(header: Omit<Header, "crc">, salt: number): Uint8Array {
  const bytes = new Uint8Array(BLOCK_HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, header.magic, true);
  view.setFloat64(8, header.lsn, true);
  view.setUint16(16, header.kind, true);
  view.setUint16(18, header.flags, true);
  view.setUint32(20, header.tableId, true);
  view.setUint32(24, header.schemaVersion, true);
  view.setUint32(28, header.payloadSize, true);
  view.setUint32(32, header.payloadCrc, true);
  view.setUint32(36, header.durableCrc, true);
  view.setFloat64(40, header.durableLsn, true);
  view.setUint32(4, crc32(bytes.subarray(8), salt), true);
  return bytes;
}

function decodeHeader(bytes: Uint8Array, salt: number): Header | undefined {
  if (bytes.length < BLOCK_HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, BLOCK_HEADER_BYTES);
  const magic = view.getUint32(0, true);
  if (magic !== HEAD_MAGIC && magic !== TAIL_MAGIC && magic !== MARK_MAGIC) return undefined;
  const crc = view.getUint32(4, true);
  if (crc !== crc32(bytes.subarray(8, BLOCK_HEADER_BYTES), salt)) return undefined;
  return {
    magic,
    crc,
    lsn: view.getFloat64(8, true),
    kind: view.getUint16(16, true),
    flags: view.getUint16(18, true),
    tableId: view.getUint32(20, true),
    schemaVersion: view.getUint32(24, true),
    payloadSize: view.getUint32(28, true),
    payloadCrc: view.getUint32(32, true),
    durableCrc: view.getUint32(36, true),
    durableLsn: view.getFloat64(40, true),
  };
}

interface FileHeader {
  firstLsn: number;
  salt: number;
  previousCrc: number;
  /** Set when reading. */
  format?: number;
}

function encodeFileHeader(header: FileHeader): Uint8Array {
  const bytes = new Uint8Array(BLOCK_HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, FILE_MAGIC, true);
  view.setFloat64(8, header.firstLsn, true);
  view.setUint32(16, header.salt, true);
  view.setUint32(20, header.previousCrc, true);
  view.setUint32(24, FORMAT_VERSION, true);
  view.setUint32(4, crc32(bytes.subarray(8)), true);
  return bytes;
}

function decodeFileHeader(file: ReadableFile): FileHeader | undefined {
  const bytes = new Uint8Array(BLOCK_HEADER_BYTES);
  if (readFully(file, bytes, 0) < BLOCK_HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer);
  if (view.getUint32(0, true) !== FILE_MAGIC || view.getUint32(4, true) !== crc32(bytes.subarray(8))) return undefined;
  const format = view.getUint32(24, true);
  checkFormat(file.path, format);
  const firstLsn = view.getFloat64(8, true), salt = view.getUint32(16, true), previousCrc = view.getUint32(20, true);
  return { firstLsn, salt, previousCrc, format };
}

export function logPath(directory: string, firstLsn: number): string {
  return join(directory, `${String(firstLsn).padStart(16, "0")}.wal`);
}

export function logFiles(files: Files, directory: string): { path: string; firstLsn: number }[] {
  if (!files.exists(directory)) return [];
  return files.list(directory).filter((name) => /^\d{16}\.wal$/.test(name))
    .map((name) => ({ path: join(directory, name), firstLsn: Number(name.slice(0, 16)) }));
}

/** The end of a log: everything needed to continue writing it. */
interface End {
  path: string;
  format: number;
  firstLsn: number;
  salt: number;
  position: number;
  lastLsn: number;
  lastCrc: number;
}

export class Log {
  private queue: Uint8Array[] = [];
  private queuedBytes = 0;
  /** LSN of the last queued block. */
  lastLsn: number;
  private lastCrc: number;
  private durableLsn: number;
  private durableCrc: number;
  private position: number;
  private file: File;
  private salt: number;
  /** First LSN of the current file. */
  firstLsn: number;
  /** Bytes of the older files since the last `drop`. */
  private olderBytes = 0;
  /** First LSN since the last `drop`. */
  private oldestLsn: number;

  private constructor(
    private readonly files: Files,
    private readonly directory: string,
    end: End,
    private readonly random: () => number,
  ) {
    this.file = files.open(end.path, "write");
    this.firstLsn = this.oldestLsn = end.firstLsn;
    this.salt = end.salt;
    this.position = end.position;
    this.lastLsn = this.durableLsn = end.lastLsn;
    this.lastCrc = this.durableCrc = end.lastCrc;
  }

  /** Creates an empty, durable log whose first block will be `firstLsn`. */
  static create(files: Files, directory: string, firstLsn: number, random: () => number): Log {
    const end = createFile(files, directory, firstLsn, 0, random);
    return new Log(files, directory, end, random);
  }

  /** Opens the log where `scan` ended, and cuts off the torn tail. */
  static open(files: Files, directory: string, scan: Scan, random: () => number): Log {
    const log = new Log(files, directory, scan.end, random);
    if (log.file.size() > log.position) log.file.truncate(log.position);
    log.oldestLsn = scan.firstLsn;
    for (const { path, firstLsn } of logFiles(files, directory)) {
      if (firstLsn >= scan.firstLsn && path !== scan.end.path) log.olderBytes += sizeOf(files, path);
    }
    // Recovery relies on what a killed process had written, so make that durable.
    log.file.sync();
    files.syncDirectory(directory);
    // Blocks of this version do not go into a file of an older one, which an older version would read.
    if (scan.end.format < FORMAT_VERSION) {
      // An empty file cannot be followed by one that begins with the same LSN: this block aborts nothing.
      if (log.position === BLOCK_HEADER_BYTES) {
        log.add({ kind: BLOCK_KIND.abort, flags: FLAG_LAST, tableId: 0, schemaVersion: 0 }, []);
        log.write();
      }
      log.roll();
    }
    return log;
  }

  get sizeBytes(): number {
    return this.olderBytes + this.position - BLOCK_HEADER_BYTES;
  }

  get blockCount(): number {
    return this.lastLsn - this.oldestLsn + 1;
  }

  /** Queues a block and returns its LSN. */
  add(info: Omit<BlockInfo, "lsn">, parts: readonly Uint8Array[]): number {
    let payloadSize = 0, payloadCrc = 0;
    for (const part of parts) {
      payloadSize += part.length;
      payloadCrc = crc32(part, payloadCrc);
    }
    if (payloadSize >= 2 ** 32) throw new Error(`a block of ${payloadSize} bytes is too large for the log`);
    const lsn = ++this.lastLsn;
    const header = { ...info, lsn, payloadSize, payloadCrc, durableCrc: this.durableCrc, durableLsn: this.durableLsn };
    const head = encodeHeader({ ...header, magic: HEAD_MAGIC }, this.salt);
    const tail = encodeHeader({ ...header, magic: TAIL_MAGIC }, this.salt);
    this.lastCrc = payloadCrc;
    const padding = align(payloadSize, BLOCK_HEADER_BYTES) - payloadSize;
    this.queue.push(head, ...parts, ZEROS.subarray(0, padding), tail);
    this.queuedBytes += 2 * BLOCK_HEADER_BYTES + payloadSize + padding;
    return lsn;
  }

  /** Writes the queued blocks. */
  write(): void {
    if (this.queue.length === 0) return;
    writeFully(this.file, this.queue, this.position);
    this.position += this.queuedBytes;
    this.queue = [];
    this.queuedBytes = 0;
  }

  sync(): void {
    this.file.dataSync();
    this.durableLsn = this.lastLsn;
    this.durableCrc = this.lastCrc;
  }

  /** Syncs if something was written since the last sync. */
  syncPending(): void {
    if (this.durableLsn < this.lastLsn) this.sync();
  }

  /** Records on disk how far the log is durable. Not synced: it serves to detect damage, not for durability. */
  mark(): void {
    const header = {
      magic: MARK_MAGIC,
      lsn: this.lastLsn,
      kind: 0,
      flags: 0,
      tableId: 0,
      schemaVersion: 0,
      payloadSize: 0,
      payloadCrc: 0,
    };
    writeFully(this.file, [
      encodeHeader({ ...header, durableCrc: this.durableCrc, durableLsn: this.durableLsn }, this.salt),
    ], this.position);
    this.position += BLOCK_HEADER_BYTES;
  }

  /** The state to go back to if a group cannot be written. */
  savepoint(): { position: number; lastLsn: number; lastCrc: number } {
    return { position: this.position, lastLsn: this.lastLsn, lastCrc: this.lastCrc };
  }

  rollback(to: { position: number; lastLsn: number; lastCrc: number }): void {
    this.queue = [];
    this.queuedBytes = 0;
    this.file.truncate(to.position);
    this.position = to.position;
    this.lastLsn = to.lastLsn;
    this.lastCrc = to.lastCrc;
  }

  /**
   * Continues in a new file, after syncing the current one, also with `nosync`. Returns the first LSN of the new file.
   */
  roll(): number {
    this.sync();
    if (this.position === BLOCK_HEADER_BYTES) return this.firstLsn;
    const end = createFile(this.files, this.directory, this.lastLsn + 1, this.lastCrc, this.random);
    this.olderBytes += this.position;
    this.file.close();
    this.file = this.files.open(end.path, "write");
    this.firstLsn = end.firstLsn;
    this.salt = end.salt;
    this.position = end.position;
    return this.firstLsn;
  }

  /** Removes the files whose blocks all are below `lsn`, with which the current file begins. */
  dropBefore(lsn: number): void {
    for (const { path, firstLsn } of logFiles(this.files, this.directory)) if (firstLsn < lsn) this.files.remove(path);
    this.files.syncDirectory(this.directory);
    this.olderBytes = 0;
    this.oldestLsn = lsn;
  }

  close(): void {
    this.file.close();
  }
}

function createFile(files: Files, directory: string, firstLsn: number, previousCrc: number, random: () => number): End {
  const path = logPath(directory, firstLsn);
  const salt = Math.floor(random() * 2 ** 32) >>> 0;
  const file = files.open(path, "create");
  try {
    file.truncate(0);
    writeFully(file, [encodeFileHeader({ firstLsn, salt, previousCrc })], 0);
    file.sync();
  } finally {
    file.close();
  }
  files.syncDirectory(directory);
  const position = BLOCK_HEADER_BYTES, lastLsn = firstLsn - 1;
  return { path, firstLsn, salt, position, lastLsn, lastCrc: previousCrc, format: FORMAT_VERSION };
}

function sizeOf(files: Files, path: string): number {
  const file = files.open(path, "read");
  try {
    return file.size();
  } finally {
    file.close();
  }
}

/**
 * Scans the log of a database from `firstLsn` on. Changes nothing, so that it can be repeated.
 * @throws {CorruptFileError} when blocks are missing or damaged and the affected table is unknown.
 */
export class Scan {
  /** Blocks of complete commits, in order, without aborted ones. */
  readonly blocks: BlockLocation[] = [];
  readonly report: string[] = [];
  readonly aborted = new Set<number>();
  end: End;

  constructor(private readonly files: Files, directory: string, readonly firstLsn: number) {
    const found = logFiles(files, directory).filter((file) => file.firstLsn >= firstLsn);
    if (found.length === 0 || found[0].firstLsn !== firstLsn) {
      throw new CorruptFileError(logPath(directory, firstLsn), "the log that begins here is missing");
    }
    this.end = { path: found[0].path, firstLsn, salt: 0, position: 0, lastLsn: firstLsn - 1, lastCrc: 0, format: 0 };
    for (const [k, { path, firstLsn: first }] of found.entries()) {
      if (first !== this.end.lastLsn + 1) {
        throw new CorruptFileError(
          this.end.path,
          `it ends with block ${this.end.lastLsn}, but the next file begins with ${first}`,
        );
      }
      if (!this.scanFile(path, first, k + 1 < found.length, k === 0)) break;
    }
    this.cutUnfinished();
  }

  /** Returns false if the creation of the file was interrupted. */
  private scanFile(path: string, firstLsn: number, isFollowed: boolean, isFirst: boolean): boolean {
    const file = this.files.open(path, "read");
    const reader = new ReadAhead(file);
    try {
      const size = file.size();
      const fileHeader = decodeFileHeader(file);
      if (fileHeader === undefined || fileHeader.firstLsn !== firstLsn) {
        if (size > BLOCK_HEADER_BYTES || isFollowed || isFirst) {
          throw new CorruptFileError(path, "the header is damaged");
        }
        this.report.push(`removed ${path}: it was being made when the database stopped`);
        this.files.remove(path);
        return false;
      }
      this.end = {
        ...this.end,
        path,
        firstLsn,
        salt: fileHeader.salt,
        position: BLOCK_HEADER_BYTES,
        format: fileHeader.format!,
      };
      if (isFirst) this.end.lastCrc = fileHeader.previousCrc;
      for (let position = BLOCK_HEADER_BYTES; position < size;) {
        position = this.scanBlock(reader, position, size, isFollowed);
      }
      return true;
    } finally {
      file.close();
    }
  }

  /** Reads the block expected at `position`. */
  private scanBlock(file: ReadAhead, position: number, size: number, isFollowed: boolean): number {
    const { salt } = this.end;
    let header = readHeader(file, position, salt);
    if (header?.magic === MARK_MAGIC) {
      return this.end.position = position + BLOCK_HEADER_BYTES;
    }
    if (header !== undefined && (header.magic !== HEAD_MAGIC || header.lsn !== this.end.lastLsn + 1)) {
      header = undefined;
    }
    const evidence = () => isFollowed || isDurableByWhatFollows(file, position, size, salt, this.end.lastLsn + 1);
    if (header === undefined && this.onlyMarkIsLost(file, position, size)) {
      this.report.push(`${file.path}: a mark at byte ${position} is damaged and was skipped`);
      return this.end.position = position + BLOCK_HEADER_BYTES;
    }
    if (header === undefined) {
      // The copy of the header behind the payload tells the block's length.
      const tail = findHeader(
        file,
        position + BLOCK_HEADER_BYTES,
        size,
        salt,
        (h) => h.magic === TAIL_MAGIC && h.lsn === this.end.lastLsn + 1,
      );
      const start = tail && tail.position - align(tail.header.payloadSize, BLOCK_HEADER_BYTES) - BLOCK_HEADER_BYTES;
      if (tail !== undefined && start === position && evidence()) {
        this.report.push(`${file.path}: the header of block ${tail.header.lsn} is damaged; its copy was used`);
        header = tail.header;
      } else if (evidence()) {
        throw new CorruptFileError(file.path, `block ${this.end.lastLsn + 1} at byte ${position} is damaged`);
      } else return this.torn(file.path, position, size);
    }
    const payloadAt = position + BLOCK_HEADER_BYTES;
    const tailAt = payloadAt + align(header.payloadSize, BLOCK_HEADER_BYTES);
    const ok = tailAt + BLOCK_HEADER_BYTES <= size &&
      payloadCrcOf(file, payloadAt, header.payloadSize) === header.payloadCrc;
    if (!ok && !evidence()) return this.torn(file.path, position, size);
    if (tailAt + BLOCK_HEADER_BYTES > size) throw new CorruptFileError(file.path, `it ends within block ${header.lsn}`);
    const { lsn, kind, flags, tableId, schemaVersion, payloadSize, payloadCrc } = header;
    const info = { lsn, kind, flags, tableId, schemaVersion };
    this.blocks.push({ ...info, path: file.path, payloadAt, payloadSize, payloadCrc, format: this.end.format });
    if (header.kind === BLOCK_KIND.abort && ok) this.noteAbort(file, payloadAt, header.payloadSize);
    this.end.lastLsn = header.lsn;
    this.end.lastCrc = header.payloadCrc;
    return this.end.position = tailAt + BLOCK_HEADER_BYTES;
  }

  /** A mark may be damaged too: then the expected block, or the end, follows immediately. */
  private onlyMarkIsLost(file: ReadAhead, position: number, size: number): boolean {
    const next = readHeader(file, position + BLOCK_HEADER_BYTES, this.end.salt);
    return next !== undefined && next.magic === HEAD_MAGIC && next.lsn === this.end.lastLsn + 1 &&
      position + BLOCK_HEADER_BYTES < size;
  }

  private torn(path: string, position: number, size: number): number {
    this.report.push(`${path}: cut ${size - position} bytes of a commit that was never finished`);
    this.end.position = position;
    return size;
  }

  private noteAbort(file: ReadAhead, at: number, size: number): void {
    const bytes = file.take(at, size);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let k = 0; k + 8 <= bytes.length; k += 8) this.aborted.add(view.getFloat64(k, true));
  }

  /** Removes blocks behind the last complete commit: they were never acknowledged. */
  private cutUnfinished(): void {
    let count = this.blocks.length;
    while (count > 0 && (this.blocks[count - 1].flags & FLAG_LAST) === 0) count--;
    if (count < this.blocks.length) {
      const first = this.blocks[count];
      this.report.push(`${first.path}: cut a commit of which only ${this.blocks.length - count} blocks were written`);
      // An LSN must not be used twice. An abort block would work as well, but this tail is never durable.
      this.end = {
        ...this.end,
        position: first.payloadAt - BLOCK_HEADER_BYTES,
        lastLsn: first.lsn - 1,
        lastCrc: count > 0 ? this.blocks[count - 1].payloadCrc : this.end.lastCrc,
      };
      this.blocks.length = count;
    }
    for (let k = this.blocks.length - 1; k >= 0; k--) {
      if (this.aborted.has(this.blocks[k].lsn)) this.blocks.splice(k, 1);
    }
  }
}

/** Blocks with at most this gap between them are read together, up to the maximum. */
const READ_GAP_BYTES = 16 << 10, READ_BYTES_MAX = 4 << 20;

/** Reads payloads of blocks that may be far apart, such as those of one table among a thousand. */
export class BlockReader {
  private file: File | undefined;
  private window = new Uint8Array(0);
  private start = 0;

  constructor(private readonly files: Files) {}

  /**
   * Returns the payload of `blocks[k]` and reads ahead for its successors. @throws {CorruptFileError} when it is
   * damaged.
   */
  payload(blocks: readonly BlockLocation[], k: number): Uint8Array {
    const { path, payloadAt, payloadSize, payloadCrc, lsn } = blocks[k];
    if (this.file?.path !== path) {
      this.close();
      this.file = this.files.open(path, "read");
    }
    if (payloadAt < this.start || payloadAt + payloadSize > this.start + this.window.length) this.read(blocks, k);
    const bytes = this.window.subarray(payloadAt - this.start, payloadAt - this.start + payloadSize);
    if (bytes.length < payloadSize || crc32(bytes) !== payloadCrc) {
      throw new CorruptFileError(path, `block ${lsn} at byte ${payloadAt} is damaged`);
    }
    return bytes;
  }

  close(): void {
    this.file?.close();
    this.file = undefined;
    this.window = new Uint8Array(0);
  }

  /**
   * Payloads, and thus views of them, begin at multiples of 8. A new window each time, because views of the last one
   * may be in use.
   */
  private read(blocks: readonly BlockLocation[], first: number): void {
    this.start = blocks[first].payloadAt;
    let end = this.start + blocks[first].payloadSize;
    for (let k = first + 1; k < blocks.length; k++) {
      const { path, payloadAt, payloadSize } = blocks[k];
      const next = payloadAt + payloadSize;
      if (path !== blocks[first].path || payloadAt > end + READ_GAP_BYTES || next > this.start + READ_BYTES_MAX) break;
      end = next;
    }
    const window = new Uint8Array(end - this.start);
    this.window = window.subarray(0, readFully(this.file!, window, this.start));
  }
}

function readHeader(file: ReadAhead, position: number, salt: number): Header | undefined {
  return decodeHeader(file.take(position, BLOCK_HEADER_BYTES), salt);
}

function payloadCrcOf(file: ReadAhead, position: number, size: number): number {
  const bytes = file.take(position, size);
  return bytes.length < size ? -1 : crc32(bytes);
}

/**
 * Returns the first header from `position` on for which `wanted` is true. Used only after damage, so a plain search is
 * fast enough.
 */
function findHeader(
  file: ReadableFile,
  position: number,
  size: number,
  salt: number,
  wanted: (header: Header) => boolean,
): { header: Header; position: number } | undefined {
  const buffer = new Uint8Array(1 << 20);
  for (let at = position; at < size; at += buffer.length) {
    const got = readFully(file, buffer, at);
    for (let k = 0; k + BLOCK_HEADER_BYTES <= got; k += BLOCK_HEADER_BYTES) {
      const header = decodeHeader(buffer.subarray(k, k + BLOCK_HEADER_BYTES), salt);
      if (header !== undefined && wanted(header)) return { header, position: at + k };
    }
  }
  return undefined;
}

function isDurableByWhatFollows(
  file: ReadableFile,
  position: number,
  size: number,
  salt: number,
  lsn: number,
): boolean {
  return findHeader(file, position, size, salt, (header) => header.durableLsn >= lsn) !== undefined;
}
