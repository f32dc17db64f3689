import assert from "node:assert/strict";
import { SECTIONS } from "../../command/settings.ts";
import { configOf } from "../../command/testing.ts";
import { Config } from "../../config/mod.ts";
import { logger } from "../../log/mod.ts";
import { createMetrics } from "../../metrics/mod.ts";
import { startHealth } from "./mod.ts";

/** A client on its own thread: `count` requests on one connection; returns the last status line. */
function clientThread(port: number, count: number): { done: Promise<{ status: string }> } {
  const code = `
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: ${port} });
    const buffer = new Uint8Array(4096);
    let status = "";
    for (let n = 0; n < ${count}; n++) {
      await connection.write(new TextEncoder().encode("GET / HTTP/1.1\\r\\n\\r\\n"));
      let text = "";
      while (!text.endsWith("0\\r\\n\\r\\n")) text += new TextDecoder().decode(buffer.subarray(0, await connection.read(buffer)));
      status = text.slice(0, text.indexOf("\\r\\n"));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    connection.close();
    postMessage({ status });`;
  const worker = new Worker(`data:application/javascript,${encodeURIComponent(code)}`, { type: "module" });
  return {
    done: new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => {
        worker.terminate();
        resolve(data);
      };
      worker.onerror = reject;
    }),
  };
}

const COUNTING_CLIENT = `
  self.onmessage = async ({ data: { port, answers } }) => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port });
    const buffer = new Uint8Array(4096);
    for (;;) {
      await connection.write(new TextEncoder().encode("GET / HTTP/1.1\\r\\n\\r\\n"));
      let text = "";
      while (!text.endsWith("0\\r\\n\\r\\n")) {
        const size = await connection.read(buffer);
        if (size === null) return;
        text += new TextDecoder().decode(buffer.subarray(0, size));
      }
      Atomics.add(answers, 0, 1);
    }
  };`;

/** A client that sends requests on its own thread until `end`, and counts the answers. */
async function countingClient(port: number): Promise<{ answers: Int32Array; end: () => void }> {
  const answers = new Int32Array(new SharedArrayBuffer(4));
  const client = new Worker(`data:application/javascript,${encodeURIComponent(COUNTING_CLIENT)}`, { type: "module" });
  client.postMessage({ port, answers });
  while (Atomics.load(answers, 0) === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  return { answers, end: () => client.terminate() };
}

/** Only if answers do not come. */
const BLOCKED_MS_MAX = 30_000;

const start = (settings: Record<string, string>, metrics = createMetrics()) =>
  startHealth({ hostname: "127.0.0.1", port: 0, config: configOf(settings), metrics, log: logger("http-min-server") });

Deno.test("health thread: answers while main is blocked, and reports unhandled errors", async () => {
  const metrics = createMetrics();
  const server = await start({
    "http.min.worker.count": "1",
    "metrics.enabled": "true",
    "http.pessimistic.health.check.enabled": "true",
  }, metrics);
  try {
    const warm = clientThread(server.port, 3);
    assert.equal((await warm.done).status, "HTTP/1.1 200 OK");
    const { answers, end } = await countingClient(server.port);
    // Main does not come back before these answers: not one of them needs it, however busy the machine is.
    const expected = Atomics.load(answers, 0) + 40, until = performance.now() + BLOCKED_MS_MAX;
    while (performance.now() < until && Atomics.load(answers, 0) < expected);
    assert.ok(Atomics.load(answers, 0) >= expected, `${Atomics.load(answers, 0)} of ${expected} answers`);
    end();
    const text = await (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text();
    assert.match(text, /service_unhandled_errors_total 0\n/);
    metrics.unhandledErrors.inc();
    assert.equal((await clientThread(server.port, 1).done).status, "HTTP/1.1 500 Internal Server Error");
  } finally {
    await server.close();
  }
});

for (const [cores, isOwn] of [[16, false], [17, true]] as const) {
  Deno.test(`health: with ${cores} cores and no http.min.worker.count it ${isOwn ? "has" : "does not have"} its own thread`, async () => {
    const config = new Config({
      sections: SECTIONS,
      root: ".",
      env: {},
      machine: { cores, memoryBytes: 2 ** 32, hostName: "box" },
      readFile: () => "",
    });
    const server = await startHealth({
      hostname: "127.0.0.1",
      port: 0,
      config,
      metrics: createMetrics(),
      log: logger("http-min-server"),
    });
    const { answers, end } = await countingClient(server.port);
    // Main stays blocked while the client sends requests.
    const before = Atomics.load(answers, 0);
    const until = performance.now() + (isOwn ? BLOCKED_MS_MAX : 300);
    while (performance.now() < until && Atomics.load(answers, 0) < before + 3);
    assert.equal(Atomics.load(answers, 0) >= before + 3, isOwn);
    end();
    await server.close();
  });
}

Deno.test("health thread: a port in use is an error of the start", async () => {
  const first = await start({});
  try {
    const again = startHealth({
      hostname: "127.0.0.1",
      port: first.port,
      config: configOf({ "http.min.worker.count": "1" }),
      metrics: createMetrics(),
      log: logger("x"),
    });
    await assert.rejects(again, { code: "EADDRINUSE" });
  } finally {
    await first.close();
  }
});

for (const halts of [false, true]) {
  Deno.test(`health thread: haltOnError=${halts}: after an error it ${halts ? "has ended" : "continues"}`, async () => {
    const metrics = createMetrics();
    const failing = { ...metrics, text: () => Promise.reject(new Error("no statistics today")) };
    const server = await start({
      "http.min.worker.count": "1",
      "metrics.enabled": "true",
      "http.min.worker.haltOnError": String(halts),
    }, failing);
    const client = (path: string) => fetch(`http://127.0.0.1:${server.port}${path}`).then((reply) => reply.text());
    await client("/metrics").catch(() => "no answer of a thread that ends");
    for (const until = Date.now() + 5000; metrics.unhandledErrors.value === 0 && Date.now() < until;) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    assert.equal(metrics.unhandledErrors.value, 1);
    if (halts) await assert.rejects(client("/"));
    else assert.equal(await client("/"), "");
    await server.close();
  });
}

Deno.test("health: with metrics off it is always 200", async () => {
  const metrics = createMetrics();
  metrics.unhandledErrors.inc();
  const server = await start({ "http.pessimistic.health.check.enabled": "true" }, metrics);
  assert.equal((await clientThread(server.port, 1).done).status, "HTTP/1.1 200 OK");
  await server.close();
});
