/** The memory of the process by its parts, for memory_metrics(). */
import { HEAP_TAGS, type HeapTag, type PackedMemory, type SharedHeap } from "../storage/mod.ts";

/** Names and bytes. `further`: the memories of packed frames besides the heap. What is resident is known on Linux only. */
export function memoryParts(heap: SharedHeap, further: readonly PackedMemory[] = []): [tag: string, bytes: number][] {
  const furtherUsed = sumOf(further, (memory) => memory.usedBytes());
  const furtherSize = sumOf(further, (memory) => memory.sizeBytes());
  return [
    ["TOTAL_USED", heap.usedBytes() + furtherUsed],
    ["RSS", Deno.memoryUsage().rss],
    ...residentParts(heap, further),
    ["SHARED_SIZE", heap.sizeBytes() + furtherSize],
    ...usedByTag(heap, further).map(([tag, bytes]): [string, number] => [`SHARED_${tag.toUpperCase()}`, bytes]),
    ["SHARED_FREE_WITH_PAGES", heap.warmFreeBytes()],
    ["FURTHER_SIZE", furtherSize],
    ["FURTHER_USED", furtherUsed],
    ["MAIN_JS_HEAP", Deno.memoryUsage().heapUsed],
  ];
}

/** Used bytes by purpose. Further memories have packed frames alone. */
export function usedByTag(heap: SharedHeap, further: readonly PackedMemory[]): [tag: HeapTag, bytes: number][] {
  const furtherUsed = sumOf(further, (memory) => memory.usedBytes());
  return HEAP_TAGS.map((tag) => [tag, heap.usedBytes(tag) + (tag === "packed" ? furtherUsed : 0)]);
}

export function sumOf<T>(list: readonly T[], count: (each: T) => number): number {
  return list.reduce((sum, each) => sum + count(each), 0);
}

function residentParts(heap: SharedHeap, further: readonly PackedMemory[]): [tag: string, bytes: number][] {
  if (Deno.build.os !== "linux") return [];
  // Linux tells neighbouring memories as one mapping.
  const ranges = [heap, ...further].map(rangeOf), bytes = { shared: 0, files: 0, other: 0 };
  for (const { from, to, isOfFile, residentBytes } of mappings(Deno.readTextFileSync("/proc/self/smaps"))) {
    const isShared = ranges.some(({ start, end }) => from < end && to > start);
    bytes[isShared ? "shared" : isOfFile ? "files" : "other"] += residentBytes;
  }
  return [["RSS_SHARED", bytes.shared], ["RSS_FILES", bytes.files], ["RSS_OTHER", bytes.other]];
}

function rangeOf({ u8 }: { u8: Uint8Array }): { start: bigint; end: bigint } {
  const start = BigInt(Deno.UnsafePointer.value(Deno.UnsafePointer.of(u8 as Uint8Array<ArrayBuffer>)));
  return { start, end: start + BigInt(u8.length) };
}

interface Mapping {
  from: bigint;
  to: bigint;
  isOfFile: boolean;
  residentBytes: number;
}

/** @see https://man7.org/linux/man-pages/man5/proc_pid_smaps.5.html */
export function mappings(smaps: string): Mapping[] {
  const found: Mapping[] = [];
  for (const line of smaps.split("\n")) {
    const head = /^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ (\d+)/.exec(line);
    if (head !== null) {
      const [from, to] = [BigInt(`0x${head[1]}`), BigInt(`0x${head[2]}`)];
      found.push({ from, to, isOfFile: head[3] !== "0", residentBytes: 0 });
      continue;
    }
    const resident = /^Rss:\s+(\d+) kB/.exec(line), last = found.at(-1);
    if (resident !== null && last !== undefined) last.residentBytes = 1024 * Number(resident[1]);
  }
  return found;
}
