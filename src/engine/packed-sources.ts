/**
 * Scan sources as workers read them from shared memory. The segments of a table are there too or in its files, so a request has
 * only where their pages are: numbers, in its words.
 */
import { assert } from "../assert.ts";
import type { PostedSegments, ScanSource } from "../storage/contract.ts";
import type { SharedHeap } from "../storage/heap.ts";

/** A source as JSON. */
export type PackedSource = Omit<ScanSource, "segments" | "dictionaries"> & {
  dictionaries: (ScanSource["dictionaries"][number] | null)[];
  columnIds: readonly number[];
  /** Offset in bytes of the numbers of `PostedSegments` in the request's words, and their count. */
  at: number;
  count: number;
};

/** Sources that are ready to be written into a request. */
export interface PackedSources {
  sources: PackedSource[];
  /** Size of the words that `write` writes. */
  wordBytes: number;
  /** Writes the words at this address, a multiple of 8. */
  write(heap: SharedHeap, address: number): void;
}

export function packSources(sources: readonly ScanSource[]): PackedSources {
  const posted = sources.map(({ segments }) => {
    assert(segments.post !== undefined, "workers read stored tables");
    return segments.post();
  });
  const starts: number[] = [];
  let wordBytes = 0;
  for (const { runs } of posted) {
    starts.push(wordBytes);
    wordBytes += runs.byteLength;
  }
  return {
    sources: sources.map(({ segments: _, ...source }, k): PackedSource => ({
      ...source,
      dictionaries: source.dictionaries.map((dictionary) => dictionary ?? null),
      columnIds: posted[k].columnIds,
      at: starts[k],
      count: posted[k].runs.length,
    })),
    wordBytes,
    write: ({ f64 }, address) => posted.forEach(({ runs }, k) => f64.set(runs, (address + starts[k]) / 8)),
  };
}

/** A source whose segments are still to be opened by this thread's pool. */
export type ReadSource = Omit<ScanSource, "segments"> & { segments: PostedSegments };

/** The sources of a request as they were read. Requests of the same JSON have the same `sources` object, as long as it is remembered. */
export interface SentSources {
  sources: readonly PackedSource[];
  words: Float64Array;
}

/** True if they surely have the same segments and dictionaries. */
export function areSameSources(a: SentSources, b: SentSources): boolean {
  if (a.sources !== b.sources || a.words.length !== b.words.length) return false;
  for (let k = 0; k < a.words.length; k++) if (a.words[k] !== b.words[k]) return false;
  return true;
}

export function unpackSources({ sources, words }: SentSources): ReadSource[] {
  return sources.map(({ columnIds, at, count, dictionaries, ...source }) => ({
    ...source,
    dictionaries: dictionaries.map((dictionary) => dictionary ?? undefined),
    segments: { directory: source.directory, columnIds, runs: words.subarray(at / 8, at / 8 + count) },
  }));
}
