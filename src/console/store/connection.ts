/** Whether the server can be reached. When it cannot, it is asked again and again until it answers. */
import { signal } from "@preact/signals";

export const isServerAway = signal(false);
/** Counts up when the server has come back: what the page shows may be out of date. */
export const returns = signal(0);

const FIRST_MS = 500, LONGEST_MS = 5000;

/** Called when a request has got no answer. */
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
