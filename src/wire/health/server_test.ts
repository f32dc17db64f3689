import assert from "node:assert/strict";
import { type HealthOptions, serveHealth } from "./mod.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

async function withServer(
  options: Partial<HealthOptions>,
  test: (connect: () => Promise<Client>) => Promise<void>,
): Promise<void> {
  const errors: unknown[] = [];
  const server = serveHealth({
    hostname: "127.0.0.1",
    port: 0,
    connectionLimit: 4,
    connectionTimeoutMs: 5000,
    queueTimeoutMs: 5000,
    fault: () => undefined,
    onError: (error) => errors.push(error),
    ...options,
  });
  const clients: Client[] = [];
  try {
    await test(async () => {
      const client = new Client(await Deno.connect({ hostname: "127.0.0.1", port: server.port }));
      clients.push(client);
      return client;
    });
  } finally {
    for (const client of clients) client.close();
    await server.close();
  }
  assert.deepEqual(errors, []);
}

class Client {
  #text = "";
  #ended = false;
  readonly #reading: Promise<void>;
  constructor(readonly connection: Deno.Conn) {
    this.#reading = this.#read();
  }
  async #read() {
    const buffer = new Uint8Array(4096);
    try {
      for (;;) {
        const count = await this.connection.read(buffer);
        if (count === null) break;
        this.#text += decoder.decode(buffer.subarray(0, count));
      }
    } catch {
      // closed here or reset there
    }
    this.#ended = true;
  }
  async send(text: string) {
    await this.connection.write(encoder.encode(text));
  }
  /** Returns everything received until `end`, without the date; "" after `patienceMs`. */
  async receive(end: string, patienceMs = 2000): Promise<string> {
    for (const until = Date.now() + patienceMs; Date.now() < until;) {
      if (this.#text.endsWith(end) && this.#text !== "") {
        const text = this.#text.replace(/Date: [^\r]*/, "Date: D");
        this.#text = "";
        return text;
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return "";
  }
  async ended(patienceMs = 2000): Promise<boolean> {
    for (const until = Date.now() + patienceMs; !this.#ended && Date.now() < until;) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return this.#ended;
  }
  close() {
    try {
      this.connection.close();
    } catch {
      // already closed
    }
    return this.#reading;
  }
}

const HEAD =
  "HTTP/1.1 200 OK\r\nServer: Sundial\r\nDate: D\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n" +
  "x-content-type-options: nosniff\r\nx-frame-options: DENY\r\n" +
  "content-security-policy: default-src 'none'; frame-ancestors 'none'\r\n\r\n";
const EMPTY = "0\r\n\r\n";

Deno.test("health: any path by GET and HEAD, byte by byte, several on one connection", async () => {
  await withServer({}, async (connect) => {
    const client = await connect();
    for (
      const request of [
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /metrics?a=1 HTTP/1.1\r\n\r\n",
        "GET * HTTP/1.1\r\n\r\n",
      ]
    ) {
      await client.send(request);
      assert.equal(await client.receive(EMPTY), HEAD + EMPTY, request);
    }
    await client.send("HEAD /any/path HTTP/1.1\r\nHost: x\r\n\r\n");
    assert.equal(await client.receive("\r\n\r\n"), HEAD);
    await client.send("DELETE / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert.match(await client.receive(EMPTY), /^HTTP\/1\.1 405 .*Method DELETE not supported\r\n/s);
  });
});

Deno.test("health: 500 without a body when not healthy; credentials if required; metrics if configured", async () => {
  await withServer({ fault: () => "" }, async (connect) => {
    const client = await connect();
    await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert.equal(await client.receive(EMPTY), HEAD.replace("200 OK", "500 Internal Server Error") + EMPTY);
  });
  await withServer(
    { credentials: { user: "u", password: "p" }, metricsText: () => Promise.resolve("# TYPE x counter\nx 1\n") },
    async (connect) => {
      const client = await connect();
      await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      assert.match(await client.receive(EMPTY), /^HTTP\/1\.1 401 [^]*x-content-type-options: nosniff\r\n/);
      await client.send(`GET /metrics HTTP/1.1\r\nAuthorization: Basic ${btoa("u:p")}\r\n\r\n`);
      assert.match(
        await client.receive(EMPTY),
        /^HTTP\/1\.1 200 .*text\/plain; version=0\.0\.4; charset=utf-8\r\n.*nosniff.*\r\n\r\n.*x 1\n/s,
      );
    },
  );
});

Deno.test("health: a connection above the limit waits and is served when a slot frees", async () => {
  await withServer({ connectionLimit: 2 }, async (connect) => {
    const clients = [await connect(), await connect(), await connect(), await connect()];
    for (const client of clients.slice(0, 2)) {
      await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
      assert.equal(await client.receive(EMPTY), HEAD + EMPTY);
    }
    for (const client of clients.slice(2)) await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert.equal(await clients[2].receive(EMPTY, 200), "");
    clients[0].close();
    assert.equal(await clients[2].receive(EMPTY), HEAD + EMPTY);
    assert.equal(await clients[3].receive(EMPTY, 200), "");
    clients[2].close();
    assert.equal(await clients[3].receive(EMPTY), HEAD + EMPTY);
  });
});

Deno.test("health: idle connections, and connections that wait too long, are closed", async () => {
  await withServer({ connectionLimit: 1, connectionTimeoutMs: 1500, queueTimeoutMs: 300 }, async (connect) => {
    const [idle, waiting] = [await connect(), await connect()];
    assert.ok(await waiting.ended(1000));
    assert.ok(await idle.ended(4000));
  });
});

Deno.test("health: time-outs beyond a timer's range do not expire immediately", async () => {
  const monthMs = 31 * 86_400_000;
  await withServer({ connectionLimit: 1, connectionTimeoutMs: monthMs, queueTimeoutMs: monthMs }, async (connect) => {
    const [first, waiting] = [await connect(), await connect()];
    await waiting.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert.equal(await waiting.ended(200), false);
    first.close();
    assert.equal(await waiting.receive(EMPTY), HEAD + EMPTY);
  });
});

Deno.test("health: anything but HTTP is refused", async () => {
  await withServer({}, async (connect) => {
    const client = await connect();
    await client.send("hello\r\n\r\n");
    assert.match(await client.receive(EMPTY), /^HTTP\/1\.1 400 Bad Request\r\n.*invalid HTTP request line/s);
    assert.ok(await client.ended());
  });
});
