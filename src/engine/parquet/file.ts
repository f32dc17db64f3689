/**
 * A Parquet file: its footer, checked, with columns mapped to the types of this database.
 * @see https://parquet.apache.org/docs/file-format/
 */
import { parquetMetadata, type RowGroup } from "hyparquet";
import { SqlError, SQLSTATE } from "../../errors.ts";
import { ParquetError } from "./error.ts";
import { openImportFile, OutsideError } from "./import-file.ts";
import { type LeftOut, type ParquetColumn, schemaOf } from "./schema.ts";

export interface ColumnExtent {
  codec: string;
  offset: number;
  sizeBytes: number;
  /** Size when decompressed. */
  plainSizeBytes: number;
  /** Number of list entries, including nulls and empty lists. */
  valueCount: number;
}

export interface ParquetFile {
  path: string;
  columns: ParquetColumn[];
  leftOut: LeftOut[];
  rowCount: number;
  /** `extents` is indexed by leaf. */
  rowGroups: { rowCount: number; extents: ColumnExtent[] }[];
}

interface Cached {
  stamp: string;
  file: ParquetFile;
}

/** Number of cached footers. They are small compared to their files. */
const CACHE_COUNT_MAX = 64;
const cache = new Map<string, Cached>();

export interface FileSchema {
  columns: { name: string; type: string }[];
  leftOut: LeftOut[];
  rowCount: number;
}

/**
 * Columns and row count of a file, and the columns whose types are not supported.
 * @throws {SqlError} at `at`, if the file does not exist or is not a complete Parquet file.
 */
export function parquetSchema(path: string, root: string, at = 0): FileSchema {
  const { columns, leftOut, rowCount } = atPosition(path, at, () => {
    const { file, handle } = openParquet(path, root);
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
export function openParquet(path: string, root: string): { file: ParquetFile; handle: Deno.FsFile } {
  const handle = openImportFile(path, root);
  try {
    const info = handle.statSync();
    const stamp = `${info.mtime?.getTime()} ${info.size} ${info.ino}`;
    const cached = cache.get(path);
    if (cached?.stamp === stamp) return { file: cached.file, handle };
    const file = readFooter(path, handle, info.size);
    if (cache.size >= CACHE_COUNT_MAX) cache.delete(cache.keys().next().value!);
    cache.delete(path);
    cache.set(path, { stamp, file });
    return { file, handle };
  } catch (error) {
    handle.close();
    throw error;
  }
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
function readFooter(path: string, handle: Deno.FsFile, sizeBytes: number): ParquetFile {
  if (sizeBytes < 12) throw new ParquetError("it is too short");
  const tail = new Uint8Array(8);
  readAt(handle, sizeBytes - 8, tail);
  if (new TextDecoder().decode(tail.subarray(4)) !== "PAR1") {
    throw new ParquetError("it does not end with the magic number of Parquet");
  }
  const footerSize = new DataView(tail.buffer).getUint32(0, true);
  if (footerSize + 12 > sizeBytes) throw new ParquetError("its footer is longer than the file");
  const footer = new Uint8Array(footerSize + 8);
  readAt(handle, sizeBytes - 8 - footerSize, footer);
  let metadata;
  try {
    metadata = parquetMetadata(footer.buffer, { geoparquet: false });
  } catch (error) {
    throw new ParquetError(`its footer cannot be read: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  }
  const { columns, leftOut, leafCount } = schemaOf(metadata.schema, metadata.key_value_metadata);
  const rowGroups = metadata.row_groups.map((group) => rowGroupOf(group, sizeBytes));
  for (const { rowCount, extents } of rowGroups) {
    if (extents.length !== leafCount) {
      throw new ParquetError("a row group and the schema have different numbers of columns");
    }
    for (const { name, leaf, dimensions } of columns) {
      const { valueCount } = extents[leaf];
      // Each list entry counts as a value, and so does an empty list.
      if (dimensions.length > 0 ? valueCount < rowCount : valueCount !== rowCount) {
        throw new ParquetError(`column ${name} has ${valueCount} values in ${rowCount} rows`);
      }
    }
  }
  const rowCount = rowGroups.reduce((sum, group) => sum + group.rowCount, 0);
  if (rowCount !== Number(metadata.num_rows) || rowGroups.some((group) => !(group.rowCount >= 0))) {
    throw new ParquetError("its row counts do not add up");
  }
  return { path, columns, leftOut, rowCount, rowGroups };
}

function rowGroupOf(group: RowGroup, fileSizeBytes: number): ParquetFile["rowGroups"][number] {
  const rowCount = Number(group.num_rows);
  const extents = group.columns.map((column): ColumnExtent => {
    const data = column.meta_data;
    if (data === undefined) throw new ParquetError("a column has no metadata");
    const starts = [data.data_page_offset, data.dictionary_page_offset].filter((offset) =>
      offset !== undefined && offset > 0n
    ).map(Number);
    const offset = Math.min(...starts), sizeBytes = Number(data.total_compressed_size);
    // Empty row groups may have arbitrary offsets.
    if (rowCount > 0 && !(offset >= 4 && sizeBytes >= 0 && offset + sizeBytes <= fileSizeBytes)) {
      throw new ParquetError("a column is outside the file");
    }
    return {
      codec: data.codec,
      offset,
      sizeBytes,
      plainSizeBytes: Number(data.total_uncompressed_size ?? 0),
      valueCount: Number(data.num_values),
    };
  });
  return { rowCount, extents };
}
