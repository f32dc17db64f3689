/** The queries that were requested and have not ended: ends those whose time is over, and those whose readers have stopped reading. */
import { CANCEL } from "./slot.ts";

/** A parked query whose reader has taken nothing for this long ends if others wait for its slot, or for room for their results. */
const STALL_MS = 10_000;

/** A query that was requested and has not ended. */
export interface Underway {
  cancel(reason: number): void;
  /** Number of chunks that its reader has not taken. */
  chunksUnderway(): number;
  /** If it is parked: continues it when its reader has caught up and its next chunk has room, or to cancel it. */
  resumeIfWanted(): void;
  /** Time when its reader last took a chunk. */
  readAtMs: number;
  /** When its time is over. */
  deadlineMs: number;
}

export class QueriesUnderway implements Iterable<Underway> {
  private readonly queries = new Set<Underway>();
  /** Those that wait for their readers, or for room for their results. */
  readonly parked = new Set<Underway>();
  private isClosed = false;
  /** One timer for all queries: making one for each takes longer than a request. It may fire when its query has ended. */
  private deadlineTimer: ReturnType<typeof setTimeout> | undefined;
  private nextDeadlineMs = Infinity;
  private stallTimer: ReturnType<typeof setTimeout> | undefined;

  /** `waitingCount`: how many queries wait for a slot. */
  constructor(private readonly waitingCount: () => number, private readonly stallMs = STALL_MS) {}

  [Symbol.iterator](): Iterator<Underway> {
    return this.queries.values();
  }

  /** `nowMs`: performance.now(). */
  add(query: Underway, nowMs: number): void {
    this.queries.add(query);
    if (query.deadlineMs < this.nextDeadlineMs) this.watchDeadline(query.deadlineMs, nowMs);
  }

  delete(query: Underway): void {
    this.queries.delete(query);
    this.parked.delete(query);
  }

  private watchDeadline(deadlineMs: number, nowMs: number): void {
    clearTimeout(this.deadlineTimer);
    this.nextDeadlineMs = deadlineMs;
    if (deadlineMs === Infinity || this.isClosed) return;
    this.deadlineTimer = setTimeout(() => this.endLate(), Math.max(0, Math.ceil(deadlineMs - nowMs)));
    Deno.unrefTimer(this.deadlineTimer as unknown as number);
  }

  private endLate(): void {
    const nowMs = performance.now();
    let next = Infinity;
    for (const query of [...this.queries]) {
      if (query.deadlineMs <= nowMs) {
        query.deadlineMs = Infinity;
        query.cancel(CANCEL.timeout);
      } else next = Math.min(next, query.deadlineMs);
    }
    this.watchDeadline(next, nowMs);
  }

  /** While queries wait for a slot or for room, ends as many whose readers have taken nothing for long. */
  stopStalled(): void {
    clearTimeout(this.stallTimer);
    const unread = [...this.parked].filter(({ chunksUnderway }) => chunksUnderway() > 0);
    const waitingCount = this.waitingCount() + this.parked.size - unread.length;
    if (waitingCount === 0 || this.isClosed) return;
    const now = performance.now();
    const stalled = unread.filter(({ readAtMs }) => now - readAtMs > this.stallMs).sort((a, b) =>
      a.readAtMs - b.readAtMs
    );
    for (const query of stalled.slice(0, waitingCount)) query.cancel(CANCEL.stalled);
    this.stallTimer = setTimeout(() => this.stopStalled(), this.stallMs / 10);
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.stallTimer);
    clearTimeout(this.deadlineTimer);
  }
}
