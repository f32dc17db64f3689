/**
 * A Parquet file: its footer, checked, with columns mapped to the types of this database.
 * @see https://parquet.apache.org/docs/file-format/
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { ParquetError } from "./error.ts";
import { readFooter, type RowGroup } from "./footer.ts";
import { openImportFile, OutsideError } from "./import-file.ts";
import { type LeftOut, type ParquetColumn, schemaOf } from "./schema.ts";

export interface ParquetFile {
  path: string;
  columns: ParquetColumn[];
  leftOut: LeftOut[];
  rowCount: number;
  rowGroups: RowGroup[];
}

interface Cached {
  stamp: string;
  file: ParquetFile;
  footerBytes: number;
}

/** A file of more is refused. One of this size takes a second to read, and 40 MiB besides its bytes. */
const FOOTER_BYTES_MAX = 64 << 20;
/** Size of the smallest page, which is a header, and its largest number of values, which is an i32 and includes nulls. */
const PAGE_BYTES_MIN = 16, PAGE_VALUES_MAX = 2 ** 31 - 1;
/** Number of cached footers, and their bytes in files. */
const CACHE_COUNT_MAX = 64, CACHE_BYTES_MAX = 8 << 20;
const cache = new Map<string, Cached>();
let cacheBytes = 0;

export interface FileSchema {
  columns: { name: string; type: string }[];
  leftOut: LeftOut[];
  rowCount: number;
}

/** Where a long footer is not read, because it would block the thread. */
export interface LongFooters {
  bytesMax: number;
  /** The error for one of more bytes. */
  beyond(): Error;
}

/**
 * Columns and row count of a file, and the columns whose types are not supported.
 * @throws {SqlError} at `at`, if the file does not exist or is not a complete Parquet file.
 */
export function parquetSchema(path: string, root: string, at = 0, long?: LongFooters): FileSchema {
  const { columns, leftOut, rowCount } = atPosition(path, at, () => {
    const { file, handle } = openParquet(path, root, long);
    handle.close();
    return file;
  });
  return { columns: columns.map(({ name, type }) => ({ name, type })), leftOut, rowCount };
}

/** Runs `work` and turns errors of the file into SqlErrors at a position. */
export function atPosition<T>(path: string, at: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    // Decoders run over damaged bytes, so a length out of range is the file's fault.
    const name = path.slice(path.lastIndexOf("/") + 1);
    if (error instanceof OutsideError) {
      throw new SqlError(`${name} cannot be read: ${error.message}`, at, SQLSTATE.insufficientPrivilege, {
        cause: error,
      });
    }
    const expected = error instanceof ParquetError || error instanceof RangeError || error instanceof TypeError ||
      error instanceof Deno.errors.NotFound ||
      error instanceof Deno.errors.PermissionDenied || error instanceof Deno.errors.IsADirectory ||
      error instanceof Deno.errors.NotADirectory;
    if (!expected) throw error;
    const found = error instanceof Deno.errors.NotFound ? "the file does not exist" : error.message;
    throw new SqlError(`${name} cannot be read as Parquet: ${found}`, at, SQLSTATE.invalidParameter, { cause: error });
  }
}

/** Opens a file of the directory `root`. The caller closes the handle. */
export function openParquet(
  path: string,
  root: string,
  long?: LongFooters,
): { file: ParquetFile; handle: Deno.FsFile } {
  const handle = openImportFile(path, root);
  try {
    const info = handle.statSync();
    const stamp = `${info.mtime?.getTime()} ${info.size} ${info.ino}`;
    const cached = cache.get(path);
    if (cached?.stamp === stamp) return { file: cached.file, handle };
    const footer = footerBytesOf(handle, info.size, long), file = fileOf(path, footer, info.size);
    keep(path, { stamp, file, footerBytes: footer.length });
    return { file, handle };
  } catch (error) {
    handle.close();
    throw error;
  }
}

function keep(path: string, cached: Cached): void {
  forget(path);
  if (cached.footerBytes > CACHE_BYTES_MAX) return;
  cache.set(path, cached);
  cacheBytes += cached.footerBytes;
  for (const oldest of cache.keys()) {
    if (cache.size <= CACHE_COUNT_MAX && cacheBytes <= CACHE_BYTES_MAX) return;
    forget(oldest);
  }
}

function forget(path: string): void {
  cacheBytes -= cache.get(path)?.footerBytes ?? 0;
  cache.delete(path);
}

export function readAt(handle: Deno.FsFile, offset: number, into: Uint8Array): void {
  handle.seekSync(offset, Deno.SeekMode.Start);
  for (let at = 0; at < into.length;) {
    const n = handle.readSync(into.subarray(at));
    if (n === null) throw new ParquetError("it ends too early");
    at += n;
  }
}

/** Reads the end of a file: footer, its length (u32), "PAR1". */
function footerBytesOf(handle: Deno.FsFile, sizeBytes: number, long?: LongFooters): Uint8Array {
  if (sizeBytes < 12) throw new ParquetError("it is too short");
  const tail = new Uint8Array(8);
  readAt(handle, sizeBytes - 8, tail);
  if (new TextDecoder().decode(tail.subarray(4)) !== "PAR1") {
    throw new ParquetError("it does not end with the magic number of Parquet");
  }
  const footerSize = new DataView(tail.buffer).getUint32(0, true);
  if (footerSize + 12 > sizeBytes) throw new ParquetError("its footer is longer than the file");
  if (footerSize > FOOTER_BYTES_MAX) {
    throw new ParquetError(`its footer has ${footerSize} bytes: at most ${FOOTER_BYTES_MAX} are allowed`);
  }
  if (long !== undefined && footerSize > long.bytesMax) throw long.beyond();
  const footer = new Uint8Array(footerSize);
  readAt(handle, sizeBytes - 8 - footerSize, footer);
  return footer;
}

function fileOf(path: string, footer: Uint8Array, sizeBytes: number): ParquetFile {
  const { schema, questdb, rowCount, rowGroups } = readFooter(footer);
  const { columns, leftOut, leafCount } = schemaOf(schema, questdb);
  for (const group of rowGroups) checkRowGroup(group, columns, leafCount, sizeBytes);
  if (rowCount !== rowGroups.reduce((sum, group) => sum + group.rowCount, 0)) {
    throw new ParquetError("its row counts do not add up");
  }
  return { path, columns, leftOut, rowCount, rowGroups };
}

function checkRowGroup(group: RowGroup, columns: ParquetColumn[], leafCount: number, fileSizeBytes: number): void {
  const { rowCount, columnCount } = group;
  if (!(rowCount >= 0)) throw new ParquetError("its row counts do not add up");
  if (columnCount !== leafCount) {
    throw new ParquetError("a row group and the schema have different numbers of columns");
  }
  for (const { name, leaf, dimensions } of columns) {
    const { offset, sizeBytes, valueCount } = group.extent(leaf);
    // Empty row groups may have arbitrary offsets.
    if (rowCount > 0 && !(offset >= 4 && sizeBytes >= 0 && offset + sizeBytes <= fileSizeBytes)) {
      throw new ParquetError("a column is outside the file");
    }
    // Each list entry counts as a value, and so does an empty list.
    if (dimensions.length > 0 ? valueCount < rowCount : valueCount !== rowCount) {
      throw new ParquetError(`column ${name} has ${valueCount} values in ${rowCount} rows`);
    }
    if (valueCount > Math.floor(sizeBytes / PAGE_BYTES_MIN) * PAGE_VALUES_MAX) {
      throw new ParquetError(`column ${name} has ${valueCount} values in ${sizeBytes} bytes, which is impossible`);
    }
  }
}
