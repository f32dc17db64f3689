/**
 * Clients that verify the server's certificate, against the real server; their programs are in `tests/clients/tls/`.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { Sender } from "@questdb/nodejs-client";
import pg from "pg";
import postgres from "postgres";
import { Authority, authority } from "../certificates.ts";
import { fromFileUrl } from "../paths.ts";
import { until } from "../programs.ts";
import { startServer, type TestServer } from "../server.ts";

const PROGRAMS = fromFileUrl("./clients/tls/");
assert.ok(Deno.statSync(PROGRAMS).isDirectory);
const HOME = Deno.env.get("HOME") ?? "";
/** Tools that `.ci/run` installs for the tests. */
const TOOLS = join(Deno.env.get("XDG_CACHE_HOME") ?? join(HOME, ".cache"), "sundial-ci");
const PYTHON = join(TOOLS, "python/bin/python");
const JDBC = join(TOOLS, "postgresql-42.7.8.jar");
const SUM = "select sum(x) total from long_sequence(1000)";

interface Place {
  server: TestServer;
  ca: Authority;
  other: Authority;
}

interface Output {
  success: boolean;
  text: string;
}

async function run([program, ...args]: string[], directory = "."): Promise<Output> {
  const { success, stdout, stderr } = await new Deno.Command(program, {
    args,
    cwd: join(PROGRAMS, directory),
    env: { PGPASSWORD: "quest", PYTHONWARNINGS: "ignore" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).output();
  const decoder = new TextDecoder();
  return { success, text: decoder.decode(stdout) + decoder.decode(stderr) };
}

async function isInstalled(name: string, probe: string[], directory?: string): Promise<boolean> {
  try {
    if ((await run(probe, directory)).success) return true;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  console.log(`skipped: ${name} with TLS is not installed`);
  return false;
}

/** Asserts that the command succeeds and prints "ok" at its end. */
async function assertOk(command: string[], directory?: string): Promise<void> {
  const { success, text } = await run(command, directory);
  assert.ok(success && text.endsWith("ok\n"), text);
}

const portAndAuthorities = ({ server, ca, other }: Place) => [String(server.pgPort), ca.path, other.path];

async function psql(place: Place): Promise<void> {
  if (!await isInstalled("psql", ["psql", "--version"])) return;
  const ask = (options: string) =>
    run(["psql", "-XAt", `host=localhost port=${place.server.pgPort} user=admin dbname=qdb ${options}`, "-c", SUM]);
  assert.equal((await ask(`sslmode=verify-full sslrootcert=${place.ca.path}`)).text, "500500\n");
  assert.equal((await ask("sslmode=require")).text, "500500\n");
  assert.match((await ask(`sslmode=verify-full sslrootcert=${place.other.path}`)).text, /certificate verify failed/);
  assert.match((await ask("sslmode=disable")).text, /FATAL: .*pg\.tls\.required/);
  assert.match((await ask("sslmode=require password=wrong")).text, /FATAL: +password authentication failed/);
  const wrongName = await ask(`sslmode=verify-full sslrootcert=${place.ca.path} hostaddr=127.0.0.1 host=example.org`);
  assert.match(wrongName.text, /does not match host name "example.org"/);
}

async function jdbc(place: Place): Promise<void> {
  if (!await isInstalled("JDBC", ["java", "-version"]) || !await isInstalled("JDBC", ["test", "-f", JDBC])) return;
  await assertOk(["java", "-cp", JDBC, "Jdbc.java", ...portAndAuthorities(place)]);
}

async function pgx(place: Place): Promise<void> {
  if (!await isInstalled("pgx", ["go", "mod", "download"], "pgx")) return;
  await assertOk(["go", "run", ".", ...portAndAuthorities(place)], "pgx");
}

async function psycopg(place: Place): Promise<void> {
  if (!await isInstalled("psycopg", [PYTHON, "-c", "import psycopg"])) return;
  await assertOk([PYTHON, "psycopg_client.py", ...portAndAuthorities(place)]);
}

async function nodePostgres({ server, ca, other }: Place): Promise<void> {
  const connect = async (trusted: Authority) => {
    const ssl = { ca: Deno.readTextFileSync(trusted.path) };
    const options = { host: "localhost", port: server.pgPort, user: "admin", password: "quest", database: "qdb", ssl };
    const client = new pg.Client(options);
    client.on("error", () => {});
    await client.connect();
    return client;
  };
  const client = await connect(ca);
  assert.deepEqual((await client.query(SUM)).rows, [{ total: "500500" }]);
  assert.equal((await client.query("select x, 'some text' from long_sequence(100000)")).rows.length, 100_000);
  await client.end();
  await assert.rejects(connect(other), /certificate|issuer/i);
}

async function postgresJs({ server, ca, other }: Place): Promise<void> {
  const ask = async (trusted: Authority) => {
    const ssl = { ca: Deno.readTextFileSync(trusted.path) };
    const options = { host: "localhost", port: server.pgPort, username: "admin", password: "quest", database: "qdb" };
    const sql = postgres({ ...options, ssl, max: 3, fetch_types: false, backoff: () => 0 });
    try {
      return await sql.unsafe(SUM);
    } finally {
      await sql.end({ timeout: 1 });
    }
  };
  assert.deepEqual([...await ask(ca)], [{ total: "500500" }]);
  await assert.rejects(ask(other), /certificate|issuer/i);
}

async function curl({ server, ca, other }: Place): Promise<void> {
  if (!await isInstalled("curl", ["curl", "--version"])) return;
  const get = (path: string, port: number, trusted: Authority) =>
    run(["curl", "-sS", "-w", "%{http_code}", "--cacert", trusted.path, `https://localhost:${port}${path}`]);
  assert.equal((await get("/exec?query=select+1&nm=true", server.httpPort, ca)).text, '{"dataset":[[1]],"count":1}200');
  assert.equal((await get("/status", server.minPort, ca)).text, "200");
  assert.match((await get("/metrics", server.minPort, ca)).text, /^# TYPE [^]*200$/);
  for (const port of [server.httpPort, server.minPort]) {
    assert.equal((await get("/", port, other)).success, false);
    assert.equal((await run(["curl", "-sS", `http://localhost:${port}/`])).success, false);
  }
}

async function rowsOf(server: TestServer, table: string): Promise<unknown> {
  return (await server.exec(`select count(), sum(k) from ${table}`)).dataset?.[0];
}

async function rowsArrive(server: TestServer, table: string, count: number): Promise<void> {
  await until(`${count} rows in ${table}`, async () => (await rowsOf(server, table) as number[])?.[0] === count);
}

async function nodeLines({ server, ca, other }: Place): Promise<void> {
  for (const [wire, port] of [["https", server.httpPort], ["tcps", server.linePort]] as const) {
    const send = async (trusted: Authority) => {
      const sender = await Sender.fromConfig(
        `${wire}::addr=localhost:${port};tls_ca=${trusted.path};auto_flush=off;protocol_version=2;`,
      );
      try {
        if (wire === "tcps") await sender.connect();
        for (let k = 1n; k <= 1000n; k++) await sender.table(`node_${wire}`).intColumn("k", Number(k)).at(k, "us");
        await sender.flush();
      } finally {
        await sender.close();
      }
    };
    await send(ca);
    await rowsArrive(server, `node_${wire}`, 1000);
    await assert.rejects(send(other));
  }
}

async function pythonLines({ server, ca, other }: Place): Promise<void> {
  if (!await isInstalled("questdb of Python", [PYTHON, "-c", "import questdb"])) return;
  await assertOk([
    PYTHON,
    "lines_client.py",
    String(server.httpPort),
    String(server.linePort),
    ca.path,
    other.path,
  ]);
  await rowsArrive(server, "python_lines", 20_000);
}

const CLIENTS: [name: string, test: (place: Place) => Promise<void>][] = [
  ["psql", psql],
  ["JDBC", jdbc],
  ["pgx", pgx],
  ["psycopg", psycopg],
  ["node-postgres", nodePostgres],
  ["postgres.js", postgresJs],
  ["curl", curl],
  ["@questdb/nodejs-client", nodeLines],
  ["questdb of Python", pythonLines],
];

Deno.test("clients verify the certificate", { sanitizeOps: false, sanitizeResources: false }, async (test) => {
  using ca = authority("clients with TLS");
  if (ca === undefined) return;
  using other = new Authority();
  const cert = join(ca.directory, "server.pem"), key = join(ca.directory, "server.key");
  ca.issue("first", cert, key);
  await using server = await startServer({
    env: {
      SVC_TLS_ENABLED: "true",
      SVC_TLS_CERT_PATH: cert,
      SVC_TLS_PRIVATE_KEY_PATH: key,
      SVC_PG_TLS_REQUIRED: "true",
      SVC_METRICS_ENABLED: "true",
    },
    caPath: ca.path,
  });
  for (const [name, run] of CLIENTS) await test.step(name, () => run({ server, ca, other }));
  assert.doesNotMatch(server.output(), / [CE] (?:server-main|http-server|http-min-server|pg-server|line-tcp-server) /);
});
