/**
 * Patterns of paths: `*` stands for any text in a name, `?` for one character, `[a-c]` and `[!a-c]` for one of a set or not of it, and the
 * name `**` for any number of directories.
 *
 * A walk through directories holds the indices of the names of the pattern that a name in the current directory may match: so each file is
 * found once, and only directories are read that can lead to one.
 */
export class PathPattern {
  private readonly names: string[];

  /** Names are separated by slashes. */
  constructor(pattern: string) {
    this.names = pattern.split("/").filter((name) => name !== "" && name !== ".");
  }

  /** Before the first directory. */
  start(): number[] {
    return this.names.length === 0 ? [] : this.closed([0]);
  }

  matchesFile(states: readonly number[], name: string): boolean {
    return states.some((k) => k === this.names.length - 1 && (this.isAnyDepth(k) || matchesName(this.names[k], name)));
  }

  /** In the directory of this name. Empty if no file in it can match. */
  within(states: readonly number[], name: string): number[] {
    const next: number[] = [];
    for (const k of states) {
      if (this.isAnyDepth(k)) next.push(k);
      else if (k + 1 < this.names.length && matchesName(this.names[k], name)) next.push(k + 1);
    }
    return this.closed(next);
  }

  private isAnyDepth(k: number): boolean {
    return this.names[k] === "**";
  }

  /** With what follows each `**`, as it also stands for no directory. */
  private closed(states: number[]): number[] {
    const all = new Set(states);
    for (const k of all) if (this.isAnyDepth(k) && k + 1 < this.names.length) all.add(k + 1);
    return [...all];
  }
}

/** Goes back to the last `*` only, so that the time is bounded by the product of the lengths. */
function matchesName(pattern: string, name: string): boolean {
  const text = [...name];
  let p = 0, t = 0, star = -1, resumed = 0;
  while (t < text.length) {
    if (pattern[p] === "*") {
      star = p++;
      resumed = t;
      continue;
    }
    const end = oneMatched(pattern, p, text[t]);
    if (end !== undefined) {
      p = end;
      t++;
    } else if (star >= 0) {
      p = star + 1;
      t = ++resumed;
    } else return false;
  }
  while (pattern[p] === "*") p++;
  return p === pattern.length;
}

/** Where the pattern goes on if its part at `p` stands for this character, otherwise undefined. */
function oneMatched(pattern: string, p: number, character: string): number | undefined {
  if (p >= pattern.length) return undefined;
  if (pattern[p] === "?") return p + 1;
  if (pattern[p] === "[") {
    const isNegated = pattern[p + 1] === "!";
    const first = p + (isNegated ? 2 : 1), close = pattern.indexOf("]", first + 1);
    if (close >= 0) return isIn([...pattern.slice(first, close)], character) !== isNegated ? close + 1 : undefined;
  }
  const own = String.fromCodePoint(pattern.codePointAt(p)!);
  return own === character ? p + own.length : undefined;
}

/** `set`: characters, and ranges of them as `a-c`. */
function isIn(set: string[], character: string): boolean {
  for (let i = 0; i < set.length; i++) {
    const isRange = set[i + 1] === "-" && i + 2 < set.length;
    const last = isRange ? set[i + 2] : set[i];
    if (set[i] <= character && character <= last) return true;
    if (isRange) i += 2;
  }
  return false;
}
