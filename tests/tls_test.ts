/** TLS of a running server on all its ports: protocol versions and changes of the certificate. */
import assert from "node:assert/strict";
import { join } from "node:path";
import pg from "pg";
import { randomFrom } from "../src/engine/testing.ts";
import { SEED } from "../src/testing.ts";
import { type Authority, authority } from "./certificates.ts";
import { installed, until } from "./programs.ts";
import { startServer, type TestServer } from "./server.ts";

async function withTls(
  test: (server: TestServer, ca: Authority, files: Files) => Promise<void>,
  env: Record<string, string> = {},
): Promise<void> {
  using ca = authority("TLS");
  if (ca === undefined) return;
  const files = { cert: join(ca.directory, "server.pem"), key: join(ca.directory, "server.key") };
  ca.issue("first", files.cert, files.key);
  await using server = await startServer({
    env: {
      SVC_METRICS_ENABLED: "true",
      SVC_TLS_ENABLED: "true",
      // With its own thread, the minimal server gets the certificate by message.
      SVC_HTTP_MIN_WORKER_COUNT: "1",
      SVC_TLS_CERT_PATH: files.cert,
      SVC_TLS_PRIVATE_KEY_PATH: files.key,
      ...env,
    },
    caPath: ca.path,
  });
  await test(server, ca, files);
}

interface Files {
  cert: string;
  key: string;
}

/** A connection that runs `select N`, and the name in its certificate. */
class TlsClient {
  #rest = "";
  private constructor(private readonly connection: Deno.TlsConn) {}

  static async to(server: TestServer, ca: Authority): Promise<TlsClient> {
    const caCerts = [Deno.readTextFileSync(ca.path)];
    return new TlsClient(await Deno.connectTls({ hostname: "localhost", port: server.httpPort, caCerts }));
  }

  async ask(number: number): Promise<void> {
    const request = `GET /exec?query=select+${number}&nm=true HTTP/1.1\r\nHost: localhost\r\n\r\n`;
    await this.connection.write(new TextEncoder().encode(request));
    const buffer = new Uint8Array(4096);
    while (!this.#rest.endsWith("0\r\n\r\n")) {
      const size = await this.connection.read(buffer);
      if (size === null) throw new Error("the connection was closed");
      this.#rest += new TextDecoder().decode(buffer.subarray(0, size));
    }
    assert.match(this.#rest, new RegExp(`"dataset":\\[\\[${number}\\]\\]`));
    this.#rest = "";
  }

  [Symbol.dispose](): void {
    this.connection.close();
  }
}

/** The name in the certificate for new connections, if openssl finds it valid. */
async function nameOn(port: number, ca: Authority, ...options: string[]): Promise<string> {
  const { stdout, stderr } = await new Deno.Command("openssl", {
    args: ["s_client", "-connect", `localhost:${port}`, "-CAfile", ca.path, "-verify_return_error", ...options],
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  return /subject=CN ?= ?(\w+)/.exec(text)?.[1] ?? text;
}

/** The name in the certificate that all ports present to new connections. */
async function servedName(server: TestServer, ca: Authority, ...options: string[]): Promise<string> {
  const names = await Promise.all([
    nameOn(server.httpPort, ca, ...options),
    nameOn(server.minPort, ca, ...options),
    nameOn(server.linePort, ca, ...options),
    nameOn(server.pgPort, ca, "-starttls", "postgres", ...options),
    nameOn(server.pgPort, ca, "-alpn", "postgresql", ...options),
  ]);
  return [...new Set(names)].join();
}

/** The first bytes of a TLS client. */
async function clientHello(): Promise<Uint8Array> {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  const client = Deno.connectTls({ hostname: "127.0.0.1", port, alpnProtocols: ["postgresql"] }).then((c) =>
    c.handshake()
  );
  using accepted = await listener.accept();
  const buffer = new Uint8Array(4096);
  const size = await accepted.read(buffer);
  await accepted.closeWrite();
  await client.catch(() => {});
  return buffer.slice(0, size!);
}

const word = randomFrom(SEED), random = () => word() / 2 ** 32;

/** Changes or cuts off some bytes after the record's header. */
function damaged(bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  for (let change = random() * 5; change > 0; change--) {
    copy[5 + Math.floor(random() * (copy.length - 5))] = random() * 256;
  }
  return copy.subarray(0, random() < 0.5 ? copy.length : Math.ceil(random() * copy.length));
}

async function reload(server: TestServer, ca: Authority, call = "reload_config"): Promise<boolean> {
  using client = Deno.createHttpClient({ caCerts: [Deno.readTextFileSync(ca.path)] });
  const reply = await fetch(`https://localhost:${server.httpPort}/exec?query=select+${call}()`, { client });
  return (await reply.json()).dataset[0][0];
}

Deno.test("TLS: a new certificate applies to new connections, by reload_config() and automatically; others continue", () =>
  withTls(async (server, ca, files) => {
    using old = await TlsClient.to(server, ca);
    const ssl = { ca: Deno.readTextFileSync(ca.path) };
    const options = { host: "localhost", port: server.pgPort, user: "admin", password: "quest", database: "qdb", ssl };
    const oldOfPg = new pg.Client(options);
    await oldOfPg.connect();
    await old.ask(1);
    assert.equal(await servedName(server, ca), "first");
    ca.issue("second", files.cert, files.key);
    assert.equal(await reload(server, ca), true);
    assert.equal(await reload(server, ca, "reload_tls"), false);
    assert.equal(await servedName(server, ca), "second");
    await old.ask(2);
    ca.issue("third", files.cert, files.key);
    await until("the third certificate is served", async () => await servedName(server, ca) === "third");
    await old.ask(3);
    assert.deepEqual((await oldOfPg.query("select 4 as n")).rows, [{ n: 4 }]);
    await oldOfPg.end();
  }));

Deno.test("TLS: faults of new files are reported with their names, and the old certificate is kept", () =>
  withTls(async (server, ca, { cert, key }) => {
    const other = join(ca.directory, "other");
    const [certText, keyText] = [cert, key].map((path) => Deno.readTextFileSync(path));
    const faults: [title: string, spoil: () => void, told: string][] = [
      ["another key", () => {
        ca.issue("other", other, key);
      }, `the key in ${key} does not belong to the certificate in ${cert}`],
      ["an expired certificate", () => ca.issue("expired", cert, key, -1), `${cert} expired at 20`],
      ["no certificate", () => Deno.removeSync(cert), `${cert} cannot be read: the file does not exist`],
      ["no PEM", () => Deno.writeTextFileSync(cert, "hello"), `${cert} has no certificate in PEM`],
      ["no key", () => Deno.writeTextFileSync(key, certText), `${key} has no private key in PEM`],
    ];
    for (const [title, spoil, told] of faults) {
      spoil();
      assert.equal(await reload(server, ca), false, title);
      await until(`${title}: ${told}`, () => server.output().includes(told));
      assert.equal(await servedName(server, ca), "first", title);
      Deno.writeTextFileSync(cert, certText);
      Deno.writeTextFileSync(key, keyText);
    }
  }));

Deno.test("TLS: versions 1.2 and 1.3 only; curl verifies; HTTP without TLS gets no answer and does no harm", () =>
  withTls(async (server, ca) => {
    assert.equal(await servedName(server, ca, "-tls1_2"), "first");
    assert.equal(await servedName(server, ca, "-tls1_3"), "first");
    assert.doesNotMatch(await servedName(server, ca, "-tls1_1"), /first/);
    await assert.rejects(fetch(`${server.http.replace("https", "http")}/ping`));
    const hello = await clientHello();
    for (const port of [server.httpPort, server.minPort, server.linePort, server.pgPort]) {
      for (let client = 0; client < 50; client++) {
        const connection = await Deno.connect({ hostname: "127.0.0.1", port });
        await connection.write(client % 2 ? crypto.getRandomValues(new Uint8Array(100)) : damaged(hello));
        connection.close();
      }
    }
    if ((await installed(["curl"], "TLS by curl")).length > 0) {
      const { stdout } = await new Deno.Command("curl", {
        args: ["-s", "--cacert", ca.path, `https://localhost:${server.httpPort}/exec?query=select+5&nm=true`],
        stdout: "piped",
      }).output();
      assert.equal(new TextDecoder().decode(stdout), '{"dataset":[[5]],"count":1}');
    }
    assert.doesNotMatch(
      server.output(),
      / [CE] (?:server-main|http-server|http-min-server|pg-server|line-tcp-server) /,
    );
  }));

/** Passes one connection on. After the client's first record of application data it reads nothing from the server, but counts what comes. */
class Deaf {
  /** Bytes that the server has sent to a client that does not read. */
  unread = 0;
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly port = (this.#listener.addr as Deno.NetAddr).port;
  #hasData = false;

  /** Resolves when the client has closed its connection. */
  async serve(port: number): Promise<void> {
    using client = await this.#listener.accept();
    using server = await Deno.connect({ hostname: "127.0.0.1", port });
    // The proxy ends it by closing the connections.
    this.#countReplies(server, client).catch(() => {});
    const records: number[] = [], buffer = new Uint8Array(65_536);
    for (;;) {
      const count = await client.read(buffer);
      if (count === null) return;
      if (!this.#hasData) records.push(...buffer.subarray(0, count));
      while (!this.#hasData && records.length >= 5) {
        this.#hasData = records[0] === 23;
        const size = 5 + records[3] * 256 + records[4];
        if (records.length < size) break;
        records.splice(0, size);
      }
      for (let at = 0; at < count;) at += await server.write(buffer.subarray(at, count));
    }
  }

  async #countReplies(server: Deno.Conn, client: Deno.Conn): Promise<void> {
    const buffer = new Uint8Array(65_536);
    for (let count; (count = await server.read(buffer)) !== null;) {
      if (this.#hasData) this.unread += count;
      else await client.write(buffer.subarray(0, count));
    }
  }

  [Symbol.dispose](): void {
    this.#listener.close();
  }
}

Deno.test("TLS: a line-protocol client that never reads is sent nothing after the handshake, so its close resets no stream", () =>
  withTls(async (server, ca) => {
    for (const version of ["1_2", "1_3"]) {
      const table = `deaf${version}`;
      using deaf = new Deaf();
      const served = deaf.serve(server.linePort);
      const client = new Deno.Command("openssl", {
        args: ["s_client", "-quiet", `-tls${version}`, "-CAfile", ca.path, "-connect", `localhost:${deaf.port}`],
        stdin: "piped",
        stdout: "null",
        stderr: "null",
      }).spawn();
      const writer = client.stdin.getWriter();
      const lines = Array.from({ length: 10_000 }, (_, k) => `${table} k=${k}i ${k}000\n`).join("");
      await writer.write(new TextEncoder().encode(lines));
      await until(`10,000 rows in ${table}`, async () => {
        const { dataset } = await server.exec(`select count() from ${table}`);
        return dataset?.[0][0] === 10_000;
      });
      client.kill("SIGKILL");
      await client.status;
      await writer.abort().catch(() => {});
      await served.catch(() => {});
      assert.equal(deaf.unread, 0, version);
    }
  }));

Deno.test("TLS: rows stream at the reader's pace, and a reader that leaves ends its query", () =>
  withTls(async (server, ca) => {
    using client = Deno.createHttpClient({ caCerts: [Deno.readTextFileSync(ca.path)] });
    const query = encodeURIComponent("select x, 'some text' from long_sequence(1000000)");
    const url = `https://localhost:${server.httpPort}/exp?query=`;
    const text = await (await fetch(url + query, { client })).text();
    assert.equal(text.split("\r\n").length, 1_000_002);
    const endless = await fetch(`${url}${encodeURIComponent("select x from long_sequence(100000000000)")}`, { client });
    const reader = endless.body!.getReader();
    await reader.read();
    const running = async () => {
      const metrics = await (await fetch(`https://localhost:${server.minPort}/metrics`, { client })).text();
      return /^service_connections{wire="exp"} (\d+)$/m.exec(metrics)?.[1];
    };
    assert.equal(await running(), "1");
    await reader.cancel();
    await until("the query has ended", async () => await running() === "0");
  }));

Deno.test("TLS: the cookie of a session is marked Secure", () =>
  withTls(async (server, ca) => {
    using client = Deno.createHttpClient({ caCerts: [Deno.readTextFileSync(ca.path)] });
    const authorization = `Basic ${btoa("someone:secret")}`;
    const reply = await fetch(`${server.http}/exec?query=select+1&session=true`, {
      client,
      headers: { authorization },
    });
    await reply.body?.cancel();
    assert.match(reply.headers.get("set-cookie") ?? "", /; Secure$/);
  }, { SVC_HTTP_USER: "someone", SVC_HTTP_PASSWORD: "secret" }));
