/**
 * How main and the workers wake each other. Each worker has a mailbox in shared memory: main writes short entries into it and
 * wakes the worker, which sleeps in `Atomics.wait`. Larger data is beside it: requests and results in shared memory
 * (`letter.ts`), payloads of tasks in a port that the worker reads after the entry. Nothing else reaches a worker, because it
 * returns to its event loop only when it has nothing to do.
 *
 * A wake that is lost delays its entry by IDLE_MS at most, because the worker then looks by itself.
 */
import { assert } from "../assert.ts";

/** Kinds of entries. */
export const MAIL = {
  /** Lead the query of this slot. */
  query: 1,
  /** Continue the parked query of this slot. */
  resume: 2,
  /** Run the task that the port has. */
  task: 3,
  /** No query has run for a while: release cached memory. */
  releaseMemory: 4,
  /** End the thread. */
  close: 5,
  /** For tests: throw the error that the port has. */
  crash: 6,
} as const;

export interface Mail {
  kind: number;
  slot: number;
}

/** A power of two. Main sends one piece of work at a time, and seldom anything else. */
const ENTRIES = 8;

/** Word offsets within a mailbox. */
const WORD = {
  /** Counts wakes. The worker sleeps on it. */
  wakes: 0,
  /** 1 while the worker looks for work or sleeps. */
  isIdle: 1,
  /** Entries written and taken since the start of the worker. */
  written: 2,
  taken: 3,
  /** Pairs (kind, slot). */
  entries: 4,
} as const;
const MAILBOX_WORDS = 32;

/** How long a worker sleeps at most before it looks by itself. */
const IDLE_MS = 500;

/** For tests, which lose wakes on purpose. */
export type Notify = (words: Int32Array, index: number) => void;
const notify: Notify = (words, index) => void Atomics.notify(words, index);

/** The mailboxes of all seats, and before them the word on which main waits for answers. */
export class Mailboxes {
  private readonly words: Int32Array;

  constructor(readonly buffer: SharedArrayBuffer, private readonly notify: Notify) {
    this.words = new Int32Array(buffer);
  }

  static create(seats: number, lostWakes: Notify = notify): Mailboxes {
    return new Mailboxes(new SharedArrayBuffer((seats + 1) * MAILBOX_WORDS * Int32Array.BYTES_PER_ELEMENT), lostWakes);
  }

  static of(buffer: SharedArrayBuffer): Mailboxes {
    return new Mailboxes(buffer, notify);
  }

  /** Before a worker takes the seat: forgets what its predecessor has not taken. */
  reset(seat: number): void {
    this.words.fill(0, at(seat, 0), at(seat + 1, 0));
  }

  /** Returns the number of the entry. */
  post(seat: number, kind: number, slot = 0): number {
    const { words } = this;
    const written = Atomics.load(words, at(seat, WORD.written));
    assert(written - Atomics.load(words, at(seat, WORD.taken)) < ENTRIES, "a worker gets one piece of work at a time");
    const entry = at(seat, WORD.entries) + 2 * (written & (ENTRIES - 1));
    words[entry] = kind;
    words[entry + 1] = slot;
    Atomics.store(words, at(seat, WORD.written), written + 1);
    this.wake(seat);
    return written;
  }

  /** True if the worker has taken the entry. */
  isTaken(seat: number, entry: number): boolean {
    return Atomics.load(this.words, at(seat, WORD.taken)) > entry;
  }

  /** The worker's side: takes the next entry. */
  take(seat: number): Mail | undefined {
    const { words } = this;
    const taken = Atomics.load(words, at(seat, WORD.taken));
    if (taken === Atomics.load(words, at(seat, WORD.written))) return undefined;
    const entry = at(seat, WORD.entries) + 2 * (taken & (ENTRIES - 1));
    const mail = { kind: words[entry], slot: words[entry + 1] };
    Atomics.store(words, at(seat, WORD.taken), taken + 1);
    return mail;
  }

  private wake(seat: number): void {
    Atomics.add(this.words, at(seat, WORD.wakes), 1);
    this.notify(this.words, at(seat, WORD.wakes));
  }

  /**
   * Wakes idle workers other than `self`, so that they look for open sections and for jobs of the writer. Returns how many there were.
   */
  wakeIdle(self: number, workerCount: number, countMax: number): number {
    let count = 0;
    for (let seat = 0; seat < workerCount && count < countMax; seat++) {
      if (seat === self || Atomics.load(this.words, at(seat, WORD.isIdle)) === 0) continue;
      this.wake(seat);
      count++;
    }
    return count;
  }

  /** True if one of these workers is idle. */
  hasIdle(workerCount: number): boolean {
    for (let seat = 0; seat < workerCount; seat++) {
      if (Atomics.load(this.words, at(seat, WORD.isIdle)) !== 0) return true;
    }
    return false;
  }

  setIdle(seat: number, isIdle: boolean): void {
    Atomics.store(this.words, at(seat, WORD.isIdle), isIdle ? 1 : 0);
  }

  /** Call before looking for work. `sleep` with the result returns immediately if a wake has come since. */
  wakes(seat: number): number {
    return Atomics.load(this.words, at(seat, WORD.wakes));
  }

  /** Returns false if no wake came. */
  sleep(seat: number, wakes: number): boolean {
    return Atomics.wait(this.words, at(seat, WORD.wakes), wakes, IDLE_MS) !== "timed-out";
  }

  /** The worker's side: an answer is in shared memory. */
  tellMain(): void {
    Atomics.add(this.words, 0, 1);
    this.notify(this.words, 0);
  }

  /** Main's side: call before looking for answers. */
  answers(): number {
    return Atomics.load(this.words, 0);
  }

  /** Resolves at the first answer after `answers`. */
  async nextAnswer(answers: number): Promise<void> {
    const waiting = Atomics.waitAsync(this.words, 0, answers);
    if (waiting.async) await waiting.value;
  }
}

function at(seat: number, offset: number): number {
  return (seat + 1) * MAILBOX_WORDS + offset;
}
