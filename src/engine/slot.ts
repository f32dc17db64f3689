/**
 * A query's words in shared memory: what its threads and the main thread tell each other without messages.
 * A query has one of `SLOT_COUNT` slots of 64 words from its start to its end.
 */
import { SqlError, SQLSTATE } from "../errors.ts";
import { SHARED_WORD, type SharedHeap } from "../storage/heap.ts";

export const SLOT_WORDS = 64;
export const SLOT_COUNT = 12;

/** Word offsets within a slot. */
export const SLOT = {
  /** 0 running, else a `CANCEL` reason: kernels poll it. */
  cancel: 0,
  /** Chunks posted to main that their reader has not taken yet: woken as they go. */
  chunksUnderway: 1,
  /** 4 KiB units of memory in use. */
  memoryUnits: 2,
  /** The parallel section that is open, counted up; 0 between sections. */
  section: 3,
  /** The next morsel to take. */
  nextMorsel: 4,
  /** Threads besides the leader that are inside the section. */
  helpers: 5,
  /** Results that helpers have left. */
  results: 6,
  /** Rows that sources have given and that they have at most: each an i64. */
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

/** The place of a 64-bit value in the i64 view. */
export function slotLong(slot: number, offset: number): number {
  return slotWord(slot, offset) / 2;
}

export function clearSlot(heap: SharedHeap, slot: number): void {
  heap.i32.fill(0, slotWord(slot, 0), slotWord(slot, SLOT_WORDS));
}

/** What the threads of a query say that stop because of another one's error. */
export const STOPPED_BY_ANOTHER = "query stopped: another thread of it has failed";

/** Why a query with this cancel word ended; SQLSTATE 57014. */
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
