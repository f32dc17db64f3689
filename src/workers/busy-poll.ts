/**
 * Busy waiting of main: for the next request after an answer, and for the answers of query threads and of the writer. It takes place at the end of a turn of
 * the event loop, when all answers of the turn have been written. (Linux offers the same for network devices:
 * https://docs.kernel.org/networking/napi.html, "Busy polling".)
 *
 * The runtime waits for its sockets by epoll. The descriptor of epoll is ready when one of them is, so `poll` on it asks for events without
 * taking them. The thread then returns to its event loop, which takes them as usual. An event stays until then, even if this thread has
 * already received the request itself. Therefore a second epoll watches the clients. It tells once (edge-triggered) that a client has sent
 * something, so that one that has half-closed its connection, or sent more than is read, does not end all later looks.
 * (https://man7.org/linux/man-pages/man7/epoll.7.html)
 */
import { setImmediate } from "node:timers";
import { BusyWait } from "../engine/busy-wait.ts";
import { type Libc, libc } from "./libc.ts";

const POLLIN = 1, EPOLLIN = 1, EPOLLET = 0x80000000, EPOLL_CTL_ADD = 1, EPOLL_CLOEXEC = 0x80000;
/** Bytes of a `struct epoll_event`, or more. */
const EPOLL_EVENT_BYTES = 16;
/** Others are told by the next look. */
const CLIENT_EVENTS_MAX = 16;
/**
 * As long as each look finds what it awaits, each turn plans the next one, and the runtime asks for events in every 60th turn only. Therefore
 * it gets a turn after this many.
 */
const IN_A_ROW_MAX = 8;
/** If more clients than this have been answered in a turn, the runtime's reads are as fast, and fair. */
const CLIENTS_MAX = 4;

/** A read of a client's next request. */
export interface AwaitedRead {
  hasCome(): boolean;
  /** Called at the end of the turn, whether or not it has come. */
  end(): void;
}

interface AwaitedAnswer {
  hasCome: () => boolean;
  resolve: (hasCome: boolean) => void;
}

/** What has come for this thread. */
export interface ThreadEvents {
  /** True if the event loop has an event that it has not taken. */
  any(): boolean;
  /** True if a watched client has sent something since this was asked last, and that has not been received. */
  ofClients(): boolean;
  /** @param descriptor of a client's connection; it is watched until it is closed */
  watchClient(descriptor: number): void;
}

export class BusyPoll {
  readonly #requests: BusyWait;
  /** Of query threads, and of the writer, whose syncs may take longer than it is worth to wait. */
  readonly #answers: BusyWait;
  readonly #commits: BusyWait;
  /** Those of these that are due in this turn. */
  #due: BusyWait[] = [];
  #reads: AwaitedRead[] = [];
  /** Number of clients that have been answered in this turn and wait for more. */
  #clientCount = 0;
  #awaitedAnswers: AwaitedAnswer[] = [];
  /** Number of looks in a row that have found what they awaited. */
  #inARow = 0;

  constructor(private readonly events: ThreadEvents, private readonly micros: number) {
    this.#requests = new BusyWait(micros);
    this.#answers = new BusyWait(micros);
    this.#commits = new BusyWait(micros);
  }

  /** @param descriptor of a client's connection */
  watchClient(descriptor: number): void {
    if (this.micros > 0) this.events.watchClient(descriptor);
  }

  /** A client has been answered, so that its next request may come soon. */
  readonly expectRequest = (): void => void this.#isDue(this.#requests);

  /**
   * Counts a client that begins to wait for its next request. True if main waits for it until the end of the turn, as for the first clients of a
   * turn: then `awaitRequest` has to be called.
   */
  countClient(): boolean {
    return this.#due.includes(this.#requests) && ++this.#clientCount <= CLIENTS_MAX;
  }

  awaitRequest(read: AwaitedRead): void {
    this.#reads.push(read);
  }

  /** Resolves at the end of the turn: true if the answer has come. Undefined if waiting is not worth while. */
  readonly awaitAnswer = (hasCome: () => boolean): Promise<boolean> | undefined => this.#await(this.#answers, hasCome);

  /** The same for an answer of the writer. */
  readonly awaitWriter = (hasCome: () => boolean): Promise<boolean> | undefined => this.#await(this.#commits, hasCome);

  #await(wait: BusyWait, hasCome: () => boolean): Promise<boolean> | undefined {
    if (!this.#isDue(wait)) return undefined;
    return new Promise((resolve) => this.#awaitedAnswers.push({ hasCome, resolve }));
  }

  /** True until the runtime has asked for events. */
  get needsEvents(): boolean {
    return this.#inARow >= IN_A_ROW_MAX;
  }

  /** The runtime has asked for events. */
  hadEvents(): void {
    this.#inARow = 0;
  }

  #isDue(wait: BusyWait): boolean {
    if (this.#due.includes(wait)) return true;
    if (this.needsEvents || !wait.isDue()) return false;
    if (this.#due.push(wait) === 1) setImmediate(this.#look);
    return true;
  }

  readonly #look = (): void => {
    const reads = this.#reads, answers = this.#awaitedAnswers, [wait, ...others] = this.#due;
    const isCrowded = this.#clientCount > CLIENTS_MAX;
    this.#reads = [];
    this.#awaitedAnswers = [];
    this.#due = [];
    this.#clientCount = 0;
    if (isCrowded) { for (const read of reads.splice(0)) read.end(); }
    const { events } = this;
    // An event that is there already may be that of a request that this thread has received itself. It would end the look at once.
    const onlyClients = reads.length > 0 && events.any();
    let isFound = false;
    const receive = () => {
      for (const read of reads) if (read.hasCome()) isFound = true;
      for (const answer of answers) if (answer.hasCome()) isFound = true;
      return isFound;
    };
    const hasCome = wait!.look(() => {
      if (receive()) return true;
      if (onlyClients ? !events.ofClients() : !events.any()) return false;
      receive(); // It may have come since the line above.
      return true;
    });
    this.#inARow = isFound ? this.#inARow + 1 : 0;
    for (const other of others) other.ended(hasCome);
    for (const read of reads) read.end();
    for (const { hasCome, resolve } of answers) resolve(hasCome());
  };
}

/**
 * To be called before other threads start, because it finds the event loops of all. Undefined if none is found: the system is not Linux with
 * glibc, or has no /proc.
 */
export function eventsOfThisThread(): ThreadEvents | undefined {
  const system = libc();
  if (system === undefined) return undefined;
  const loops = epollDescriptors();
  if (loops.length === 0) return undefined;
  const clients = system.epoll_create1(EPOLL_CLOEXEC);
  return clients < 0 ? undefined : new SystemEvents(system, clients, loops);
}

class SystemEvents implements ThreadEvents {
  /** Of `struct pollfd`: the descriptor, then the events that are asked for and those found, of 16 bits each. */
  private readonly polled: Uint8Array<ArrayBuffer>;
  private readonly count: bigint;
  private readonly clientEvents = new Uint8Array(CLIENT_EVENTS_MAX * EPOLL_EVENT_BYTES);

  /** Descriptors of epoll: that of the clients, and those of the event loops. */
  constructor(private readonly system: Libc, private readonly clients: number, loops: readonly number[]) {
    const words = Int32Array.from(loops.flatMap((descriptor) => [descriptor, POLLIN]));
    this.polled = new Uint8Array(words.buffer);
    this.count = BigInt(loops.length);
  }

  any(): boolean {
    return this.system.poll(this.polled, this.count, 0) > 0;
  }

  ofClients(): boolean {
    return this.system.epoll_wait(this.clients, this.clientEvents, CLIENT_EVENTS_MAX, 0) > 0;
  }

  watchClient(descriptor: number): void {
    const event = new Uint8Array(EPOLL_EVENT_BYTES);
    new DataView(event.buffer).setUint32(0, EPOLLIN | EPOLLET, true);
    // If this fails, the client's requests do not end a look, and wait for its end.
    this.system.epoll_ctl(this.clients, EPOLL_CTL_ADD, descriptor, event);
  }
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
