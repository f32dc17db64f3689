/**
 * The version of what is in the files, one for all of them: catalogue, manifests, log, dictionaries and data files each say it,
 * so that a file by itself says what it is. It is raised by any change that the version before could not read, and the reader
 * then goes on reading the old one: `tests/roots/` has a root of each.
 *
 *     0   as 1, but catalogue, log and data files do not say it
 *     1   the first that is told
 */
import { ConfigError } from "../errors.ts";
import { crc32 } from "./bytes.ts";

export const FORMAT_VERSION = 1;

/** @throws {ConfigError} which stops the start: guessing at what a newer version wrote would spoil it. */
export function checkFormat(path: string, version: number): void {
  if (version <= FORMAT_VERSION) return;
  throw new ConfigError(
    "cairo.root",
    `${path} was written by a newer version (format ${version}; this one reads up to ${FORMAT_VERSION}): ` +
      "start that version again, or restore a backup of before",
  );
}

/**
 * The first bytes of a file: magic u32, crc u32 of all behind it, version u32, zeros. Extents begin at multiples of 64.
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

/** Undefined when the bytes are no such header: of format 0, or damaged. */
export function headerVersion(bytes: Uint8Array, magic: number): number | undefined {
  if (bytes.length < HEADER_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, HEADER_BYTES);
  if (view.getUint32(0, true) !== magic || view.getUint32(4, true) !== crc32(bytes.subarray(8, HEADER_BYTES))) {
    return undefined;
  }
  return view.getUint32(8, true);
}
