/** One thread's access to extents of data files, which are checked when they are read. */
import { CorruptFileError } from "../errors.ts";
import { align, crc32 } from "./bytes.ts";
import { dataFilePath } from "./datafile.ts";
import { DamagedPostingsError, type ReadExtent } from "./encoding/postings.ts";
import type { Extent } from "./extent.ts";
import { type File, type Files, readFully } from "./files.ts";

/** A thread keeps a buffer of this size for reading. */
const BUFFER_BYTES_MAX = 1 << 20;
/** A removed file occupies disk space as long as it is open. */
const FILES_OPEN_MAX = 64;

/** A part of an extent, from byte `at` on. */
export interface Part {
  at: number;
  sizeBytes: number;
  isIntact: (stored: Uint8Array) => boolean;
}

/** Finds the part of an extent that is read, by reading what says where it is. */
export type FindPart = (read: ReadExtent) => Part;

export class ExtentReader {
  /** By id. */
  private readonly handles = new Map<number, File>();
  private buffer = new Uint8Array(0);

  constructor(private readonly files: Files) {}

  /** Reads an extent, or a part of it, into memory from `into`, and checks it. */
  read(
    directory: string,
    extent: Extent,
    part: FindPart | undefined,
    into: (sizeBytes: number) => Uint8Array,
  ): Uint8Array {
    const path = dataFilePath(directory, extent.file), { offset } = extent;
    const { at, sizeBytes, isIntact }: Part = part === undefined
      ? { at: 0, sizeBytes: extent.sizeBytes, isIntact: (stored) => crc32(stored) === extent.crc }
      : this.using(directory, extent, part);
    const stored = into(sizeBytes), got = readFully(this.open(extent.file, path), stored, offset + at);
    if (got < sizeBytes) throw new CorruptFileError(path, `it ends within the extent at byte ${offset}`);
    if (!isIntact(stored)) throw new CorruptFileError(path, `the extent at byte ${offset} is damaged`);
    return stored;
  }

  /** Reads an extent, or a part of it, to memory that is valid until the next call. */
  readToBuffer(directory: string, extent: Extent, part?: FindPart): Uint8Array {
    return this.read(directory, extent, part, (sizeBytes) => this.bufferFor(sizeBytes));
  }

  /**
   * Calls `use` with a function that reads from the extent. What is missing at the end of the file stays as it was, and fails its checksum.
   */
  using<T>(directory: string, { file: id, offset }: Extent, use: (read: ReadExtent) => T): T {
    const path = dataFilePath(directory, id);
    try {
      const file = this.open(id, path);
      return use((into, at) => void readFully(file, into, offset + at));
    } catch (error) {
      if (!(error instanceof DamagedPostingsError)) throw error;
      throw new CorruptFileError(path, `the extent at byte ${offset} is damaged`);
    }
  }

  close(): void {
    for (const file of this.handles.values()) file.close();
    this.handles.clear();
  }

  private bufferFor(sizeBytes: number): Uint8Array {
    if (sizeBytes > BUFFER_BYTES_MAX) return new Uint8Array(sizeBytes);
    if (this.buffer.length < sizeBytes) this.buffer = new Uint8Array(align(sizeBytes, 65_536));
    return this.buffer.subarray(0, sizeBytes);
  }

  private open(id: number, path: string): File {
    let handle = this.handles.get(id);
    if (handle === undefined) {
      if (this.handles.size >= FILES_OPEN_MAX) {
        const [oldest, file] = this.handles.entries().next().value!;
        file.close();
        this.handles.delete(oldest);
      }
      this.handles.set(id, handle = this.files.open(path, "read"));
    }
    return handle;
  }
}
