/**
 * The records of pages and of lists of pages, in manifests and in lists. A list has the sums of its pages, and counts their extents
 * with those of the chunks:
 *
 *     number of records u32, bit 31 set
 *     record   file u32   offset f64   size u32   crc u32   number of segments u32   rows f64
 *              partition, least and greatest timestamp of the first and of the last segment, i64 each   least and greatest uid, f64 each
 *              greatest version of its partitions f64   their formats u32 (bit f: format f; bit 30: of pages before format 9)
 *              number of data files u32, then for each: file u32   bytes of the chunks f64
 *
 * In a manifest a byte before each record says whether it is a list. Before format 9 records had neither versions nor formats, and bit 31
 * is not set.
 */
import type { ByteReader, ByteWriter } from "./bytes.ts";
import { type Bounds, NATIVE_FORMATS, OLD_WORDS, type PageRecord } from "./page.ts";

/** A part of a table in its manifest. */
export interface PartRecord {
  readonly isList: boolean;
  readonly record: PageRecord;
}

const FIXED_BYTES = 112, OLD_FIXED_BYTES = 100;
const FILE_BYTES = 12;
const HAS_VERSIONS = 2 ** 31;

export function encodePages(out: ByteWriter, pages: readonly PageRecord[]): void {
  out.u32(HAS_VERSIONS + pages.length);
  for (const page of pages) encodeRecord(out, page);
}

export function encodeParts(out: ByteWriter, parts: readonly PartRecord[]): void {
  out.u32(HAS_VERSIONS + parts.length);
  for (const { isList, record } of parts) {
    out.u8(isList ? 1 : 0);
    encodeRecord(out, record);
  }
}

function encodeRecord(out: ByteWriter, page: PageRecord): void {
  if (page instanceof ReadRecord && page.hasVersion) out.raw(page.bytes);
  else encodePage(out, page);
}

function encodePage(out: ByteWriter, page: PageRecord): void {
  out.u32(page.file);
  out.size(page.offset);
  out.u32(page.sizeBytes);
  out.u32(page.crc);
  out.u32(page.count);
  out.size(page.rowCount);
  for (const { partition, timestampMin, timestampMax } of [page.first, page.last]) {
    out.i64(partition);
    out.i64(timestampMin);
    out.i64(timestampMax);
  }
  out.size(page.uidMin);
  out.size(page.uidMax);
  out.size(page.version);
  out.u32(page.formats);
  out.u32(page.fileBytes.length);
  for (const [file, bytes] of page.fileBytes) {
    out.u32(file);
    out.size(bytes);
  }
}

export function decodePages(reader: ByteReader): PageRecord[] {
  const { count, hasVersions } = countOf(reader);
  return Array.from({ length: count }, () => decodeRecord(reader, hasVersions));
}

export function decodeParts(reader: ByteReader): PartRecord[] {
  const { count, hasVersions } = countOf(reader);
  return Array.from(
    { length: count },
    () => ({ isList: reader.u8() === 1, record: decodeRecord(reader, hasVersions) }),
  );
}

function countOf(reader: ByteReader): { count: number; hasVersions: boolean } {
  const count = reader.u32();
  return { count: count % HAS_VERSIONS, hasVersions: count >= HAS_VERSIONS };
}

/** A record stays bytes until it is used. */
function decodeRecord(reader: ByteReader, hasVersion: boolean): PageRecord {
  const fixedBytes = hasVersion ? FIXED_BYTES : OLD_FIXED_BYTES;
  const { view, at } = reader.skip(fixedBytes);
  reader.skip(FILE_BYTES * view.getUint32(at + fixedBytes - 4, true));
  return new ReadRecord(view, at, hasVersion);
}

class ReadRecord implements PageRecord {
  constructor(private readonly view: DataView, private readonly at: number, readonly hasVersion: boolean) {}

  get bytes(): Uint8Array {
    const { buffer, byteOffset } = this.view;
    return new Uint8Array(buffer, byteOffset + this.at, this.fixedBytes + FILE_BYTES * this.fileCount);
  }

  get file(): number {
    return this.view.getUint32(this.at, true);
  }

  get offset(): number {
    return this.view.getFloat64(this.at + 4, true);
  }

  get sizeBytes(): number {
    return this.view.getUint32(this.at + 12, true);
  }

  get crc(): number {
    return this.view.getUint32(this.at + 16, true);
  }

  get count(): number {
    return this.view.getUint32(this.at + 20, true);
  }

  get rowCount(): number {
    return this.view.getFloat64(this.at + 24, true);
  }

  get first(): Bounds {
    return this.boundsAt(32);
  }

  get last(): Bounds {
    return this.boundsAt(56);
  }

  get uidMin(): number {
    return this.view.getFloat64(this.at + 80, true);
  }

  get uidMax(): number {
    return this.view.getFloat64(this.at + 88, true);
  }

  get version(): number {
    return this.hasVersion ? this.view.getFloat64(this.at + 96, true) : 0;
  }

  get formats(): number {
    return this.hasVersion ? this.view.getUint32(this.at + 104, true) : NATIVE_FORMATS | OLD_WORDS;
  }

  get fileBytes(): PageRecord["fileBytes"] {
    const { view } = this, found: [number, number][] = [];
    const start = this.at + this.fixedBytes, end = start + FILE_BYTES * this.fileCount;
    for (let at = start; at < end; at += FILE_BYTES) {
      found.push([view.getUint32(at, true), view.getFloat64(at + 4, true)]);
    }
    return found;
  }

  private get fileCount(): number {
    return this.view.getUint32(this.at + this.fixedBytes - 4, true);
  }

  private get fixedBytes(): number {
    return this.hasVersion ? FIXED_BYTES : OLD_FIXED_BYTES;
  }

  private boundsAt(offset: number): Bounds {
    const at = this.at + offset, { view } = this;
    return {
      partition: view.getBigInt64(at, true),
      timestampMin: view.getBigInt64(at + 8, true),
      timestampMax: view.getBigInt64(at + 16, true),
    };
  }
}
