import assert from "node:assert/strict";
import { createMetrics, HEALTH_WORD, metricCatalogue, type MetricEntry, QueryCount } from "./mod.ts";

const ENTRIES: MetricEntry[] = Object.values(metricCatalogue);

Deno.test("metrics: every name in blocks of TYPE, samples, HELP", async () => {
  const metrics = createMetrics();
  metrics.queryErrors.inc();
  metrics.queryErrors.inc(2);
  metrics.unhandledErrors.inc();
  let asked = 0;
  metrics.readAll(() => ({ memoryTag: { pool: 5, query: ++asked }, noSuchMetric: 1 }));
  metrics.read("connections", () => ({ pg: 3 }));
  for (const time of [1, 2]) {
    const blocks = (await metrics.text()).trimEnd().split("\n\n");
    const counted = ENTRIES.filter((entry) =>
      entry.kind === "counter" && entry.label === undefined || entry.wires !== undefined
    );
    assert.equal(blocks.length, counted.length + 2);
    for (const block of blocks) {
      assert.match(
        block,
        /^# TYPE (service_\S+) (counter|gauge|histogram)\n(\1(_bucket|_sum|_count)?(\{[^}]+\})? \S+\n)+# HELP \1 .+$/,
      );
    }
    assert.equal(asked, 1 + time);
    const text = blocks.join("\n");
    for (
      const sample of [
        "service_query_errors_total 3",
        "service_unhandled_errors_total 1",
        `service_memory_tag_bytes{tag="query"} ${asked}`,
        'service_connections{wire="pg"} 3',
      ]
    ) {
      assert.ok(text.includes(`\n${sample}\n`), sample);
    }
  }
  assert.equal(Atomics.load(metrics.healthWords, HEALTH_WORD.unhandledErrors), 1);
});

Deno.test("metrics: a statement starts and ends once, is counted by wire, and has QuestDB's names too", async () => {
  const metrics = createMetrics();
  const query = new QueryCount(metrics.wires.exec, performance.now() - 70);
  query.end("queriesCompleted");
  query.end("queriesCancelled");
  const text = await metrics.text();
  for (
    const sample of [
      'service_queries_started_total{wire="exec"} 1',
      'service_queries_started_total{wire="pg"} 0',
      "service_json_queries_total 1",
      'service_queries_completed_total{wire="exec"} 1',
      'service_queries_cancelled_total{wire="exec"} 0',
      'service_query_seconds_bucket{le="0.05",wire="exec"} 0',
      'service_query_seconds_bucket{le="60",wire="exec"} 1',
      'service_query_seconds_bucket{le="+Inf",wire="exec"} 1',
      'service_query_seconds_count{wire="exec"} 1',
    ]
  ) {
    assert.ok(text.includes(`\n${sample}\n`), sample);
  }
});

Deno.test("metrics: names are valid Prometheus names and unique", () => {
  const names = ENTRIES.map((entry) => entry.name);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) {
    assert.match(name, /^[a-z][a-z0-9_]*$/);
    // promtool rejects these suffixes.
    assert.doesNotMatch(name, /_(counter|gauge|histogram|summary)(_|$)/);
  }
});
