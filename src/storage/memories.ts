/** The shared memories of a database, and how the pool is divided between them. */
import { PAGE_BYTES } from "../wasm/assembler.ts";
import { formatPool } from "./frames.ts";
import { createHeap, MEMORY_BYTES_MAX, type SharedHeap } from "./heap.ts";
import { createPackedMemory, type PackedMemory } from "./packed-memory.ts";

/** Less is not worth a memory. */
const FURTHER_BYTES_MIN = 2 ** 20;
/** Frames leave gaps between them. A limit that cannot be reached would let each new frame evict others, as if there were free memory. */
const PACKED_SHARE = 15 / 16;
/** Bytes of frames for each slot of a directory. Packed frames have some 100 KB, those of few bits a value 10. */
const VALUES_SLOT_BYTES = 8192, PACKED_SLOT_BYTES = 16_384;

export interface MemoriesOptions {
  /** Size of all memories. */
  heapSizeBytes: number;
  /** Memory for frames of stored segments. Default: half of the heap. */
  poolSizeBytes?: number;
  /** Largest size of the first memory, and of the others. Default: what an address of 32 bits allows. */
  firstMemoryBytes?: number;
  furtherMemoryBytes?: number;
}

export interface Memories {
  /** The memory that kernels see. */
  heap: SharedHeap;
  further: PackedMemory[];
}

/** The system provides pages on first touch, so further memories cost nothing until the pool needs them. */
export function createMemories(options: MemoriesOptions): Memories {
  const { heapSizeBytes, poolSizeBytes = heapSizeBytes / 2 } = options;
  const heap = createHeap(Math.min(heapSizeBytes, options.firstMemoryBytes ?? MEMORY_BYTES_MAX));
  // A pool that would leave more to the first memory than queries and fresh rows can use gets half of it.
  const firstBytes = heap.buffer.byteLength;
  const furtherBytes = Math.min(heapSizeBytes - firstBytes, poolSizeBytes - Math.ceil(firstBytes / 2));
  if (furtherBytes < FURTHER_BYTES_MIN) {
    formatPool(heap, Math.min(poolSizeBytes, firstBytes), VALUES_SLOT_BYTES, true);
    return { heap, further: [] };
  }
  const count = Math.ceil(furtherBytes / (options.furtherMemoryBytes ?? MEMORY_BYTES_MAX));
  const sizeBytes = Math.floor(furtherBytes / count / PAGE_BYTES) * PAGE_BYTES;
  const further = Array.from({ length: count }, () => createPackedMemory(sizeBytes));
  formatPool(heap, poolSizeBytes - furtherBytes, VALUES_SLOT_BYTES, true);
  formatPool(further[0], PACKED_SHARE * furtherBytes, PACKED_SLOT_BYTES, true);
  return { heap, further };
}
