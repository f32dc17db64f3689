/** Reads the values of stored chunks into memory. */
import { crc32 } from "./bytes.ts";
import type { ColumnChunk } from "./contract.ts";
import { type Codecs, hasOffsets, hasPostings, isEncoded } from "./encoding/codecs.ts";
import { codesPart } from "./encoding/postings.ts";
import type { ExtentReader, FindPart } from "./extent-reader.ts";
import type { SharedHeap } from "./heap.ts";

/** What a thread reads with. */
export interface ValueReaders {
  readonly heap: SharedHeap;
  readonly reader: ExtentReader;
  codecs(): Codecs;
}

/** Reads the values of a chunk, and its texts after them, into `memoryBytes` of memory. */
export function readValues(
  readers: ValueReaders,
  directory: string,
  chunk: ColumnChunk,
  rowCount: number,
  address: number,
): void {
  const { heap, reader } = readers;
  if (isEncoded(chunk)) {
    const stored = reader.readToBuffer(directory, chunk, codesPartOf(chunk));
    return readers.codecs().decode(chunk, stored, address, rowCount);
  }
  reader.read(directory, chunk, undefined, (sizeBytes) => heap.u8.subarray(address, address + sizeBytes));
  if (hasOffsets(chunk)) relocateTexts(heap, address, rowCount, address + chunk.valueBytes);
}

/** Turns the offsets of stored text pairs into addresses. */
export function relocateTexts(heap: SharedHeap, address: number, rowCount: number, base: number): void {
  const { i32 } = heap;
  for (let k = address / 4, end = k + 2 * rowCount; k < end; k += 2) if (i32[k + 1] > 0) i32[k] += base;
}

/** The codes of an extent that are followed by postings; undefined: all of it. */
export function codesPartOf(chunk: ColumnChunk): FindPart | undefined {
  if (!hasPostings(chunk)) return undefined;
  return (read) => {
    const { sizeBytes, crc } = codesPart(read, chunk.sizeBytes);
    return { at: 0, sizeBytes, isIntact: (stored) => crc32(stored) === crc };
  };
}
