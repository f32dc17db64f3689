/** Finds the blocks of a log at the start, and tells a torn tail from damage. */
import { CorruptFileError } from "../../errors.ts";
import { crc32 } from "../bytes.ts";
import { type Files, type ReadableFile, ReadAhead, readFully } from "../files.ts";
import {
  abortedBy,
  BLOCK_HEADER_BYTES,
  BLOCK_KIND,
  blockBytes,
  type BlockLocation,
  decodeFileHeader,
  decodeHeader,
  FLAG_LAST,
  HEAD_MAGIC,
  type Header,
  logFiles,
  logPath,
  MARK_MAGIC,
  TAIL_MAGIC,
  tailOffset,
} from "./format.ts";

/** The end of a log: everything needed to continue writing it. */
export interface End {
  path: string;
  format: number;
  firstLsn: number;
  salt: number;
  position: number;
  lastLsn: number;
  lastCrc: number;
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
      const start = tail && tail.position - tailOffset(tail.header.payloadSize);
      if (tail !== undefined && start === position && evidence()) {
        this.report.push(`${file.path}: the header of block ${tail.header.lsn} is damaged; its copy was used`);
        header = tail.header;
      } else if (evidence()) {
        throw new CorruptFileError(file.path, `block ${this.end.lastLsn + 1} at byte ${position} is damaged`);
      } else return this.torn(file.path, position, size);
    }
    const payloadAt = position + BLOCK_HEADER_BYTES, end = position + blockBytes(header.payloadSize);
    const ok = end <= size &&
      payloadCrcOf(file, payloadAt, header.payloadSize) === header.payloadCrc;
    if (!ok && !evidence()) return this.torn(file.path, position, size);
    if (end > size) throw new CorruptFileError(file.path, `it ends within block ${header.lsn}`);
    const { lsn, kind, flags, tableId, schemaVersion, payloadSize, payloadCrc } = header;
    const info = { lsn, kind, flags, tableId, schemaVersion };
    this.blocks.push({ ...info, path: file.path, payloadAt, payloadSize, payloadCrc, format: this.end.format });
    if (header.kind === BLOCK_KIND.abort && ok) this.noteAbort(file, payloadAt, header.payloadSize);
    this.end.lastLsn = header.lsn;
    this.end.lastCrc = header.payloadCrc;
    return this.end.position = end;
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
    for (const lsn of abortedBy(file.take(at, size))) this.aborted.add(lsn);
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
