/** /metrics, read by promtool and by a Prometheus. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { fromFileUrl } from "../paths.ts";
import { startServer } from "../server.ts";
import { installed, startProgram, until } from "../programs.ts";
import { metricCatalogue, type MetricEntry } from "../../src/metrics/mod.ts";

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

Deno.test({ name: "promtool check metrics reports nothing", ignore: !programs.includes("promtool") }, async () => {
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

/** The command line of a Prometheus that scrapes this port. */
const scraping = (minPort: number) => (port: number, directory: string) => {
  const config = join(directory, "prometheus.yml");
  Deno.writeTextFileSync(
    config,
    `global: { scrape_interval: 200ms, scrape_timeout: 200ms }
scrape_configs:
  - job_name: sundial
    static_configs: [{ targets: ["127.0.0.1:${minPort}"] }]
`,
  );
  return [
    `--config.file=${config}`,
    `--storage.tsdb.path=${directory}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
};

Deno.test({ name: "a Prometheus scrapes the server", ignore: !programs.includes("prometheus") }, async () => {
  await using server = await startServer(withMetrics);
  await using prometheus = await startProgram("prometheus", scraping(server.minPort));
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

const RULES = fromFileUrl("../docs/alert-rules.yml");

Deno.test({ name: "docs/alert-rules.yml: promtool accepts it", ignore: !programs.includes("promtool") }, async () => {
  const { code, output } = await promtool(["check", "rules", RULES]);
  assert.equal(code, 0, output);
});

Deno.test({ name: "docs/alert-rules.yml fires when it should", ignore: !programs.includes("promtool") }, async () => {
  const { code, output } = await promtool(["test", "rules", fromFileUrl("operations/alert-rules.test.yml")]);
  assert.equal(code, 0, output);
});

Deno.test("docs/grafana-dashboard.json keeps the rules of Grafana's dashboard-linter", () => {
  const text = Deno.readTextFileSync(fromFileUrl("../docs/grafana-dashboard.json"));
  const { panels, templating, editable } = JSON.parse(text) as {
    panels: Panel[];
    templating: { list: Record<string, unknown>[] };
    editable: boolean;
  };
  assert.equal(editable, false);
  const [source, ...variables] = templating.list;
  assert.equal(source.label, "Data source");
  assert.deepEqual(
    variables.map(({ name, multi, includeAll, allValue, refresh }) => [name, multi, includeAll, allValue, refresh]),
    [
      ["job", true, true, ".+", 2],
      ["instance", true, true, ".+", 2],
    ],
  );
  const shown = panels.filter(({ type }) => type !== "row");
  assert.deepEqual(shown.filter(({ description = "" }) => description === "").map(({ title }) => title), []);
  for (const { targets } of shown) {
    for (const { expr } of targets!) {
      assert.deepEqual(expr.replaceAll('{job=~"$job", instance=~"$instance"}', "").match(/[{}]/), null, expr);
      assert.doesNotMatch(expr, /\[(?!\$__rate_interval\])/, expr);
    }
  }
});

Deno.test(
  { name: "docs/grafana-dashboard.json: a Prometheus answers each query", ignore: !programs.includes("prometheus") },
  async () => {
    await using server = await startServer(withMetrics);
    await using prometheus = await startProgram("prometheus", scraping(server.minPort));
    const { panels, annotations, templating } = JSON.parse(
      Deno.readTextFileSync(fromFileUrl("../docs/grafana-dashboard.json")),
    ) as {
      panels: Panel[];
      annotations: { list: { expr: string }[] };
      templating: { list: { definition?: string }[] };
    };
    const ask = async (path: string) => {
      const reply = await fetch(`http://127.0.0.1:${prometheus.port}/api/v1/${path}`);
      const { status, error, data } = await reply.json();
      assert.equal(status, "success", `${path}: ${error}`);
      return data;
    };
    /** As Grafana sends it if "All" is selected. */
    const filled = (expr: string) => expr.replaceAll(/\$(job|instance)/g, ".+").replaceAll("$__rate_interval", "5s");
    const results = async (expr: string) =>
      (await ask(`query?${new URLSearchParams({ query: filled(expr) })}`)).result.length as number;
    const silent = async (exprs: string[]) => {
      const found = await Promise.all(exprs.map(results));
      return exprs.filter((_, k) => found[k] === 0);
    };
    await server.exec("create table t (x long, ts timestamp) timestamp(ts) partition by day");
    await server.exec("insert into t values (1, '2024-01-01')");
    const exprs = panels.flatMap(({ targets }) => targets?.map(({ expr }) => expr) ?? []);
    await until("every panel shows something", async () => (await silent(exprs)).length === 0).catch(async (error) => {
      assert.deepEqual(await silent(exprs), [], error.message);
    });
    for (const { expr } of annotations.list) await results(expr);
    for (const { definition } of templating.list) {
      if (definition === undefined) continue;
      const [, selector, label] = /^label_values\((.*), (\w+)\)$/.exec(definition)!;
      const query = new URLSearchParams({ "match[]": filled(selector) });
      assert.equal((await ask(`label/${label}/values?${query}`)).length, 1, definition);
    }
  },
);

interface Panel {
  id: number;
  type: string;
  title: string;
  description?: string;
  gridPos: { x: number; y: number; w: number; h: number };
  datasource?: { uid: string };
  targets?: { refId: string; expr: string; datasource: { uid: string } }[];
}

Deno.test("docs/grafana-dashboard.json has the shape that Grafana imports, and shows every metric", () => {
  const text = Deno.readTextFileSync(fromFileUrl("../docs/grafana-dashboard.json"));
  const dashboard = JSON.parse(text);
  assert.ok(dashboard.schemaVersion >= 36);
  assert.equal(dashboard.templating.list[0].type, "datasource");
  const panels: Panel[] = dashboard.panels;
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  for (const { title, type, gridPos, targets, datasource } of panels) {
    assert.ok(gridPos.x + gridPos.w <= 24 && gridPos.h > 0, title);
    if (type === "row") continue;
    assert.equal(datasource?.uid, "${datasource}", title);
    assert.ok(targets!.length > 0 && targets!.every(({ expr }) => expr !== ""), title);
  }
  const shown = namesIn(text);
  const same = (entry: MetricEntry) => entry.same !== undefined;
  for (const entry of entries.filter((entry) => !same(entry))) assert.ok(shown.has(entry.name), entry.name);
});

Deno.test(
  { name: "docs/grafana-dashboard.json: promtool accepts its queries", ignore: !programs.includes("promtool") },
  async () => {
    const dashboard = JSON.parse(Deno.readTextFileSync(fromFileUrl("../docs/grafana-dashboard.json")));
    const queries = (dashboard.panels as Panel[]).flatMap(({ targets }) => targets?.map(({ expr }) => expr) ?? []);
    const rules = queries.map((expr, k) => ({ record: `query:${k}`, expr: expr.replaceAll("$__rate_interval", "5m") }));
    // A rule file may be JSON, which is YAML.
    const path = await Deno.makeTempFile({ suffix: ".yml" });
    await Deno.writeTextFile(path, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
    const { code, output } = await promtool(["check", "rules", path]);
    await Deno.remove(path);
    assert.equal(code, 0, output);
  },
);

const entries: MetricEntry[] = Object.values(metricCatalogue);

/** Without the prefix, and without the suffixes of histograms. */
function namesIn(text: string): Set<string> {
  const known = new Set(entries.map((entry) => entry.name));
  const names = [...text.matchAll(/\bservice_(\w*[a-z0-9])\b/g)].map(([, name]) =>
    known.has(name) ? name : name.replace(/_(bucket|count|sum)$/, "")
  );
  return new Set(names);
}

for (const file of ["alert-rules.yml", "grafana-dashboard.json", "operations.md"]) {
  Deno.test(`docs/${file} names only existing metrics`, () => {
    const known = new Set(entries.map((entry) => entry.name));
    const named = namesIn(Deno.readTextFileSync(fromFileUrl(`../docs/${file}`)));
    assert.ok(named.size > 0);
    assert.deepEqual([...named].filter((name) => !known.has(name)), []);
  });
}

Deno.test("docs/operations.md says what to do about each alert", () => {
  const rules = Deno.readTextFileSync(RULES).matchAll(/- alert: (\w+)/g);
  const table = Deno.readTextFileSync(fromFileUrl("../docs/operations.md")).matchAll(
    /^\| ((?:Sundial\w+(?:, )?)+) \|/gm,
  );
  const told = [...table].flatMap(([, names]) => names.split(", "));
  assert.deepEqual([...rules].map(([, name]) => name).toSorted(), told.toSorted());
});
