/** Gives memory back to the system: after queries that used much, and all that is free when no query has run for a while. */
import v8 from "node:v8";
import vm from "node:vm";
import type { CountedMemory } from "../engine/mod.ts";
import type { FreeBlock, SharedHeap } from "../storage/mod.ts";
import { libc } from "./libc.ts";

/** Smaller free blocks stay as they are. */
const BLOCK_BYTES_MIN = 256 << 10;
/** About ten milliseconds' worth of pages. */
const STEP_BYTES = 64 << 20;
const MADV_DONTNEED = 4;

/** All pages of the shared memory's free blocks, and what the C allocator keeps. Goes on until `isWanted` says that there is work. */
export async function giveBackAll(heap: SharedHeap, isWanted: () => boolean): Promise<void> {
  for (const block of heap.freeBlocks(BLOCK_BYTES_MIN)) {
    if (isWanted()) return;
    giveBackPages(heap, block, () => 0);
    await nextTurn();
  }
  libc()?.malloc_trim(0n);
}

/** `keptBytes` of the block, taken out of the heap meanwhile, stay. */
function giveBackPages(heap: SharedHeap, block: FreeBlock, keptBytes: () => number): void {
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

const nextTurn = () => new Promise((resolve) => setTimeout(resolve));

const M_TRIM_THRESHOLD = -1, M_MMAP_THRESHOLD = -3;

/**
 * Has glibc return each freed block of a mebibyte and more to the system. By default, it raises this limit to 32 MiB once
 * such blocks are freed, and keeps those below it: several hundred MiB after queries with large buffers. Holds for the whole process.
 */
export function returnLargeBlocks(): void {
  const system = libc();
  system?.mallopt(M_MMAP_THRESHOLD, 1 << 20);
  // Fixed too as soon as the other is: 128 KiB by default, so that a buffer of 512 KiB would come and go with its pages.
  system?.mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

let collect: (() => void) | undefined;

/** Collects this thread's garbage: V8 does it by itself only where more is made. */
export function collectGarbage(): void {
  if (collect === undefined) {
    v8.setFlagsFromString("--expose-gc");
    collect = vm.runInNewContext("gc") as () => void;
  }
  collect();
}

/** Less garbage is left to V8. */
const GARBAGE_BYTES = 32 << 20;
/** Free memory that keeps its pages in any case. */
const KEPT_BYTES_MIN = 64 << 20;
let isAsked = false;

/**
 * After a query. A quarter of what one may use keeps its pages, so that most queries find what others have touched.
 * What it has made outside of the shared memory goes at once: V8 collects it when it needs room for itself, so that several such
 * queries would hold several times what one of them may.
 */
export function giveBackAfter(heap: SharedHeap, { madeBytes, limitBytes }: CountedMemory): void {
  const keptBytes = Math.max(KEPT_BYTES_MIN, (limitBytes || heap.sizeBytes()) / 4);
  const hasMade = madeBytes >= GARBAGE_BYTES;
  if (isAsked || (!hasMade && heap.warmFreeBytes() <= keptBytes)) return;
  isAsked = true;
  // The query is still on the stack.
  setTimeout(async () => {
    isAsked = false;
    if (hasMade) {
      collectGarbage();
      libc()?.malloc_trim(0n);
    }
    if (heap.warmFreeBytes() <= keptBytes) return;
    for (const block of heap.freeBlocks(BLOCK_BYTES_MIN).sort((a, b) => b.warmBytes - a.warmBytes)) {
      if (heap.warmFreeBytes() <= keptBytes) return;
      // The block itself is not counted while it is taken.
      giveBackPages(heap, block, () => keptBytes - heap.warmFreeBytes());
      await nextTurn();
    }
  });
}
