/**
 * Loops over rows poll by rows, of which one can have a text of megabytes. So what runs over the bytes of one text, in kernels
 * and in TypeScript, polls by itself where the text is long. It knows no query: the thread works at one at a time.
 */
import type { QueryContext } from "./contract.ts";

/** Some ten microseconds of work. */
export const LONG_TEXT_BYTES = 65_536;

let current: Pick<QueryContext, "poll"> | undefined;

/** From here on the thread works at this query. Returns the one before. */
export function workAt(context: Pick<QueryContext, "poll"> | undefined): Pick<QueryContext, "poll"> | undefined {
  const before = current;
  current = context;
  return before;
}

/** Throws where the query at hand is to end. Kernels import it. */
export function pollQuery(): void {
  current?.poll();
}

/** Before a loop over so many bytes. */
export function pollLongText(sizeBytes: number): void {
  if (sizeBytes > LONG_TEXT_BYTES) pollQuery();
}
