/** TLS on the PostgreSQL wire: slow and hostile clients in the handshake, and refused clients. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type Authority, authority } from "./certificates.ts";
import { until } from "./programs.ts";
import { startServer, type TestServer } from "./server.ts";

const LOG_IN_MS = 1_500;
/** Upper bound for a time-out of the server, on a busy machine. */
const PATIENCE_MS = 20_000;

async function withTls(env: Record<string, string>, test: (server: TestServer, ca: Authority) => Promise<void>) {
  using ca = authority("TLS on the PostgreSQL wire");
  if (ca === undefined) return;
  const cert = join(ca.directory, "server.pem"), key = join(ca.directory, "server.key");
  ca.issue("first", cert, key);
  await using server = await startServer({
    env: {
      SVC_PG_TLS_ENABLED: "true",
      SVC_TLS_CERT_PATH: cert,
      SVC_TLS_PRIVATE_KEY_PATH: key,
      SVC_PG_LOGIN_TIMEOUT: `${LOG_IN_MS}ms`,
      ...env,
    },
  });
  await test(server, ca);
}

const SSL_REQUEST = bytes(8, 80877103), GSS_REQUEST = bytes(8, 80877104);

function bytes(...words: number[]): Uint8Array<ArrayBuffer> {
  const view = new DataView(new ArrayBuffer(words.length * 4));
  words.forEach((word, index) => view.setInt32(index * 4, word));
  return new Uint8Array(view.buffer);
}

function startUp(): Uint8Array {
  const text = new TextEncoder().encode("user\0admin\0database\0qdb\0\0");
  return Uint8Array.of(...bytes(8 + text.length, 3 << 16), ...text);
}

async function write(connection: Deno.Conn, data: Uint8Array): Promise<void> {
  for (let at = 0; at < data.length;) at += await connection.write(data.subarray(at));
}

async function readByte(connection: Deno.Conn): Promise<string> {
  const buffer = new Uint8Array(1);
  return await connection.read(buffer) === null ? "" : String.fromCharCode(buffer[0]);
}

/** Returns everything until the server closes. */
async function readToEnd(connection: Deno.Conn): Promise<string> {
  const buffer = new Uint8Array(4096);
  let text = "";
  const timer = setTimeout(() => connection.close(), PATIENCE_MS);
  try {
    for (;;) {
      const count = await connection.read(buffer);
      if (count === null) return text;
      text += new TextDecoder("latin1").decode(buffer.subarray(0, count));
    }
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionReset) return text;
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

const connect = (server: TestServer) => Deno.connect({ hostname: "127.0.0.1", port: server.pgPort });

/** The first answer after a TLS handshake: R is a request for authentication. */
async function firstAnswer(server: TestServer, ca: Authority): Promise<string> {
  const plain = await connect(server);
  await write(plain, SSL_REQUEST);
  assert.equal(await readByte(plain), "S");
  const caCerts = [Deno.readTextFileSync(ca.path)];
  const connection = await Deno.startTls(plain, { hostname: "localhost", caCerts });
  try {
    await write(connection, startUp());
    return await readByte(connection);
  } finally {
    connection.close();
  }
}

async function afterRequest(connection: Deno.Conn): Promise<void> {
  await write(connection, SSL_REQUEST);
  assert.equal(await readByte(connection), "S");
}

/** The start of an 80-byte ClientHello. */
const HELLO_HEAD = Uint8Array.of(0x16, 3, 1, 0, 80, 1, 0, 0, 76);

const HOSTILE: [title: string, act: (connection: Deno.Conn) => Promise<void>, told: RegExp][] = [
  ["says nothing", async () => {}, /^$/],
  ["says nothing after SSLRequest", afterRequest, /^$/],
  ["stops in the middle of SSLRequest", (connection) => write(connection, SSL_REQUEST.subarray(0, 6)), /^$/],
  ["stops in the middle of its ClientHello", async (connection) => {
    await afterRequest(connection);
    await write(connection, HELLO_HEAD);
  }, /^$/],
  ["begins with half of a ClientHello", (connection) => write(connection, HELLO_HEAD), /^$/],
  ["sends garbage after SSLRequest", async (connection) => {
    await afterRequest(connection);
    await write(connection, crypto.getRandomValues(new Uint8Array(200)));
  }, /^/],
  ["begins with a faulty ClientHello", async (connection) => {
    await write(connection, Uint8Array.of(0x16, 3, 1, 0, 5, ...new TextEncoder().encode("hello")));
  }, /^/],
  ["closes its half in the handshake", async (connection) => {
    await afterRequest(connection);
    await write(connection, HELLO_HEAD);
    await connection.closeWrite();
  }, /^$/],
  ["sends a start-up message behind SSLRequest", async (connection) => {
    await write(connection, Uint8Array.of(...SSL_REQUEST, ...startUp()));
  }, /FATAL.*08P01.* bytes after the request for TLS/],
  ["goes on without TLS after SSLRequest", async (connection) => {
    await afterRequest(connection);
    await write(connection, startUp());
  }, /^/],
  ["asks for GSSAPI over and over", async (connection) => {
    for (let request = 0; request < 10; request++) await write(connection, GSS_REQUEST);
  }, /^N{10}$/],
];

Deno.test("TLS on the PostgreSQL wire: clients that misbehave in the handshake are disconnected and delay nobody", () =>
  withTls({}, async (server, ca) => {
    const connections = await Promise.all(HOSTILE.map(() => connect(server)));
    const ends = HOSTILE.map(async ([title, act, told], index) => {
      await act(connections[index]);
      assert.match(await readToEnd(connections[index]), told, title);
    });
    for (let client = 0; client < 5; client++) assert.equal(await firstAnswer(server, ca), "R");
    await Promise.all(ends);
    connections.forEach((connection) => connection.close());
    await until("it is told", () => /turned away .*no log-in within 1500 ms/.test(server.output()));
    assert.doesNotMatch(server.output(), / [CE] /);
  }));

Deno.test("TLS on the PostgreSQL wire: renegotiation ends only its connection", () =>
  withTls({}, async (server, ca) => {
    const process = new Deno.Command("openssl", {
      args: ["s_client", "-starttls", "postgres", "-tls1_2", "-connect", `localhost:${server.pgPort}`],
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const writer = process.stdin.getWriter();
    await writer.write(new TextEncoder().encode("R\n"));
    const output = process.output();
    assert.equal(await firstAnswer(server, ca), "R");
    const { stderr } = await output;
    assert.match(new TextDecoder().decode(stderr), /no renegotiation/);
    await writer.close().catch(() => {});
    assert.doesNotMatch(server.output(), / [CE] /);
  }));

Deno.test("TLS on the PostgreSQL wire: a start with TLS requires the protocol's name by ALPN, and TLS to be on", () =>
  withTls({}, async (server, ca) => {
    const caCerts = [Deno.readTextFileSync(ca.path)];
    const begin = async (alpnProtocols: string[] | undefined) => {
      using connection = await Deno.connectTls({ hostname: "localhost", port: server.pgPort, caCerts, alpnProtocols });
      await write(connection, startUp());
      return await readByte(connection).catch(() => "");
    };
    assert.equal(await begin(["postgresql"]), "R");
    assert.equal(await begin(undefined), "");
    await assert.rejects(begin(["http/1.1"]));
    await until("it is told", () => server.output().includes('must offer "postgresql" by ALPN'));
  }));

Deno.test("pg.tls.required refuses clients without TLS, but accepts their cancel requests", () =>
  withTls({ SVC_PG_TLS_REQUIRED: "true" }, async (server, ca) => {
    using plain = await connect(server);
    await write(plain, startUp());
    assert.match(await readToEnd(plain), /SFATAL\0.*C28000\0.*pg\.tls\.required/);
    assert.equal(await firstAnswer(server, ca), "R");
    using cancel = await connect(server);
    await write(cancel, bytes(16, 80877102, 1, 1));
    assert.equal(await readToEnd(cancel), "");
  }));

Deno.test("without pg.tls.enabled requests for encryption are declined, and a start with TLS is refused", async () => {
  await using server = await startServer();
  using declined = await connect(server);
  await write(declined, Uint8Array.of(...GSS_REQUEST, ...SSL_REQUEST, ...startUp()));
  assert.equal(await readByte(declined) + await readByte(declined) + await readByte(declined), "NNR");
  using direct = await connect(server);
  await write(direct, HELLO_HEAD);
  assert.match(await readToEnd(direct), /FATAL.*pg\.tls\.enabled/);
});
