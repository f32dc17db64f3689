/**
 * Loops over rows poll by rows, but one row can contain a text of megabytes. So code that processes the bytes of a text, in kernels
 * and in TypeScript, polls by itself for long texts. It has no reference to the query: a thread works on one query at a time.
 */
import type { QueryContext } from "./contract.ts";

/** Some ten microseconds of work. */
export const LONG_TEXT_BYTES = 65_536;

let current: Pick<QueryContext, "poll"> | undefined;

/** Sets the query that the thread works on, and returns the previous one. */
export function workAt(context: Pick<QueryContext, "poll"> | undefined): Pick<QueryContext, "poll"> | undefined {
  const before = current;
  current = context;
  return before;
}

/** Throws if the current query must end. Kernels import it. */
export function pollQuery(): void {
  current?.poll();
}

/** Called before a loop over this many bytes. */
export function pollLongText(sizeBytes: number): void {
  if (sizeBytes > LONG_TEXT_BYTES) pollQuery();
}
