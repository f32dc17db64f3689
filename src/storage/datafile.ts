/**
 * The data files of a table, `d<id>.seg`: a header (`format.ts`) followed by contiguous extents (one column of one segment each)
 * that are never overwritten. A file that has become large is followed by a new one. A file without live extents is removed
 * after a checkpoint.
 */
import { CorruptFileError } from "../errors.ts";
import { align, crc32 } from "./bytes.ts";
import { DATA_MAGIC, encodeHeader, HEADER_BYTES } from "./format.ts";
import { type File, type Files, join, readFully, writeFully } from "./files.ts";

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
  removed: boolean;
  /** True if nothing is added to the file any more. */
  full?: true;
}

export function dataFilePath(directory: string, id: number): string {
  return join(directory, `d${id}.seg`);
}

export class DataFiles {
  /** `file` of a chunk is an index into this list, so the list only grows. */
  readonly list: DataFile[] = [];
  private readonly handles = new Map<number, File>();
  private readonly unsynced = new Set<number>();
  private madeFile = false;

  constructor(
    private readonly files: Files,
    private readonly directory: string,
    private readonly nextFileId: () => number,
  ) {}

  /** Writes an extent. It is durable after `sync`. */
  append(parts: readonly Uint8Array[]): { file: number; offset: number; sizeBytes: number; crc: number } {
    let sizeBytes = 0, crc = 0;
    for (const part of parts) {
      sizeBytes += part.length;
      crc = crc32(part, crc);
    }
    const index = this.current(sizeBytes);
    const file = this.list[index];
    const offset = file.sizeBytes;
    this.unsynced.add(index);
    writeFully(this.handle(index), [...parts, ZEROS.subarray(0, extentBytes(sizeBytes) - sizeBytes)], offset);
    file.sizeBytes = offset + extentBytes(sizeBytes);
    return { file: index, offset, sizeBytes, crc };
  }

  read(index: number, offset: number, crc: number, into: Uint8Array): void {
    const { path } = this.list[index];
    const got = readFully(this.handle(index), into, offset);
    if (got < into.length) throw new CorruptFileError(path, `it ends within the extent at byte ${offset}`);
    if (crc32(into) !== crc) throw new CorruptFileError(path, `the extent at byte ${offset} is damaged`);
  }

  sync(): void {
    for (const index of this.unsynced) this.handle(index).sync();
    this.unsynced.clear();
    if (this.madeFile) this.files.syncDirectory(this.directory);
    this.madeFile = false;
    this.close();
  }

  close(): void {
    for (const handle of this.handles.values()) handle.close();
    this.handles.clear();
  }

  removeFile(index: number): void {
    this.handles.get(index)?.close();
    this.handles.delete(index);
    this.unsynced.delete(index);
    this.files.remove(this.list[index].path);
    this.list[index].removed = true;
  }

  /** Index of the file that new extents go to. */
  get currentIndex(): number {
    return this.list.length - 1;
  }

  private current(sizeBytes: number): number {
    const last = this.list.at(-1);
    if (last !== undefined && !last.removed && !last.full && last.sizeBytes + sizeBytes <= FILE_BYTES_MAX) {
      return this.list.length - 1;
    }
    const id = this.nextFileId();
    const path = dataFilePath(this.directory, id);
    const file = this.files.open(path, "create");
    try {
      writeFully(file, [encodeHeader(DATA_MAGIC)], 0);
    } finally {
      file.close();
    }
    this.madeFile = true;
    this.list.push({ id, path, sizeBytes: HEADER_BYTES, liveBytes: 0, removed: false });
    return this.list.length - 1;
  }

  private handle(index: number): File {
    let handle = this.handles.get(index);
    if (handle === undefined) this.handles.set(index, handle = this.files.open(this.list[index].path, "write"));
    return handle;
  }
}
