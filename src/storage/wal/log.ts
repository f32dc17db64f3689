/** The end of the write-ahead log, where blocks are added. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { align, crc32 } from "../bytes.ts";
import { type File, type Files, writeFully } from "../files.ts";
import { FORMAT_VERSION } from "../format.ts";
import {
  BLOCK_HEADER_BYTES,
  BLOCK_KIND,
  blockBytes,
  type BlockInfo,
  encodeFileHeader,
  encodeHeader,
  FLAG_LAST,
  HEAD_MAGIC,
  logFiles,
  logPath,
  MARK_MAGIC,
  TAIL_MAGIC,
} from "./format.ts";
import { LogHolds } from "./holds.ts";
import type { End, Scan } from "./scan.ts";

const ZEROS = new Uint8Array(BLOCK_HEADER_BYTES);

export class Log {
  private readonly holds = new LogHolds();
  /** Bytes of the files that were kept only for holds at the last `dropBefore`. */
  heldBytes = 0;
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
    this.queuedBytes += blockBytes(payloadSize);
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

  /**
   * A start needs no block below `lsn` any more, with which a file begins: removes the files before it that no hold needs. Ends
   * the oldest holds while they keep more than `heldBytesMax`, and returns their names.
   */
  dropBefore(lsn: number, heldBytesMax: number): string[] {
    this.olderBytes = 0;
    this.oldestLsn = lsn;
    const ended: string[] = [];
    const files = logFiles(this.files, this.directory);
    // A file ends where the next one begins.
    const older = files.slice(0, -1).filter(({ firstLsn }) => firstLsn < lsn)
      .map(({ path }, k) => ({ path, end: files[k + 1].firstLsn, sizeBytes: sizeOf(this.files, path) }));
    const held = () => older.filter(({ end }) => end > (this.holds.oldest ?? Infinity));
    const bytesOf = (some: typeof older) => some.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    while (bytesOf(held()) > heldBytesMax) ended.push(...this.holds.endOldest());
    const kept = new Set(held());
    for (const file of older) if (!kept.has(file)) this.files.remove(file.path);
    this.files.syncDirectory(this.directory);
    this.heldBytes = bytesOf([...kept]);
    return ended;
  }

  /**
   * Keeps the blocks from `lsn` on for the reader `name`, in place of its former hold. Default: the blocks to come. Returns the LSN.
   * @throws {SqlError} if older blocks are gone already.
   */
  hold(name: string, lsn = this.lastLsn + 1): number {
    const [{ firstLsn }] = logFiles(this.files, this.directory);
    if (lsn < firstLsn || lsn > this.lastLsn + 1) {
      const message = `Cannot keep the log from block ${lsn} on: it has blocks ${firstLsn} to ${this.lastLsn}`;
      throw new SqlError(message, 0, SQLSTATE.objectNotInState);
    }
    this.holds.set(name, lsn);
    return lsn;
  }

  /** The files go with the next checkpoint. */
  release(name: string): void {
    this.holds.release(name);
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
