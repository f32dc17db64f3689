/**
 * Slows down password guessing. After several different wrong passwords for a user from one address, each further
 * log-in of that pair must wait before its password is checked. Other users and addresses are not affected, so that
 * nobody can lock a user out.
 *
 * The wait precedes the check, because a client could skip a wait after a wrong password by closing the connection.
 */
import { createHash, randomBytes } from "node:crypto";
import { setTimeout } from "node:timers/promises";

/** Number of different wrong passwords without a wait, because people mistype. */
const FREE_COUNT = 3;
const FIRST_WAIT_MS = 250;
const WAIT_MAX_MS = 5_000;
/** Time after which wrong passwords are forgotten. */
const FORGET_MS = 600_000;
/** Maximum number of waiting log-ins for one user and address. */
const WAITING_MAX = 8;
const ENTRIES_MAX = 10_000;

interface Entry {
  wrongCount: number;
  /**
   * Digest of the last wrong password. A program that repeats one password is not guessing and must not delay the
   * user's log-ins.
   */
  lastWrong: string;
  waitingCount: number;
  atMs: number;
}

export interface LogInDelaysOptions {
  /** Maximum number of waiting log-ins in total. */
  waitingMax?: () => number;
  nowMs?: () => number;
  /** Ends early when the server closes. */
  wait?: (timeMs: number, closed: AbortSignal) => Promise<void>;
}

/** Too many log-ins are waiting: this one was refused without checking its password. */
export class TooManyWait {
  constructor(readonly retryAfterMs: number) {}
}

export class LogInDelays {
  /** In order of the latest wrong password, the most recent one last. */
  private readonly entries = new Map<string, Entry>();
  private readonly salt = randomBytes(16);
  private readonly waitingMax: () => number;
  private readonly nowMs: () => number;
  private readonly wait: (timeMs: number, closed: AbortSignal) => Promise<void>;
  private readonly closed = new AbortController();
  private waitingCount = 0;

  constructor(options: LogInDelaysOptions = {}) {
    this.waitingMax = options.waitingMax ?? (() => 64);
    this.nowMs = options.nowMs ?? (() => performance.now());
    this.wait = options.wait ?? pause;
  }

  /** Ends all waits. */
  close(): void {
    this.closed.abort();
  }

  get size(): number {
    return this.entries.size;
  }

  /**
   * Returns what must precede the password check: nothing, a wait, or a refusal. `user`: "" for unknown users, because
   * their number is unlimited.
   */
  before(user: string, hostname: string): undefined | Promise<void> | TooManyWait {
    const entry = this.entryOf(keyOf(user, hostname));
    if (entry === undefined) return undefined;
    const timeMs = waitMs(entry.wrongCount);
    if (timeMs === 0) return undefined;
    if (entry.waitingCount >= WAITING_MAX || this.waitingCount >= this.waitingMax()) return new TooManyWait(timeMs);
    entry.waitingCount++;
    this.waitingCount++;
    return this.wait(timeMs, this.closed.signal).finally(() => {
      entry.waitingCount--;
      this.waitingCount--;
    });
  }

  wrong(user: string, hostname: string, password: string): void {
    const key = keyOf(user, hostname);
    const entry = this.entryOf(key) ?? { wrongCount: 0, lastWrong: "", waitingCount: 0, atMs: 0 };
    const digest = createHash("sha256").update(this.salt).update(password).digest("base64");
    if (entry.lastWrong !== digest) entry.wrongCount++;
    entry.lastWrong = digest;
    entry.atMs = this.nowMs();
    this.entries.delete(key);
    this.entries.set(key, entry);
    if (this.entries.size > ENTRIES_MAX) this.entries.delete(this.entries.keys().next().value!);
  }

  right(user: string, hostname: string): void {
    if (this.entries.size > 0) this.entries.delete(keyOf(user, hostname));
  }

  private entryOf(key: string): Entry | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined || this.nowMs() - entry.atMs <= FORGET_MS) return entry;
    this.entries.delete(key);
    return undefined;
  }
}

const pause = (timeMs: number, signal: AbortSignal): Promise<void> =>
  setTimeout(timeMs, undefined, { signal }).catch(() => {});

function waitMs(wrongCount: number): number {
  return wrongCount < FREE_COUNT
    ? 0
    : Math.min(WAIT_MAX_MS, FIRST_WAIT_MS * 2 ** Math.min(20, wrongCount - FREE_COUNT));
}

function keyOf(user: string, hostname: string): string {
  return `${networkOf(hostname)} ${user}`;
}

/** The /64 network of an IPv6 address, because the holder of one address has the whole network. */
export function networkOf(hostname: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(hostname);
  if (mapped !== null) return mapped[1]!;
  if (!hostname.includes(":")) return hostname;
  const [head = [], tail] = hostname.split("%")[0]!.split("::").map((half) =>
    half.split(":").filter((group) => group !== "")
  );
  const zeros = tail === undefined ? 0 : 8 - head.length - tail.length;
  return [...head, ...Array<string>(Math.max(0, zeros)).fill("0"), ...tail ?? []].slice(0, 4).join(":");
}
