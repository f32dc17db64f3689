/**
 * Misbehaving clients: garbage, incomplete requests, clients that do not read or leave. The server keeps answering others, and
 * counts no unhandled error.
 */
import assert from "node:assert/strict";
import fc from "../src/properties.ts";
import { residentBytes } from "./memory.ts";
import { CRITICAL, startServer, type TestServer } from "./server.ts";

const RUNS = Number(Deno.env.get("SUNDIAL_RUNS") ?? 40);
const utf8 = new TextEncoder();
const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The clients here use the PG wire protocol directly, without SCRAM. */
const SETTINGS = { SVC_METRICS_ENABLED: "true", SVC_PG_AUTH_METHOD: "password" };

async function metricsOf(server: TestServer): Promise<Map<string, number>> {
  const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
  return new Map([...text.matchAll(/^(service_\S+) (\S+)$/gm)].map(([, name, value]) => [name, Number(value)]));
}

async function assertWell(server: TestServer): Promise<void> {
  assert.deepEqual((await server.exec("select 1")).dataset, [[1]]);
  assert.equal((await metricsOf(server)).get("service_unhandled_errors_total"), 0, server.output());
  assert.doesNotMatch(server.output(), CRITICAL);
}

/** Sends bytes in pieces, reads for a moment, and disconnects. */
async function send(port: number, pieces: Uint8Array[], readMs = 20): Promise<string> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  let text = "";
  try {
    const reading = (async () => {
      const buffer = new Uint8Array(65_536);
      for (let read; (read = await connection.read(buffer).catch(() => null)) !== null;) {
        text += new TextDecoder().decode(buffer.subarray(0, read));
      }
    })();
    for (const piece of pieces) {
      for (let at = 0; at < piece.length;) at += await connection.write(piece.subarray(at));
      await wait(0);
    }
    await Promise.race([reading, wait(readMs)]);
  } catch {
    // closed by the server
  } finally {
    connection.close();
  }
  return text;
}

const int32 = (value: number) => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
const cstring = (text: string) => [...utf8.encode(text), 0];
const pgMessage = (tag: string, body: number[]) =>
  Uint8Array.from([...utf8.encode(tag), ...int32(body.length + 4), ...body]);
const pgStartUp = (() => {
  const body = [
    ...int32(196608),
    ...cstring("user"),
    ...cstring("admin"),
    ...cstring("database"),
    ...cstring("qdb"),
    0,
  ];
  return Uint8Array.from([...int32(body.length + 4), ...body]);
})();
const pgLogin = [pgStartUp, pgMessage("p", cstring("quest"))];

const pieces = (bytes: fc.Arbitrary<Uint8Array>) => fc.array(bytes, { minLength: 1, maxLength: 4 });
const garbage = fc.uint8Array({ maxLength: 300 });
const bytes = (text: fc.Arbitrary<string>) => text.map((t) => utf8.encode(t));

/** Requests with unexpected contents. */
const httpBytes = pieces(fc.oneof(
  garbage,
  bytes(
    fc.tuple(
      fc.constantFrom("GET", "POST", "PUT", "HEAD", "OPTIONS", "get", "", "\0"),
      fc.constantFrom(
        "/exec?query=select%201",
        "/exp?query=select+1",
        "/write",
        "/imp",
        "/",
        "*",
        "//",
        "/exec?%",
        "/%zz",
        "",
      ),
      fc.constantFrom("HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "http", ""),
      fc.array(
        fc.oneof(
          fc.constantFrom(
            "Host: x",
            "Content-Length: 5",
            "Content-Length: -1",
            "Content-Length: 99999999999999999",
            "Transfer-Encoding: chunked",
            "Expect: 100-continue",
            "Authorization: Basic !!!",
            "Connection: close",
            ": nothing",
            "no colon",
          ),
          fc.string(),
        ),
        { maxLength: 5 },
      ),
      fc.constantFrom("", "hello", "5\r\nhello\r\n0\r\n\r\n", "zz\r\n", "ffffffffffff\r\nx"),
    ).map(([method, path, version, headers, body]) =>
      `${method} ${path} ${version}\r\n${headers.join("\r\n")}\r\n\r\n${body}`
    ),
  ),
));

const pgBytes = fc.tuple(
  fc.boolean(),
  pieces(fc.oneof(
    garbage,
    fc.tuple(fc.constantFrom(..."QPBDECSHXFfdcp"), fc.uint8Array({ maxLength: 60 })).map(([tag, body]) =>
      pgMessage(tag, [...body])
    ),
    fc.tuple(fc.constantFrom(..."QPBDE"), fc.constantFrom(-1, 0, 3, 4, 1 << 20, 0x7fffffff)).map(([tag, size]) =>
      Uint8Array.from([...utf8.encode(tag), ...int32(size)])
    ),
    fc.constantFrom(
      pgMessage("Q", cstring("select 1; selec 2; select x from long_sequence(3)")),
      pgMessage("P", [...cstring("s"), ...cstring("select $1::long + 1"), 0, 0]),
      pgMessage("B", [...cstring(""), ...cstring("s"), 0, 1, 0, 1, 0, 1, 0, 0, 0, 3, 1, 2, 3, 0, 0]),
      pgMessage("E", [...cstring(""), ...int32(0)]),
      pgMessage("S", []),
      Uint8Array.from([...int32(8), ...int32(80877103)]),
      Uint8Array.from([...int32(16), ...int32(80877102), ...int32(1), ...int32(2)]),
    ),
  )),
).map(([loggedIn, rest]) => (loggedIn ? [...pgLogin, ...rest] : rest));

const lineBytes = pieces(fc.oneof(
  garbage,
  bytes(fc.string().map((text) => `${text}\n`)),
  bytes(
    fc.tuple(fc.constantFrom("f1", "f 1", "", "f,2", "tables"), fc.string(), fc.string(), fc.string()).map((
      [table, tag, field, time],
    ) => `${table},t=${tag} v=${field} ${time}\n`),
  ),
  bytes(
    fc.constantFrom(
      `f2 v="`,
      `f2 v="\n\n\n`,
      "f2 v=1i 99999999999999999999\n",
      "f2 v=1i\nf2 v=t\n",
      "f2,=, =\n",
      "\\\n\\ \\",
    ),
  ),
));

Deno.test(`garbage on each wire, ${RUNS} times`, async () => {
  await using server = await startServer({ env: SETTINGS });
  const wires: [string, number, fc.Arbitrary<Uint8Array[]>][] = [
    ["HTTP", server.httpPort, httpBytes],
    ["PG", server.pgPort, pgBytes],
    ["line", server.linePort, lineBytes],
    ["health", server.minPort, httpBytes],
  ];
  for (const [wire, port, arbitrary] of wires) {
    await fc.assert(
      fc.asyncProperty(arbitrary, async (sent) => {
        await send(port, sent);
        if (wire === "HTTP") {
          // Also as a body.
          const reply = await fetch(`${server.http}/write`, {
            method: "POST",
            body: sent[0] as Uint8Array<ArrayBuffer>,
          });
          await reply.body?.cancel();
          assert.notEqual(reply.status, 500);
        }
      }),
      { numRuns: RUNS },
    );
    await assertWell(server);
  }
});

/** A PG connection after log-in. */
class PgClient {
  private constructor(private readonly connection: Deno.Conn) {}

  static async to(server: TestServer): Promise<PgClient> {
    const client = new PgClient(await Deno.connect({ hostname: "127.0.0.1", port: server.pgPort }));
    for (const bytes of pgLogin) await client.write(bytes);
    await client.until("Z");
    return client;
  }

  async write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += await this.connection.write(bytes.subarray(at));
  }

  /** Sends a simple query. */
  async ask(sql: string): Promise<void> {
    const text = utf8.encode(sql);
    const bytes = new Uint8Array(text.length + 6);
    bytes.set([0x51, ...int32(text.length + 5)]);
    bytes.set(text, 5);
    await this.write(bytes);
  }

  /** Reads messages until one of type `last`. Returns the number of each type, and the text of the last error. */
  async until(last: string): Promise<{ counts: Map<string, number>; error?: string }> {
    const counts = new Map<string, number>();
    let error: string | undefined;
    let rest = new Uint8Array(0);
    const buffer = new Uint8Array(1 << 18);
    for (;;) {
      const read = await this.connection.read(buffer);
      if (read === null) throw new Error("the connection was closed");
      const bytes = new Uint8Array(rest.length + read);
      bytes.set(rest);
      bytes.set(buffer.subarray(0, read), rest.length);
      let at = 0;
      for (; at + 5 <= bytes.length;) {
        const size = new DataView(bytes.buffer).getInt32(at + 1);
        if (at + 1 + size > bytes.length) break;
        const type = String.fromCharCode(bytes[at]);
        counts.set(type, (counts.get(type) ?? 0) + 1);
        if (type === "E") error = new TextDecoder().decode(bytes.subarray(at + 5, at + size + 1));
        at += 1 + size;
        if (type === last && at === bytes.length) return { counts, error };
      }
      rest = bytes.slice(at);
    }
  }

  close(): void {
    this.connection.close();
  }
}

/** A request whose answer is not read. */
async function unread(server: TestServer, target: string): Promise<Deno.Conn> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.httpPort });
  await connection.write(utf8.encode(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`));
  return connection;
}

async function drain(connection: Deno.Conn): Promise<number> {
  const buffer = new Uint8Array(1 << 18);
  let size = 0;
  for (let read; (read = await connection.read(buffer)) !== null;) size += read;
  connection.close();
  return size;
}

/** Rows for each reader; SUNDIAL_ROWS=10000000 for a thorough run. */
const ROWS = Number(Deno.env.get("SUNDIAL_ROWS") ?? 1_000_000);

Deno.test(`readers that pause in ${ROWS} rows stall nobody, cost little, and get all rows when they continue`, async () => {
  await using server = await startServer({
    env: { ...SETTINGS, SVC_SHARED_WORKER_COUNT: "2", SVC_QUERY_TIMEOUT: "10m" },
  });
  const query = `select x, x * 0.5 d, 'some text' t, x::timestamp ts from long_sequence(${ROWS})`;
  await server.exec("select count() from long_sequence(2000000) where x % 7 = 3"); // warm up the memory
  const before = residentBytes(server.process.pid);
  const target = (path: string) => `${path}?query=${encodeURIComponent(query)}`;
  const slow: Deno.Conn[] = [], slowPg: PgClient[] = [];
  for (let round = 0; round < 10; round++) {
    if (round < 3) {
      slow.push(await unread(server, target("/exec")), await unread(server, target("/exp")));
      const client = await PgClient.to(server);
      await client.ask(query);
      slowPg.push(client);
    }
    const reply = await server.exec(`select count() from long_sequence(500000) where x % 7 = ${round % 7}`);
    assert.ok(Number(reply.dataset?.[0][0]) > 70_000);
    const lines = Array.from({ length: 500 }, (_, k) => `w v=${k}i ${k + 1}\n`).join("");
    const written = await fetch(`${server.http}/write`, { method: "POST", body: lines });
    assert.equal(written.status, 204);
    await wait(round === 0 ? 1000 : 50);
    if (before === 0) continue;
    const growth = (residentBytes(server.process.pid) - before) / 2 ** 20;
    console.log(`  ${slow.length + slowPg.length} readers: ${growth.toFixed(0)} MiB`);
    if (round === 0) assert.ok(growth < 200, `the server grew by ${growth.toFixed(0)} MiB for three readers`);
  }
  const sizes = await Promise.all(slow.map(drain));
  for (const size of sizes) assert.ok(size > ROWS * 20, `${size} bytes`);
  assert.equal(sizes[0], sizes[2]);
  assert.equal(sizes[1], sizes[3]);
  for (const client of slowPg) {
    assert.equal((await client.until("Z")).counts.get("D"), ROWS);
    client.close();
  }
  await assertWell(server);
});

Deno.test("a PG client that does not read is disconnected after the idle time", async () => {
  await using server = await startServer({ env: { ...SETTINGS, SVC_PG_NET_CONNECTION_TIMEOUT: "1s" } });
  const client = await PgClient.to(server);
  await client.ask(`select x, 'some text' t from long_sequence(5000000)`);
  for (const deadline = Date.now() + 20_000;; await wait(50)) {
    const now = await metricsOf(server);
    if (now.get('service_connections{wire="pg"}') === 0 && now.get('service_memory_tag_bytes{tag="query"}') === 0) {
      break;
    }
    assert.ok(Date.now() < deadline, "it is still there");
  }
  await assert.rejects(() => client.until("Z"));
  client.close();
  await assertWell(server);
});

Deno.test("clients that leave in the middle of a result leave nothing behind", async () => {
  await using server = await startServer({ env: SETTINGS });
  await server.exec(
    "create table t as (select x, 'text ' || x s, timestamp_sequence(0, 1000000) ts from long_sequence(300000)) timestamp(ts) partition by day",
  );
  const query = "select a.x, a.s, b.s t from t a join t b on x";
  const before = await metricsOf(server);
  const kept = ['service_memory_tag_bytes{tag="query"}', 'service_memory_tag_bytes{tag="batch"}', "service_pool_pins"];
  for (let round = 0; round < 3; round++) {
    const readers = await Promise.all(
      ["/exec", "/exp"].flatMap((path) =>
        [1, 2].map(() => unread(server, `${path}?query=${encodeURIComponent(query)}`))
      ),
    );
    const clients = await Promise.all([1, 2].map(() => PgClient.to(server)));
    for (const client of clients) await client.ask(query);
    await wait(round * 100);
    for (const reader of readers) {
      if (round > 0) await reader.read(new Uint8Array(1000));
      reader.close();
    }
    for (const client of clients) client.close();
  }
  for (const deadline = Date.now() + 15_000;;) {
    const now = await metricsOf(server);
    if (kept.every((name) => now.get(name)! <= before.get(name)!)) break;
    if (Date.now() > deadline) {
      assert.fail(kept.map((name) => `${name} ${before.get(name)} → ${now.get(name)}`).join("; "));
    }
    await wait(50);
  }
  await assertWell(server);
});

Deno.test("incomplete requests, and requests that arrive byte by byte, stall nobody", async () => {
  await using server = await startServer({ env: SETTINGS });
  const halves: [number, Uint8Array][] = [
    [server.httpPort, utf8.encode("GET /exec?query=sel")],
    [server.httpPort, utf8.encode("POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nt v=1")],
    [server.httpPort, utf8.encode("POST /write HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nt v=1")],
    [server.pgPort, pgStartUp.subarray(0, 3)],
    [server.pgPort, pgStartUp],
    [server.pgPort, Uint8Array.from([...pgStartUp, ...pgLogin[1], 0x51, 0, 1, 0, 0, 1])],
    [server.linePort, utf8.encode("t v=")],
    [server.minPort, utf8.encode("GET / HT")],
  ];
  const open: Deno.Conn[] = [];
  for (const [port, bytes] of halves) {
    for (let k = 0; k < (port === server.minPort ? 2 : 8); k++) {
      const connection = await Deno.connect({ hostname: "127.0.0.1", port });
      await connection.write(bytes);
      open.push(connection);
    }
  }
  let running = true;
  const trickling = (async () => {
    while (running) {
      for (const connection of open) await connection.write(utf8.encode("1")).catch(() => {});
      await wait(5);
    }
  })();
  for (let round = 0; round < 20; round++) {
    assert.deepEqual((await server.exec("select 1")).dataset, [[1]]);
    const client = await PgClient.to(server);
    await client.ask("select 1");
    assert.equal((await client.until("Z")).counts.get("D"), 1);
    client.close();
  }
  await send(server.linePort, [utf8.encode("whole v=1i 1000000000\n")], 300);
  assert.deepEqual((await server.exec("select v from whole")).dataset, [[1]]);
  running = false;
  await trickling;
  for (const connection of open) connection.close();
  await assertWell(server);
});

Deno.test("huge heads, huge texts and deep nesting are refused or answered, and nobody waits", async () => {
  await using server = await startServer({ env: SETTINGS });
  const status = async (head: string) => (await send(server.httpPort, [utf8.encode(head)], 2000)).slice(9, 12);
  const long = "x".repeat(1 << 20);
  for (const head of [`GET /${long} HTTP/1.1\r\n\r\n`, `GET / HTTP/1.1\r\nA: ${long}\r\n\r\n`, `${long}`]) {
    assert.ok(["431", "414", "400", ""].includes(await status(head)), await status(head));
  }
  const client = await PgClient.to(server);
  const answer = async (sql: string) => {
    await client.ask(sql);
    return await client.until("Z");
  };
  const deep = 10_000;
  const refused = [
    `select ${"(".repeat(deep)}1${")".repeat(deep)}`,
    `select ${"(".repeat(deep)}`,
    `select ${"- ".repeat(deep)}1`,
    `select ${"not ".repeat(deep)}true`,
    `select ${"case when true then ".repeat(deep)}1${" end".repeat(deep)}`,
    `select ${"abs(".repeat(deep)}1${")".repeat(deep)}`,
    `${"select * from (".repeat(deep)}select 1${")".repeat(deep)}`,
    `select 1${" + 1".repeat(1100)}`,
    `select 1${" union all select 1".repeat(1100)}`,
    `select 1 /*${"/*".repeat(1 << 18)}`,
  ];
  for (const sql of refused) {
    const { error } = await answer(sql);
    assert.match(error ?? "", /too deep|too complex|not closed/, sql.slice(0, 40));
  }
  const taken = [
    `select '${long}' t`,
    `select 1 as ${"x".repeat(1 << 16)}`,
    `select 1 /* ${long} */`,
    `select count() from long_sequence(9) where x > 0${" and x > 0".repeat(500)}`,
    `select count() from long_sequence(9) where x in (${Array.from({ length: 100_000 }, (_, k) => k)})`,
  ];
  for (const sql of taken) assert.equal((await answer(sql)).counts.get("D"), 1, sql.slice(0, 40));
  client.close();
  await assertWell(server);
});

Deno.test("a thousand connections on each port", async () => {
  await using server = await startServer({
    env: {
      ...SETTINGS,
      SVC_HTTP_NET_CONNECTION_LIMIT: "1100",
      SVC_PG_NET_CONNECTION_LIMIT: "1100",
      SVC_LINE_TCP_NET_CONNECTION_LIMIT: "1100",
    },
  });
  for (const port of [server.httpPort, server.pgPort, server.linePort]) {
    const open: Deno.Conn[] = [];
    for (let k = 0; k < 1000; k++) open.push(await Deno.connect({ hostname: "127.0.0.1", port }));
    if (port === server.httpPort) {
      const sizes = await Promise.all(open.map(async (connection) => {
        await connection.write(utf8.encode("GET /exec?query=select%201 HTTP/1.1\r\nHost: x\r\n\r\n"));
        return await connection.read(new Uint8Array(10_000));
      }));
      assert.ok(sizes.every((size) => size! > 100));
    } else if (port === server.pgPort) {
      for (const connection of open) await connection.write(pgStartUp);
    } else {
      for (const [k, connection] of open.entries()) await connection.write(utf8.encode(`many v=${k}i ${k + 1}\n`));
    }
    await assertWell(server);
    for (const connection of open) connection.close();
  }
  for (const deadline = Date.now() + 10_000; Date.now() < deadline; await wait(50)) {
    if (Number((await server.exec("select count() from many")).dataset?.[0][0]) === 1000) break;
  }
  assert.deepEqual((await server.exec("select count(), count_distinct(v) from many")).dataset, [[1000, 1000]]);
  await assertWell(server);
});
