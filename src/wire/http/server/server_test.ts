import assert from "node:assert/strict";
import { endOfHead, parseHead } from "./head.ts";
import { type Reply, serve, type ServerBounds } from "./mod.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

Deno.test("endOfHead() finds the empty line at any cut", () => {
  const cases: [text: string, end: number][] = [
    ["GET / HTTP/1.1\r\nA: b\r\n\r\nrest", 24],
    ["GET / HTTP/1.1\nA: b\n\nrest", 21],
    ["GET / HTTP/1.1\r\n\r\n", 18],
  ];
  for (const [text, end] of cases) {
    for (let size = 0; size <= text.length; size++) {
      assert.equal(endOfHead(bytes(text), 0, size), size < end ? -1 : end, `${size} bytes of ${JSON.stringify(text)}`);
    }
  }
});

Deno.test("parseHead() reads names without case, and joins values of one name", () => {
  assert.deepEqual(parseHead(bytes("GET /exec?query=é HTTP/1.0\r\nHOST: x\r\nA:1\r\na:  2 \r\n\r\n")), {
    method: "GET",
    target: "/exec?query=é",
    minor: 0,
    headers: new Map([["host", "x"], ["a", "1, 2"]]),
  });
});

for (const text of ["hello", "GET", "GET /", "GET / HTTP/2", "GET / HTTP/1.1\r\nA : b", "GET / HTTP/1.1\r\n folded"]) {
  Deno.test(`parseHead() refuses ${JSON.stringify(text)}`, () => {
    assert.equal(parseHead(bytes(`${text}\r\n\r\n`)), undefined);
  });
}

const BOUNDS: ServerBounds = {
  connectionLimit: 8,
  idleTimeoutMs: 60_000,
  queueTimeoutMs: 60_000,
  headSizeMax: 1024,
  receiveSize: 4096,
  sendSize: 4,
};

/** Tells the method, the body and the target; other targets do what they say. */
async function echo(
  request: { method: string; head: { target: string }; readBody(max: number): Promise<Uint8Array | undefined> },
): Promise<Reply> {
  const { target } = request.head;
  if (target === "/unread") return { status: 200, headers: [], body: bytes("ok") };
  if (target === "/fail") throw new Error("a fault");
  if (target === "/stream") {
    return {
      status: 200,
      headers: [],
      body: (async function* () {
        yield bytes("one,");
        yield bytes("two");
      })(),
    };
  }
  const body = await request.readBody(100);
  if (body === undefined) return { status: 413, headers: [], body: bytes("long") };
  return { status: 200, headers: [], body: bytes(new TextDecoder().decode(body) || request.method) };
}

type Script = (client: Deno.TcpConn, open: () => Promise<Deno.TcpConn>, errors: unknown[]) => Promise<void>;

async function withServer(bounds: Partial<ServerBounds>, script: Script): Promise<void> {
  const errors: unknown[] = [];
  const server = serve({
    hostname: "127.0.0.1",
    port: 0,
    config: { ...BOUNDS, ...bounds },
    handle: echo,
    onError: (error) => errors.push(error),
    onClose: () => {},
  });
  const clients: Deno.TcpConn[] = [];
  const open = async () => {
    const client = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
    clients.push(client);
    return client;
  };
  try {
    await script(await open(), open, errors);
  } finally {
    for (const client of clients) client.close();
    await server.close();
  }
}

const send = (client: Deno.TcpConn, text: string) => client.write(bytes(text));

/** Reads until `end` was seen, or to the end of the connection; without the two headers that every reply has. */
async function receive(client: Deno.TcpConn, end: string | undefined = "0\r\n\r\n"): Promise<string> {
  let text = "";
  const buffer = new Uint8Array(4096);
  while (end === undefined || !text.endsWith(end)) {
    const read = await client.read(buffer).catch(() => null);
    if (read === null) break;
    text += new TextDecoder().decode(buffer.subarray(0, read));
  }
  return text.replaceAll(/Server: Sundial\r\nDate: [^\r]*\r\n/g, "");
}

const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\n${more}\r\n`;
const chunked = (...parts: string[]) =>
  `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${
    parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join("")
  }0\r\n\r\n`;

Deno.test("requests on one connection are answered in order, also when they come together or byte by byte", () =>
  withServer({}, async (client) => {
    await send(client, get("/") + get("/") + "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc" + get("/"));
    let text = "";
    while (text.split("HTTP/1.1 200").length < 5) text += await receive(client);
    assert.equal(text, chunked("GET") + chunked("GET") + chunked("abc") + chunked("GET"));
    for (const character of "POST / HTTP/1.1\nContent-Length: 2\n\nxy") await send(client, character);
    assert.equal(await receive(client), chunked("xy"));
  }));

Deno.test("bodies in chunks are put together, and replies are cut into chunks", () =>
  withServer({}, async (client) => {
    await send(client, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    await send(client, "2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n");
    assert.equal(await receive(client), chunked("abcd", "e"));
    await send(client, get("/stream"));
    assert.equal(await receive(client), chunked("one,", "two"));
  }));

Deno.test("a body that waits to be asked for is asked for", () =>
  withServer({}, async (client) => {
    await send(client, "POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert.equal(await receive(client, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    await send(client, "ok");
    assert.equal(await receive(client), chunked("ok"));
  }));

Deno.test("a body that nobody read does not become a request", () =>
  withServer({}, async (client, open) => {
    await send(client, "POST /unread HTTP/1.1\r\nContent-Length: 20\r\n\r\nGET / HTTP/1.1\r\n\r\n  " + get("/"));
    let text = "";
    while (text.split("HTTP/1.1 200").length < 3) text += await receive(client);
    assert.equal(text, chunked("ok") + chunked("GET"));
    const other = await open();
    await send(other, `POST / HTTP/1.1\r\nContent-Length: ${2 ** 30}\r\n\r\nbegin`);
    assert.match(await receive(other), /^HTTP\/1.1 413 [^]*Connection: close\r\n/);
  }));

Deno.test("HTTP/1.0 gets no chunks, and its connection ends unless it is to stay", () =>
  withServer({}, async (client, open) => {
    await send(client, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert.equal(await receive(client, "GET"), "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nGET");
    await send(client, "GET /stream HTTP/1.0\r\n\r\n");
    assert.equal(await receive(client, undefined), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\none,two");
    const other = await open();
    await send(other, get("/", "Connection: close\r\n"));
    assert.match(await receive(other, undefined), /Connection: close\r\n\r\n3\r\nGET\r\n0\r\n\r\n$/);
  }));

Deno.test("what cannot be understood ends the connection, with an answer where there can be one", async () => {
  const cases: [sent: string, answer: RegExp][] = [
    ["hello\r\n\r\n", /^$/],
    [`GET /${"x".repeat(2000)} HTTP/1.1\r\n\r\n`, /^HTTP\/1.1 431 /],
    ["x".repeat(1024), /^HTTP\/1.1 431 /],
    ["POST / HTTP/1.1\r\nContent-Length: 3, 4\r\n\r\nabcd", /^HTTP\/1.1 400 /],
    ["POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", /^HTTP\/1.1 400 /],
    ["POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", /^HTTP\/1.1 400 /],
  ];
  for (const [sent, answer] of cases) {
    await withServer({}, async (client) => {
      await send(client, sent);
      assert.match(await receive(client, undefined), answer, sent.slice(0, 80));
    });
  }
});

Deno.test("a handler's fault is a 500, and the connection stays", () =>
  withServer({}, async (client, _open, errors) => {
    await send(client, get("/fail"));
    assert.match(await receive(client), /^HTTP\/1.1 500 /);
    await send(client, get("/"));
    assert.equal(await receive(client), chunked("GET"));
    assert.equal(errors.length, 1);
  }));

Deno.test("HEAD gets no body", () =>
  withServer({}, async (client) => {
    await send(client, "HEAD / HTTP/1.1\r\n\r\n" + get("/"));
    assert.equal(
      await receive(client),
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked("GET"),
    );
  }));

Deno.test("a connection above the limit is served when another one has closed", () =>
  withServer({ connectionLimit: 1 }, async (first, open) => {
    await send(first, get("/"));
    await receive(first);
    const second = await open();
    await send(second, get("/"));
    const waiting = receive(second);
    const early = await Promise.race([waiting, new Promise((done) => setTimeout(() => done("waits"), 100))]);
    assert.equal(early, "waits");
    await first.closeWrite();
    assert.equal(await waiting, chunked("GET"));
  }));

Deno.test("a connection that waits too long, or says nothing for too long, is closed", () =>
  withServer({ connectionLimit: 1, queueTimeoutMs: 50 }, async (_first, open) => {
    assert.equal(await receive(await open(), undefined), "");
  }).then(() =>
    withServer({ idleTimeoutMs: 50 }, async (client, open) => {
      await send(client, get("/"));
      assert.equal(await receive(client, undefined), chunked("GET"));
      const slow = await open();
      await send(slow, "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc");
      assert.equal(await receive(slow, undefined), "");
    })
  ));
