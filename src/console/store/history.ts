/** Statements that the user has executed in this browser, latest first. */
import type { Outcome } from "../server/client.ts";
import { savedOfUser } from "./saved.ts";

export interface Past {
  statement: string;
  /** Milliseconds since 1970. */
  at: number;
  durationMs: number;
  rows?: number;
  failed?: boolean;
}

const KEPT_MAX = 500;
/** Maximum length of a statement. Longer ones, such as large INSERTs, would fill the browser's storage. */
const LENGTH_MAX = 20_000;

export const history = savedOfUser<Past[]>("history", [], Array.isArray);

/** A statement that is executed again moves to the front. */
export function addToHistory(statement: string, { durationMs, rows, changed, error }: Outcome): void {
  if (statement.length > LENGTH_MAX) return;
  const past = { statement, at: Date.now(), durationMs, rows: rows?.count ?? changed, failed: error !== undefined };
  history.value = [past, ...history.value.filter((other) => other.statement !== statement)].slice(0, KEPT_MAX);
}
