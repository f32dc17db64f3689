/**
 * Brings the codes of packed vectors into the cache before they are decoded. A decoding loop waits for each cache line in turn, because its
 * instructions fill the processor's reorder buffer. Loads of a word of each line are few, so the processor waits for many lines at once.
 * WebAssembly has no instruction that prefetches.
 */
import type { Code, Module } from "../../wasm/assembler.ts";
import { packedBytes } from "./bits.ts";
import { AT, pushHeader } from "./vectors.ts";

/** Vectors that are prefetched together: at most 128 KiB, which the second-level cache of a core holds. */
export const PREFETCHED_VECTORS = 32;
const CACHE_LINE_BYTES = 64;

/** Prefetches the codes of the first PREFETCHED_VECTORS of vectors `from` … `to`-1 of a chunk in the shared memory. Raw and constant vectors have none. */
export type Prefetch = (chunk: number, from: number, to: number) => void;

/** Adds the kernel, and returns its number. Its result is the sum of what it has loaded: the compiler leaves out loads of which nothing is used. */
export function addPrefetch(module: Module): number {
  const { code, index } = module.function(["i32", "i32", "i32"], ["i32"], "prefetch");
  const [chunk, vector, to] = [0, 1, 2];
  const header = code.local("i32"), at = code.local("i32"), end = code.local("i32"), sum = code.local("i32");
  const last = code.local("i32");
  code.get(vector).i32(PREFETCHED_VECTORS).op("i32.add").tee(last).get(to).get(last).get(to).op("i32.lt_u");
  code.op("select").set(to);
  code.block((done) =>
    code.loop((next) => {
      code.get(vector).get(to).op("i32.ge_u").brIf(done);
      pushHeader(code, chunk, vector);
      code.tee(header).memory("i32.load", AT.data).get(chunk).op("i32.add").tee(at);
      code.get(header).memory("i32.load8_u", AT.codeBits).i32(packedBytes(1)).op("i32.mul").op("i32.add").set(end);
      code.block((loaded) =>
        code.loop((again) => {
          code.get(at).get(end).op("i32.ge_u").brIf(loaded);
          code.get(sum).get(at).memory("i32.load").op("i32.add").set(sum);
          code.get(at).i32(CACHE_LINE_BYTES).op("i32.add").set(at).br(again);
        })
      );
      code.get(vector).i32(1).op("i32.add").set(vector).br(next);
    })
  );
  code.get(sum);
  return index;
}

/**
 * Emits code for a loop over the vectors of a chunk, that prefetches from `vector` on if that has not been done. All are numbers of parameters or
 * locals; `prefetched` is 0 at first, and `sum` has to be a part of the kernel's result.
 */
export function prefetchAhead(
  code: Code,
  prefetch: number,
  { chunk, vector, to, prefetched, sum }: Record<"chunk" | "vector" | "to" | "prefetched" | "sum", number>,
): void {
  code.get(vector).get(prefetched).op("i32.ge_u").if(() => {
    code.get(vector).i32(PREFETCHED_VECTORS).op("i32.add").set(prefetched);
    code.get(chunk).get(vector).get(to).call(prefetch).get(sum).op("i32.add").set(sum);
  });
}
