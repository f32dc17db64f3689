/** What rooms count with, and how what is counted is read. */
import type { CounterKey, ReadKey, Wire, WireCounterKey, WireHistogramKey } from "./catalogue.ts";
import type { Histogram, HistogramReading } from "./histogram.ts";

/** A number that only grows. */
export interface Counter {
  readonly value: number;
  inc(count?: number): void;
}

export type Counters = { readonly [K in CounterKey]: Counter };
export type WireMetrics<W extends Wire> =
  & { readonly [K in WireCounterKey<W>]: Counter }
  & { readonly [K in WireHistogramKey<W>]: Histogram };
export type MetricsByWire = { readonly [W in Wire]: WireMetrics<W> };
/** What a wire that runs statements counts of each. */
export type QueryMetrics = WireMetrics<"exec" | "exp" | "pg">;

/** A number, or one by value of the metric's label; of a histogram its ranges. */
export type Reading = number | Record<string, number> | HistogramReading;
export type Reader = () => Reading;

export interface Metrics extends Counters {
  readonly wires: MetricsByWire;
  /** Says where a gauge, or a counter kept elsewhere, is read; the last one told counts. */
  read(key: ReadKey, reader: Reader): void;
  /** The same for all that one function tells, by key; it is called once whenever somebody asks. */
  readAll(source: () => Record<string, Reading>): void;
  /** For threads that must know while main is busy: an i32 at each `HEALTH_WORD`. */
  readonly healthWords: Int32Array;
  /** Prometheus text format 0.0.4. */
  text(): Promise<string>;
}

/** Places in `Metrics.healthWords`. */
export const HEALTH_WORD = {
  unhandledErrors: 0,
  /** 1 while changes are refused, as the disk is full. */
  diskFull: 1,
} as const;
