/** docs/metrics.md, which `deno task docs` writes. */
import { metricCatalogue, type MetricEntry } from "./catalogue.ts";
import { METRIC_PREFIX } from "./mod.ts";

export function metricsPage(): string {
  const lines = [
    "# Metrics",
    "",
    "<!-- Made by `deno task docs` from src/metrics/catalogue.ts: change it there. -->",
    "",
    "The metrics at `/metrics` of the minimal server, with `metrics.enabled=true`. Counters start at 0 with the process. A",
    "histogram has `_bucket`, `_sum` and `_count`. [Health and metrics](health-and-metrics.md) describes how to read them.",
    "",
    "| Metric | Kind | Meaning |",
    "|---|---|---|",
  ];
  for (const entry of Object.values(metricCatalogue) as MetricEntry[]) {
    const wires = entry.wires === undefined
      ? ""
      : ` By \`wire\`: ${entry.wires.map((wire) => `\`${wire}\``).join(", ")}.`;
    const label = entry.wires === undefined && entry.label !== undefined ? ` By \`${entry.label}\`.` : "";
    lines.push(`| \`${METRIC_PREFIX}${entry.name}\` | ${entry.kind} | ${helpOf(entry)}${wires}${label} |`);
  }
  return lines.join("\n") + "\n";
}

function helpOf({ same, help }: MetricEntry): string {
  if (same === undefined) return help;
  const { name } = (metricCatalogue as Record<string, MetricEntry>)[same.key]!;
  return `\`${METRIC_PREFIX}${name}{wire="${same.wire}"}\` under its QuestDB name.`;
}
