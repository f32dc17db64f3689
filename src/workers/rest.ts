/** Gives memory back to the system when no query has run for a while. The next one pays for what it touches first. */
import v8 from "node:v8";
import vm from "node:vm";
import type { SharedHeap } from "../storage/mod.ts";
import { libc } from "./libc.ts";

/** Smaller free blocks stay as they are. */
const BLOCK_BYTES_MIN = 256 << 10;
/** About ten milliseconds' worth of pages. */
const STEP_BYTES = 64 << 20;
const MADV_DONTNEED = 4;

/** The pages of the shared memory's free blocks, and what the C allocator keeps. Goes on until `isWanted` says that there is work. */
export async function giveBackPages(heap: SharedHeap, isWanted: () => boolean): Promise<void> {
  const system = libc();
  if (system === undefined) return;
  const base = Deno.UnsafePointer.of(heap.u8 as Uint8Array<ArrayBuffer>);
  if (base === null) return;
  for (const block of heap.freeBlocks(BLOCK_BYTES_MIN)) {
    if (isWanted() || !heap.take(block)) continue;
    for (let done = 0; done < block.sizeBytes; done += STEP_BYTES) {
      const size = Math.min(STEP_BYTES, block.sizeBytes - done);
      system.madvise(Deno.UnsafePointer.offset(base, block.address + done), BigInt(size), MADV_DONTNEED);
    }
    heap.free(block.address, block.sizeBytes, "other");
    await new Promise((resolve) => setTimeout(resolve));
  }
  system.malloc_trim(0n);
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

/** Less is left to V8. */
const LARGE_BYTES = 64 << 20;
let isAsked = false;

/**
 * After a query that has made so many bytes outside of the shared memory: V8 collects them when it needs room for itself, and the C
 * allocator keeps them then, so that several such queries would hold several times what one of them may.
 */
export function giveBackLarge(sizeBytes: number): void {
  if (sizeBytes < LARGE_BYTES || isAsked) return;
  isAsked = true;
  // The query is still on the stack.
  setTimeout(() => {
    isAsked = false;
    collectGarbage();
    libc()?.malloc_trim(0n);
  });
}
