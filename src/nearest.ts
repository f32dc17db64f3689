/** Finds the known name that a misspelt one was probably meant to be, for messages about settings and SQL. */

/** The end of a message about an unknown name: `; did you mean price?`, or empty if no known name is similar. */
export function didYouMean(text: string, known: Iterable<string>): string {
  const near = nearest(text, known);
  return near === undefined ? "" : `; did you mean ${near}?`;
}

/** The spelling in `known` with the fewest edits from `text`, if it is similar enough; of several the longest, as letters get lost. */
export function nearest(text: string, known: Iterable<string>): string | undefined {
  const lower = text.toLowerCase();
  let best: string | undefined;
  let bestEdits = editsMax(text.length);
  for (const candidate of known) {
    const edits = editCount(lower, candidate.toLowerCase(), bestEdits + 1);
    const isBetter = edits < bestEdits || (edits === bestEdits && candidate.length > (best?.length ?? 0));
    if (isBetter) [best, bestEdits] = [candidate, edits];
  }
  return best;
}

/** Fewer edits are allowed for short names, because unrelated short names differ by few letters. */
function editsMax(length: number): number {
  if (length < 2) return 0;
  return length < 5 ? 1 : Math.max(2, Math.floor(length / 3));
}

/** Number of edits of one letter and swaps of two adjacent ones; `limit` if there are at least that many. */
function editCount(from: string, to: string, limit: number): number {
  if (Math.abs(from.length - to.length) >= limit) return limit;
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1));
      const isSwap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      if (isSwap) row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1);
    }
    if (Math.min(...row) >= limit) return limit;
    [beforeLast, last] = [last, row];
  }
  return Math.min(last[to.length]!, limit);
}
