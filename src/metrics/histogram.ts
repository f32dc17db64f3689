/** Histograms of latencies and sizes. */

export interface HistogramReading {
  /** Inclusive upper bounds of the buckets; one more bucket holds the values above the last bound. */
  readonly bounds: readonly number[];
  /** Count of each bucket (not cumulative): one more than bounds. */
  readonly counts: ArrayLike<number>;
  readonly sum: number;
}

/** Seconds: from a cached small query to the longest ones that are allowed. */
export const LATENCY_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

export class Histogram implements HistogramReading {
  readonly counts: Float64Array;
  sum = 0;

  constructor(readonly bounds: readonly number[]) {
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    let range = 0;
    while (range < this.bounds.length && value > this.bounds[range]!) range++;
    this.counts[range]!++;
    this.sum += value;
  }
}

export interface Sample {
  metricName: string;
  labels: Record<string, string>;
  value: number;
}

/** Converts to the text format, in which each bucket includes the lower ones. */
export function histogramSamples(name: string, labels: Record<string, string>, reading: HistogramReading): Sample[] {
  const samples: Sample[] = [];
  let count = 0;
  for (let range = 0; range <= reading.bounds.length; range++) {
    count += reading.counts[range]!;
    const le = range < reading.bounds.length ? String(reading.bounds[range]) : "+Inf";
    samples.push({ metricName: `${name}_bucket`, labels: { le, ...labels }, value: count });
  }
  samples.push({ metricName: `${name}_sum`, labels, value: reading.sum });
  samples.push({ metricName: `${name}_count`, labels, value: count });
  return samples;
}
