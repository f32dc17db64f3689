/** Common HTTP clients against the real server; their programs are in `tests/clients/http/`. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { FULL } from "../../src/testing.ts";
import { fromFileUrl } from "../paths.ts";
import { NODE_PROBE, succeeds, until } from "../programs.ts";
import { startServer, type TestServer } from "../server.ts";

const PROGRAMS = fromFileUrl("./clients/http/");
assert.ok(Deno.statSync(PROGRAMS).isDirectory);
/** Rows of each client's large result. */
const ROWS = 300_000;
/** Size of the largest result, which curl reads. */
const BYTES_MAX = Number(Deno.env.get("SUNDIAL_BYTES") ?? (FULL ? 2e8 : 5e7));
/** Consecutive requests on a connection. */
const REQUESTS = FULL ? 10_000 : 2_000;

interface Client {
  name: string;
  /** Succeeds if the client is installed. */
  probe: string[];
  /** The base URL, the number of rows and the number of requests are appended. */
  command: string[];
  requests: number;
}

/** The virtual environment created by `.ci/run` has aiohttp and requests. */
const PYTHON = join(
  Deno.env.get("XDG_CACHE_HOME") ?? join(Deno.env.get("HOME") ?? "", ".cache"),
  "sundial-ci/python/bin/python",
);

const CLIENTS: Client[] = [
  { name: "Java's HttpClient", probe: ["java", "-version"], command: ["java", "Client.java"], requests: REQUESTS },
  { name: "Go's net/http", probe: ["go", "version"], command: ["go", "run", "client.go"], requests: REQUESTS },
  { name: "Python's http.client", probe: ["python3", "-V"], command: ["python3", "client.py"], requests: REQUESTS },
  {
    name: "requests",
    probe: [PYTHON, "-c", "import requests"],
    command: [PYTHON, "requests_client.py"],
    requests: 1000,
  },
  { name: "aiohttp", probe: [PYTHON, "-c", "import aiohttp"], command: [PYTHON, "aiohttp_client.py"], requests: 1000 },
  { name: "Node's fetch", probe: NODE_PROBE, command: ["node", "client.mjs"], requests: REQUESTS },
  {
    name: "Deno's fetch",
    probe: ["deno", "-V"],
    command: [Deno.execPath(), "run", "-A", "--no-lock", "client.mjs"],
    requests: REQUESTS,
  },
];

interface Output {
  success: boolean;
  text: string;
}

async function run([program, ...args]: string[], stdin?: string): Promise<Output> {
  const command = new Deno.Command(program, {
    args,
    cwd: PROGRAMS,
    stdin: stdin === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  });
  const child = command.spawn();
  if (stdin !== undefined) await new Blob([stdin]).stream().pipeTo(child.stdin);
  const { success, stdout, stderr } = await child.output();
  const decoder = new TextDecoder();
  return { success, text: decoder.decode(stdout) + decoder.decode(stderr) };
}

async function isInstalled(name: string, probe: string[]): Promise<boolean> {
  if (await succeeds(probe)) return true;
  console.log(`skipped: ${name} is not installed`);
  return false;
}

async function assertNothingRuns(server: TestServer): Promise<void> {
  const running = async () => {
    const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
    return [...text.matchAll(/^service_connections{wire="(?:exec|exp|line_http)"} (\d+)$/gm)].map(([, count]) =>
      Number(count)
    );
  };
  await until("the aborted queries have ended", async () => (await running()).every((count) => count === 0));
  assert.doesNotMatch(server.output(), / [CE] http-server/);
}

async function readByCurl(server: TestServer): Promise<void> {
  const query = (path: string, sql: string) => `${server.http}${path}?nm=true&query=${encodeURIComponent(sql)}`;
  const curl = async (...args: string[]) => (await run(["curl", "-sS", ...args])).text;
  assert.equal(await curl("--http2", query("/exec", "select 1")), '{"dataset":[[1]],"count":1}');
  assert.equal(
    await curl("--http2", "-d", "query=select 1", `${server.http}/exec?nm=true`),
    '{"dataset":[[1]],"count":1}',
  );
  assert.equal(await curl("--http1.0", query("/exec", "select 1")), '{"dataset":[[1]],"count":1}');
  const lines = "curl v=1i\n".repeat(300_000);
  const expecting = ["-H", "Expect: 100-continue", "-w", "%{http_code}", "--data-binary", "@-", `${server.http}/write`];
  assert.equal((await run(["curl", "-sS", ...expecting], lines)).text, "204");
  const chunked = [
    "-H",
    "Transfer-Encoding: chunked",
    "-w",
    "%{http_code}",
    "-T",
    "-",
    "-X",
    "POST",
    `${server.http}/write`,
  ];
  assert.equal((await run(["curl", "-sS", ...chunked], lines)).text, "204");
  assert.match(await curl("-I", `${server.http}/settings`), /^HTTP\/1\.1 200 OK\r\n.*Content-Length: \d{3}/s);
  assert.equal(await curl("-r", "0-0", query("/exp", "select 10")), "10\r\n", "Range is not served");
  for (const size of [1, 1000, 1e6, BYTES_MAX]) {
    const row = "x".repeat(Math.min(size, 1000) - (size > 1 ? 4 : 0)), rows = Math.max(1, size / 1000);
    const sql = size === 1 ? "select 1::int" : `select '${row}' from long_sequence(${rows})`;
    const told = await curl("-o", "/dev/null", "-w", "%{http_code} %{size_download}", query("/exp", sql));
    assert.equal(told, `200 ${size === 1 ? 3 : size}`);
  }
}

const AB: [title: string, options: string[]][] = [
  ["ab", ["-k", "-n", "10000", "-c", "100"]],
  ["ab without keep-alive", ["-n", "2000", "-c", "50"]],
];

async function readByWrk(server: TestServer): Promise<void> {
  const { text: usage } = await run(["wrk", "-v"]).catch(() => ({ text: "" }));
  if (!usage.startsWith("wrk ")) return console.log("skipped: wrk is not installed");
  const { text } = await run(["wrk", "-t1", "-c64", "-d2s", `${server.http}/exec?query=select+1`]);
  assert.match(text, /requests in/, text);
  assert.doesNotMatch(text, /Non-2xx|Socket errors/, text);
}

Deno.test("HTTP clients", async (t) => {
  await using server = await startServer({ env: { SVC_METRICS_ENABLED: "true" } });
  const step = (title: string, use: () => Promise<void>) =>
    t.step(title, async () => {
      await use();
      await assertNothingRuns(server);
    });
  for (const { name, probe, command, requests } of CLIENTS) {
    await step(`${name}: GET, POST, streams, aborts, a hundred at once, ${requests} on a connection`, async () => {
      if (!await isInstalled(name, probe)) return;
      const { success, text } = await run([...command, server.http, String(ROWS), String(requests)]);
      assert.ok(success && text.endsWith("ok\n"), text);
    });
  }
  await step(
    "curl: an upgrade to HTTP/2, pipes, Expect, HEAD, Range, and results of a byte to many megabytes",
    async () => {
      if (await isInstalled("curl", ["curl", "--version"])) await readByCurl(server);
    },
  );
  for (const [title, options] of AB) {
    await step(`${title}: every answer is correct`, async () => {
      if (!await isInstalled("ab", ["ab", "-V"])) return;
      const { text } = await run(["ab", "-q", ...options, `${server.http}/exec?query=select+1`]);
      assert.match(text, /Failed requests: +0\n/, text);
      assert.doesNotMatch(text, /Non-2xx/);
    });
  }
  await step("wrk: every answer is correct", () => readByWrk(server));
});
