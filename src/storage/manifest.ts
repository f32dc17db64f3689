/**
 * The bytes of a table's manifest: schema, files, dictionaries and segments as of an LSN, as a snapshot or as an edit of the
 * manifest before it. And the catalogue of the database: the list of tables, and where the log begins.
 */
import type { Chunk } from "./chunks.ts";
import { ByteReader, ByteWriter, fromJson, toJson } from "./bytes.ts";
import type { ColumnStats, TableSchema } from "./contract.ts";
import { checkFormat, FORMAT_VERSION } from "./format.ts";
import type { SplicedSegments } from "./segments.ts";
import type { Segment } from "./table.ts";

export interface ManifestHead {
  lsn: number;
  schema: TableSchema;
  nextColumnId: number;
  files: { id: number; sizeBytes: number }[];
  dictionaries: { columnId: number; count: number; sizeBytes: number; crc: number }[];
}

export interface Manifest extends ManifestHead {
  segments: StoredSegment[];
  /** Segments of detached partitions, partition by partition. */
  detached: StoredSegment[];
}

export interface ManifestEdit extends ManifestHead {
  splices: SplicedSegments<StoredSegment>[];
  /** Undefined if unchanged. */
  detached?: StoredSegment[];
}

type StoredSegment = Omit<Segment, "uid">;

export function encodeManifest(manifest: Manifest): Uint8Array {
  const out = new ByteWriter();
  const { segments, detached, ...head } = manifest;
  out.u32(FORMAT_VERSION);
  out.text(new TextDecoder().decode(toJson(head)));
  encodeSegments(out, segments);
  encodeSegments(out, detached);
  return out.done();
}

export function encodeEdit(edit: ManifestEdit): Uint8Array {
  const out = new ByteWriter();
  const { splices, detached, ...head } = edit;
  out.u32(FORMAT_VERSION);
  out.text(new TextDecoder().decode(toJson(head)));
  out.u32(splices.length);
  for (const { start, count, segments } of splices) {
    out.u32(start);
    out.u32(count);
    encodeSegments(out, segments);
  }
  out.u8(detached === undefined ? 0 : 1);
  if (detached !== undefined) encodeSegments(out, detached);
  return out.done();
}

/** @throws {ConfigError} when a newer version wrote it. */
export function decodeEdit(path: string, bytes: Uint8Array): ManifestEdit {
  const reader = new ByteReader(bytes);
  checkFormat(path, reader.u32());
  const head = fromJson<ManifestHead>(new TextEncoder().encode(reader.text()));
  const splices: ManifestEdit["splices"] = [];
  for (let left = reader.u32(); left > 0; left--) {
    splices.push({ start: reader.u32(), count: reader.u32(), segments: decodeSegments(reader) });
  }
  const detached = reader.u8() === 0 ? undefined : decodeSegments(reader);
  reader.end();
  return { ...head, splices, detached };
}

function encodeSegments(out: ByteWriter, segments: readonly StoredSegment[]): void {
  out.u32(segments.length);
  for (const segment of segments) {
    out.i64(segment.partition);
    out.u32(segment.rowCount);
    out.i64(segment.timestampMin);
    out.i64(segment.timestampMax);
    const ids = Object.keys(segment.chunks).map(Number).filter((id) => segment.chunks[id] !== undefined);
    out.u32(ids.length);
    for (const id of ids) {
      const { plain } = segment.chunks[id]!;
      out.u32(id);
      out.u32(plain.file);
      out.size(plain.offset);
      out.u32(plain.sizeBytes);
      out.u32(plain.crc);
      out.u32(plain.valueBytes);
      encodeStats(out, plain.stats);
    }
  }
}

/** @throws {ConfigError} when a newer version wrote it. */
export function decodeManifest(path: string, bytes: Uint8Array): Manifest {
  const reader = new ByteReader(bytes);
  const format = reader.u32();
  checkFormat(path, format);
  const head = fromJson<ManifestHead>(new TextEncoder().encode(reader.text()));
  const segments = decodeSegments(reader);
  const detached = format < 3 ? [] : decodeSegments(reader);
  reader.end();
  return { ...head, segments, detached };
}

function decodeSegments(reader: ByteReader): StoredSegment[] {
  const segments: StoredSegment[] = [];
  for (let left = reader.u32(); left > 0; left--) {
    const partition = reader.i64(), rowCount = reader.u32(), timestampMin = reader.i64(), timestampMax = reader.i64();
    const chunks: (Chunk | undefined)[] = [];
    for (let count = reader.u32(); count > 0; count--) {
      const id = reader.u32();
      const plain = {
        address: 0,
        file: reader.u32(),
        offset: reader.size(),
        sizeBytes: reader.u32(),
        crc: reader.u32(),
        valueBytes: reader.u32(),
        stats: decodeStats(reader),
      };
      chunks[id] = { plain, capacity: 0, texts: [], textBytes: 0 };
    }
    segments.push({ partition, rowCount, timestampMin, timestampMax, chunks });
  }
  return segments;
}

/** Kind: 0 none, 1 numbers, 2 bigints, 3 numbers with a bigint sum; +4 if there is a sum. */
function encodeStats(out: ByteWriter, { nullCount, min, max, sum }: ColumnStats): void {
  out.u32(nullCount);
  const kind = min === undefined ? 0 : typeof min === "bigint" ? 2 : typeof sum === "bigint" ? 3 : 1;
  out.u8(kind | (sum === undefined ? 0 : 4));
  if (kind === 0) return;
  for (const bound of [min!, max!]) {
    if (typeof bound === "bigint") out.i64(bound);
    else out.f64(bound);
  }
  if (typeof sum === "bigint") {
    // The sum of 65,536 64-bit integers needs 80 bits.
    out.i64(sum >> 64n);
    out.i64(BigInt.asIntN(64, sum));
  } else if (sum !== undefined) out.f64(sum);
}

function decodeStats(reader: ByteReader): ColumnStats {
  const nullCount = reader.u32();
  const tag = reader.u8();
  const kind = tag & 3;
  if (kind === 0) return { nullCount };
  const bound = () => (kind === 2 ? reader.i64() : reader.f64());
  const min = bound(), max = bound();
  if ((tag & 4) === 0) return { nullCount, min, max };
  const sum = kind === 1 ? reader.f64() : (reader.i64() << 64n) + BigInt.asUintN(64, reader.i64());
  return { nullCount, min, max, sum };
}

export interface CatalogEntry {
  schema: TableSchema;
  /** Generation of its manifest or of an earlier one. */
  generation: number;
  /** LSN of the last block that concerns the table. Older versions did not write it. */
  lsn?: number;
  damage?: { path: string; message: string };
}

export interface CatalogRecord {
  /** The manifests cover all blocks below this LSN. */
  logStart: number;
  nextTableId: number;
  nextFileId: number;
  /** Generation of the slot with the records of access control, or an earlier one; 0 if there is none. */
  access?: number;
  tables: CatalogEntry[];
}

export function encodeCatalog(record: CatalogRecord): Uint8Array {
  return toJson({ format: FORMAT_VERSION, ...record });
}

/** @throws {ConfigError} when a newer version wrote it. */
export function decodeCatalog(path: string, bytes: Uint8Array): CatalogRecord {
  const { format = 0, ...record } = fromJson<CatalogRecord & { format?: number }>(bytes);
  checkFormat(path, format);
  return record;
}
