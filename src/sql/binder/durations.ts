/** Durations in SQL: `15m` of SAMPLE BY, `10s` of TOLERANCE, offsets of time zones. */

import { UNIT_NANOS } from "../../types/calendar.ts";

/** Parses `15m` or `h` into count and unit. Returns undefined for any other text. */
export function parseSampling(text: string): { count: number; unit: string } | undefined {
  const match = /^(\d*)([nUTsmhdwMy])$/.exec(text);
  if (match === null) return undefined;
  const count = match[1] === "" ? 1 : Number(match[1]);
  return count > 0 && count <= 2147483647 ? { count, unit: match[2]! } : undefined;
}

/** A fixed duration in the unit of `type`. Returns undefined for months, years and texts that are not durations. */
export function fixedDuration(text: string, type: string): bigint | undefined {
  const sampling = /^(\d+)([nUTsmhdw])$/.exec(text);
  if (sampling === null) return undefined;
  const nanos = BigInt(sampling[1]!) * UNIT_NANOS[sampling[2]!]!;
  return type === "TIMESTAMP_NS" ? nanos : nanos / 1000n;
}

const WORD_NANOS: Record<string, bigint> = {
  nanosecond: 1n,
  microsecond: 1_000n,
  millisecond: 1_000_000n,
  second: 1_000_000_000n,
  minute: 60_000_000_000n,
  hour: 3_600_000_000_000n,
  day: 86_400_000_000_000n,
};

/** The length of `minute` or `minutes` in the unit of `type`. */
export function wordDuration(word: string, type: string): bigint | undefined {
  const singular = word.toLowerCase().replace(/s$/, "");
  const nanos = WORD_NANOS[singular];
  if (nanos === undefined) return undefined;
  return type === "TIMESTAMP_NS" ? nanos : nanos / 1000n;
}
