/** Returns memory to the system: after queries that used much memory, and all free memory after some idle time. */
import v8 from "node:v8";
import vm from "node:vm";
import type { CountedMemory } from "../engine/mod.ts";
import type { BlockRange, SharedHeap } from "../storage/mod.ts";
import { libc } from "./libc.ts";

/** Smaller free blocks keep their pages. */
const BLOCK_BYTES_MIN = 256 << 10;
/** Memory whose pages are returned in one call: a few milliseconds, during which no query can use it. */
const PIECE_BYTES = 16 << 20;
/** About ten milliseconds. */
const PIECES_A_STEP = 4;
const MADV_DONTNEED = 4;

/** Work in steps of some milliseconds, which the thread does when it has nothing else to do. */
const chores: Iterator<void>[] = [];
/** Memory to return before the answer ends: the next query may begin at once, on another thread. */
let urgent: Iterator<void> | undefined;

/** Does a step of a chore. Returns false if there is none. */
export function doChore(): boolean {
  const [chore] = chores;
  if (chore === undefined) return false;
  if (chore.next().done) chores.shift();
  return true;
}

/** Called before the end of an answer is sent, when nothing refers to the buffers of the query any more. */
export function doUrgentChore(): void {
  const chore = urgent;
  urgent = undefined;
  while (chore !== undefined && !chore.next().done);
}

/**
 * Returns the memory that this thread holds. The first worker also returns all pages of free blocks of the shared memory and what the C
 * allocator keeps. Stops when `isWanted` reports work.
 */
export function releaseWhenIdle(heap: SharedHeap, isFirst: boolean, isWanted: () => boolean): void {
  if (isWanted()) return;
  collectGarbage();
  if (isFirst) chores.push(releaseAll(heap, isWanted));
}

function* releaseAll(heap: SharedHeap, isWanted: () => boolean): Generator<void> {
  for (const block of heap.freeBlocks(BLOCK_BYTES_MIN)) {
    for (const piece of piecesOf(block)) {
      if (isWanted()) return;
      if (releasePages(heap, piece)) yield;
    }
  }
  libc()?.malloc_trim(0n);
}

/** Returns about this many bytes of free blocks at once, while the machine has hardly any memory left. */
export function releaseFreePages(heap: SharedHeap, sizeBytes: number): void {
  let left = sizeBytes;
  for (const block of heap.freeBlocks(BLOCK_BYTES_MIN).sort((a, b) => b.warmBytes - a.warmBytes)) {
    if (left <= 0 || block.warmBytes === 0) return;
    for (const piece of piecesOf(block)) if (left > 0 && releasePages(heap, piece)) left -= piece.sizeBytes;
  }
}

/** The last piece is first, because the pages of a block are at its start. */
function* piecesOf({ address, sizeBytes }: BlockRange): Generator<BlockRange> {
  const size = Math.min(PIECE_BYTES, sizeBytes);
  for (let at = sizeBytes - size; at >= 0; at -= size) yield { address: address + at, sizeBytes: size };
}

/** Returns the pages of a free range, which is allocated during this. False if it is no longer free, or the system has no such call. */
function releasePages(heap: SharedHeap, range: BlockRange): boolean {
  const base = Deno.UnsafePointer.of(heap.u8 as Uint8Array<ArrayBuffer>);
  const system = libc();
  if (system === undefined || base === null || !heap.take(range)) return false;
  system.madvise(Deno.UnsafePointer.offset(base, range.address), BigInt(range.sizeBytes), MADV_DONTNEED);
  heap.putBack(range, 0);
  return true;
}

const M_TRIM_THRESHOLD = -1, M_MMAP_THRESHOLD = -3;

/**
 * Makes glibc return each freed block of 768 KiB and more to the system. By default glibc raises this threshold up to 32 MiB when
 * such blocks are freed, and keeps smaller ones: several hundred MiB after queries with large buffers. With 1 MiB, a function that
 * makes texts of a million bytes left 100 MiB. Applies to the process.
 */
export function returnLargeBlocks(): void {
  const system = libc();
  system?.mallopt(M_MMAP_THRESHOLD, 768 << 10);
  // Setting one threshold fixes the other one too. Its default of 128 KiB would map and unmap buffers of 512 KiB each time.
  system?.mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

let collect: (() => void) | undefined;
/** Size of this thread's heap after the last collection, or when it was first looked at. Undefined before. */
let keptHeapBytes: number | undefined;

/** Collects this thread's garbage. V8 collects by itself only when the thread allocates. */
export function collectGarbage(): void {
  if (collect === undefined) {
    v8.setFlagsFromString("--expose-gc");
    collect = vm.runInNewContext("gc") as () => void;
  }
  collect();
  keptHeapBytes = heapBytes();
}

/** Collects, and returns to the system what the C allocator has free. */
export function returnGarbage(): void {
  collectGarbage();
  libc()?.malloc_trim(0n);
}

/** Bytes that a thread sends before it collects. */
const SENT_BYTES = 256 << 20;
let sentBytes = 0;

/**
 * Collects while a long statement runs. V8 hardly counts buffers outside of its heap: an import of 200M rows from Parquet left 500 MiB of
 * them until its end.
 */
export function collectAfterSending(sizeBytes: number): void {
  sentBytes += sizeBytes;
  if (sentBytes < SENT_BYTES) return;
  sentBytes = 0;
  returnGarbage();
}

function heapBytes(): number {
  const { used_heap_size, external_memory } = v8.getHeapStatistics();
  return used_heap_size + external_memory;
}

/**
 * Growth of a worker's heap before a collection. By default V8 lets a small heap grow several times over: after 3,700 different
 * statements, two thirds of the heaps of all threads were garbage.
 */
const HEAP_GROWTH_BYTES = 16 << 20;
/** Queries between two looks at the heap. */
const QUERIES_A_LOOK = 16;
let queries = 0;

function hasGrown(): boolean {
  if (++queries % QUERIES_A_LOOK !== 0) return false;
  // The code of a thread alone takes more than the growth, so its first size counts as kept. A collection takes 50 ms.
  const bytes = heapBytes();
  return bytes > (keptHeapBytes ??= bytes) + HEAP_GROWTH_BYTES;
}

/** For a thread that has nothing else to do. The buffers of an UPDATE of 20M rows stayed: 800 MiB. */
export function collectIfGrown(): void {
  if (heapBytes() > (keptHeapBytes ?? 0) + HEAP_GROWTH_BYTES) returnGarbage();
}

/** Smaller amounts of garbage are left to V8. */
const GARBAGE_BYTES = 16 << 20;
const KEPT_BYTES_MIN = 32 << 20;
/**
 * Free memory that keeps its pages after a query with this limit, so that most queries reuse touched pages. A small limit keeps less, as
 * a process with a small limit shall be small, and code and heaps need some 100 MiB already.
 */
function keptBytesOf(limitBytes: number): number {
  return Math.max(KEPT_BYTES_MIN, limitBytes / 4 - KEPT_BYTES_MIN);
}
/** What a query may leave until the thread has nothing else to do, as a part of its limit. */
const LEFT_SHARE_MAX = 0.25;
let isQueued = false;

/**
 * Runs after a query. Returns pages of free shared memory.
 * Buffers outside of the shared memory are collected at once. V8 would collect them only under pressure, so several such queries
 * would hold several times the limit of one.
 */
export function releaseAfterQuery(
  heap: SharedHeap,
  { madeBytes, limitBytes }: Pick<CountedMemory, "madeBytes" | "limitBytes">,
): void {
  const limit = limitBytes || heap.sizeBytes(), keptBytes = keptBytesOf(limit);
  const hasMade = madeBytes >= GARBAGE_BYTES || hasGrown();
  const warmBytes = heap.warmFreeBytes();
  if (!hasMade && warmBytes <= keptBytes) return;
  if (madeBytes + Math.max(0, warmBytes - keptBytes) > limit * LEFT_SHARE_MAX) {
    urgent = releaseDownTo(heap, keptBytes, limit, hasMade);
  } else if (!isQueued) {
    isQueued = true;
    chores.push(queued(releaseDownTo(heap, keptBytes, limit, hasMade)));
  }
}

function* queued(work: Generator<void>): Generator<void> {
  isQueued = false;
  yield* work;
}

/** The first step returns all that exceeds `limitBytes`, so that queries in close succession do not add up. */
function* releaseDownTo(heap: SharedHeap, keptBytes: number, limitBytes: number, hasMade: boolean): Generator<void> {
  if (hasMade) returnGarbage();
  let pieces = 0;
  for (const block of heap.freeBlocks(BLOCK_BYTES_MIN).sort((a, b) => b.warmBytes - a.warmBytes)) {
    for (const piece of piecesOf(block)) {
      const warmBytes = heap.warmFreeBytes();
      if (warmBytes <= keptBytes) return;
      if (releasePages(heap, piece) && warmBytes <= limitBytes && ++pieces % PIECES_A_STEP === 0) yield;
    }
  }
}
