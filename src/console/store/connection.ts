/** Whether the server can be reached. If not, the page asks until it answers. */
import { signal } from "@preact/signals";

export const isServerAway = signal(false);
/** Incremented when the server is available again, because the contents of the page may be outdated. */
export const returns = signal(0);

const FIRST_MS = 500, LONGEST_MS = 5000;

/** Called when a request gets no answer. `answers`: asks the server whether it is there. */
export function serverIsAway(answers: () => Promise<boolean>): void {
  if (isServerAway.value) return;
  isServerAway.value = true;
  askAgain(answers, FIRST_MS);
}

function askAgain(answers: () => Promise<boolean>, afterMs: number): void {
  setTimeout(async () => {
    if (!await answers()) return askAgain(answers, Math.min(LONGEST_MS, afterMs * 1.5));
    isServerAway.value = false;
    returns.value++;
  }, afterMs);
}
