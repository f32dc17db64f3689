/** The interfaces for counting and for reading what was counted. */
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
/** The counters of wires with statements. */
export type QueryMetrics = WireMetrics<"exec" | "exp" | "pg">;

/** A number, numbers by value of the metric's label, or a histogram. */
export type Reading = number | Record<string, number> | HistogramReading;
export type Reader = () => Reading;

export interface MetricSample {
  /** Includes the prefix. For histograms, also `_bucket`, `_sum` or `_count`. */
  name: string;
  kind: "counter" | "gauge" | "histogram";
  /** The value of its label, if it has one. */
  label?: string;
  /** The upper bound of a histogram's bucket. */
  le?: number;
  value: number;
}

export interface Metrics extends Counters {
  readonly wires: MetricsByWire;
  /**
   * Registers the source of a gauge, or of a counter that is kept elsewhere. A later registration replaces an earlier
   * one.
   */
  read(key: ReadKey, reader: Reader): void;
  /** Registers one function as the source of several metrics, by key. It is called once for each request. */
  readAll(source: () => Record<string, Reading>): void;
  /** For threads that must answer while main is busy: an i32 at each index of `HEALTH_WORD`. */
  readonly healthWords: Int32Array;
  /** Every metric at this moment, in the order of the catalogue. */
  samples(): MetricSample[];
  /** Prometheus text format 0.0.4. */
  text(): Promise<string>;
}

/** Indices in `Metrics.healthWords`. */
export const HEALTH_WORD = {
  unhandledErrors: 0,
  /** 1 while changes are refused because the disk is full. */
  diskFull: 1,
} as const;
