/** The difference of two lists of the same immutable objects. */

/** Replaces `count` items from index `start` on. The splices of a change are ascending, with indexes before the change. */
export interface Splice<T> {
  readonly start: number;
  readonly count: number;
  readonly added: readonly T[];
}

/** The splices that make `after` from `before`. */
export function difference<T extends object>(after: readonly T[], before: readonly T[]): Splice<T>[] {
  if (before === after) return [];
  const isSame = (a: number, b: number) => after[a] === before[b];
  // Items that both lists share are skipped at both ends. Shared ones between them are found by identity.
  let head = 0;
  const least = Math.min(after.length, before.length);
  while (head < least && isSame(head, head)) head++;
  let tail = 0;
  while (tail < least - head && isSame(after.length - 1 - tail, before.length - 1 - tail)) tail++;
  const end = after.length - tail, endBefore = before.length - tail;
  if (head === end || head === endBefore) {
    return end === endBefore ? [] : [{ start: head, count: endBefore - head, added: after.slice(head, end) }];
  }
  const known = new Map<T, number>();
  for (let k = head; k < endBefore; k++) known.set(before[k], k);
  const splices: Splice<T>[] = [];
  let from = head, fromBefore = head;
  const add = (to: number, toBefore: number) => {
    const added = after.slice(from, to), count = toBefore - fromBefore;
    if (count > 0 || added.length > 0) splices.push({ start: fromBefore, count, added });
  };
  for (let k = head; k < end; k++) {
    const same = known.get(after[k]);
    if (same === undefined || same < fromBefore) continue;
    add(k, same);
    from = k + 1;
    fromBefore = same + 1;
  }
  add(end, endBefore);
  return splices;
}

/** Applies the splices of a change. */
export function spliced<T>(before: readonly T[], splices: readonly Splice<T>[]): readonly T[] {
  let items = before;
  for (const { start, count, added } of splices.toReversed()) items = items.toSpliced(start, count, ...added);
  return items;
}
