/** Bytes that one thread makes for all threads of the process, and for its life: what takes long to make, such as modules. */
import type { SharedHeap } from "./heap.ts";

/** `word`: one of `SHARED_WORD`, where two words are free. */
export function shareBytes(heap: SharedHeap, word: number, bytes: Uint8Array): void {
  const address = heap.allocateExact(bytes.length, "other");
  heap.u8.set(bytes, address);
  Atomics.store(heap.i32, word + 1, bytes.length);
  Atomics.store(heap.i32, word, address);
}

/** A copy. Undefined until a thread has shared the bytes. */
export function sharedBytes(
  { buffer }: Pick<WebAssembly.Memory, "buffer">,
  word: number,
): Uint8Array<ArrayBuffer> | undefined {
  const words = new Int32Array(buffer), address = Atomics.load(words, word);
  if (address === 0) return undefined;
  return new Uint8Array(buffer, address >>> 0, Atomics.load(words, word + 1)).slice();
}
