/** The spelling in `known` with the fewest edits from `text`, when it is near enough to be what was meant. */
export function nearest(text: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestEdits = Math.max(2, Math.floor(text.length / 3)) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - text.length) >= bestEdits) continue;
    const edits = editCount(text, candidate);
    if (edits < bestEdits) [best, bestEdits] = [candidate, edits];
  }
  return best;
}

/** Levenshtein's distance. */
function editCount(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const next = [i];
    for (let j = 1; j <= to.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (from[i - 1] === to[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[to.length];
}
