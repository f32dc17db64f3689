/** Time ranges of dashboards. The server computes the ends of relative ones, so the clock of the browser does not matter. */

export type Range =
  /** "15m": up to now. */
  | { last: string }
  /** In a format that `Date` reads, in UTC. */
  | { from: string; to: string }
  | { all: true };

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 };
type Unit = keyof typeof UNIT_MS;
export const LASTS: Readonly<Record<string, string>> = {
  "5m": "5 minutes",
  "15m": "15 minutes",
  "1h": "hour",
  "6h": "6 hours",
  "24h": "24 hours",
  "7d": "7 days",
  "30d": "30 days",
  "365d": "365 days",
};

/** Approximate number of steps in a chart. */
const STEPS = 200;
const STEP_UNITS = [
  ...["1s", "5s", "10s", "30s", "1m", "5m", "10m", "30m", "1h", "3h", "6h", "12h", "1d", "7d", "30d"],
];

export function isRange(value: unknown): value is Range {
  const { last, from, to, all } = (value ?? {}) as Record<string, unknown>;
  if (typeof last === "string") return lastOf(last) !== undefined;
  return all === true || isTime(from) && isTime(to);
}

const isTime = (value: unknown) => typeof value === "string" && !Number.isNaN(Date.parse(utc(value)));
/** Times without a zone are in UTC. */
const utc = (text: string) => /(?:Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`;

function lastOf(text: string): { count: number; unit: Unit } | undefined {
  const { count, unit } = /^(?<count>[1-9]\d{0,4})(?<unit>[mhd])$/.exec(text)?.groups ?? {};
  return unit === undefined ? undefined : { count: Number(count), unit: unit as Unit };
}

export function rangeText(range: Range): string {
  if ("all" in range) return "All times";
  if ("last" in range) return `Last ${LASTS[range.last] ?? range.last}`;
  return `${shortTime(range.from)} to ${shortTime(range.to)}`;
}

const shortTime = (text: string) => text.replace("T", " ").replace(/(\d\d:\d\d):00(?:\.0+)?Z?$/, "$1");

/** The values of `@from`, `@to` and `@interval` as SQL. */
export function rangeValues(range: Range): Record<"from" | "to" | "interval", string> {
  if ("all" in range) return { from: time("0001-01-01T00:00:00Z"), to: time("9999-12-31T00:00:00Z"), interval: "'1d'" };
  if ("last" in range) {
    const { count, unit } = lastOf(range.last)!;
    return { from: `dateadd('${unit}', -${count}, now())`, to: "now()", interval: stepOf(count * UNIT_MS[unit]) };
  }
  const [from, to] = rangeEnds(range);
  return { from: time(from), to: time(to), interval: stepOf(to - from) };
}

/** Milliseconds since 1970. */
export const rangeEnds = ({ from, to }: { from: string; to: string }): [from: number, to: number] => [
  Date.parse(utc(from)),
  Date.parse(utc(to)),
];

const time = (at: string | number) => `'${new Date(at).toISOString()}'::timestamp`;

/** Returns a round unit for SAMPLE BY. */
function stepOf(durationMs: number): string {
  const ms = (unit: string) => parseInt(unit) * (UNIT_MS[unit.at(-1) as Unit] ?? 1000);
  return `'${STEP_UNITS.find((unit) => durationMs / ms(unit) <= STEPS) ?? STEP_UNITS.at(-1)}'`;
}
