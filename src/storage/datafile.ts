/**
 * The data files of a table, `d<id>.seg`: a header (`format.ts`) followed by contiguous extents (one column of one segment each)
 * that are never overwritten. A file that has become large is followed by a new one. A file without live extents is removed
 * after a checkpoint.
 */
import { assert, VERIFY } from "../assert.ts";
import { CorruptFileError } from "../errors.ts";
import { align, crc32 } from "./bytes.ts";
import { DATA_MAGIC, encodeHeader, HEADER_BYTES } from "./format.ts";
import { type File, type Files, join, readFully, writeFully } from "./files.ts";
import { PACKING } from "./encoding/encodings.ts";
import type { Extent } from "./extent.ts";

/** Extents begin at multiples of this, so that pool entries can name them in 32 bits. */
export const EXTENT_ALIGN = 64;
const FILE_BYTES_MAX = 1 << 30;
const ZEROS = new Uint8Array(EXTENT_ALIGN);

/** The bytes that an extent takes in its file. */
export function extentBytes(sizeBytes: number): number {
  return align(sizeBytes, EXTENT_ALIGN);
}

export interface DataFile {
  /** Never reused in this database. */
  id: number;
  path: string;
  /** Size of the file: the offset of the next extent. */
  sizeBytes: number;
  /** Bytes of extents that the current state lists. */
  liveBytes: number;
  /** By which rules it was decided how its chunks are stored (`PACKING`). */
  packing: number;
  /** Nothing is added to the file any more. */
  full?: true;
}

export function dataFilePath(directory: string, id: number): string {
  return join(directory, `d${id}.seg`);
}

/** Maximum number of data files of all tables that are open. Each table whose rows are flushed needs one. */
const OPEN_MAX = 64;

/**
 * The open data files of all tables. Beyond a number, the one that was used longest ago is closed: thousands of tables would take all
 * files that the process may open. What was written to it is durable after a sync of the file, which opens it again.
 */
export class OpenFiles {
  /** By path, the one that was used longest ago first. */
  private readonly handles = new Map<string, File>();

  constructor(private readonly files: Files) {}

  /** Valid until the next call. */
  open(path: string): File {
    const handle = this.handles.get(path) ?? this.files.open(path, "write");
    this.handles.delete(path);
    this.handles.set(path, handle);
    if (this.handles.size > OPEN_MAX) this.close(this.handles.keys().next().value!);
    return handle;
  }

  close(path: string): void {
    this.handles.get(path)?.close();
    this.handles.delete(path);
  }
}

export class DataFiles {
  /** By id, in order. */
  readonly list = new Map<number, DataFile>();
  private readonly unsynced = new Set<number>();
  /** The directory has a new file, of data or of symbols, whose name is not durable yet. */
  madeFile = false;
  /** By packing. */
  private readonly newest = new Map<number, number>();
  /** Bytes written since the start. */
  writtenBytes = 0;

  constructor(
    private readonly files: Files,
    private readonly opened: OpenFiles,
    private readonly directory: string,
    private readonly nextFileId: () => number,
    /** Of new chunks. */
    private readonly packing: number,
  ) {}

  /** Adds the files of a manifest, in order of their ids. */
  adopt(files: readonly DataFile[]): void {
    for (const file of files) {
      this.list.set(file.id, file);
      this.newest.set(file.packing, file.id);
    }
  }

  packingOf(id: number): number {
    return this.list.get(id)!.packing;
  }

  /** True if the present rules have decided about all chunks. */
  get isPacked(): boolean {
    return [...this.list.values()].every(({ packing }) => packing === PACKING);
  }

  /** No file has a chunk any more that the present rules would store otherwise. */
  markPacked(): void {
    for (const file of this.list.values()) {
      if (this.newest.get(file.packing) === file.id && file.packing !== PACKING) this.newest.delete(file.packing);
      file.packing = PACKING;
    }
  }

  /** Reads the words of a page. */
  readonly readPage = (extent: Extent): Uint8Array => {
    const bytes = new Uint8Array(extent.sizeBytes);
    this.read(extent, bytes);
    return bytes;
  };

  /** Writes an extent. It is durable after `sync`. `crc`: of the parts, if it is known. `packing`: of a chunk that is only moved. */
  append(parts: readonly Uint8Array[], crc = checksumOf(parts), packing = this.packing): Extent {
    if (VERIFY) assert(crc === checksumOf(parts), "the checksum of an extent is that of its bytes");
    const sizeBytes = parts.reduce((sum, { length }) => sum + length, 0);
    const file = this.current(sizeBytes, packing);
    const offset = file.sizeBytes;
    this.unsynced.add(file.id);
    writeFully(this.handle(file.id), [...parts, ZEROS.subarray(0, extentBytes(sizeBytes) - sizeBytes)], offset);
    file.sizeBytes = offset + extentBytes(sizeBytes);
    this.writtenBytes += extentBytes(sizeBytes);
    return { file: file.id, offset, sizeBytes, crc };
  }

  read({ file, offset, crc }: Omit<Extent, "sizeBytes">, into: Uint8Array): void {
    const { path } = this.list.get(file)!;
    const got = readFully(this.handle(file), into, offset);
    if (got < into.length) throw new CorruptFileError(path, `it ends within the extent at byte ${offset}`);
    if (crc32(into) !== crc) throw new CorruptFileError(path, `the extent at byte ${offset} is damaged`);
  }

  sync(): void {
    for (const id of this.unsynced) this.handle(id).sync();
    this.unsynced.clear();
    if (this.madeFile) this.files.syncDirectory(this.directory);
    this.madeFile = false;
    this.close();
  }

  close(): void {
    for (const { path } of this.list.values()) this.opened.close(path);
  }

  /** The caller removes the file itself. */
  forget(id: number): void {
    this.opened.close(dataFilePath(this.directory, id));
    this.unsynced.delete(id);
    this.list.delete(id);
  }

  /** The file that new extents go to. */
  get last(): DataFile | undefined {
    return this.lastOf(this.packing);
  }

  private lastOf(packing: number): DataFile | undefined {
    return this.list.get(this.newest.get(packing) ?? -1);
  }

  private current(sizeBytes: number, packing: number): DataFile {
    const last = this.lastOf(packing);
    if (last !== undefined && !last.full && last.sizeBytes + sizeBytes <= FILE_BYTES_MAX) return last;
    const id = this.nextFileId();
    const path = dataFilePath(this.directory, id);
    const file = this.files.open(path, "create");
    try {
      writeFully(file, [encodeHeader(DATA_MAGIC)], 0);
    } finally {
      file.close();
    }
    this.madeFile = true;
    const made: DataFile = { id, path, sizeBytes: HEADER_BYTES, liveBytes: 0, packing };
    this.list.set(id, made);
    this.newest.set(packing, id);
    return made;
  }

  private handle(id: number): File {
    return this.opened.open(this.list.get(id)!.path);
  }
}

function checksumOf(parts: readonly Uint8Array[]): number {
  let crc = 0;
  for (const part of parts) crc = crc32(part, crc);
  return crc;
}
