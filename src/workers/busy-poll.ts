/**
 * Busy polling: after an answer, the main thread looks for the next request for some microseconds before it sleeps. A client that sends
 * one request after the other then need not wait until a core of the processor wakes up, which takes longer than a small query. (Linux
 * offers the same for network devices: https://docs.kernel.org/networking/napi.html, "Busy polling".)
 *
 * The runtime waits for its sockets by epoll. The descriptor of epoll is ready when one of them is, so `poll` on it asks for events without
 * taking them. The thread then returns to its event loop, which takes them as usual.
 */
import { setImmediate } from "node:timers";
import { libc } from "./libc.ts";

/** After polls in vain, at most this many answers pass until the next one. */
const SKIPPED_MAX = 63;
const POLLIN = 1;

export class BusyPoll {
  #isPlanned = false;
  /** How many answers pass after a poll in vain, and how many of them are still to come. */
  #skips = 0;
  #skipsLeft = 0;

  /**
   * @param hasEvents true if the event loop has something to do
   * @param micros how long to look for it; 0: not at all
   * @param atEndOfTurn calls its argument when all answers of this turn of the event loop have been written
   */
  constructor(
    private readonly hasEvents: () => boolean,
    private readonly micros: () => number,
    private readonly atEndOfTurn: (poll: () => void) => void = setImmediate,
  ) {}

  /** To be called when an answer has been sent, whose client may send the next request at once. */
  readonly answered = (): void => {
    if (this.#isPlanned || this.micros() === 0) return;
    if (this.#skipsLeft > 0) {
      this.#skipsLeft--;
      return;
    }
    this.#isPlanned = true;
    this.atEndOfTurn(this.#poll);
  };

  readonly #poll = (): void => {
    this.#isPlanned = false;
    const untilMs = performance.now() + this.micros() / 1000;
    do {
      if (this.hasEvents()) {
        this.#skips = 0;
        return;
      }
    } while (performance.now() < untilMs);
    // Clients that take longer are not worth the processor's time.
    this.#skips = this.#skipsLeft = Math.min(2 * this.#skips + 1, SKIPPED_MAX);
  };
}

/**
 * Returns whether the event loop of this thread has events that it has not taken. To be called before other threads start, because it finds
 * the descriptors of all. Undefined if the system is not Linux with glibc.
 */
export function eventsOfThisThread(): (() => boolean) | undefined {
  const system = libc();
  if (system === undefined) return undefined;
  const descriptors = epollDescriptors();
  // `struct pollfd`: the descriptor, then the events that are asked for and those found, of 16 bits each.
  const words = Int32Array.from(descriptors.flatMap((descriptor) => [descriptor, POLLIN]));
  const bytes = new Uint8Array(words.buffer), count = BigInt(descriptors.length);
  return () => system.poll(bytes, count, 0) > 0;
}

function epollDescriptors(): number[] {
  const found: number[] = [];
  for (const { name } of Deno.readDirSync("/proc/self/fd")) {
    try {
      if (Deno.readLinkSync(`/proc/self/fd/${name}`) === "anon_inode:[eventpoll]") found.push(Number(name));
    } catch {
      // It was the descriptor of the listing itself, which is closed by now.
    }
  }
  return found;
}
