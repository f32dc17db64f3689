/** The minimal HTTP server of a running server, seen by monitors: bytes on a connection. */
import assert from "node:assert/strict";
import { freePort, startServer, type TestServer } from "../server.ts";
import { until } from "../programs.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();
const EMPTY = "0\r\n\r\n";
const answerOf = (status: string) =>
  `HTTP/1.1 ${status}\r\nServer: Sundial\r\nDate: D\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n` +
  "x-content-type-options: nosniff\r\nx-frame-options: DENY\r\n" +
  "content-security-policy: default-src 'none'; frame-ancestors 'none'\r\n\r\n";

class Connection {
  #buffer = new Uint8Array(64 * 1024);
  private constructor(readonly socket: Deno.Conn) {}

  static async to(port: number): Promise<Connection> {
    return new Connection(await Deno.connect({ hostname: "127.0.0.1", port }));
  }

  /** Sends a request and returns what arrives up to `end`, with D for the date; "" if the other side closed. */
  async ask(request: string, end = EMPTY): Promise<string> {
    if (request !== "") await this.socket.write(encoder.encode(request));
    let text = "";
    while (!text.endsWith(end)) {
      const size = await this.socket.read(this.#buffer);
      if (size === null) break;
      text += decoder.decode(this.#buffer.subarray(0, size));
    }
    return text.replace(/Date: [^\r]*/, "Date: D");
  }

  [Symbol.dispose]() {
    try {
      this.socket.close();
    } catch {
      // closed already
    }
  }
}

const get = (path = "/") => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

for (const [title, count] of [["on the main thread", "0"], ["on a thread of its own", "1"]]) {
  Deno.test(`health ${title}: any path, byte by byte; the fifth connection waits; an idle one is closed`, async () => {
    await using server = await startServer({
      env: { SVC_HTTP_MIN_WORKER_COUNT: count, SVC_HTTP_MIN_NET_CONNECTION_TIMEOUT: "1s" },
    });
    const served: Connection[] = [];
    for (const path of ["/", "/metrics", "/any/path?with=parameters", "*"]) {
      const connection = await Connection.to(server.minPort);
      served.push(connection);
      assert.equal(await connection.ask(get(path)), answerOf("200 OK") + EMPTY, path);
      const head = get(path).replace("GET", "HEAD");
      assert.equal(await connection.ask(head, "\r\n\r\n"), answerOf("200 OK"), `HEAD ${path}`);
    }
    {
      using fifth = await Connection.to(server.minPort);
      const answer = fifth.ask(get());
      const early = await Promise.race([answer, new Promise((resolve) => setTimeout(() => resolve("waits"), 200))]);
      assert.equal(early, "waits");
      served[2][Symbol.dispose]();
      assert.equal(await answer, answerOf("200 OK") + EMPTY);
      served[2] = fifth;
      for (const connection of served) assert.equal(await connection.ask(""), "", "closed without a byte");
    }
    for (const connection of served) connection[Symbol.dispose]();
  });

  Deno.test(`health ${title}: 500 after an unhandled error if configured, and never for a client's error`, async () => {
    const env = {
      SVC_HTTP_MIN_WORKER_COUNT: count,
      SVC_DEV_MODE_ENABLED: "true",
      SVC_HTTP_PESSIMISTIC_HEALTH_CHECK_ENABLED: "true",
    };
    const statusAfterCrash = async (server: TestServer) => {
      using connection = await Connection.to(server.minPort);
      assert.notEqual((await server.exec("select nothing from nowhere")).error, undefined);
      assert.equal(await connection.ask(get()), answerOf("200 OK") + EMPTY);
      await server.exec("select simulate_crash('')");
      await until("the log tells of it", () => server.output().includes(" C server-main unhandled error: "));
      return await connection.ask(get());
    };
    await using withMetrics = await startServer({ env: { ...env, SVC_METRICS_ENABLED: "true" } });
    assert.equal(await statusAfterCrash(withMetrics), answerOf("500 Internal Server Error") + EMPTY);
    using metrics = await Connection.to(withMetrics.minPort);
    assert.match(await metrics.ask(get("/metrics")), /\nservice_unhandled_errors_total 1\n/);
    await using without = await startServer({ env });
    assert.equal(await statusAfterCrash(without), answerOf("200 OK") + EMPTY);
  });
}

/** Sorted times in ms of consecutive requests on one connection, until `running` resolves. */
async function times(port: number, running: Promise<unknown>): Promise<number[]> {
  let hasEnded = false;
  running.finally(() => hasEnded = true);
  using connection = await Connection.to(port);
  const timesMs: number[] = [];
  while (!hasEnded) {
    const before = performance.now();
    assert.equal(await connection.ask(get()), answerOf("200 OK") + EMPTY);
    timesMs.push(performance.now() - before);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return timesMs.sort((a, b) => a - b);
}

const busy: [string, (server: TestServer) => Promise<unknown>][] = [
  [
    "every core is busy",
    (server) =>
      Promise.all(
        Array.from({ length: navigator.hardwareConcurrency }, () =>
          server.exec("select sum(a.x * b.x) from long_sequence(3000000) a cross join long_sequence(3000000) b")),
      ),
  ],
  ["the main thread is blocked", (server) => server.exec("select simulate_block(2000)")],
];
for (const [title, load] of busy) {
  Deno.test(`health on its own thread: p99 under 20 ms while ${title}`, async () => {
    await using server = await startServer({
      env: { SVC_HTTP_MIN_WORKER_COUNT: "1", SVC_DEV_MODE_ENABLED: "true", SVC_QUERY_TIMEOUT: "2s" },
    });
    // Other work on the machine may take the core from this test, so one quiet round of three suffices.
    const p99s: number[] = [];
    for (let round = 0; round < 3 && !(p99s.at(-1)! < 20); round++) {
      const timesMs = await times(server.minPort, load(server));
      assert.ok(timesMs.length > 50, `${timesMs.length} answers in 2 s`);
      p99s.push(timesMs[Math.floor(timesMs.length * 0.99)]);
    }
    assert.ok(p99s.at(-1)! < 20, `p99 of ${p99s.map((ms) => ms.toFixed(1)).join(", ")} ms`);
  });
}

Deno.test({ name: "health: the thread is pinned to its core", ignore: Deno.build.os !== "linux" }, async () => {
  await using server = await startServer({
    env: { SVC_HTTP_MIN_WORKER_COUNT: "1", SVC_HTTP_MIN_WORKER_AFFINITY: "0" },
  });
  const tasks = `/proc/${server.process.pid}/task`;
  const pinned = [...Deno.readDirSync(tasks)].filter(({ name }) =>
    /^Cpus_allowed_list:\s*0$/m.test(Deno.readTextFileSync(`${tasks}/${name}/status`))
  );
  assert.equal(pinned.length, 1);
});

Deno.test("health: an affinity without its own thread is a warning", async () => {
  await using server = await startServer({
    env: { SVC_HTTP_MIN_WORKER_COUNT: "0", SVC_HTTP_MIN_WORKER_AFFINITY: "0" },
  });
  await until("the warning", () => server.output().includes("http.min.worker.affinity is ignored: "));
});

const refused: [string, Record<string, string>, RegExp][] = [
  ["more than one thread", { SVC_HTTP_MIN_WORKER_COUNT: "2" }, /http\.min\.worker\.count: found "2", expected .*1/],
  [
    "a core that is not there",
    { SVC_HTTP_MIN_WORKER_COUNT: "1", SVC_HTTP_MIN_WORKER_AFFINITY: "4000" },
    /http\.min\.worker\.affinity: found 4000, expected a core from 0 to \d+/,
  ],
  [
    "an address of no adapter",
    { SVC_HTTP_MIN_BIND_TO: `203.0.113.7:${freePort()}` },
    /http\.min\.bind\.to: no network adapter of this machine has the address 203\.0\.113\.7:\d+/,
  ],
  [
    "a host without an address",
    { SVC_HTTP_MIN_BIND_TO: `nosuch.invalid:${freePort()}` },
    /http\.min\.bind\.to: the host of nosuch\.invalid:\d+ has no address/,
  ],
];
for (const [title, env, message] of refused) {
  Deno.test(`health: ${title} is an error at the start`, () => assert.rejects(startServer({ env }), { message }));
}
