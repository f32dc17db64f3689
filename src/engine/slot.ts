/**
 * A query's words in shared memory, through which its threads and the main thread communicate without messages.
 * A query has one of `SLOT_COUNT` slots of 64 words from its start to its end.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import { SHARED_WORD, type SharedHeap } from "../storage/heap.ts";

export const SLOT_WORDS = 64;
export const SLOT_COUNT = 12;

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
  /** Number of threads inside the section besides the leader. */
  helpers: 5,
  /** Number of results that helpers have left. */
  results: 6,
  /** Rows that sources have output, and their total: each an i64. */
  rowsRead: 8,
  rowsToRead: 10,
  /** Pairs (address, size) of the helpers' results: JSON in the heap. */
  resultList: 12,
} as const;

export const HELPERS_MAX = (SLOT_WORDS - SLOT.resultList) / 2;

export const CANCEL = { none: 0, byUser: 1, timeout: 2, helperFailed: 3, shutdown: 4, stalled: 5 } as const;

export function slotWord(slot: number, offset: number): number {
  return SHARED_WORD.querySlots + slot * SLOT_WORDS + offset;
}

/** Index of a 64-bit value in the i64 view. */
export function slotLong(slot: number, offset: number): number {
  return slotWord(slot, offset) / 2;
}

export function clearSlot(heap: SharedHeap, slot: number): void {
  heap.i32.fill(0, slotWord(slot, 0), slotWord(slot, SLOT_WORDS));
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
