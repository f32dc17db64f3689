/** Whether the server can be reached. If not, the page polls it until it answers. */
import { signal } from "@preact/signals";

export const isServerAway = signal(false);
/** Incremented when the server is available again, because the contents of the page may be outdated. */
export const returns = signal(0);

const FIRST_MS = 500, LONGEST_MS = 5000;

/** Called when a request gets no answer. */
export function serverIsAway(): void {
  if (isServerAway.value) return;
  isServerAway.value = true;
  askAgain(FIRST_MS);
}

function askAgain(afterMs: number): void {
  setTimeout(async () => {
    if (!await answers()) return askAgain(Math.min(LONGEST_MS, afterMs * 1.5));
    isServerAway.value = false;
    returns.value++;
  }, afterMs);
}

async function answers(): Promise<boolean> {
  try {
    return (await fetch("ping", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}
