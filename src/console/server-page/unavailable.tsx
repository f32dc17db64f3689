/** Explains why a part of the page has nothing to show. */
import type { Outcome } from "../server/client.ts";

/** Shows nothing if there are rows. `what`: the subject of the sentence. */
export function Unavailable({ what, outcome }: { what: string; outcome: Outcome | undefined }) {
  if (outcome?.rows !== undefined) return null;
  if (outcome === undefined) return <p class="empty" role="status">Loading …</p>;
  return <p class="empty" role="status">{reasonOf(what, outcome.error?.message ?? "")}</p>;
}

function reasonOf(what: string, message: string): string {
  const permission = /^Access denied for .+ \[([A-Z ]+)\]$/.exec(message)?.[1];
  if (permission === undefined) return `${what} cannot be shown: ${message}`;
  return `${what} are shown to users with the permission ${permission}. An administrator can grant it to you.`;
}
