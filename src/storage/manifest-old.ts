/**
 * Reads manifests of formats before 5, which list each segment with its chunks. Files are named by their index in the manifest's
 * list.
 */
import { ByteReader, fromJson } from "./bytes.ts";
import type { Chunk } from "./chunks.ts";
import type { ColumnStats } from "./contract.ts";
import type { ManifestHead } from "./manifest-head.ts";
import type { Segment } from "./segment.ts";

/** Without its uid. */
export type OldSegment = Omit<Segment, "uid" | "words">;

export interface OldManifest {
  head: ManifestHead;
  segments: OldSegment[];
  /** Segments of detached partitions, partition by partition. */
  detached: OldSegment[];
}

/** Replaces `count` segments from index `start` on. */
interface OldSplice {
  start: number;
  count: number;
  segments: OldSegment[];
}

/** `reader`: behind the format. */
export function decodeOldManifest(reader: ByteReader, format: number): OldManifest {
  const head = fromJson<ManifestHead>(new TextEncoder().encode(reader.text()));
  const segments = decodeSegments(reader, head);
  const detached = format < 3 ? [] : decodeSegments(reader, head);
  reader.end();
  return { head, segments, detached };
}

/** Returns the manifest after an edit of format 4. */
export function applyOldEdit(reader: ByteReader, before: OldManifest): OldManifest {
  const head = fromJson<ManifestHead>(new TextEncoder().encode(reader.text()));
  const splices: OldSplice[] = [];
  for (let left = reader.u32(); left > 0; left--) {
    splices.push({ start: reader.u32(), count: reader.u32(), segments: decodeSegments(reader, head) });
  }
  const detached = reader.u8() === 0 ? before.detached : decodeSegments(reader, head);
  reader.end();
  const segments = before.segments.slice();
  for (const { start, count, segments: added } of splices.reverse()) segments.splice(start, count, ...added);
  return { head, segments, detached };
}

function decodeSegments(reader: ByteReader, { files }: ManifestHead): OldSegment[] {
  const segments: OldSegment[] = [];
  for (let left = reader.u32(); left > 0; left--) {
    const partition = reader.i64(), rowCount = reader.u32(), timestampMin = reader.i64(), timestampMax = reader.i64();
    const chunks: (Chunk | undefined)[] = [];
    for (let count = reader.u32(); count > 0; count--) {
      const id = reader.u32();
      const plain = {
        address: 0,
        file: files[reader.u32()].id,
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

function decodeStats(reader: ByteReader): ColumnStats {
  const nullCount = reader.u32();
  const tag = reader.u8();
  const kind = tag & 3;
  if (kind === 0) return { nullCount };
  const bound = () => (kind === 2 ? reader.i64() : reader.f64());
  const min = bound(), max = bound();
  if ((tag & 4) === 0) return { nullCount, min, max };
  if (kind === 1) { // A sum of floats, which nothing used.
    reader.f64();
    return { nullCount, min, max };
  }
  const sum = (reader.i64() << 64n) + BigInt.asUintN(64, reader.i64());
  return { nullCount, min, max, sum };
}
