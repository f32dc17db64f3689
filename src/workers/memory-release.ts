/** Returns memory to the system: after queries that used much memory, and all free memory after some idle time. */
import v8 from "node:v8";
import vm from "node:vm";
import type { CountedMemory } from "../engine/mod.ts";
import type { FreeBlock, SharedHeap } from "../storage/mod.ts";
import { libc } from "./libc.ts";

/** Smaller free blocks keep their pages. */
const BLOCK_BYTES_MIN = 256 << 10;
/** Pages that are returned in one call: about ten milliseconds. */
const STEP_BYTES = 64 << 20;
const MADV_DONTNEED = 4;

/** Work in steps of some ten milliseconds, which the thread does when it has nothing else to do. */
const chores: Iterator<void>[] = [];

/** Does a step of a chore. Returns false if there is none. */
export function doChore(): boolean {
  const [chore] = chores;
  if (chore === undefined) return false;
  if (chore.next().done) chores.shift();
  return true;
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
    if (isWanted()) return;
    releasePages(heap, block, () => 0);
    yield;
  }
  libc()?.malloc_trim(0n);
}

/** Returns the pages of a block except its first `keptBytes`. The block stays allocated during this. */
function releasePages(heap: SharedHeap, block: FreeBlock, keptBytes: () => number): void {
  const base = Deno.UnsafePointer.of(heap.u8 as Uint8Array<ArrayBuffer>);
  const system = libc();
  if (system === undefined || base === null || !heap.take(block)) return;
  const kept = Math.min(block.warmBytes, Math.max(0, keptBytes()));
  for (let at = kept; at < block.sizeBytes; at += STEP_BYTES) {
    const size = Math.min(STEP_BYTES, block.sizeBytes - at);
    system.madvise(Deno.UnsafePointer.offset(base, block.address + at), BigInt(size), MADV_DONTNEED);
  }
  heap.putBack(block, kept);
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
/** Size of this thread's heap after the last collection. */
let keptHeapBytes = 0;

/** Collects this thread's garbage. V8 collects by itself only when the thread allocates. */
export function collectGarbage(): void {
  if (collect === undefined) {
    v8.setFlagsFromString("--expose-gc");
    collect = vm.runInNewContext("gc") as () => void;
  }
  collect();
  keptHeapBytes = heapBytes();
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
  return ++queries % QUERIES_A_LOOK === 0 && heapBytes() > keptHeapBytes + HEAP_GROWTH_BYTES;
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
let isQueued = false;

/**
 * Runs after a query. Returns pages of free shared memory.
 * Buffers outside of the shared memory are collected at once. V8 would collect them only under pressure, so several such queries
 * would hold several times the limit of one.
 */
export function releaseAfterQuery(heap: SharedHeap, { madeBytes, limitBytes }: CountedMemory): void {
  const limit = limitBytes || heap.sizeBytes(), keptBytes = keptBytesOf(limit);
  const hasMade = madeBytes >= GARBAGE_BYTES || hasGrown();
  if (isQueued || (!hasMade && heap.warmFreeBytes() <= keptBytes)) return;
  isQueued = true;
  chores.push(releaseDownTo(heap, keptBytes, limit, hasMade));
}

/** The first step returns all that exceeds `limitBytes`, so that queries in close succession do not add up. */
function* releaseDownTo(heap: SharedHeap, keptBytes: number, limitBytes: number, hasMade: boolean): Generator<void> {
  isQueued = false;
  if (hasMade) {
    collectGarbage();
    libc()?.malloc_trim(0n);
  }
  if (heap.warmFreeBytes() <= keptBytes) return;
  for (const block of heap.freeBlocks(BLOCK_BYTES_MIN).sort((a, b) => b.warmBytes - a.warmBytes)) {
    if (heap.warmFreeBytes() <= keptBytes) return;
    // The block itself is not counted while it is taken.
    releasePages(heap, block, () => keptBytes - heap.warmFreeBytes());
    if (heap.warmFreeBytes() <= limitBytes) yield;
  }
}
