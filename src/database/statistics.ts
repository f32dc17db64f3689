/** Counters of storage and engine, by the keys of the metric catalogue. Read on demand. */
import type { Database } from "../api.ts";
import type { Planner } from "./planner.ts";
import type { StatementCache } from "./statements.ts";
import { SPILL_UNIT_BYTES } from "../engine/mod.ts";
import {
  type CatalogueMirror,
  type PackedMemory,
  SHARED_WORD,
  type SharedHeap,
  type SharedPool,
} from "../storage/mod.ts";
import { sumOf, usedByTag } from "./memory-parts.ts";

export function statisticsOf(
  heap: SharedHeap,
  further: readonly PackedMemory[],
  pool: SharedPool,
  catalogue: CatalogueMirror,
  statements: StatementCache,
  planner: Planner,
): ReturnType<Database["statistics"]> {
  const word = (index: number) => Atomics.load(heap.i32, index) >>> 0;
  const { hits, misses, evictions, pins, packedBytes } = pool.stats();
  return {
    commits: heap.counter("commits"),
    committedRows: heap.counter("committedRows"),
    commitGroupSize: heap.histogram("commitGroupSize"),
    fsyncSeconds: heap.histogram("fsyncSeconds"),
    rewrittenSegments: heap.counter("rewrittenSegments"),
    mergedSegmentsOfHelpers: heap.counter("mergedSegmentsOfHelpers"),
    flushedSegments: heap.counter("flushedSegments"),
    flushedSegmentsOfHelpers: heap.counter("flushedSegmentsOfHelpers"),
    repackedSegments: heap.counter("repackedSegments"),
    logBytesSinceCheckpoint: heap.counter("logBytes"),
    heldLogBytes: heap.counter("heldLogBytes"),
    deadExtentBytes: heap.counter("deadBytes"),
    pinnedVersions: catalogue.pinCount,
    poolHits: hits,
    poolMisses: misses,
    poolEvictions: evictions,
    poolPins: pins,
    poolPackedBytes: packedBytes,
    workersBusy: word(SHARED_WORD.workersBusy),
    morsels: word(SHARED_WORD.morsels),
    kernelRows: Number(Atomics.load(heap.i64, SHARED_WORD.kernelRows / 2)),
    kernelsCompiled: word(SHARED_WORD.kernelsCompiled),
    kernelsReused: word(SHARED_WORD.kernelsReused),
    spillSize: word(SHARED_WORD.spilledUnits) * SPILL_UNIT_BYTES,
    spilledBytes: Number(Atomics.load(heap.i64, SHARED_WORD.spilledUnitsTotal / 2)) * SPILL_UNIT_BYTES,
    spilledParts: Number(Atomics.load(heap.i64, SHARED_WORD.spilledPartsTotal / 2)),
    statementsCached: statements.size,
    longStatements: planner.statementCount,
    memoryUsed: heap.usedBytes(),
    memoryLimit: heap.sizeBytes(),
    memoryTag: Object.fromEntries(usedByTag(heap, further)),
    memoryFurtherUsed: sumOf(further, (memory) => memory.usedBytes()),
    memoryFurtherLimit: sumOf(further, (memory) => memory.sizeBytes()),
  };
}
