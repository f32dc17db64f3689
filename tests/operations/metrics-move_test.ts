/** Each metric changes when its event happens: one server, one row for each metric. */
import assert from "node:assert/strict";
import { Client } from "pg";
import { metricCatalogue, type MetricEntry, type MetricKey } from "../../src/metrics/mod.ts";
import { until } from "../programs.ts";
import { startServer, type TestServer } from "../server.ts";
import { pgClient } from "../pg-client.ts";

const USER = "someone", PASSWORD = "secret";
const POOL_BYTES = 16 << 20;

/** Actions on the server. */
class Driver {
  constructor(readonly server: TestServer, readonly pg: Client) {}

  get(path: string, parameters: Record<string, string>, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `Basic ${btoa(`${USER}:${PASSWORD}`)}`, ...init.headers };
    return fetch(`${this.server.http}${path}?${new URLSearchParams(parameters)}`, { ...init, headers });
  }

  async http(path: string, query: string, headers: Record<string, string> = {}): Promise<string> {
    return await (await this.get(path, { query }, { headers })).text();
  }

  exec = (query: string) => this.http("/exec", query);

  /** A statement that its time limit ends. */
  slow = (path: string) => this.http(path, SLOW, { "statement-timeout": "100" });

  query = (sql: string) => this.pg.query(sql).then(() => {}, () => {});

  async write(lines: string): Promise<void> {
    await (await this.get("/write", {}, { method: "POST", body: lines })).body?.cancel();
  }

  async lineTcp(lines: string): Promise<void> {
    using connection = await Deno.connect({ hostname: "127.0.0.1", port: this.server.linePort });
    await connection.write(new TextEncoder().encode(lines));
  }

  /** Runs `moved` while `begin`'s query runs or its connection is open, for gauges that fall again afterwards. */
  async while(begin: () => Promise<{ end(): Promise<unknown> }>, moved: () => Promise<unknown>): Promise<void> {
    const held = await begin();
    try {
      await moved();
    } finally {
      await held.end();
      // Its threads notice the end a little later; the next check of a gauge must start at rest.
      await until("no worker is busy", async () => (await scrape(this.server)).get("service_workers_busy") === 0);
    }
  }
}

const SLOW = "select sum(rnd_double()) from long_sequence(1000000000)";
/** The answer is larger than socket buffers, so the query runs until its reader reads. */
const LONG = "select * from big";

/** The groups exceed the memory of a query. */
const MANY_GROUPS =
  "select count(s), max(m) from (select x, count() c, sum(x) s, max(ts) m, min(ts) l from big group by x)";

type Action = (driver: Driver) => Promise<unknown>;
/** For gauges: started before the metric is read, ended afterwards. */
type Held = (driver: Driver) => Promise<{ end(): Promise<unknown> }>;
interface Case {
  key: MetricKey;
  labels?: Record<string, string>;
  /** The action that increases the metric. */
  by?: Action;
  /** The metric is higher while this is held. */
  during?: Held;
  /** For metrics that are only read: the expected value. */
  holds?: (value: number) => boolean;
}

const byWire = (key: MetricKey, actions: Record<string, Action>): Case[] =>
  Object.entries(actions).map(([wire, by]) => ({ key, labels: { wire }, by }));

const one = "select 1", wrong = "select nothing from nowhere";
const ended = {
  exec: (d: Driver) => d.exec(one),
  exp: (d: Driver) => d.http("/exp", one),
  pg: (d: Driver) => d.query(one),
};
let time = 1_700_000_000;
const line = () => `lines,room=attic celsius=3.5 ${++time}000000000\n`;
const inserts = {
  exec: (d: Driver) => d.exec("insert into t (x, ts) values (1, '2024-01-02')"),
  pg: (d: Driver) => d.query("insert into t (x, ts) values (1, '2024-01-02')"),
  line_http: (d: Driver) => d.write(line()),
  line_tcp: (d: Driver) => d.lineTcp(line()),
};
const importFile = async (d: Driver) => {
  const body = new FormData();
  body.append("data", new Blob(["x,ts\n1,2024-01-02T00:00:00.000000Z\n"]), "t.csv");
  const reply = await d.get("/imp", { name: "t" }, { method: "POST", body });
  await reply.body?.cancel();
};
const unauthorized = (path: string, method = "GET"): Action => async (d) => {
  const reply = await fetch(`${d.server.http}${path}?query=select+1`, {
    method,
    body: method === "POST" ? "" : undefined,
  });
  await reply.body?.cancel();
};
/** The wait begins with the fourth wrong password. The right one ends it for the following tests. */
const guesses = (path: string, method = "GET"): Action => async (d) => {
  for (const password of ["a", "b", "c", "d", PASSWORD]) {
    const headers = { authorization: `Basic ${btoa(`${USER}:${password}`)}` };
    const init = { method, headers, body: method === "POST" ? "" : undefined };
    await (await fetch(`${d.server.http}${path}?query=select+1`, init)).body?.cancel();
  }
};
const logIn = (password: string): Action => async ({ server }) => {
  const client = clientOf(server, password);
  await client.connect().then(() => client.end(), () => {});
};
const unread = (path: string): Held => async (d) => {
  const abort = new AbortController();
  const reply = await d.get(path, { query: LONG }, { signal: abort.signal });
  const reader = reply.body!.getReader();
  await reader.read();
  return {
    end: async () => {
      await reader.cancel().catch(() => {});
      abort.abort();
    },
  };
};
/** Its client leaves at the end. */
const slowly: Held = (d) => {
  const abort = new AbortController(), query = "select count() from big a join big b on a.x % 10 = b.x % 10";
  const answer = d.get("/exec", { query }, { signal: abort.signal }).then((reply) => reply.text(), () => "");
  return Promise.resolve({
    end: () => {
      abort.abort();
      return answer;
    },
  });
};

const CASES: Case[] = [
  ...byWire("queriesStarted", ended),
  ...byWire("queriesCompleted", ended),
  ...byWire("queriesCancelled", {
    exec: (d) => d.slow("/exec"),
    exp: (d) => d.slow("/exp"),
    pg: async (d) => {
      await d.query("set statement_timeout = 100");
      await d.query(SLOW);
      await d.query("set statement_timeout = 0");
    },
  }),
  // The client leaves in the middle of the rows.
  ...byWire("queriesCancelled", {
    exec: async (d) => await (await unread("/exec")(d)).end(),
    exp: async (d) => await (await unread("/exp")(d)).end(),
  }),
  ...byWire("queriesFailed", {
    exec: (d) => d.exec(wrong),
    exp: (d) => d.http("/exp", wrong),
    pg: (d) => d.query(wrong),
  }),
  ...byWire("querySeconds", ended),
  ...byWire("rowsIn", { ...inserts, imp: importFile }),
  ...byWire("bytesIn", { ...ended, imp: importFile, line_http: inserts.line_http, line_tcp: inserts.line_tcp }),
  ...byWire("rowsOut", ended),
  ...byWire("bytesOut", ended),
  ...byWire("lineErrors", { line_http: (d) => d.write("no line\n"), line_tcp: (d) => d.lineTcp("no line\n") }),
  ...byWire("authenticationsSucceeded", {
    ...ended,
    imp: importFile,
    pg: logIn("quest"),
    line_http: inserts.line_http,
  }),
  ...byWire("authenticationsFailed", {
    exec: unauthorized("/exec"),
    exp: unauthorized("/exp"),
    imp: unauthorized("/imp", "POST"),
    pg: logIn("guess"),
    line_http: unauthorized("/write", "POST"),
  }),
  ...byWire("authenticationsDelayed", {
    exec: guesses("/exec"),
    exp: guesses("/exp"),
    imp: guesses("/imp", "POST"),
    pg: async (d) => {
      for (let count = 0; count < 4; count++) await logIn(`guess ${count}`)(d);
    },
    line_http: guesses("/write", "POST"),
  }),
  { key: "connections", labels: { wire: "exec" }, during: unread("/exec") },
  { key: "connections", labels: { wire: "exp" }, during: unread("/exp") },
  {
    key: "connections",
    labels: { wire: "pg" },
    during: async ({ server }) => {
      const client = clientOf(server);
      await client.connect();
      return client;
    },
  },
  {
    key: "connections",
    labels: { wire: "line_http" },
    during: async ({ server }) => {
      // An incomplete body.
      const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.httpPort });
      const head = `POST /write HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ${
        btoa(`${USER}:${PASSWORD}`)
      }\r\nContent-Length: 100\r\n\r\n`;
      await connection.write(new TextEncoder().encode(head));
      return { end: () => Promise.resolve(connection.close()) };
    },
  },
  {
    key: "connections",
    labels: { wire: "line_tcp" },
    during: async ({ server }) => {
      const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.linePort });
      return { end: () => Promise.resolve(connection.close()) };
    },
  },
  // tests/sign-on has an identity provider, which moves these.
  { key: "signOns", labels: { outcome: "accepted" }, holds: (count) => count === 0 },
  { key: "signOnCacheHits", holds: (count) => count === 0 },
  { key: "signOnsCached", holds: (count) => count === 0 },
  { key: "signOnCacheAge", holds: (seconds) => seconds === 0 },
  { key: "providerRequests", labels: { outcome: "failed" }, holds: (count) => count === 0 },
  { key: "providerSeconds", holds: (count) => count === 0 },
  { key: "httpRequests", labels: { route: "exec" }, by: ended.exec },
  { key: "jsonQueries", by: ended.exec },
  { key: "jsonQueriesCompleted", by: ended.exec },
  { key: "pgQueries", by: ended.pg },
  { key: "pgQueriesCompleted", by: ended.pg },
  { key: "queryErrors", by: (d) => d.exec(wrong) },
  { key: "unhandledErrors", by: (d) => d.exec("select simulate_crash('for the metrics')") },
  { key: "statementsCached", by: (d) => d.exec(`select x s${++time} from long_sequence(1)`) },
  { key: "longStatements", by: (d) => d.exec(`select 1${" + 1".repeat(300)}`) },
  { key: "commits", by: inserts.exec },
  { key: "committedRows", by: inserts.pg },
  { key: "commitGroupSize", by: (d) => d.exec("alter table t add column more long") },
  { key: "fsyncSeconds", by: inserts.exec },
  // A row between stored ones.
  { key: "rewrittenSegments", by: (d) => d.exec("insert into big values (7, '1970-01-01T00:00:00.500000Z')") },
  {
    key: "flushedSegments",
    by: async (d) => {
      await inserts.exec(d);
      await d.exec("checkpoint create");
      await d.exec("checkpoint release");
    },
  },
  // tests/late-rows_test.ts moves this.
  { key: "mergedSegmentsOfHelpers", holds: (count) => count >= 0 },
  // tests/background-encoding_test.ts moves these.
  { key: "flushedSegmentsOfHelpers", holds: (count) => count >= 0 },
  { key: "repackedSegments", holds: (count) => count >= 0 },
  { key: "logBytesSinceCheckpoint", by: inserts.exec },
  // src/storage/wal/follower_test.ts moves it: no statement follows the log.
  { key: "heldLogBytes", holds: (bytes) => bytes === 0 },
  {
    key: "deadExtentBytes",
    by: async (d) => {
      await d.exec("update big set x = 1 where x = 2");
      await d.exec("checkpoint create");
      await d.exec("checkpoint release");
    },
  },
  { key: "pinnedVersions", during: unread("/exec") },
  {
    key: "poolHits",
    by: async (d) => {
      for (let time = 0; time < 2; time++) await d.exec("select sum(x) from small where x % 2 = 0");
    },
  },
  { key: "poolMisses", by: (d) => d.exec("select sum(x) from big where x > 0") },
  {
    key: "poolEvictions",
    // Values that cannot be packed, of twice the size of the pool: how much of other columns is read depends on when they are encoded.
    by: async (d) => {
      await d.exec("create table noise as (select rnd_double() d from long_sequence(4000000))");
      await d.exec("select sum(d) from noise where d > 0.5");
    },
  },
  // The queries before have read more than the pool holds.
  { key: "poolPackedBytes", holds: (bytes) => bytes > 0 },
  { key: "poolPins", during: unread("/exp") },
  { key: "workersBusy", during: slowly },
  { key: "morsels", by: (d) => d.exec("select sum(x) from big where x > 1") },
  { key: "kernelRows", by: (d) => d.exec("select sum(x) from big where x > 1") },
  { key: "kernelsCompiled", by: (d) => d.exec("select sum(x * 7 + x % 11) from big") },
  { key: "kernelsReused", by: (d) => d.exec("select sum(x) from big where x > 1") },
  { key: "memoryUsed", during: slowly },
  { key: "memoryTag", labels: { tag: "tail" }, by: (d) => d.write(Array.from({ length: 20_000 }, line).join("")) },
  { key: "memoryLimit", holds: (bytes) => bytes > 16 << 20 },
  // tests/further-memories_test.ts has a server with some.
  { key: "memoryFurtherUsed", holds: (bytes) => bytes >= 0 },
  { key: "memoryFurtherLimit", holds: (bytes) => bytes >= 0 },
  // tests/spill_test.ts reads it while a query runs.
  { key: "spillSize", holds: (bytes) => bytes === 0 },
  { key: "spilledBytes", by: (d) => d.exec(MANY_GROUPS) },
  { key: "spilledParts", by: (d) => d.exec(MANY_GROUPS) },
  { key: "memoryRss", holds: (bytes) => bytes > 10e6 },
  { key: "memoryJsHeap", holds: (bytes) => bytes > 1e6 },
  // tests/disk-full_test.ts fills a disk.
  { key: "diskFull", holds: (isFull) => isFull === 0 },
  { key: "diskFreeBytes", holds: (bytes) => bytes > 1e6 },
  { key: "diskSizeBytes", holds: (bytes) => bytes > 1e8 },
  // src/log tests that messages are dropped and counted.
  { key: "logMessagesDropped", holds: (count) => count === 0 },
  { key: "cpuSeconds", by: (d) => d.exec("select sum(x) from big where x > 1") },
  { key: "startTimeSeconds", holds: (seconds) => Math.abs(seconds - Date.now() / 1000) < 600 },
  { key: "uptimeSeconds", by: ended.exec },
  { key: "openFiles", holds: (count) => Deno.build.os !== "linux" || count > 5 },
  { key: "openFilesMax", holds: (count) => Deno.build.os !== "linux" || count > 5 },
];

function clientOf(server: TestServer, password = "quest"): Client {
  return pgClient(server, { password });
}

async function scrape(server: TestServer): Promise<Map<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
  return new Map(
    text.split("\n").filter((row) => row.startsWith("service_")).map((row) => {
      const blank = row.lastIndexOf(" ");
      return [row.slice(0, blank), Number(row.slice(blank + 1))];
    }),
  );
}

function seriesOf({ key, labels }: Case): string {
  const { name, kind } = metricCatalogue[key];
  const shown = Object.entries(labels ?? {}).map(([label, value]) => `${label}="${value}"`).join(",");
  return `service_${name}${kind === "histogram" ? "_count" : ""}${shown === "" ? "" : `{${shown}}`}`;
}

Deno.test("each metric changes when its event happens", async (test) => {
  await using server = await startServer({
    env: {
      SVC_METRICS_ENABLED: "true",
      SVC_DEV_MODE_ENABLED: "true",
      SVC_HTTP_USER: USER,
      SVC_HTTP_PASSWORD: PASSWORD,
      SVC_CAIRO_POOL_SIZE: String(POOL_BYTES),
      SVC_CAIRO_QUERY_MEMORY_LIMIT: "80m",
    },
  });
  const pg = clientOf(server);
  await pg.connect();
  const driver = new Driver(server, pg);
  await driver.exec("create table t (x long, ts timestamp) timestamp(ts) partition by day");
  const rows = (count: number) =>
    `as (select x, (x * 1000)::timestamp ts from long_sequence(${count})) timestamp(ts) partition by month`;
  await driver.exec(`create table big ${rows(2_000_000)}`);
  await driver.exec(`create table small ${rows(600_000)}`);
  for (const each of CASES) {
    const series = seriesOf(each);
    await test.step(series, async () => {
      const before = (await scrape(server)).get(series) ?? 0;
      const isHigher = (patienceMs?: number) => {
        const isAbove = async () => ((await scrape(server)).get(series) ?? 0) > before;
        return until(`${series} is above ${before}`, isAbove, patienceMs);
      };
      if (each.holds !== undefined) return assert.ok(each.holds((await scrape(server)).get(series)!), String(before));
      if (each.during !== undefined) {
        // What a held query has at the time depends on where it waits: pages that are not flushed yet need no frames, for example.
        const held = (patienceMs?: number) => driver.while(() => each.during!(driver), () => isHigher(patienceMs));
        return await held(10_000).catch(() => held());
      }
      await each.by!(driver);
      await isHigher();
    });
  }
  await test.step("each statement has ended exactly once", async () => {
    for (const wire of ["exec", "exp", "pg"]) {
      await until(`statements over ${wire} have ended`, async () => {
        const values = await scrape(server);
        const count = (what: string) => values.get(`service_queries_${what}_total{wire="${wire}"}`)!;
        const ended = count("completed") + count("cancelled") + count("failed");
        return ended === count("started") && ended === values.get(`service_query_seconds_count{wire="${wire}"}`);
      });
    }
  });
  await pg.end();
});

Deno.test("the table above has every metric, of each wire", () => {
  const wanted: string[] = (Object.entries(metricCatalogue) as [MetricKey, MetricEntry][]).flatMap(([key, entry]) =>
    entry.wires?.map((wire) => `${key} ${wire}`) ?? [key]
  );
  const shown = new Set(CASES.flatMap(({ key, labels }) => labels?.wire ? [key, `${key} ${labels.wire}`] : [key]));
  assert.deepEqual(wanted.filter((key) => !shown.has(key)), []);
});
