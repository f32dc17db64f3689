/** Rewrites the SAMPLE BY of a query for a shorter time range with finer buckets, for zoomed charts. */
import type { SampleBy } from "./ast.ts";
import { parse } from "./parser.ts";

export interface SampleRange {
  /** Milliseconds since 1970. */
  fromMs: number;
  toMs: number;
  /** Maximum number of buckets. */
  bucketsMax: number;
}

/** Bucket sizes that divide a day evenly, with their milliseconds. */
const BUCKETS: readonly (readonly [text: string, ms: number])[] = [
  ["1T", 1],
  ["10T", 10],
  ["100T", 100],
  ["1s", 1_000],
  ["5s", 5_000],
  ["15s", 15_000],
  ["30s", 30_000],
  ["1m", 60_000],
  ["5m", 300_000],
  ["15m", 900_000],
  ["30m", 1_800_000],
  ["1h", 3_600_000],
  ["3h", 10_800_000],
  ["6h", 21_600_000],
  ["12h", 43_200_000],
  ["1d", 86_400_000],
];
const UNIT_MS: Record<string, number> = {
  n: 1e-6,
  U: 1e-3,
  T: 1,
  s: 1e3,
  m: 6e4,
  h: 36e5,
  d: 864e5,
  w: 7 * 864e5,
  M: 30 * 864e5,
  y: 365 * 864e5,
};

/**
 * Returns the statement with the range and its bucket size, which is never coarser than before. Returns undefined if
 * the statement does not have exactly one SAMPLE BY, or if that has a range of its own or a computed size.
 * @throws {SqlError} if the statement cannot be parsed.
 */
export function finerSamples(
  text: string,
  { fromMs, toMs, bucketsMax }: SampleRange,
): { text: string; bucket: string } | undefined {
  const [sample, ...others] = samplesOf(parse(text));
  if (sample === undefined || others.length > 0) return undefined;
  const { interval, from, to, align } = sample;
  if ("kind" in interval || from !== undefined || to !== undefined || align?.to === "first observation") {
    return undefined;
  }
  const written = /^(\d*)(\w)$/.exec(interval.text);
  if (written === null) return undefined;
  const ownMs = Number(written[1] || 1) * UNIT_MS[written[2]!]!;
  const wanted = BUCKETS.find(([, ms]) => (toMs - fromMs) / ms <= bucketsMax);
  const bucket = wanted !== undefined && wanted[1] < ownMs ? wanted[0] : interval.text;
  const end = interval.at + interval.text.length;
  const instant = (ms: number) => `'${new Date(ms).toISOString()}'`;
  const range = `${bucket} from ${instant(Math.floor(fromMs))} to ${instant(Math.ceil(toMs))}`;
  return { text: text.slice(0, interval.at) + range + text.slice(end), bucket };
}

/** All SAMPLE BY clauses of a tree. */
function samplesOf(node: unknown): SampleBy[] {
  if (typeof node !== "object" || node === null) return [];
  return Object.entries(node).flatMap(([name, value]) =>
    name === "sampleBy" && value !== undefined ? [value as SampleBy] : samplesOf(value)
  );
}
