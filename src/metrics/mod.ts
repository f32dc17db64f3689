/**
 * What the server counts. Rooms add to plain numbers and register what can be read; prom-client puts it into words when
 * somebody asks, and is loaded only then: counting costs an addition, metrics that are off cost nothing at the start.
 */
import { type CounterKey, type GaugeKey, metricCatalogue, type MetricEntry, type MetricKey } from "./catalogue.ts";

export { type CounterKey, type GaugeKey, metricCatalogue, type MetricKey } from "./catalogue.ts";

export const METRIC_PREFIX = "service_";

/** One that only grows. */
export interface Counter {
  readonly value: number;
  inc(count?: number): void;
}

export type Counters = { readonly [K in CounterKey]: Counter };
/** A number, or one by value of the metric's label. */
export type Reader = () => number | Record<string, number>;

export interface Metrics extends Counters {
  /** Says where a gauge, or a counter kept elsewhere, is read; the last one told counts. */
  read(key: GaugeKey | CounterKey, reader: Reader): void;
  /** The same for all that one function tells, by key; it is called once whenever somebody asks. */
  readAll(source: () => Record<string, ReturnType<Reader>>): void;
  /** One i32: unhandled errors, for threads that must know while main is busy. */
  readonly unhandledWord: Int32Array;
  /** Prometheus text format 0.0.4. */
  text(): Promise<string>;
}

export function createMetrics(): Metrics {
  const unhandledWord = new Int32Array(new SharedArrayBuffer(4));
  const readers = new Map<MetricKey, Reader>();
  const refreshers: (() => void)[] = [];
  const counters: Record<string, Counter> = {};
  for (const [key, entry] of Object.entries(metricCatalogue) as [MetricKey, MetricEntry][]) {
    if (entry.kind !== "counter") continue;
    const counter = key === "unhandledErrors" ? sharedCounter(unhandledWord) : plainCounter();
    counters[key] = counter;
    readers.set(key, () => counter.value);
  }
  let exposition: Promise<() => Promise<string>> | undefined;
  return Object.assign(counters as Counters, {
    read: (key: MetricKey, reader: Reader) => void readers.set(key, reader),
    readAll: (source: () => Record<string, ReturnType<Reader>>) => {
      let figures = source();
      refreshers.push(() => figures = source());
      for (const key of Object.keys(figures)) {
        if (Object.hasOwn(metricCatalogue, key)) {
          readers.set(key as MetricKey, () => figures[key]);
        }
      }
    },
    unhandledWord,
    text: async () => {
      for (const refresh of refreshers) refresh();
      return await (await (exposition ??= expose(readers)))();
    },
  });
}

function plainCounter(): Counter {
  let value = 0;
  return {
    get value() {
      return value;
    },
    inc: (count = 1) => void (value += count),
  };
}

function sharedCounter(word: Int32Array): Counter {
  return {
    get value() {
      return Atomics.load(word, 0);
    },
    inc: (count = 1) => void Atomics.add(word, 0, count),
  };
}

async function expose(readers: ReadonlyMap<MetricKey, Reader>): Promise<() => Promise<string>> {
  const { default: prometheus } = await import("prom-client");
  const registry = new prometheus.Registry();
  for (const [key, entry] of Object.entries(metricCatalogue) as [MetricKey, MetricEntry][]) {
    // A gauge that nobody has told how to read says nothing, rather than 0.
    if (!readers.has(key)) continue;
    const options = {
      name: METRIC_PREFIX + entry.name,
      help: entry.help,
      registers: [registry],
      labelNames: entry.label === undefined ? [] : [entry.label],
    };
    const fill = (add: (labels: Record<string, string>, value: number) => void) => {
      const reading = readers.get(key)!();
      if (typeof reading === "number") return add({}, reading);
      for (const [value, count] of Object.entries(reading)) add({ [entry.label ?? "of"]: value }, count);
    };
    if (entry.kind === "counter") {
      new prometheus.Counter({
        ...options,
        collect() {
          this.reset();
          fill((labels, value) => this.inc(labels, value));
        },
      });
    } else {
      new prometheus.Gauge({
        ...options,
        collect() {
          fill((labels, value) => this.set(labels, value));
        },
      });
    }
  }
  return async () => helpLast(await registry.metrics());
}

/**
 * Puts the HELP line of each block behind its samples. Every reader of the format takes it there, and scripts written for
 * QuestDB, which expect `# TYPE name kind` and then the sample, go on working.
 */
function helpLast(text: string): string {
  const blocks = text.trimEnd().split("\n\n").map((block) => {
    const [help, ...rest] = block.split("\n");
    return [...rest, help].join("\n");
  });
  return blocks.join("\n\n") + "\n\n";
}
