import assert from "node:assert/strict";
import { Connection } from "./connection.ts";
import type { ByteConnection } from "../byte-connection.ts";
import { type HttpRequest, type Limits, type Reply, type Server, startServer, textReply } from "./mod.ts";

const LIMITS: Limits = {
  connectionsMax: 256,
  queueTimeoutMs: 5000,
  idleTimeoutMs: 60_000,
  spareIdleMs: 5000,
  headTimeoutMs: 30_000,
  headSizeMax: 65_536,
  bodyTimeoutMs: 30_000,
  bodyRateMin: 1024,
};
const encoder = new TextEncoder();

async function withServer(
  test: (server: Server, errors: unknown[]) => Promise<void>,
  limits: Partial<Limits> = {},
  handle: (request: HttpRequest) => Reply | Promise<Reply> = echo,
): Promise<void> {
  const errors: unknown[] = [];
  const server = startServer({
    hostname: "127.0.0.1",
    port: 0,
    limits: { ...LIMITS, ...limits },
    handle,
    onError: (error) => errors.push(error),
  });
  try {
    await test(server, errors);
  } finally {
    await server.close();
  }
  assert.deepEqual(errors, []);
}

/** Replies with a description of the request. */
async function echo(request: HttpRequest): Promise<Reply> {
  if (request.target === "/pieces") return { status: 200, headers: [], body: pieces(3) };
  if (request.target === "/unread") return textReply(200, "not read");
  const body = new TextDecoder().decode(await request.bytes(1 << 20) ?? encoder.encode("too long"));
  return { status: 200, headers: [], body: encoder.encode(`${request.method} ${request.target} ${body}`) };
}

async function* pieces(count: number) {
  for (let n = 1; n <= count; n++) yield encoder.encode(`piece ${n};`);
}

class Client {
  text = "";
  isOver = false;
  readonly #reading: Promise<void>;
  private constructor(readonly connection: Deno.TcpConn) {
    this.#reading = this.#read();
  }
  static async to(server: Server): Promise<Client> {
    return new Client(await Deno.connect({ hostname: "127.0.0.1", port: server.port }));
  }
  async #read() {
    const buffer = new Uint8Array(65_536);
    for (;;) {
      const count = await this.connection.read(buffer).catch(() => null);
      if (count === null) break;
      this.text += new TextDecoder().decode(buffer.subarray(0, count));
    }
    this.isOver = true;
  }
  async send(text: string | Uint8Array) {
    const bytes = typeof text === "string" ? encoder.encode(text) : text;
    for (let at = 0; at < bytes.length;) at += await this.connection.write(bytes.subarray(at));
  }
  async until(what: RegExp | "over", patienceMs = 5000): Promise<string> {
    for (const end = Date.now() + patienceMs; Date.now() < end; await wait(5)) {
      if (what === "over" ? this.isOver : what.test(this.text)) return this.text;
    }
    throw new Error(`not within ${patienceMs} ms: ${what}; got ${JSON.stringify(this.text)}`);
  }
  [Symbol.dispose]() {
    try {
      this.connection.close();
    } catch {
      // already closed by the server
    }
  }
}

const wait = (timeMs: number) => new Promise((resolve) => setTimeout(resolve, timeMs));

/** Sends bytes and returns everything that the server sends until it closes or falls silent. */
async function say(server: Server, text: string | Uint8Array): Promise<string> {
  using client = await Client.to(server);
  await client.send(text);
  await client.until(/\r\n\r\n/);
  for (let size = -1; size !== client.text.length && !client.isOver;) {
    size = client.text.length;
    await wait(20);
  }
  return client.text;
}

const bodyOf = (reply: string) => reply.slice(reply.indexOf("\r\n\r\n") + 4);
const statusOf = (reply: string) => Number(reply.slice(9, 12));

const taken: [title: string, request: string, body: string][] = [
  ["a request without headers", "GET /a HTTP/1.1\r\n\r\n", "GET /a "],
  ["an empty line before it", "\r\nGET /a HTTP/1.1\r\n\r\n", "GET /a "],
  ["bytes above ASCII in the target, as UTF-8", "GET /é HTTP/1.1\r\n\r\n", "GET /é "],
  ["a length", "POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", "POST /a hello"],
  ["blanks around a value", "POST /a HTTP/1.1\r\ncontent-length: \t5 \t\r\n\r\nhello", "POST /a hello"],
  [
    "chunks, with an extension and a trailer",
    "POST /a HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n3;a=b\r\nhel\r\n02\r\nlo\r\n0\r\nX: y\r\n\r\n",
    "POST /a hello",
  ],
  [
    "an upgrade to HTTP/2, which is not taken",
    "POST /a HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n" +
    "Content-Length: 5\r\n\r\nhello",
    "POST /a hello",
  ],
];

for (const [title, request, body] of taken) {
  Deno.test(`HTTP/1.1 accepts ${title}, whole and byte by byte`, () =>
    withServer(async (server) => {
      assert.equal(bodyOf(await say(server, request)), body);
      using client = await Client.to(server);
      client.connection.setNoDelay();
      for (const byte of encoder.encode(request)) await client.send(Uint8Array.of(byte));
      assert.equal(bodyOf(await client.until(new RegExp(`${body.trim()}`))), body);
    }));
}

const refused: [title: string, request: string, status: number][] = [
  ["no HTTP", "hello\r\n\r\n", 400],
  ["a TLS handshake", "\x16\x03\x01\x02\x00\x01\r\n", 400],
  ["two blanks in the request line", "GET  / HTTP/1.1\r\n\r\n", 400],
  ["a blank after the version", "GET / HTTP/1.1 \r\n\r\n", 400],
  ["HTTP/0.9", "GET /\r\n\r\n", 400],
  ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505],
  ["a bare line feed after the request line", "GET / HTTP/1.1\nHost: x\r\n\r\n", 400],
  ["a bare line feed after a header", "GET / HTTP/1.1\r\nHost: x\n\r\n", 400],
  ["a bare carriage return in a value", "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", 400],
  ["a NUL in a value", "GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", 400],
  ["a folded header", "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400],
  ["a blank before the colon", "GET / HTTP/1.1\r\nA : b\r\n\r\n", 400],
  ["a header without a name", "GET / HTTP/1.1\r\n: b\r\n\r\n", 400],
  ["a header without a colon", "GET / HTTP/1.1\r\nA\r\n\r\n", 400],
  ["two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400],
  ["two lengths", "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na", 400],
  ["a list of lengths", "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\na", 400],
  ["a length with a sign", "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\na", 400],
  ["a length that no number holds", "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\na", 400],
  ["both lengths", "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400],
  ["another coding", "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501],
  ["chunks twice", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501],
  ["chunks of HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400],
  ["a chunk's size with 0x", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n", 400],
  ["a chunk's size with a blank", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\na\r\n0\r\n\r\n", 400],
  ["no chunk's size", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\r\na\r\n0\r\n\r\n", 400],
  [
    "a chunk's line ended by a line feed",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
    400,
  ],
  [
    "a chunk that is longer than its size",
    "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
    400,
  ],
  ["a bare line feed behind the last chunk", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\n", 400],
  ["a huge chunk", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffff\r\n", 400],
  ["a fragment", "GET /a#b HTTP/1.1\r\n\r\n", 400],
  ["a target that is no UTF-8", "GET /\xe9 HTTP/1.1\r\n\r\n", 400],
  ["another expectation", "POST / HTTP/1.1\r\nExpect: tea\r\nContent-Length: 1\r\n\r\na", 417],
  ["a long request line", `GET /${"a".repeat(70_000)} HTTP/1.1\r\n\r\n`, 414],
  ["a long header", `GET / HTTP/1.1\r\nA: ${"a".repeat(70_000)}\r\n\r\n`, 431],
];

for (const [title, request, status] of refused) {
  Deno.test(`HTTP/1.1 refuses ${title} with a message and closes the connection`, () =>
    withServer(async (server) => {
      using client = await Client.to(server);
      await client.send(Uint8Array.from(request, (character) => character.charCodeAt(0))).catch(() => {});
      const reply = await client.until("over");
      assert.equal(statusOf(reply), status, reply);
      assert.match(reply, /\r\nConnection: close\r\n/);
    }));
}

Deno.test("HTTP/1.1 answers pipelined requests in order, and those of HTTP/1.0 with a length", () =>
  withServer(async (server) => {
    using client = await Client.to(server);
    await client.send(
      "GET /1 HTTP/1.1\r\n\r\nPOST /2 HTTP/1.1\r\nContent-Length: 2\r\n\r\nabGET /pieces HTTP/1.1\r\n\r\n" +
        "POST /unread HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /5 HTTP/1.1\r\nConnection: close\r\n\r\n",
    );
    const bodies = [...(await client.until("over")).matchAll(/\r\n\r\n(?!HTTP)(.*?)(?=HTTP\/1\.1|$)/gs)].map((
      [, body],
    ) => body);
    assert.deepEqual(bodies, [
      "GET /1 ",
      "POST /2 ab",
      "8\r\npiece 1;\r\n8\r\npiece 2;\r\n8\r\npiece 3;\r\n0\r\n\r\n",
      "a\r\nnot read\r\n\r\n0\r\n\r\n",
      "GET /5 ",
    ]);
    const old = await say(server, "GET /pieces HTTP/1.0\r\n\r\n");
    assert.doesNotMatch(old, /chunked/);
    assert.equal(bodyOf(old), "piece 1;piece 2;piece 3;");
    const kept = await say(server, "GET /unread HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /a HTTP/1.0\r\n\r\n");
    assert.match(kept, /Content-Length: 10\r\n.*Connection: keep-alive\r\n.*Connection: close\r\n.*GET \/a $/s);
  }));

/**
 * Runs a connection over these requests, while each look at the clock takes `msALook`. The handler's replies have `size` bytes,
 * after a while for /slow.
 */
async function writesOf(
  requests: string,
  { size = 2, msALook = 0 } = {},
): Promise<{ sizes: number[]; text: string }> {
  let nowMs = 0;
  using _clock = mocked(performance, "now", () => nowMs += msALook);
  const writes: Uint8Array[] = [];
  let rest: Uint8Array | null = encoder.encode(requests);
  const connection: ByteConnection = {
    remoteAddr: { transport: "tcp", hostname: "127.0.0.1", port: 1 },
    read(into) {
      if (rest === null) return Promise.resolve(null);
      const count = Math.min(into.length, rest.length);
      into.set(rest.subarray(0, count));
      rest = count === rest.length ? null : rest.subarray(count);
      return Promise.resolve(count);
    },
    write(bytes) {
      writes.push(bytes.slice());
      return Promise.resolve(bytes.length);
    },
    closeWrite: () => Promise.resolve(),
    close() {},
  };
  const body = encoder.encode("x".repeat(size));
  const handle = ({ target }: HttpRequest): Reply | Promise<Reply> => {
    const reply: Reply = { status: 200, headers: [["Target", target]], body: target === "/pieces" ? pieces(2) : body };
    return target === "/slow" ? wait(20).then(() => reply) : reply;
  };
  const onError = (error: unknown) => assert.fail(String(error));
  await new Connection(connection, { hostname: "", port: 0, limits: LIMITS, handle, onError }, false).run();
  return {
    sizes: writes.map(({ length }) => length),
    text: writes.map((bytes) => new TextDecoder().decode(bytes)).join(""),
  };
}

function mocked<T, K extends keyof T>(object: T, name: K, value: T[K]): Disposable {
  const original = object[name];
  object[name] = value;
  return { [Symbol.dispose]: () => void (object[name] = original) };
}

const get = (...targets: string[]) => targets.map((target) => `GET ${target} HTTP/1.1\r\n\r\n`).join("");

Deno.test("HTTP/1.1 writes replies to pipelined requests together, but not after ones that take long", async () => {
  const together = await writesOf(get("/1", "/2", "/3"));
  assert.equal(together.sizes.length, 1);
  assert.deepEqual([...together.text.matchAll(/Target: (.*?)\r/g)].map(([, target]) => target), ["/1", "/2", "/3"]);
  // Earlier replies do not wait for a slow one, for the pieces of a stream, for a body, or for the rest of a request.
  assert.equal((await writesOf(get("/1", "/2", "/slow", "/4"))).sizes.length, 2);
  assert.equal((await writesOf(get("/1", "/pieces"))).sizes.length, 4);
  assert.equal((await writesOf(`${get("/1")}POST /2 HTTP/1.1\r\nContent-Length: 1\r\n\r\na`)).sizes.length, 2);
  assert.equal((await writesOf(`${get("/1", "/2")}GET /3`)).sizes.length, 1);
  assert.match((await writesOf(`${get("/1")}GET nothing\r\n\r\n`)).text, /Target: \/1\r.*400 Bad Request/s);
  const large = await writesOf(get("/1", "/2", "/3"), { size: 50_000 });
  assert.deepEqual(large.sizes.length, 2);
  assert.equal(large.text.match(/x{50000}/g)!.length, 3);
  assert.equal(
    (await writesOf(get("/1", "/2", "/3", "/4"), { msALook: 10 })).sizes.length,
    2,
    "others have their turn",
  );
});

Deno.test("HTTP/1.1 sends 100 Continue only for a body that the handler reads", () =>
  withServer(async (server) => {
    using client = await Client.to(server);
    await client.send("POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert.equal(await client.until(/\r\n\r\n/), "HTTP/1.1 100 Continue\r\n\r\n");
    await client.send("hi");
    await client.until(/POST \/a hi/);
    using other = await Client.to(server);
    await other.send("POST /unread HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    assert.equal(statusOf(await other.until("over")), 200);
  }));

Deno.test("HTTP/1.1 closes connections with slow heads or bodies, idle ones, and those that do not read", () =>
  withServer(
    async (server) => {
      const cases: [title: string, bytes: string, status: number | undefined][] = [
        ["a head", "GET / HTTP/1.1\r\nA: b", 408],
        ["a body", "POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\na", 408],
        ["nothing", "", undefined],
        ["no reading", "GET /flood HTTP/1.1\r\n\r\n", undefined],
      ];
      await Promise.all(cases.map(async ([title, bytes, status]) => {
        if (title === "no reading") {
          const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
          await connection.write(encoder.encode(bytes));
          for (const end = Date.now() + 5000; server.connectionCount() > 0 && Date.now() < end;) await wait(20);
          assert.equal(server.connectionCount(), 0, title);
          return connection.close();
        }
        using client = await Client.to(server);
        await client.send(bytes);
        const drips = setInterval(() => bytes !== "" && client.send("a").catch(() => {}), 100);
        const reply = await client.until("over").finally(() => clearInterval(drips));
        assert.equal(reply === "" ? undefined : statusOf(reply), status, title);
      }));
    },
    { headTimeoutMs: 500, bodyTimeoutMs: 500, idleTimeoutMs: 700 },
    (request) => request.target === "/flood" ? { status: 200, headers: [], body: flood() } : echo(request),
  ));

async function* flood() {
  for (;;) yield new Uint8Array(1 << 20);
}

Deno.test("HTTP/1.1 accepts a slow body above the minimum rate", () =>
  withServer(
    async (server) => {
      // On a busy machine, the body may take longer than the rate allows. Then it is sent again.
      for (let attempt = 0;; attempt++) {
        using client = await Client.to(server);
        const startMs = performance.now();
        await client.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n");
        for (let byte = 0; byte < 10; byte++) {
          await wait(120);
          await client.send("x").catch(() => {});
        }
        const reply = await client.until(/xxxxxxxxxx|^HTTP\/1\.1 408/), tookMs = performance.now() - startMs;
        if (tookMs > 600 + 10 / 5 * 1000 && attempt < 10) continue;
        assert.match(reply, /^HTTP\/1\.1 200/);
        return;
      }
    },
    { bodyTimeoutMs: 600, bodyRateMin: 5 },
  ));

Deno.test("HTTP/1.1 serves others although 600 connections send a byte a second", () =>
  withServer(async (server) => {
    const slow: Client[] = [];
    const drips = setInterval(() => slow.forEach((client) => client.send("a").catch(() => {})), 1000);
    try {
      for (let count = 0; count < 600; count++) {
        const client = await Client.to(server);
        slow.push(client);
        await client.send("GET / HTTP/1.1\r\nA:").catch(() => {});
      }
      for (let round = 0; round < 3; round++) {
        using client = await Client.to(server);
        await client.send("GET /in-time HTTP/1.1\r\n\r\n");
        assert.equal(statusOf(await client.until(/\r\n\r\n/, 10_000)), 200);
      }
      await wait(1500);
      const told = slow.filter(({ text }) => /^HTTP\/1\.1 (408|503) /.test(text)).length;
      assert.ok(told > 300, `${told} of 600 were told why`);
      assert.ok(server.connectionCount() <= 256);
    } finally {
      clearInterval(drips);
      for (const client of slow) client[Symbol.dispose]();
    }
  }));

Deno.test("HTTP/1.1 refuses a connection that got no slot in time with 503, and serves one that did", () =>
  withServer(
    async (server) => {
      using first = await Client.to(server);
      await first.send("GET /slow HTTP/1.1\r\n\r\n");
      await wait(50);
      using second = await Client.to(server), third = await Client.to(server);
      await second.send("GET /2 HTTP/1.1\r\n\r\n");
      const refusal = await third.until("over");
      assert.match(refusal, /^HTTP\/1\.1 503 Service Unavailable\r\n.*\r\nRetry-After: 1\r\n/s);
      await first.until(/done/);
      first[Symbol.dispose]();
      assert.match(await second.until("over"), /503/);
      using fourth = await Client.to(server);
      await fourth.send("GET /4 HTTP/1.1\r\n\r\n");
      await fourth.until(/GET \/4 /);
    },
    { connectionsMax: 1, queueTimeoutMs: 300 },
    async (request) => {
      if (request.target === "/slow") await wait(1000);
      return request.target === "/slow" ? textReply(200, "done") : echo(request);
    },
  ));

Deno.test("HTTP/1.1 gives the slot of an idle connection to a waiting one", () =>
  withServer(
    async (server) => {
      using idle = await Client.to(server);
      await idle.send("GET /1 HTTP/1.1\r\n\r\n");
      await idle.until(/GET \/1 /);
      await wait(100);
      using next = await Client.to(server);
      await next.send("GET /2 HTTP/1.1\r\n\r\n");
      await next.until(/GET \/2 /);
      await idle.until("over");
    },
    { connectionsMax: 1, spareIdleMs: 50 },
  ));

Deno.test("HTTP/1.1 aborts the request of a client that disconnects, before its reply and within it", async () => {
  const aborted: string[] = [];
  let returned = 0;
  async function* rows() {
    try {
      for (;;) {
        await wait(10);
        yield encoder.encode("row");
      }
    } finally {
      returned++;
    }
  }
  await withServer(
    async (server) => {
      for (const target of ["/waits", "/rows", "/post"]) {
        const client = await Client.to(server);
        const body = target === "/post" ? "Content-Length: 1\r\n\r\na" : "\r\n";
        await client.send(`${target === "/post" ? "POST" : "GET"} ${target} HTTP/1.1\r\n${body}`);
        if (target === "/rows") await client.until(/row/);
        else await wait(50);
        client[Symbol.dispose]();
      }
      for (const end = Date.now() + 5000; (aborted.length < 3 || returned < 1) && Date.now() < end;) await wait(10);
      assert.deepEqual([aborted.sort(), returned], [["/post", "/rows", "/waits"], 1]);
    },
    {},
    async (request) => {
      await request.bytes(100);
      const gone = new Promise<void>((resolve) =>
        request.signal.addEventListener("abort", () => {
          aborted.push(request.target);
          resolve();
        })
      );
      if (request.target === "/rows") return { status: 200, headers: [], body: rows() };
      await gone;
      return textReply(200, "nobody reads this");
    },
  );
});

Deno.test("HTTP/1.1 answers 500 for a handler that fails, aborts a body that fails, and continues", async () => {
  const errors: unknown[] = [];
  const server = startServer({
    hostname: "127.0.0.1",
    port: 0,
    limits: LIMITS,
    onError: (error) => errors.push((error as Error).message),
    handle({ target }) {
      if (target === "/throws") throw new Error("thrown");
      if (target === "/header") return { status: 200, headers: [["A", "b\r\nc: d"]] };
      return { status: 200, headers: [], body: failing() };
    },
  });
  async function* failing() {
    yield encoder.encode("a piece");
    throw new Error("broken");
  }
  try {
    assert.equal(statusOf(await say(server, "GET /throws HTTP/1.1\r\n\r\n")), 500);
    using client = await Client.to(server);
    await client.send("GET /body HTTP/1.1\r\n\r\n");
    assert.match(await client.until("over"), /7\r\na piece\r\n$/);
    using other = await Client.to(server);
    await other.send("GET /header HTTP/1.1\r\n\r\n");
    assert.equal(await other.until("over"), "");
  } finally {
    await server.close();
  }
  assert.deepEqual(errors.map(String), [
    "thrown",
    "broken",
    "the header A contains a character that is not allowed in headers",
  ]);
});

Deno.test("HTTP/1.1 ends idle connections when it closes, and running requests after their reply", async () => {
  const server = startServer({
    hostname: "127.0.0.1",
    port: 0,
    limits: LIMITS,
    onError: assert.ifError,
    async handle() {
      await wait(300);
      return textReply(200, "done");
    },
  });
  using idle = await Client.to(server), busy = await Client.to(server);
  await busy.send("GET / HTTP/1.1\r\n\r\n");
  await wait(50);
  await server.close();
  assert.match(busy.text, /Connection: close\r\n\r\n6\r\ndone/);
  await idle.until("over");
  await assert.rejects(Client.to(server));
});
