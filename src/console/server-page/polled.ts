/** Statements that a page repeats while it is shown. */
import { useEffect, useState } from "preact/hooks";
import { type Outcome, query } from "../server/client.ts";
import { isServerAway, returns } from "../store/connection.ts";

/**
 * Interval after an error. Refused statements are counted and logged by the server, so they are repeated less often.
 */
const AFTER_ERROR_MS = 30_000;

/** The last outcome, which is kept while the server is away. A new `version` runs the statement immediately. */
export function usePolled(statement: string, everyMs: number, version = 0): Outcome | undefined {
  const [outcome, setOutcome] = useState<Outcome>();
  useEffect(() =>
    repeat(async () => {
      const next = await query(statement);
      if (!isServerAway.value) setOutcome(next);
      return next.error === undefined ? everyMs : AFTER_ERROR_MS;
    }), [statement, everyMs, version, returns.value]);
  return outcome;
}

/**
 * Calls `ask` now and then after the time that it has returned, but not while the page is hidden or the server is away.
 */
export function repeat(ask: () => Promise<number>): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined, isEnded = false;
  const next = async () => {
    const afterMs = document.hidden || isServerAway.value ? 1000 : await ask();
    if (!isEnded) timer = setTimeout(next, afterMs);
  };
  next();
  return () => {
    isEnded = true;
    clearTimeout(timer);
  };
}

/** The rows as objects by column name. */
export function recordsOf(outcome: Outcome | undefined): Record<string, unknown>[] {
  const { columns, dataset } = outcome?.rows ?? { columns: [], dataset: [] };
  return dataset.map((row) => Object.fromEntries(columns.map(({ name }, at) => [name, row[at]])));
}
