/**
 * Reads the log as it grows, in any thread: for a replica or a view that follows the tables. Bulk loads and large
 * changes are not in the log, only a block that marks them: a definition that creates a table with a generation, or has the op `rows`. Read such a table itself.
 */
import { CorruptFileError } from "../../errors.ts";
import { crc32 } from "../bytes.ts";
import { type Files, ReadAhead } from "../files.ts";
import {
  abortedBy,
  BLOCK_HEADER_BYTES,
  BLOCK_KIND,
  blockBytes,
  type BlockInfo,
  decodeFileHeader,
  decodeHeader,
  FLAG_LAST,
  HEAD_MAGIC,
  type Header,
  logFiles,
  MARK_MAGIC,
} from "./format.ts";

export interface LogBlock extends BlockInfo {
  /** Format version of its file. */
  readonly format: number;
  readonly payload: Uint8Array;
}

/** The blocks were truncated: the reader had no hold, or one that was ended. It has to begin anew with the tables. */
export class LogGoneError extends Error {
  override readonly name = "LogGoneError";
}

interface Position {
  path: string;
  format: number;
  salt: number;
  at: number;
}

const READ_BYTES = 16 << 20;

export class LogFollower {
  private position: Position | undefined;

  /** `next`: LSN of the first block to read. A hold from there on must exist. */
  constructor(private readonly files: Files, private readonly directory: string, private next: number) {}

  /** LSN of the next block. A hold can be moved here. */
  get nextLsn(): number {
    return this.next;
  }

  /**
   * Returns the blocks of the next commits up to `lsn`, without those that were taken back. `lsn`: `CatalogueMirror.lsn`, up to which
   * every commit is durable and applied or taken back. Ends after about `bytesMax`; an empty list means that there are no more.
   * @throws {LogGoneError}
   */
  read(lsn: number, bytesMax = READ_BYTES): LogBlock[] {
    let blocks: LogBlock[] = [];
    for (let bytes = 0, isWhole = true; this.next <= lsn;) {
      const { position } = this, source = this.open();
      try {
        while (this.next <= lsn) {
          const header = this.headerAt(source.reader);
          if (header === undefined) break;
          const isAbort = header.kind === BLOCK_KIND.abort;
          // The block that takes a commit back comes directly after it.
          if (isWhole && bytes >= bytesMax && !isAbort && blocks.length > 0) return blocks;
          const block = this.take(source.reader, header);
          isWhole = (header.flags & FLAG_LAST) !== 0;
          bytes += block.payload.length;
          if (isAbort) {
            const aborted = new Set(abortedBy(block.payload));
            blocks = blocks.filter((other) => !aborted.has(other.lsn));
          } else blocks.push(block);
        }
      } catch (error) {
        this.position = position;
        throw error;
      } finally {
        source.close();
      }
    }
    return blocks;
  }

  /** Opens the file that has the next block, at its position. */
  private open(): { reader: ReadAhead; close(): void } {
    const { files, directory, next, position } = this;
    const path = logFiles(files, directory).findLast(({ firstLsn }) => firstLsn <= next)?.path;
    if (path === undefined) throw new LogGoneError(`block ${next} is no longer in the log`);
    const file = files.open(path, "read");
    try {
      if (position?.path !== path) {
        const header = decodeFileHeader(file);
        if (header === undefined) throw new CorruptFileError(path, "the header is damaged");
        this.position = { path, format: header.format!, salt: header.salt, at: BLOCK_HEADER_BYTES };
      }
      return { reader: new ReadAhead(file), close: () => file.close() };
    } catch (error) {
      file.close();
      throw error;
    }
  }

  /** Goes to the next block of this file. Undefined: it is in the next file. */
  private headerAt(reader: ReadAhead): Header | undefined {
    const position = this.position!;
    for (;;) {
      const bytes = reader.take(position.at, BLOCK_HEADER_BYTES);
      const header = decodeHeader(bytes, position.salt);
      if (header?.magic === MARK_MAGIC) position.at += BLOCK_HEADER_BYTES;
      else if (header?.magic === HEAD_MAGIC && header.lsn === this.next) return header;
      else if (header?.magic === HEAD_MAGIC && header.lsn < this.next) position.at += blockBytes(header.payloadSize);
      else if (bytes.length === 0) {
        const isFollowed = logFiles(this.files, this.directory).some(({ firstLsn }) => firstLsn === this.next);
        if (!isFollowed) throw new CorruptFileError(position.path, `it ends before block ${this.next}`);
        return undefined;
      } else throw new CorruptFileError(position.path, `block ${this.next} at byte ${position.at} is damaged`);
    }
  }

  private take(reader: ReadAhead, header: Header): LogBlock {
    const position = this.position!, { lsn, kind, flags, tableId, schemaVersion, payloadSize, payloadCrc } = header;
    const payload = reader.take(position.at + BLOCK_HEADER_BYTES, payloadSize);
    if (payload.length < payloadSize || crc32(payload) !== payloadCrc) {
      throw new CorruptFileError(position.path, `block ${lsn} at byte ${position.at} is damaged`);
    }
    position.at += blockBytes(payloadSize);
    this.next = lsn + 1;
    return { lsn, kind, flags, tableId, schemaVersion, format: position.format, payload };
  }
}
