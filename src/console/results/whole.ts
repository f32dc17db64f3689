/** All rows of a result: those in the page, or those that the server has spooled, page by page. */
import type { Rows } from "../server/client.ts";
import { fetchRows } from "../server/results.ts";

/** Rows per request. The server sends fewer if they are large. */
const REQUEST_ROWS = 100_000;

export interface WholeOptions {
  signal?: AbortSignal;
  /** Rows before this index are skipped. */
  first?: number;
  /** Rows from this index on are skipped. */
  end?: number;
  /** Called with the number of rows read. */
  onProgress?(count: number): void;
}

/** True if the page or the server has every row of the statement. */
export const isWhole = ({ spool, cutBy }: Rows): boolean => spool?.isRunning !== true && cutBy === undefined;

/** Calls `use` with the rows and the index of their first one, until it returns false. @throws {ExpiredError} */
export async function eachPage(
  { spool, dataset, count }: Rows,
  use: (dataset: unknown[][], first: number) => boolean | void,
  { signal, first = 0, end = count, onProgress }: WholeOptions = {},
): Promise<void> {
  if (spool === undefined) return void use(dataset.slice(first, end), first);
  for (let at = first; at < end;) {
    const page = await fetchRows(spool.id, at, Math.min(REQUEST_ROWS, end - at), signal);
    if (page.dataset.length === 0 || use(page.dataset, at) === false) return;
    at += page.dataset.length;
    onProgress?.(at - first);
  }
}
