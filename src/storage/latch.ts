/**
 * A lock in a word of shared memory that threads hold for less than a microsecond. A thread that finds it taken tries for a short
 * while and then sleeps: the system may have stopped the holder for tens of milliseconds, and a thread that spins meanwhile
 * takes the processor that the holder needs.
 */

const FREE = 0, HELD = 1, AWAITED = 2;
/** Some microseconds. */
const TRIES = 64;
/** Limits a sleep, in case that a wake is lost. */
const SLEEP_MS = 5;

export function latch(words: Int32Array, word: number): void {
  if (tryLatch(words, word)) return;
  while (Atomics.exchange(words, word, AWAITED) !== FREE) Atomics.wait(words, word, AWAITED, SLEEP_MS);
}

/** Returns false if another thread holds it for longer than a few microseconds. */
export function tryLatch(words: Int32Array, word: number): boolean {
  for (let k = 0; k < TRIES; k++) {
    if (Atomics.compareExchange(words, word, FREE, HELD) === FREE) return true;
  }
  return false;
}

export function unlatch(words: Int32Array, word: number): void {
  if (Atomics.exchange(words, word, FREE) === AWAITED) Atomics.notify(words, word, 1);
}
