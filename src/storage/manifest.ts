/**
 * The bytes of a table's manifest: schema, files, dictionaries and parts of its tree of segments as of an LSN, as a snapshot or as an edit of
 * the manifest before it. And the catalogue of the database: the list of tables, and where the log begins.
 */
import { ByteReader, ByteWriter, fromJson, toJson } from "./bytes.ts";
import type { TableSchema } from "./contract.ts";
import type { ManifestHead } from "./manifest-head.ts";
import { checkFormat, FORMAT_VERSION } from "./format.ts";
import { applyOldEdit, decodeOldManifest, type OldManifest } from "./manifest-old.ts";
import { decodePages, decodeParts, encodeParts, type PartRecord } from "./page-records.ts";
import { type Splice, spliced } from "./splices.ts";

/** Parts of detached partitions. */
export type DetachedParts = ReadonlyMap<bigint, readonly PartRecord[]>;

export interface Manifest {
  head: ManifestHead;
  parts: readonly PartRecord[];
  detached: DetachedParts;
}

export interface ManifestEdit {
  head: ManifestHead;
  parts: readonly Splice<PartRecord>[];
  /** Undefined: as before. */
  detached: DetachedParts | undefined;
}

/** A manifest as it was read: of this format or of an older one. */
export type DecodedManifest = Manifest | OldManifest;

function encoderOf(head: ManifestHead): ByteWriter {
  const out = new ByteWriter();
  out.u32(FORMAT_VERSION);
  out.text(new TextDecoder().decode(toJson(head)));
  return out;
}

export function encodeManifest({ head, parts, detached }: Manifest): Uint8Array {
  const out = encoderOf(head);
  encodeParts(out, parts);
  encodeDetached(out, detached);
  return out.done();
}

export function encodeEdit({ head, parts: splices, detached }: ManifestEdit): Uint8Array {
  const out = encoderOf(head);
  out.u32(splices.length);
  for (const { start, count, added } of splices) {
    out.u32(start);
    out.u32(count);
    encodeParts(out, added);
  }
  out.u8(detached === undefined ? 0 : 1);
  if (detached !== undefined) encodeDetached(out, detached);
  return out.done();
}

/** @throws {ConfigError} when a newer version wrote it. */
export function decodeManifest(path: string, bytes: Uint8Array): DecodedManifest {
  const reader = new ByteReader(bytes);
  const format = reader.u32();
  checkFormat(path, format);
  if (format < 5) return decodeOldManifest(reader, format);
  const head = decodeHead(reader);
  const parts = partsOf(reader, format), detached = decodeDetached(reader, format);
  reader.end();
  return { head, parts, detached };
}

/** Returns the manifest after an edit. @throws {ConfigError} when a newer version wrote it. */
export function applyEdit(path: string, bytes: Uint8Array, before: DecodedManifest): DecodedManifest {
  const reader = new ByteReader(bytes);
  const format = reader.u32();
  checkFormat(path, format);
  if (!("parts" in before)) return applyOldEdit(reader, before);
  const head = decodeHead(reader);
  const splices: Splice<PartRecord>[] = [];
  for (let left = reader.u32(); left > 0; left--) {
    splices.push({ start: reader.u32(), count: reader.u32(), added: partsOf(reader, format) });
  }
  const detached = reader.u8() === 0 ? before.detached : decodeDetached(reader, format);
  reader.end();
  return { head, parts: spliced(before.parts, splices), detached };
}

/** Before format 8 there were only pages. */
function partsOf(reader: ByteReader, format: number): PartRecord[] {
  return format < 8 ? decodePages(reader).map((record) => ({ isList: false, record })) : decodeParts(reader);
}

function decodeHead(reader: ByteReader): ManifestHead {
  return fromJson<ManifestHead>(new TextEncoder().encode(reader.text()));
}

function encodeDetached(out: ByteWriter, detached: DetachedParts): void {
  out.u32(detached.size);
  for (const [start, parts] of detached) {
    out.i64(start);
    encodeParts(out, parts);
  }
}

function decodeDetached(reader: ByteReader, format: number): DetachedParts {
  return new Map(Array.from({ length: reader.u32() }, () => [reader.i64(), partsOf(reader, format)] as const));
}

export interface CatalogEntry {
  schema: TableSchema;
  /** Generation of its manifest or of an earlier one. */
  generation: number;
  /** LSN of the last block that concerns the table. Older versions did not write it. */
  lsn?: number;
  /** The rules by which all of its chunks are stored; 0 if it is missing. */
  packing?: number;
  /** The format of all of its pages; an earlier one if it is missing. */
  pages?: number;
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
