/** The charts and numbers of the overview, with their metrics. */
import type { Unit } from "../charts/chart.tsx";
import type { ChartData } from "../charts/shape.ts";
import { bytesText } from "../results/summary.ts";
import { keyOf, labelsOf, quantileOf, rateOf, type Reading, sumOf } from "./readings.ts";

/** Time span of the charts. */
export const WINDOW_MS = 10 * 60_000;
/** If two readings are further apart, the page or the server was away between them. */
const GAP_MS = 6000;
/** Quantiles are computed over several periods, because few statements arrive within one. */
const QUANTILE_PERIODS = 5;

export interface LiveChart {
  title: string;
  unit: Unit;
  dataOf(readings: readonly Reading[]): ChartData;
}

const ROWS_IN = "service_rows_in_total";
const STARTED = "service_queries_started_total", FAILED = "service_queries_failed_total";
const LATENCY = "service_query_seconds", SYNC = "service_fsync_seconds";
const RSS = "service_memory_rss", SHARED = "service_memory_mem_used", HEAP = "service_memory_js_heap";
const LOG = "service_log_bytes_since_checkpoint", DISK = "service_disk_free_bytes";
const UPTIME = "service_process_uptime_seconds", CPU = "service_process_cpu_seconds_total";
const CONNECTIONS = "service_connections", BUSY = "service_workers_busy";

export const METRICS: readonly string[] = [
  ...[ROWS_IN, STARTED, FAILED, `${LATENCY}_bucket`, `${SYNC}_bucket`, RSS, SHARED, HEAP, LOG, DISK],
  ...[UPTIME, CPU, CONNECTIONS, BUSY],
];

/** Names of the labels of metrics. */
const WIRES: Record<string, string> = {
  exec: "HTTP /exec",
  exp: "HTTP /exp",
  imp: "imports",
  pg: "PostgreSQL",
  line_http: "line protocol, HTTP",
  line_tcp: "line protocol, TCP",
};

const wireName = (label: string) => WIRES[label] ?? label;

const secondsText = (value: number) =>
  value < 1 ? `${+(value * 1000).toPrecision(3)} ms` : `${+value.toPrecision(3)} s`;
const countText = (value: number) =>
  value >= 10_000 ? Intl.NumberFormat("en", { notation: "compact" }).format(value) : `${+value.toPrecision(3)}`;

export const LIVE_CHARTS: readonly LiveChart[] = [
  rates("Rows in a second", (now) => labelsOf(now, ROWS_IN).map((wire) => [wireName(wire), keyOf(ROWS_IN, wire)])),
  rates("Statements a second", (now) => [
    ...labelsOf(now, STARTED).map((wire) => [wireName(wire), keyOf(STARTED, wire)] as const),
    ...labelsOf(now, FAILED).map((wire) => [`failed, ${wireName(wire)}`, keyOf(FAILED, wire)] as const),
  ]),
  quantiles("Latency of statements", [
    ["p50", LATENCY, 0.5],
    ["p95", LATENCY, 0.95],
    ["p99", LATENCY, 0.99],
    ["sync of the log, p95", SYNC, 0.95],
  ]),
  gauges("Memory", [["resident", RSS], ["shared memory", SHARED], ["JavaScript", HEAP]]),
  gauges("Log since the checkpoint", [["replayed at a start", LOG]]),
  gauges("Free on disk", [["free", DISK]]),
];

/** Series that have never changed are omitted, unless all are. */
function rates(title: string, seriesOf: (now: Reading) => (readonly [name: string, key: string])[]): LiveChart {
  return {
    title,
    unit: { textOf: countText },
    dataOf(readings) {
      const all = readings.length === 0 ? [] : seriesOf(readings.at(-1)!);
      const moved = all.filter(([, key]) => readings.some(({ values }) => (values.get(key) ?? 0) > 0));
      const shown = moved.length === 0 ? all.slice(0, 1) : moved;
      return seriesFrom(
        readings,
        shown.map(([name, key]) => ({ name, of: (now, before) => rateOf(before, now, key) })),
      );
    },
  };
}

function quantiles(title: string, series: readonly [name: string, metric: string, share: number][]): LiveChart {
  return {
    title,
    unit: { textOf: secondsText },
    dataOf: (readings) =>
      seriesFrom(
        readings,
        series.map(([name, metric, share]) => ({
          name,
          of: (now, _before, at) => quantileOf(readings[Math.max(0, at - QUANTILE_PERIODS)], now, metric, share),
        })),
      ),
  };
}

function gauges(title: string, series: readonly [name: string, metric: string][]): LiveChart {
  return {
    title,
    unit: { textOf: bytesText, isBinary: true },
    dataOf: (readings) =>
      seriesFrom(
        readings,
        series.map(([name, metric]) => ({ name, of: (now) => now.values.get(keyOf(metric)) ?? null })),
      ),
  };
}

interface Made {
  name: string;
  of(now: Reading, before: Reading | undefined, at: number): number | null;
}

/** If readings are missing, a point without values interrupts the lines. */
function seriesFrom(readings: readonly Reading[], made: readonly Made[]): ChartData {
  const x: number[] = [], series = made.map(({ name, of }) => ({ name, values: [] as (number | null)[], of }));
  readings.forEach((now, at) => {
    const before = readings[at - 1], isGap = before !== undefined && now.at - before.at > GAP_MS;
    if (isGap) {
      x.push(before.at + 1);
      for (const one of series) one.values.push(null);
    }
    x.push(now.at);
    for (const { values, of } of series) values.push(of(now, isGap ? undefined : before, at));
  });
  return { x, series: series.map(({ name, values }) => ({ name, values })) };
}

/** The latest values as text. */
export const NUMBERS: readonly { name: string; textOf(readings: readonly Reading[]): string }[] = [
  number("Running for", (now) => durationText(sumOf(now, UPTIME))),
  number("Cores in use", (now, before) => numberText(rateOf(before, now, keyOf(CPU)))),
  number("Query threads busy", (now) => numberText(sumOf(now, BUSY))),
  number("Connections and requests", (now) => numberText(sumOf(now, CONNECTIONS))),
  number("Memory", (now) => sizeText(sumOf(now, RSS))),
  number("Free on disk", (now) => sizeText(sumOf(now, DISK))),
];

function number(name: string, textOf: (now: Reading, before: Reading | undefined) => string) {
  return {
    name,
    textOf: (readings: readonly Reading[]) => readings.length === 0 ? "" : textOf(readings.at(-1)!, readings.at(-2)),
  };
}

const numberText = (value: number | null) => value === null ? "–" : `${+value.toFixed(2)}`;
const sizeText = (value: number | null) => value === null ? "–" : bytesText(value);

export function durationText(seconds: number | null): string {
  if (seconds === null) return "–";
  const units: [string, number][] = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first < 0) return "0 s";
  let rest = Math.floor(seconds);
  return units.slice(first, first + 2).map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return `${count} ${unit}`;
  }).join(" ");
}
