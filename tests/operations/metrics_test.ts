/** /metrics, read by those who will read it: promtool and a Prometheus. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { fromFileUrl } from "../paths.ts";
import { startServer } from "../server.ts";
import { installed, startProgram, until } from "../programs.ts";

const programs = await installed(["promtool", "prometheus"], "metrics");
const withMetrics = { env: { SVC_METRICS_ENABLED: "true" } };

async function promtool(args: string[], input = ""): Promise<{ code: number; output: string }> {
  const child = new Deno.Command("promtool", { args, stdin: "piped", stdout: "piped", stderr: "piped" }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input));
  await writer.close();
  const { code, stdout, stderr } = await child.output();
  return { code, output: new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr) };
}

Deno.test({ name: "promtool check metrics has nothing to say", ignore: !programs.includes("promtool") }, async () => {
  await using server = await startServer(withMetrics);
  await server.exec("create table t (x long, ts timestamp) timestamp(ts) partition by day");
  await server.exec("insert into t values (1, '2024-01-01')");
  await server.exec("select nothing from t");
  const reply = await fetch(`http://127.0.0.1:${server.minPort}/metrics`);
  assert.equal(reply.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  const text = await reply.text();
  assert.match(text, /^service_commits_total [1-9]/m);
  assert.match(text, /^service_query_errors_total 1$/m);
  assert.deepEqual(await promtool(["check", "metrics"], text), { code: 0, output: "" });
});

Deno.test({ name: "a Prometheus scrapes the server", ignore: !programs.includes("prometheus") }, async () => {
  await using server = await startServer(withMetrics);
  await using prometheus = await startProgram("prometheus", (port, directory) => {
    const config = join(directory, "prometheus.yml");
    Deno.writeTextFileSync(
      config,
      `global: { scrape_interval: 200ms, scrape_timeout: 200ms }
scrape_configs:
  - job_name: sundial
    static_configs: [{ targets: ["127.0.0.1:${server.minPort}"] }]
`,
    );
    return [
      `--config.file=${config}`,
      `--storage.tsdb.path=${directory}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ];
  });
  const value = async (query: string) => {
    const reply = await fetch(`http://127.0.0.1:${prometheus.port}/api/v1/query?${new URLSearchParams({ query })}`);
    return Number((await reply.json()).data.result[0]?.value[1]);
  };
  const before = await until("json_queries_total is seen", () => value("service_json_queries_total"));
  for (let n = 0; n < 5; n++) await server.exec("select 1");
  await until("five more queries are seen", async () => await value("service_json_queries_total") === before + 5);
  assert.equal(await value('up{job="sundial"}'), 1);
  assert.equal(await value("service_unhandled_errors_total"), 0);
  assert.ok(await value("service_memory_rss") > 1e6);
  const metadata = await (await fetch(`http://127.0.0.1:${prometheus.port}/api/v1/metadata`)).json();
  assert.equal(metadata.data.service_commits_total[0].type, "counter");
  assert.equal(metadata.data.service_commits_total[0].help, "Commits.");
  assert.equal(metadata.data.service_fsync_seconds[0].type, "histogram");
});

const rules = filesUnder(fromFileUrl("../docs")).filter((path) =>
  /\.ya?ml$/.test(path) && /^groups:/m.test(Deno.readTextFileSync(path))
);
for (const path of rules) {
  const name = `promtool check rules: ${path.slice(path.lastIndexOf("docs"))}`;
  Deno.test({ name, ignore: !programs.includes("promtool") }, async () => {
    const { code, output } = await promtool(["check", "rules", path]);
    assert.equal(code, 0, output);
    const known = new Set((await metricNames()).map((metric) => `service_${metric}`));
    for (const [metric] of Deno.readTextFileSync(path).matchAll(/\bservice_\w+/g)) assert.ok(known.has(metric), metric);
  });
}

async function metricNames(): Promise<string[]> {
  const { metricCatalogue } = await import("../../src/metrics/mod.ts");
  return Object.values(metricCatalogue).map((entry) => entry.name);
}

function filesUnder(directory: string): string[] {
  return [...Deno.readDirSync(directory)].flatMap((entry) => {
    const path = join(directory, entry.name);
    return entry.isDirectory ? filesUnder(path) : [path];
  });
}
