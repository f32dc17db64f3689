/**
 * Busy polling of the event loop: main waits busily for the next request after an answer, and for the answer of a query thread. (Linux
 * offers the same for network devices: https://docs.kernel.org/networking/napi.html, "Busy polling".)
 *
 * The runtime waits for its sockets by epoll. The descriptor of epoll is ready when one of them is, so `poll` on it asks for events without
 * taking them. The thread then returns to its event loop, which takes them as usual.
 */
import { setImmediate } from "node:timers";
import { BusyWait } from "../engine/busy-wait.ts";
import { libc } from "./libc.ts";

const POLLIN = 1;

/**
 * Returns a function to be called when an answer of another thread is expected soon. It looks for events at the end of the turn of the
 * event loop.
 *
 * @param hasEvents true if the event loop has something to do
 */
export function busyPoll(hasEvents: () => boolean, micros: number): () => void {
  const wait = new BusyWait(micros);
  return endOfTurn(wait, () => wait.look(hasEvents)).plan;
}

/** Plans `look` for the end of the turn of the event loop, when all answers of the turn have been written, if the wait is due. */
export function endOfTurn(wait: BusyWait, look: () => void): { plan(): void; readonly isPlanned: boolean } {
  let isPlanned = false;
  const run = () => {
    isPlanned = false;
    look();
  };
  return {
    get isPlanned() {
      return isPlanned;
    },
    plan() {
      if (isPlanned || !wait.isDue()) return;
      isPlanned = true;
      setImmediate(run);
    },
  };
}

/**
 * Returns whether the event loop of this thread has events that it has not taken. To be called before other threads start, because it finds
 * the descriptors of all. Undefined if they are not found: the system is not Linux with glibc, or has no /proc.
 */
export function eventsOfThisThread(): (() => boolean) | undefined {
  const system = libc();
  if (system === undefined) return undefined;
  const descriptors = epollDescriptors();
  if (descriptors.length === 0) return undefined;
  // `struct pollfd`: the descriptor, then the events that are asked for and those found, of 16 bits each.
  const words = Int32Array.from(descriptors.flatMap((descriptor) => [descriptor, POLLIN]));
  const bytes = new Uint8Array(words.buffer), count = BigInt(descriptors.length);
  return () => system.poll(bytes, count, 0) > 0;
}

function epollDescriptors(): number[] {
  const isEpoll = (name: string) => {
    try {
      return Deno.readLinkSync(`/proc/self/fd/${name}`) === "anon_inode:[eventpoll]";
    } catch {
      return false; // the descriptor of the listing itself, which is closed by now
    }
  };
  try {
    return [...Deno.readDirSync("/proc/self/fd")].map(({ name }) => name).filter(isEpoll).map(Number);
  } catch {
    return []; // no /proc
  }
}
