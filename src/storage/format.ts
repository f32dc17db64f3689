/**
 * The format version of all files. Catalogue, manifests, log, dictionaries and data files each record it, so that each
 * file can be checked by itself. Raise it for any change that the previous version cannot read, and keep reading the
 * older formats: `tests/roots/` has a root of each.
 *
 *     0   as 1, but catalogue, log and data files do not record it
 *     1   the first recorded version
 *     2   access control: its slots, its blocks in the log, and definitions that change grants
 *     3   definitions that move partitions; manifests list detached partitions; the time to live drops partitions by such
 *         definitions, no longer with the rows
 *     4   edits of manifests
 *     5   manifests list pages of segments, which are in the data files; blocks of UPDATE and DELETE name rows by partition and
 *         place
 *     6   chunks may be encoded (`encoding/chunk.ts`)
 *     7   pages say how chunks are encoded; texts may be encoded (`encoding/texts.ts`), floats as products; vectors without NULL
 *         reserve no code
 *     8   manifests list pages, and lists of pages that are in the data files
 *     9   pages, lists of pages and manifests have the versions of partitions; pages begin with their partitions
 */
import { ConfigError } from "../errors.ts";
import { crc32 } from "./bytes.ts";

export const FORMAT_VERSION = 9;

/** @throws {ConfigError} for a newer version. This stops the start: reading unknown formats could destroy data. */
export function checkFormat(path: string, version: number): void {
  if (version <= FORMAT_VERSION) return;
  throw new ConfigError(
    "cairo.root",
    `${path} was written by a newer version (format ${version}; this one reads up to ${FORMAT_VERSION}): ` +
      "start that version again, or restore an older backup",
  );
}

/**
 * The first bytes of a file: magic u32, crc u32 of all following bytes, version u32, zeros. Extents begin at multiples
 * of 64.
 */
export const HEADER_BYTES = 64;
export const DATA_MAGIC = 0x54414453; // "SDAT"
export const DICTIONARY_MAGIC = 0x43494453; // "SDIC"

export function encodeHeader(magic: number): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, magic, true);
  view.setUint32(8, FORMAT_VERSION, true);
  view.setUint32(4, crc32(bytes.subarray(8)), true);
  return bytes;
}

/** Returns undefined if the bytes are not a valid header: the file has format 0, or is damaged. */
export function headerVersion(bytes: Uint8Array, magic: number): number | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  if (view.getUint32(0, true) !== magic || view.getUint32(4, true) !== crc32(bytes.subarray(8, HEADER_BYTES))) {
    return undefined;
  }
  return view.getUint32(8, true);
}
