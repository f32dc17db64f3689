/**
 * A Parquet file: what its footer says, checked, in this database's types.
 * @see https://parquet.apache.org/docs/file-format/
 */
import { parquetMetadata, type SchemaElement } from "hyparquet";
import { SqlError, SQLSTATE } from "../../errors.ts";

/** The file is not what the format says, or says what is not read here. */
export class ParquetError extends Error {
  override readonly name = "ParquetError";
}

/** How the values of a column are stored, and what they become. */
export type Conversion =
  | "boolean"
  | "i32"
  | "i32 to i8"
  | "i32 to i16"
  | "i32 to i64"
  | "u32 to i64"
  | "days"
  | "i64"
  | "int96"
  | "f32"
  | "f64"
  | "text"
  | "uuid";

export interface ParquetColumn {
  name: string;
  type: string;
  conversion: Conversion;
  /** Of FIXED_LEN_BYTE_ARRAY. */
  byteLength: number;
  optional: boolean;
  /** Place among the leaves, so also in each row group. */
  leaf: number;
}

export interface ColumnExtent {
  codec: string;
  offset: number;
  sizeBytes: number;
  valueCount: number;
}

export interface ParquetFile {
  path: string;
  columns: ParquetColumn[];
  rowCount: number;
  /** `extents` by leaf. */
  rowGroups: { rowCount: number; extents: ColumnExtent[] }[];
}

interface Cached {
  stamp: string;
  file: ParquetFile;
}

/** Footers are small beside their files; the few in use are kept. */
const CACHE_COUNT_MAX = 64;
const cache = new Map<string, Cached>();

/**
 * Columns and row count of a file. Columns of nested and other unsupported types are left out, as users know it.
 * @throws {SqlError} at `at`, when there is no such file, or it is no whole Parquet file.
 */
export function parquetSchema(path: string, at = 0): { columns: { name: string; type: string }[]; rowCount: number } {
  const file = atPosition(at, () => openParquet(path));
  return { columns: file.columns.map(({ name, type }) => ({ name, type })), rowCount: file.rowCount };
}

/** Runs `work`; what it finds wrong with the file becomes an SqlError at a position. */
export function atPosition<T>(at: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    // Decoders run over damaged bytes: a length out of range is the file's fault.
    const expected = error instanceof ParquetError || error instanceof RangeError || error instanceof TypeError ||
      error instanceof Deno.errors.NotFound ||
      error instanceof Deno.errors.PermissionDenied || error instanceof Deno.errors.IsADirectory ||
      error instanceof Deno.errors.NotADirectory;
    if (!expected) throw error;
    throw new SqlError(`The Parquet file cannot be read: ${error.message}`, at, SQLSTATE.invalidParameter, {
      cause: error,
    });
  }
}

export function openParquet(path: string): ParquetFile {
  const info = Deno.statSync(path);
  if (!info.isFile) throw new ParquetError("it is not a file");
  const stamp = `${info.mtime?.getTime()} ${info.size} ${info.ino}`;
  const cached = cache.get(path);
  if (cached?.stamp === stamp) return cached.file;
  const handle = Deno.openSync(path);
  try {
    const file = readFooter(path, handle, info.size);
    if (cache.size >= CACHE_COUNT_MAX) cache.delete(cache.keys().next().value!);
    cache.delete(path);
    cache.set(path, { stamp, file });
    return file;
  } finally {
    handle.close();
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

/** The tail of a file: footer, its length (u32), "PAR1". */
function readFooter(path: string, handle: Deno.FsFile, sizeBytes: number): ParquetFile {
  if (sizeBytes < 12) throw new ParquetError("it is too short");
  const tail = new Uint8Array(8);
  readAt(handle, sizeBytes - 8, tail);
  if (new TextDecoder().decode(tail.subarray(4)) !== "PAR1") {
    throw new ParquetError("it does not end as a Parquet file does");
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
  const columns: ParquetColumn[] = [];
  let leaf = 0;
  // The schema is a tree in prefix order; only leaves directly under the root are columns here.
  const walk = (index: number, depth: number): number => {
    const element = metadata.schema[index];
    if (element === undefined || depth > 100) throw new ParquetError("its schema is not a tree");
    let next = index + 1;
    const children = element.num_children ?? 0;
    for (let k = 0; k < children; k++) next = walk(next, depth + 1);
    if (children === 0 && index > 0) {
      const found = depth === 1 ? columnOf(element, leaf) : undefined;
      if (found !== undefined) columns.push(found);
      leaf++;
    }
    return next;
  };
  walk(0, 0);
  const rowGroups = metadata.row_groups.map((group) => {
    const extents = group.columns.map((column): ColumnExtent => {
      const data = column.meta_data;
      if (data === undefined) throw new ParquetError("a column has no metadata");
      const starts = [data.data_page_offset, data.dictionary_page_offset].filter((offset) =>
        offset !== undefined && offset > 0n
      ).map(Number);
      const offset = Math.min(...starts), size = Number(data.total_compressed_size);
      if (!(offset >= 4 && size >= 0 && offset + size <= sizeBytes)) {
        throw new ParquetError("a column lies outside of the file");
      }
      return { codec: data.codec, offset, sizeBytes: size, valueCount: Number(data.num_values) };
    });
    if (extents.length !== leaf) throw new ParquetError("a row group has another number of columns than the schema");
    return { rowCount: Number(group.num_rows), extents };
  });
  const rowCount = rowGroups.reduce((sum, group) => sum + group.rowCount, 0);
  if (rowCount !== Number(metadata.num_rows) || rowGroups.some((group) => !(group.rowCount >= 0))) {
    throw new ParquetError("its row counts do not add up");
  }
  return { path, columns, rowCount, rowGroups };
}

function columnOf(element: SchemaElement, leaf: number): ParquetColumn | undefined {
  if (element.repetition_type === "REPEATED") return undefined;
  const found = typeOfElement(element);
  if (found === undefined) return undefined;
  return {
    name: element.name,
    type: found[0],
    conversion: found[1],
    byteLength: element.type_length ?? 0,
    optional: element.repetition_type === "OPTIONAL",
    leaf,
  };
}

function typeOfElement(element: SchemaElement): [type: string, conversion: Conversion] | undefined {
  const logical = element.logical_type, converted = element.converted_type;
  if (logical?.type === "DECIMAL" || converted === "DECIMAL") return undefined;
  switch (element.type) {
    case "BOOLEAN":
      return ["BOOLEAN", "boolean"];
    case "INT32": {
      if (logical?.type === "DATE" || converted === "DATE") return ["DATE", "days"];
      const width = logical?.type === "INTEGER" ? `${logical.isSigned ? "" : "U"}INT_${logical.bitWidth}` : converted;
      if (width === "INT_8") return ["BYTE", "i32 to i8"];
      if (width === "INT_16" || width === "UINT_8") return ["SHORT", "i32 to i16"];
      if (width === "UINT_32") return ["LONG", "u32 to i64"];
      return ["INT", "i32"];
    }
    case "INT64": {
      const unit = logical?.type === "TIMESTAMP"
        ? logical.unit
        : converted === "TIMESTAMP_MICROS"
        ? "MICROS"
        : converted === "TIMESTAMP_MILLIS"
        ? "MILLIS"
        : undefined;
      if (unit === "MILLIS") return ["DATE", "i64"];
      if (unit === "MICROS") return ["TIMESTAMP", "i64"];
      if (unit === "NANOS") return ["TIMESTAMP_NS", "i64"];
      return ["LONG", "i64"];
    }
    case "INT96":
      return ["TIMESTAMP", "int96"];
    case "FLOAT":
      return ["FLOAT", "f32"];
    case "DOUBLE":
      return ["DOUBLE", "f64"];
    case "BYTE_ARRAY":
      if (logical?.type === "STRING" || logical?.type === "ENUM" || logical?.type === "JSON") {
        return ["VARCHAR", "text"];
      }
      return converted === "UTF8" || converted === "ENUM" || converted === "JSON" ? ["VARCHAR", "text"] : undefined;
    case "FIXED_LEN_BYTE_ARRAY":
      return element.type_length === 16 && (logical === undefined || logical.type === "UUID") && converted === undefined
        ? ["UUID", "uuid"]
        : undefined;
    default:
      return undefined;
  }
}
