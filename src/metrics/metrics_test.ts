import assert from "node:assert/strict";
import { createMetrics, metricCatalogue } from "./mod.ts";

Deno.test("metrics: every name in blocks of TYPE, sample, HELP", async () => {
  const metrics = createMetrics();
  metrics.jsonQueries.inc();
  metrics.jsonQueries.inc(2);
  metrics.unhandledErrors.inc();
  let asked = 0;
  metrics.readAll(() => ({ memoryTag: { pool: 5, query: ++asked }, noSuchMetric: 1 }));
  metrics.read("pgConnections", () => 3);
  for (const time of [1, 2]) {
    const blocks = (await metrics.text()).trimEnd().split("\n\n");
    assert.equal(blocks.length, Object.values(metricCatalogue).filter((entry) => entry.kind === "counter").length + 2);
    for (const block of blocks) {
      assert.match(block, /^# TYPE (service_\S+) (counter|gauge)\n(\1(\{tag="\w+"\})? \S+\n)+# HELP \1 .+$/);
    }
    assert.equal(asked, 1 + time);
    const text = blocks.join("\n");
    for (
      const sample of [
        "service_json_queries_total 3",
        "service_unhandled_errors_total 1",
        `service_memory_tag_bytes{tag="query"} ${asked}`,
        "service_pg_wire_connections 3",
      ]
    ) {
      assert.ok(text.includes(`\n${sample}\n`), sample);
    }
  }
  assert.equal(Atomics.load(metrics.unhandledWord, 0), 1);
});

Deno.test("metrics: names are Prometheus names, once each", () => {
  const names = Object.values(metricCatalogue).map((entry) => entry.name);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) {
    assert.match(name, /^[a-z][a-z0-9_]*$/);
    // What promtool objects to.
    assert.doesNotMatch(name, /_(counter|gauge|histogram|summary)(_|$)/);
  }
});
