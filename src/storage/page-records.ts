/**
 * The records of pages and of lists of pages, in manifests and in lists. A list has the sums of its pages, and counts their extents
 * with those of the chunks:
 *
 *     file u32   offset f64   size u32   crc u32   number of segments u32   rows f64
 *     partition, least and greatest timestamp of the first and of the last segment, i64 each   least and greatest uid, f64 each
 *     number of data files u32, then for each: file u32   bytes of the chunks f64
 */
import type { ByteReader, ByteWriter } from "./bytes.ts";
import type { Bounds, PageRecord } from "./page.ts";

/** A part of a table in its manifest. */
export interface PartRecord {
  readonly isList: boolean;
  readonly record: PageRecord;
}

const FIXED_BYTES = 100;
const FILE_BYTES = 12;

export function encodePages(out: ByteWriter, pages: readonly PageRecord[]): void {
  out.u32(pages.length);
  for (const page of pages) encodeRecord(out, page);
}

export function encodeParts(out: ByteWriter, parts: readonly PartRecord[]): void {
  out.u32(parts.length);
  for (const { isList, record } of parts) {
    out.u8(isList ? 1 : 0);
    encodeRecord(out, record);
  }
}

function encodeRecord(out: ByteWriter, page: PageRecord): void {
  if (page instanceof ReadRecord) out.raw(page.bytes);
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
  out.u32(page.fileBytes.length);
  for (const [file, bytes] of page.fileBytes) {
    out.u32(file);
    out.size(bytes);
  }
}

export function decodePages(reader: ByteReader): PageRecord[] {
  return Array.from({ length: reader.u32() }, () => decodeRecord(reader));
}

export function decodeParts(reader: ByteReader): PartRecord[] {
  return Array.from({ length: reader.u32() }, () => ({ isList: reader.u8() === 1, record: decodeRecord(reader) }));
}

/** A record stays bytes until it is used. */
function decodeRecord(reader: ByteReader): PageRecord {
  const { view, at } = reader.skip(FIXED_BYTES);
  reader.skip(FILE_BYTES * view.getUint32(at + FIXED_BYTES - 4, true));
  return new ReadRecord(view, at);
}

class ReadRecord implements PageRecord {
  constructor(private readonly view: DataView, private readonly at: number) {}

  get bytes(): Uint8Array {
    const { buffer, byteOffset } = this.view;
    return new Uint8Array(buffer, byteOffset + this.at, FIXED_BYTES + FILE_BYTES * this.fileCount);
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

  get fileBytes(): PageRecord["fileBytes"] {
    const { view } = this, found: [number, number][] = [];
    const start = this.at + FIXED_BYTES, end = start + FILE_BYTES * this.fileCount;
    for (let at = start; at < end; at += FILE_BYTES) {
      found.push([view.getUint32(at, true), view.getFloat64(at + 4, true)]);
    }
    return found;
  }

  private get fileCount(): number {
    return this.view.getUint32(this.at + 96, true);
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
