/**
 * Results outlive a reload of the page, and a visit at the identity provider: large ones are found again in the server, small ones are
 * kept in the tab of the browser until its user comes back.
 */
import type { Rows } from "../server/client.ts";
import type { Run } from "./run.ts";

export interface KeptRuns {
  user: string;
  /** By tab of the editor. */
  runs: [tab: number, runs: readonly Run[]][];
  chosen: [tab: number, id: number][];
}

const KEY = "sundial.results";
/** Characters of all. Browsers keep some five million for a page. */
const LENGTH_MAX = 2_000_000;
/** Characters of a result that is kept whole although the server has it. */
const SMALL_LENGTH_MAX = 100_000;
/** Rows of a result in the server that are shown at once. */
const FIRST_ROWS = 200;

export function keepRuns({ user, runs, chosen }: KeptRuns): void {
  const budget = { left: LENGTH_MAX };
  const kept = runs.map(([tab, list]) => [tab, list.map((run) => keptRun(run, budget))]);
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ user, runs: kept, chosen }));
  } catch (error) {
    console.warn(`the results are not kept: ${error}`);
  }
}

/** Those of the user, once. Another user's are forgotten. */
export function takeRuns(user: string): KeptRuns | undefined {
  const text = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  const kept = text === null ? undefined : JSON.parse(text) as KeptRuns;
  return kept?.user === user ? kept : undefined;
}

function keptRun({ rowsSoFar: _, progress: __, ...run }: Run, budget: { left: number }): Run {
  const { outcome } = run;
  if (outcome === undefined) return { ...run, outcome: { isLost: true, durationMs: 0 } };
  if (outcome.rows === undefined) return run;
  const kept = { ...run, outcome: { ...outcome, rows: keptRows(outcome.rows) } };
  const { length } = JSON.stringify(kept);
  if (length > budget.left) return { ...run, outcome: { isLost: true, durationMs: outcome.durationMs } };
  budget.left -= length;
  return kept;
}

function keptRows(rows: Rows): Rows {
  const { keptId } = rows;
  const isSmall = keptId !== undefined && JSON.stringify(rows.dataset).length <= SMALL_LENGTH_MAX;
  const spool = rows.spool ?? (keptId === undefined || isSmall ? undefined : { id: keptId, isRunning: false });
  return spool === undefined ? rows : { ...rows, keptId: undefined, spool, dataset: rows.dataset.slice(0, FIRST_ROWS) };
}
