/** A statement that runs or has run. */
import type { Outcome, Rows } from "../server/client.ts";
import type { Progress } from "../server/results.ts";

export interface Run {
  id: number;
  /** That of the statement in its place: a run again keeps the grid with its scroll position and sorting. */
  key: number;
  statement: string;
  /** UTF-16 units from the start of the tab's text at that time. */
  start: number;
  end: number;
  /** Undefined: waiting or running. */
  outcome?: Outcome;
  /** The rows so far, and how far it is, while it runs. */
  rowsSoFar?: Rows;
  progress?: Progress;
}
