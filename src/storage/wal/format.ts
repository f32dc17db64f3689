/**
 * The write-ahead log of the whole database: consecutive files `log/<first LSN>.wal`, each a header and blocks:
 *
 *     file    magic u32 "SWAL", crc u32 of all behind it, first LSN f64, salt u32, crc of the last block before u32, format
 *             version u32, zeros to 64 bytes
 *     block   header (64 bytes), payload padded to 64 bytes, the header again with another magic
 *     header  magic u32, crc u32 of all behind it (seeded with the file's salt), lsn f64, kind u16, flags u16, table id u32,
 *             schema version u32, payload size u32, payload crc u32, crc of the last durable block u32, durable lsn f64, zeros
 *
 * A commit is one or more blocks; the last one is flagged. Every block records which block was the last durable one when it was
 * written. A mark (a header alone) records it again after the sync. So an unreadable block is **damage** if anything valid behind
 * it says that it was durable. Otherwise it is a **torn tail**, and only that is cut off.
 * The salt prevents user data, or the bytes of an older file, from passing as a header. The second header allows reading past a
 * damaged first one.
 */
import { align, crc32 } from "../bytes.ts";
import { type Files, join, type ReadableFile, readFully } from "../files.ts";
import { checkFormat, FORMAT_VERSION } from "../format.ts";

const FILE_MAGIC = 0x4c415753;
export const HEAD_MAGIC = 0x4b4c4248;
export const TAIL_MAGIC = 0x4b4c4254;
export const MARK_MAGIC = 0x4b4c424d;
export const BLOCK_HEADER_BYTES = 64;

export const BLOCK_KIND = { definition: 1, append: 2, update: 3, delete: 4, abort: 5, access: 6 } as const;
export const FLAG_LAST = 1;

export interface BlockInfo {
  lsn: number;
  kind: number;
  flags: number;
  tableId: number;
  schemaVersion: number;
}

/** The LSNs of the blocks that an abort block takes back. */
export function abortedBy(payload: Uint8Array): number[] {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length);
  return Array.from({ length: payload.length >> 3 }, (_, k) => view.getFloat64(8 * k, true));
}

/** Location of a block in a scanned log. */
export interface BlockLocation extends BlockInfo {
  path: string;
  payloadAt: number;
  payloadSize: number;
  payloadCrc: number;
  /** Format version of the file. */
  format: number;
}

export interface Header extends BlockInfo {
  magic: number;
  crc: number;
  payloadSize: number;
  payloadCrc: number;
  durableCrc: number;
  durableLsn: number;
}

export function encodeHeader(header: Omit<Header, "crc">, salt: number): Uint8Array {
  const bytes = new Uint8Array(BLOCK_HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, header.magic, true);
  view.setFloat64(8, header.lsn, true);
  view.setUint16(16, header.kind, true);
  view.setUint16(18, header.flags, true);
  view.setUint32(20, header.tableId, true);
  view.setUint32(24, header.schemaVersion, true);
  view.setUint32(28, header.payloadSize, true);
  view.setUint32(32, header.payloadCrc, true);
  view.setUint32(36, header.durableCrc, true);
  view.setFloat64(40, header.durableLsn, true);
  view.setUint32(4, crc32(bytes.subarray(8), salt), true);
  return bytes;
}

export function decodeHeader(bytes: Uint8Array, salt: number): Header | undefined {
  if (bytes.length < BLOCK_HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, BLOCK_HEADER_BYTES);
  const magic = view.getUint32(0, true);
  if (magic !== HEAD_MAGIC && magic !== TAIL_MAGIC && magic !== MARK_MAGIC) return undefined;
  const crc = view.getUint32(4, true);
  if (crc !== crc32(bytes.subarray(8, BLOCK_HEADER_BYTES), salt)) return undefined;
  return {
    magic,
    crc,
    lsn: view.getFloat64(8, true),
    kind: view.getUint16(16, true),
    flags: view.getUint16(18, true),
    tableId: view.getUint32(20, true),
    schemaVersion: view.getUint32(24, true),
    payloadSize: view.getUint32(28, true),
    payloadCrc: view.getUint32(32, true),
    durableCrc: view.getUint32(36, true),
    durableLsn: view.getFloat64(40, true),
  };
}

/** Where the copy of a block's header is, from the block's start: behind the padded payload. */
export function tailOffset(payloadSize: number): number {
  return BLOCK_HEADER_BYTES + align(payloadSize, BLOCK_HEADER_BYTES);
}

export function blockBytes(payloadSize: number): number {
  return tailOffset(payloadSize) + BLOCK_HEADER_BYTES;
}

export interface FileHeader {
  firstLsn: number;
  salt: number;
  previousCrc: number;
  /** Set when reading. */
  format?: number;
}

export function encodeFileHeader(header: FileHeader): Uint8Array {
  const bytes = new Uint8Array(BLOCK_HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, FILE_MAGIC, true);
  view.setFloat64(8, header.firstLsn, true);
  view.setUint32(16, header.salt, true);
  view.setUint32(20, header.previousCrc, true);
  view.setUint32(24, FORMAT_VERSION, true);
  view.setUint32(4, crc32(bytes.subarray(8)), true);
  return bytes;
}

export function decodeFileHeader(file: ReadableFile): FileHeader | undefined {
  const bytes = new Uint8Array(BLOCK_HEADER_BYTES);
  if (readFully(file, bytes, 0) < BLOCK_HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer);
  if (view.getUint32(0, true) !== FILE_MAGIC || view.getUint32(4, true) !== crc32(bytes.subarray(8))) return undefined;
  const format = view.getUint32(24, true);
  checkFormat(file.path, format);
  const firstLsn = view.getFloat64(8, true), salt = view.getUint32(16, true), previousCrc = view.getUint32(20, true);
  return { firstLsn, salt, previousCrc, format };
}

export function logPath(directory: string, firstLsn: number): string {
  return join(directory, `${String(firstLsn).padStart(16, "0")}.wal`);
}

export function logFiles(files: Files, directory: string): { path: string; firstLsn: number }[] {
  if (!files.exists(directory)) return [];
  return files.list(directory).filter((name) => /^\d{16}\.wal$/.test(name))
    .map((name) => ({ path: join(directory, name), firstLsn: Number(name.slice(0, 16)) }));
}
