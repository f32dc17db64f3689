/**
 * Busy polling: after an answer, the main thread looks for the next request for some microseconds before it sleeps. A client that sends
 * one request after the other then need not wait until the processor's core wakes up, which takes longer than a small query
 * (Linux has the same for network devices: https://docs.kernel.org/networking/napi.html, "Busy polling").
 *
 * The runtime waits for its sockets by epoll. The descriptor of epoll is ready when one of them is, so `poll` on it asks for events without
 * taking them. The thread then returns to its event loop, which takes them as usual.
 */
import { setImmediate } from "node:timers";
import { libc } from "./libc.ts";

/** After this many answers in vain at most, it tries again. */
const SKIPPED_MAX = 63;
const POLLIN = 1;

export class BusyPoll {
  /** One `struct pollfd` for each descriptor: descriptor, events asked for, events found. */
  readonly #descriptors: Uint8Array<ArrayBuffer>;
  readonly #count: bigint;
  #isPlanned = false;
  /** How many answers to let pass after a poll in vain, and how many of them are left. */
  #skips = 0;
  #skipsLeft = 0;

  /** @param micros how long to look for a request */
  constructor(descriptors: readonly number[], private readonly micros: () => number) {
    const words = Int32Array.from(descriptors.flatMap((descriptor) => [descriptor, POLLIN]));
    this.#descriptors = new Uint8Array(words.buffer);
    this.#count = BigInt(descriptors.length);
  }

  /** For the event loop of this thread. Call it before other threads start, whose descriptors would be found as well. */
  static ofThisThread(micros: () => number): BusyPoll {
    return new BusyPoll(eventDescriptors(), micros);
  }

  /** To be called when an answer has been sent, whose client may send the next request at once. */
  readonly answered = (): void => {
    if (this.#isPlanned || this.#count === 0n || this.micros() === 0) return;
    if (this.#skipsLeft > 0) {
      this.#skipsLeft--;
      return;
    }
    this.#isPlanned = true;
    // At the end of the turn of the event loop, when all answers of the turn have been written.
    setImmediate(this.#poll);
  };

  /** Returns at the first event, of whatever kind. */
  readonly #poll = (): void => {
    this.#isPlanned = false;
    const untilMs = performance.now() + this.micros() / 1000;
    const { poll } = libc()!;
    do {
      if (poll(this.#descriptors, this.#count, 0) > 0) {
        this.#skips = 0;
        return;
      }
    } while (performance.now() < untilMs);
    // Clients that take longer are not worth the processor's time.
    this.#skips = this.#skipsLeft = Math.min(2 * this.#skips + 1, SKIPPED_MAX);
  };
}

/** Descriptors of epoll of this process. None if the system is not Linux with glibc. */
function eventDescriptors(): number[] {
  if (libc() === undefined) return [];
  const found: number[] = [];
  for (const { name } of Deno.readDirSync("/proc/self/fd")) {
    try {
      if (Deno.readLinkSync(`/proc/self/fd/${name}`) === "anon_inode:[eventpoll]") found.push(Number(name));
    } catch {
      // The descriptor of the listing itself is closed meanwhile.
    }
  }
  return found;
}
