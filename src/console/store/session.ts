/** What the page shows: the text of the editor and the outcome of the last run. */
import { signal } from "@preact/signals";
import { type Outcome, runStatement } from "../server/client.ts";

const TEXT_KEY = "sundial.text";
const FIRST_TEXT = `-- The demo file: 100,000 trades. Ctrl+Enter runs the statement.
select symbol, count() trades, min(price), max(price)
from read_parquet('trades.parquet')
order by trades desc;
`;

export const text = signal(localStorage.getItem(TEXT_KEY) ?? FIRST_TEXT);
export const outcome = signal<Outcome | undefined>(undefined);
/** Position of the statement that gave the outcome, within the text. */
export const outcomeStart = signal(0);
export const isRunning = signal(false);

let running: AbortController | undefined;

export function setText(value: string): void {
  text.value = value;
  localStorage.setItem(TEXT_KEY, value);
}

/** Runs one statement, which begins at `start` in the text. */
export async function run(statement: string, start: number): Promise<void> {
  if (isRunning.value) return;
  running = new AbortController();
  isRunning.value = true;
  try {
    const result = await runStatement(statement, running.signal);
    [outcome.value, outcomeStart.value] = [result, start];
  } catch {
    outcome.value = { error: { message: "Cancelled." }, durationMs: 0 };
  } finally {
    isRunning.value = false;
  }
}

/** The server stops a statement whose client has gone. */
export function cancel(): void {
  running?.abort();
}
