/**
 * The data files of a table, `d<id>.seg`: a header (`format.ts`) and extents (one column of one segment each) one behind the
 * other, never overwritten.
 * A file that has become large is followed by a new one; one whose extents are all dead is removed after a checkpoint.
 */
import { CorruptFileError } from "../errors.ts";
import { align, crc32 } from "./bytes.ts";
import { DATA_MAGIC, encodeHeader, HEADER_BYTES } from "./format.ts";
import { type File, type Files, join, readFully, writeFully } from "./files.ts";

/** Extents begin at multiples of it: pool entries name them in 32 bits. */
export const EXTENT_ALIGN = 64;
const FILE_BYTES_MAX = 1 << 30;
const ZEROS = new Uint8Array(EXTENT_ALIGN);

export interface DataFile {
  /** Never used again in this database. */
  id: number;
  path: string;
  /** Where the next extent goes. */
  sizeBytes: number;
  /** Bytes of extents that the current state lists. */
  liveBytes: number;
  removed: boolean;
  /** Nothing is added to it any more. */
  full?: true;
}

export function dataFilePath(directory: string, id: number): string {
  return join(directory, `d${id}.seg`);
}

export class DataFiles {
  /** Places in it are the `file` of chunks, so it only grows. */
  readonly list: DataFile[] = [];
  private readonly handles = new Map<number, File>();
  private readonly unsynced = new Set<number>();
  private madeFile = false;

  constructor(
    private readonly files: Files,
    private readonly directory: string,
    private readonly nextFileId: () => number,
  ) {}

  /** Writes an extent. Durable after `sync`. */
  append(parts: readonly Uint8Array[]): { file: number; offset: number; sizeBytes: number; crc: number } {
    let sizeBytes = 0, crc = 0;
    for (const part of parts) {
      sizeBytes += part.length;
      crc = crc32(part, crc);
    }
    const place = this.current(sizeBytes);
    const file = this.list[place];
    const offset = file.sizeBytes;
    this.unsynced.add(place);
    writeFully(this.handle(place), [...parts, ZEROS.subarray(0, align(sizeBytes, EXTENT_ALIGN) - sizeBytes)], offset);
    file.sizeBytes = offset + align(sizeBytes, EXTENT_ALIGN);
    return { file: place, offset, sizeBytes, crc };
  }

  read(place: number, offset: number, crc: number, into: Uint8Array): void {
    const { path } = this.list[place];
    const got = readFully(this.handle(place), into, offset);
    if (got < into.length) throw new CorruptFileError(path, `it ends within the extent at byte ${offset}`);
    if (crc32(into) !== crc) throw new CorruptFileError(path, `the extent at byte ${offset} is damaged`);
  }

  sync(): void {
    for (const place of this.unsynced) this.handle(place).sync();
    this.unsynced.clear();
    if (this.madeFile) this.files.syncDirectory(this.directory);
    this.madeFile = false;
    this.close();
  }

  close(): void {
    for (const handle of this.handles.values()) handle.close();
    this.handles.clear();
  }

  removeFile(place: number): void {
    this.handles.get(place)?.close();
    this.handles.delete(place);
    this.unsynced.delete(place);
    this.files.remove(this.list[place].path);
    this.list[place].removed = true;
  }

  /** The file that grows. */
  get currentPlace(): number {
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

  private handle(place: number): File {
    let handle = this.handles.get(place);
    if (handle === undefined) this.handles.set(place, handle = this.files.open(this.list[place].path, "write"));
    return handle;
  }
}
