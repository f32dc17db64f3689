/**
 * Everything that storage needs from a file system: synchronous, positional, and small enough for a test double
 * (`faulty-files.ts`). `read` and `write` may be short; callers use `readFully` and `writeFully`.
 */
import fs from "node:fs";
import { asDiskFull } from "../errors.ts";

export interface File {
  readonly path: string;
  /** Returns the number of bytes read, 0 at the end of the file. */
  read(into: Uint8Array, position: number): number;
  /** Writes the buffers one after the other. Returns the number of bytes written, at least one, or throws. */
  write(buffers: readonly Uint8Array[], position: number): number;
  truncate(sizeBytes: number): void;
  /** After this, written data survives a power cut. `dataSync` leaves out the file's times. */
  sync(): void;
  dataSync(): void;
  size(): number;
  close(): void;
}

export interface Files {
  /** "write" and "create" can read too; "create" makes the file if it does not exist. */
  open(path: string, mode: "read" | "write" | "create"): File;
  exists(path: string): boolean;
  rename(from: string, to: string): void;
  remove(path: string): void;
  removeDirectory(path: string): void;
  /** Creates parent directories too. They are durable only after `syncDirectory` of each parent. */
  makeDirectory(path: string): void;
  /** Names in a directory, sorted. */
  list(path: string): string[];
  /** Makes the names in a directory durable. */
  syncDirectory(path: string): void;
  /** Returns undefined when another process holds the lock. */
  lock(path: string): { release(): void } | undefined;
}

/** Only the server's user may read the data and its copies. */
const FILE_MODE = 0o600;
export const DIRECTORY_MODE = 0o700;

/** Bytes of small buffers that are written together. */
const GATHERED_BYTES = 256 << 10;

export function writeFully(file: File, buffers: readonly Uint8Array[], position: number): void {
  let left = buffers.filter((buffer) => buffer.length > 0);
  while (left.length > 0) {
    let written = file.write(left, position);
    if (written <= 0) throw new Error(`${file.path}: no bytes could be written at ${position}`);
    position += written;
    let k = 0;
    while (k < left.length && written >= left[k].length) written -= left[k++].length;
    left = left.slice(k);
    if (written > 0) left[0] = left[0].subarray(written);
  }
}

/** The part of `File` that reading needs. */
export type ReadableFile = Pick<File, "path" | "read">;

const WINDOW_BYTES = 1 << 20;

/** Reads an unchanging file from front to back by few large reads. `take` returns views of them. */
export class ReadAhead implements ReadableFile {
  private window = new Uint8Array(0);
  private start = 0;

  constructor(private readonly file: ReadableFile) {}

  get path(): string {
    return this.file.path;
  }

  /**
   * Returns fewer bytes than requested only at the end of the file. The view stays valid, and begins at a multiple of 8
   * if `position` does.
   */
  take(position: number, size: number): Uint8Array<ArrayBuffer> {
    if (position < this.start || position + size > this.start + this.window.length) {
      // Allocates a new window each time, because views of the last one may be in use.
      const window = new Uint8Array(Math.max(WINDOW_BYTES, size + 8));
      this.start = position - position % 8;
      this.window = window.subarray(0, readFully(this.file, window, this.start));
    }
    const from = position - this.start;
    return this.window.subarray(from, from + size);
  }

  read(into: Uint8Array, position: number): number {
    const bytes = this.take(position, into.length);
    into.set(bytes);
    return bytes.length;
  }
}

/** Returns the number of bytes read: fewer than requested only at the end of the file. */
export function readFully(file: ReadableFile, into: Uint8Array, position: number): number {
  let done = 0;
  while (done < into.length) {
    const got = file.read(done === 0 ? into : into.subarray(done), position + done);
    if (got <= 0) break;
    done += got;
  }
  return done;
}

/** Reads a whole file. */
export function readAll(files: Files, path: string): Uint8Array {
  const file = files.open(path, "read");
  try {
    const bytes = new Uint8Array(file.size());
    return bytes.subarray(0, readFully(file, bytes, 0));
  } finally {
    file.close();
  }
}

export function join(...parts: string[]): string {
  return parts.join("/");
}

/** The directory of a path. */
export function parentOf(path: string): string {
  const at = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"));
  return at < 0 ? "." : at === 0 ? "/" : path.slice(0, at);
}

let gathering: Uint8Array | undefined;

/**
 * The first bytes of the buffers, until the next call. `writev` of node:fs makes two copies of each buffer, which takes longer than to
 * write small ones.
 */
function gathered(buffers: readonly Uint8Array[]): Uint8Array {
  const into = gathering ??= new Uint8Array(GATHERED_BYTES);
  let size = 0;
  for (const buffer of buffers) {
    const left = into.length - size;
    into.set(buffer.length > left ? buffer.subarray(0, left) : buffer, size);
    size += Math.min(buffer.length, left);
    if (size === into.length) break;
  }
  return into.subarray(0, size);
}

class RealFile implements File {
  constructor(readonly path: string, private readonly fd: number) {}

  read(into: Uint8Array, position: number): number {
    return fs.readSync(this.fd, into, 0, into.length, position);
  }

  write(buffers: readonly Uint8Array[], position: number): number {
    try {
      const bytes = buffers.length === 1 || buffers[0].length >= GATHERED_BYTES ? buffers[0] : gathered(buffers);
      return fs.writeSync(this.fd, bytes, 0, bytes.length, position);
    } catch (error) {
      throw asDiskFull(this.path, error);
    }
  }

  truncate(sizeBytes: number): void {
    fs.ftruncateSync(this.fd, sizeBytes);
  }

  sync(): void {
    fs.fsyncSync(this.fd);
  }

  dataSync(): void {
    fs.fdatasyncSync(this.fd);
  }

  size(): number {
    return fs.fstatSync(this.fd).size;
  }

  close(): void {
    fs.closeSync(this.fd);
  }
}

export const realFiles: Files = {
  open(path, mode) {
    const { O_RDONLY, O_RDWR, O_CREAT } = fs.constants;
    const flags = mode === "read" ? O_RDONLY : mode === "write" ? O_RDWR : O_RDWR | O_CREAT;
    try {
      return new RealFile(path, fs.openSync(path, flags, FILE_MODE));
    } catch (error) {
      throw asDiskFull(path, error);
    }
  },
  exists: (path) => fs.existsSync(path),
  rename: (from, to) => fs.renameSync(from, to),
  remove: (path) => fs.rmSync(path, { force: true }),
  removeDirectory: (path) => fs.rmSync(path, { recursive: true, force: true }),
  makeDirectory(path) {
    try {
      fs.mkdirSync(path, { recursive: true, mode: DIRECTORY_MODE });
    } catch (error) {
      throw asDiskFull(path, error);
    }
  },
  list: (path) => fs.readdirSync(path).sort(),
  syncDirectory(path) {
    // Windows cannot open a directory; its file system journals names.
    if (Deno.build.os === "windows") return;
    const fd = fs.openSync(path, "r");
    try {
      fs.fsyncSync(fd);
    } finally {
      fs.closeSync(fd);
    }
  },
  lock(path) {
    const file = Deno.openSync(path, { create: true, write: true, read: true, mode: FILE_MODE });
    if (file.tryLockSync(true)) return { release: () => file.close() };
    file.close();
    return undefined;
  },
};

/** The same files on a disk whose syncs take `delayMs` longer. Blocks the thread like a sync. */
export function withSlowSync(files: Files, delayMs: number): Files {
  const never = new Int32Array(new SharedArrayBuffer(4));
  const slowly = (sync: () => void) => {
    sync();
    Atomics.wait(never, 0, 0, delayMs);
  };
  return {
    ...files,
    open(path, mode) {
      const file = files.open(path, mode);
      const slow: File = Object.create(file);
      slow.sync = () => slowly(() => file.sync());
      slow.dataSync = () => slowly(() => file.dataSync());
      return slow;
    },
    syncDirectory: (path) => slowly(() => files.syncDirectory(path)),
  };
}
