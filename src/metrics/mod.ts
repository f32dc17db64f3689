/**
 * The server's metrics. Layers increment plain numbers and register sources. prom-client formats them and is loaded on the first
 * request, so that counting costs one addition and disabled metrics cost nothing at the start.
 */
import { metricCatalogue, type MetricEntry, type MetricKey, WIRES } from "./catalogue.ts";
import type { Counter, Counters, Metrics, MetricSample, MetricsByWire, Reader, Reading } from "./contract.ts";
import { Histogram, type HistogramReading, histogramSamples, LATENCY_BOUNDS, type Sample } from "./histogram.ts";

export { metricCatalogue, type MetricEntry, type MetricKey } from "./catalogue.ts";
export * from "./contract.ts";
export { readDisk, readProcess } from "./process.ts";
export { Histogram, LATENCY_BOUNDS } from "./histogram.ts";
export { QueryCount, type QueryEnd } from "./query-count.ts";

export const METRIC_PREFIX = "service_";

const ENTRIES = Object.entries(metricCatalogue) as [MetricKey, MetricEntry][];

export function createMetrics(): Metrics {
  const healthWords = new Int32Array(new SharedArrayBuffer(8));
  const readers = new Map<MetricKey, MetricReader>();
  const refreshers: (() => void)[] = [];
  const counters: Record<string, Counter> = {};
  const wires = Object.fromEntries(WIRES.map((wire) => [wire, {} as Record<string, Counter | Histogram>]));
  for (const [key, entry] of ENTRIES) {
    if (entry.same !== undefined) {
      const { key: of, wire } = entry.same;
      readers.set(key, () => [[{}, (wires[wire]![of] as Counter).value]]);
    } else if (entry.wires !== undefined) {
      for (const wire of entry.wires) {
        wires[wire]![key] = entry.kind === "histogram" ? new Histogram(LATENCY_BOUNDS) : plainCounter();
      }
      const valueOf = (one: Counter | Histogram) => one instanceof Histogram ? one : one.value;
      readers.set(key, () => entry.wires!.map((wire) => [{ wire }, valueOf(wires[wire]![key]!)]));
    } else if (entry.kind === "counter" && entry.label === undefined) {
      const counter = key === "unhandledErrors" ? sharedCounter(healthWords) : plainCounter();
      counters[key] = counter;
      readers.set(key, () => [[{}, counter.value]]);
    }
  }
  const read = (key: MetricKey, reader: Reader) => {
    const { label = "of" } = metricCatalogue[key] as MetricEntry;
    readers.set(key, () => {
      const reading = reader();
      if (typeof reading === "number" || isHistogram(reading)) return [[{}, reading]];
      return Object.entries(reading).map(([value, count]) => [{ [label]: value }, count]);
    });
  };
  let exposition: Promise<() => Promise<string>> | undefined;
  return Object.assign(counters as Counters, {
    wires: wires as unknown as MetricsByWire,
    read,
    readAll: (source: () => Record<string, Reading>) => {
      let statistics = source();
      refreshers.push(() => statistics = source());
      for (const key of Object.keys(statistics)) {
        if (Object.hasOwn(metricCatalogue, key)) read(key as MetricKey, () => statistics[key]!);
      }
    },
    healthWords,
    samples: () => {
      for (const refresh of refreshers) refresh();
      return ENTRIES.flatMap(([key, entry]) =>
        samplesOf(METRIC_PREFIX + entry.name, readers.get(key)).map((sample) => sampleOf(sample, entry))
      );
    },
    text: async () => {
      for (const refresh of refreshers) refresh();
      return await (await (exposition ??= expose(readers)))();
    },
  });
}

const isHistogram = (reading: Reading): reading is HistogramReading =>
  typeof reading === "object" && "bounds" in reading;

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

type MetricReader = () => Iterable<[Record<string, string>, number | HistogramReading]>;
type Readers = ReadonlyMap<MetricKey, MetricReader>;

/** A metric without a registered source has no value, rather than 0. */
function samplesOf(name: string, read: MetricReader | undefined): Sample[] {
  return [...read?.() ?? []].flatMap(([labels, value]) =>
    typeof value === "number" ? [{ metricName: name, labels, value }] : histogramSamples(name, labels, value)
  );
}

function sampleOf({ metricName, labels: { le, ...labels }, value }: Sample, { kind }: MetricEntry): MetricSample {
  const [label] = Object.values(labels);
  return {
    name: metricName,
    kind,
    label,
    le: le === undefined ? undefined : le === "+Inf" ? Infinity : Number(le),
    value,
  };
}

/** The part of a metric that prom-client uses for output. Values are counted elsewhere, so nothing else is needed. */
interface Registered {
  get(): { name: string; help: string; type: MetricEntry["kind"]; values: Sample[] };
}

async function expose(readers: Readers): Promise<() => Promise<string>> {
  const { default: prometheus } = await import("prom-client");
  const registry = new prometheus.Registry();
  for (const [key, entry] of ENTRIES) {
    const name = METRIC_PREFIX + entry.name;
    const metric: Registered & { name: string } = {
      name,
      get() {
        return { name, help: entry.help, type: entry.kind, values: samplesOf(name, readers.get(key)) };
      },
    };
    registry.registerMetric(metric as unknown as Parameters<typeof registry.registerMetric>[0]);
  }
  return async () => helpLast(await registry.metrics());
}

/**
 * Moves the HELP line of each block after its samples. Every parser of the format accepts that, and scripts written for
 * QuestDB, which expect the sample right after `# TYPE name kind`, continue to work. Blocks without samples are
 * omitted.
 */
function helpLast(text: string): string {
  const blocks = text.trimEnd().split("\n\n").flatMap((block) => {
    const [help, ...rest] = block.split("\n");
    return rest.length === 1 ? [] : [[...rest, help].join("\n")];
  });
  return blocks.join("\n\n") + "\n\n";
}
