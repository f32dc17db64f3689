/** The server's metrics over the last minutes, and values derived from them for the charts. */

export interface Reading {
  /** Milliseconds since 1970. */
  at: number;
  /** By `keyOf()`. */
  values: ReadonlyMap<string, number>;
}

/** `le`: the upper bound of a histogram's bucket; null for the last one. */
export const keyOf = (name: string, label: string | null = null, le?: number | null): string =>
  `${name} ${label ?? ""} ${le === undefined ? "" : le ?? "+Inf"}`;

/** Rows of `select name, label, le, value from server_metrics()`. */
export function readingOf(at: number, rows: readonly unknown[][]): Reading {
  const values = new Map<string, number>();
  for (const [name, label, le, value] of rows) {
    const isBucket = String(name).endsWith("_bucket");
    values.set(keyOf(String(name), label as string | null, isBucket ? le as number | null : undefined), Number(value));
  }
  return { at, values };
}

/** The labels of a metric. */
export function labelsOf({ values }: Reading, name: string): string[] {
  return [...values.keys()].filter((key) => key.startsWith(`${name} `)).map((key) => key.split(" ")[1] ?? "");
}

/** Sum over all labels. Null if there is none. */
export function sumOf({ values }: Reading, name: string): number | null {
  const found = [...values].filter(([key]) => key.startsWith(`${name} `));
  return found.length === 0 ? null : found.reduce((sum, [, value]) => sum + value, 0);
}

/** Growth of a counter per second between two readings. Null after a restart, where counters begin again. */
export function rateOf(before: Reading | undefined, now: Reading, key: string): number | null {
  const from = before?.values.get(key), to = now.values.get(key);
  if (from === undefined || to === undefined || to < from) return null;
  return (to - from) / ((now.at - before!.at) / 1000);
}

/**
 * The value below which the given share of all observations between two readings lies, for example 0.95. It is
 * interpolated within its bucket, as Prometheus does. Null without observations.
 */
export function quantileOf(before: Reading | undefined, now: Reading, name: string, share: number): number | null {
  if (before === undefined) return null;
  const buckets = new Map<number, number>();
  for (const [key, value] of now.values) {
    const [metric, , bound] = key.split(" ");
    if (metric !== `${name}_bucket`) continue;
    const growth = value - (before.values.get(key) ?? 0);
    if (growth < 0) return null;
    const le = bound === "+Inf" ? Infinity : Number(bound);
    buckets.set(le, (buckets.get(le) ?? 0) + growth);
  }
  const total = buckets.get(Infinity) ?? 0;
  if (total === 0) return null;
  const wanted = share * total;
  let low = 0, below = 0;
  for (const [high, count] of [...buckets].sort(([a], [b]) => a - b)) {
    // The largest values are only known to be above the last bound.
    if (high === Infinity) break;
    if (count >= wanted) return low + (high - low) * (wanted - below) / (count - below);
    [low, below] = [high, count];
  }
  return low;
}
