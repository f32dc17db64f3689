/**
 * A query's words in shared memory, through which its threads and the main thread communicate without messages.
 * A query has one of `SLOT_COUNT` slots of 64 words from its start to its end.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import { SHARED_WORD, type SharedHeap } from "../storage/heap.ts";

const SLOT_WORDS = 64;
/** Many more than workers, because a query that waits for its reader keeps its slot. */
export const SLOT_COUNT = 64;

/** Word offsets within a slot. */
export const SLOT = {
  /** 0: running; otherwise a `CANCEL` reason. Kernels poll it. */
  cancel: 0,
  /** Number of chunks posted to main that their reader has not taken yet. The sender waits on it. */
  chunksUnderway: 1,
  /** 4 KiB units of memory in use. */
  memoryUnits: 2,
  /** Number of the open parallel section; 0 between sections. */
  section: 3,
  /** The next morsel to take. */
  nextMorsel: 4,
  /** Number of threads that look at the section or are inside of it, besides the leader. It survives `clearSlot`. */
  helpers: 5,
  /** The address of the last result that a helper has left, or 0. */
  results: 6,
  /** KiB that its threads have written to disk. */
  spilledUnits: 7,
  /** Rows that sources have output, and their total: each an i64. */
  rowsRead: 8,
  rowsToRead: 10,
  /** Where the request is: address, its words for sources, its text, and the plan if it is sent. Sizes in bytes. */
  request: 12,
  requestWords: 13,
  requestText: 14,
  requestPlan: 15,
  /** An `ANSWER`; the address of the slot's letter, where the answer is; its size and rows. */
  answer: 16,
  letter: 17,
  answerBytes: 18,
  answerRows: 19,
  /** Rows of the whole result: an i64. */
  totalRows: 20,
  /** The open section: its morsels, the most helpers, and the address and size of the invitation. */
  morselCount: 22,
  helpersMax: 23,
  invitation: 24,
  invitationBytes: 25,
  /** The request's plan by its number, and its clock: an i64. */
  planName: 26,
  nowMicros: 28,
  /** Size of the chunk that a parked query is to post next. */
  nextChunkBytes: 30,
} as const;

/** How a worker ends its part of a query, if not by messages. */
export const ANSWER = {
  none: 0,
  /** The letter holds the whole result. */
  result: 1,
  /** The letter holds a `PostedError` as JSON. */
  failed: 2,
  /** The worker does not know the plan: it must be sent. */
  unknownPlan: 3,
} as const;

export const CANCEL = { none: 0, byUser: 1, timeout: 2, helperFailed: 3, shutdown: 4, stalled: 5 } as const;

export function slotWord(slot: number, offset: number): number {
  return SHARED_WORD.querySlots + slot * SLOT_WORDS + offset;
}

/** Index of a 64-bit value in the i64 view. */
export function slotLong(slot: number, offset: number): number {
  return slotWord(slot, offset) / 2;
}

/** A thread that saw the slot's last section may still be about to leave, so the count of helpers stays. */
export function clearSlot(heap: SharedHeap, slot: number): void {
  heap.i32.fill(0, slotWord(slot, 0), slotWord(slot, SLOT.helpers));
  heap.i32.fill(0, slotWord(slot, SLOT.helpers + 1), slotWord(slot, SLOT_WORDS));
}

/** The error of threads that stop because another thread of the query failed. */
export const STOPPED_BY_ANOTHER = "query stopped: another thread of it has failed";

/** The error for a query that its cancel word has ended; SQLSTATE 57014. */
export function cancelError(reason: number, timeoutMs: number): SqlError {
  const message = reason === CANCEL.timeout
    ? `query stopped: it ran longer than its time-out of ${timeoutMs} ms`
    : reason === CANCEL.shutdown
    ? "query stopped: the server is going down"
    : reason === CANCEL.stalled
    ? "query stopped: its result was not read for a while, and others waited for its place"
    : reason === CANCEL.helperFailed
    ? STOPPED_BY_ANOTHER
    : "query cancelled by the user";
  return new SqlError(message, 0, SQLSTATE.queryCanceled);
}
