/** Number of cores in a mask for sched_setaffinity. */
const CORE_COUNT_MAX = 4096;

/**
 * Pins the calling thread to one core (Linux). Returns the reason if it failed, otherwise undefined.
 * @see https://man7.org/linux/man-pages/man2/sched_setaffinity.2.html
 */
export function pinThread(core: number): string | undefined {
  try {
    const libc = Deno.dlopen("libc.so.6", {
      sched_setaffinity: { parameters: ["i32", "usize", "buffer"], result: "i32" },
    });
    const mask = new Uint8Array(CORE_COUNT_MAX / 8);
    mask[core >> 3] = 1 << (core & 7);
    const status = libc.symbols.sched_setaffinity(0, BigInt(mask.length), mask);
    libc.close();
    return status === 0 ? undefined : `the system refused to pin a thread to core ${core}`;
  } catch (error) {
    return (error as Error).message;
  }
}
