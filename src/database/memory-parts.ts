/** The memory of the process by its parts, for memory_metrics(). */
import { HEAP_TAGS, type SharedHeap } from "../storage/mod.ts";

/** Names and bytes. What is resident is known on Linux only. */
export function memoryParts(heap: SharedHeap): [tag: string, bytes: number][] {
  return [
    ["TOTAL_USED", heap.usedBytes()],
    ["RSS", Deno.memoryUsage().rss],
    ...residentParts(heap),
    ["SHARED_SIZE", heap.sizeBytes()],
    ...HEAP_TAGS.map((tag): [string, number] => [`SHARED_${tag.toUpperCase()}`, heap.usedBytes(tag)]),
    ["SHARED_FREE_WITH_PAGES", heap.warmFreeBytes()],
    ["MAIN_JS_HEAP", Deno.memoryUsage().heapUsed],
  ];
}

function residentParts(heap: SharedHeap): [tag: string, bytes: number][] {
  if (Deno.build.os !== "linux") return [];
  const first = addressOf(heap), end = first + BigInt(heap.buffer.byteLength);
  let shared = 0, files = 0, others = 0;
  for (const { from, to, isOfFile, residentBytes } of mappings(Deno.readTextFileSync("/proc/self/smaps"))) {
    if (from < end && to > first) shared += residentBytes;
    else if (isOfFile) files += residentBytes;
    else others += residentBytes;
  }
  return [["RSS_SHARED", shared], ["RSS_FILES", files], ["RSS_OTHER", others]];
}

function addressOf(heap: SharedHeap): bigint {
  return BigInt(Deno.UnsafePointer.value(Deno.UnsafePointer.of(heap.u8 as Uint8Array<ArrayBuffer>)));
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
