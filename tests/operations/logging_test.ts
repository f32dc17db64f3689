/** What a server writes to its log, and where it looks for log.conf. */
import assert from "node:assert/strict";
import { join } from "node:path";
import pg from "pg";
import { until } from "../programs.ts";
import { START_FLAGS } from "../../scripts/flags.ts";
import { fromFileUrl } from "../paths.ts";
import { freePorts, startServer, type TestServer } from "../server.ts";
import { pgClient } from "../pg-client.ts";

const ROLLING = {
  SVC_LOG_WRITERS: "file",
  SVC_LOG_W_FILE_CLASS: "io.service.log.LogRollingFileWriter",
  SVC_LOG_W_FILE_LOCATION: "${log.dir}/${INSTANCE_NAME}-${date:yyyy}.log",
  SVC_LOG_W_FILE_LEVEL: "INFO",
  SVC_DEV_MODE_ENABLED: "true",
  SVC_LOG_SQL_QUERY_PROGRESS_EXE: "true",
  INSTANCE_NAME: "one",
};
const logOf = ({ root }: TestServer) => Deno.readTextFileSync(join(root, "log", `one-${new Date().getFullYear()}.log`));
/** Windows kills a process at once, whatever the signal. */
const SIGNALS = { ignore: Deno.build.os === "windows" };
const exists = (...path: string[]) => Deno.stat(join(...path)).then(() => true, () => false);

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  Deno.test(`log: everything is in the file after ${signal}, including an uncaught error`, SIGNALS, async () => {
    await using server = await startServer({ env: ROLLING });
    await server.exec("select simulate_crash('at the end')");
    server.process.kill(signal);
    assert.equal((await server.process.status).code, 0);
    const lines = logOf(server);
    assert.match(lines, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z A server-main Sundial /);
    assert.match(lines, / C server-main unhandled error: Error: simulated crash: at the end\n/);
    assert.match(lines, new RegExp(`Z A server-main ${signal}: shutting down\\r\\n`));
    assert.match(lines, /Z A server-main everything is on disk: goodbye\r\n$/);
    assert.equal(server.output(), "", "nothing goes to the console");
  });
}

for (const [signal, code] of [["SIGTERM", 143], ["SIGINT", 130]] as const) {
  Deno.test(
    `log: a second ${signal} ends the process before its work has ended, with ${code}, and all is in the file`,
    SIGNALS,
    async () => {
      await using server = await startServer({ env: ROLLING });
      const query = server.exec(
        "select count(), sum(a.x * b.x) from long_sequence(10000000) a cross join long_sequence(1000) b",
      ).catch(() => "ended with the server");
      const logged = async (text: string) => {
        for (let attempt = 0; attempt < 2000 && !logOf(server).includes(text); attempt++) {
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      };
      await logged("from long_sequence");
      server.process.kill(signal);
      await logged(`${signal}: shutting down`);
      server.process.kill(signal);
      assert.equal((await server.process.status).code, code);
      assert.match(logOf(server), new RegExp(` A server-main ${signal} again: ending immediately\\r\\n$`));
      await query;
    },
  );
}

Deno.test("log: conf/log.conf is created with the defaults; -Dout names another file, which is never created", async () => {
  await using plain = await startServer();
  const made = Deno.readTextFileSync(join(plain.root, "conf", "log.conf"));
  assert.match(made, /^writers=file,stdout,http\.min$/m);
  const directory = await Deno.makeTempDir({ prefix: "sundial-" });
  const [there, missing] = [join(directory, "there.conf"), join(directory, "missing.conf")];
  Deno.writeTextFileSync(there, "writers=out\nw.out.class=LogConsoleWriter\nw.out.level=ADVISORY\n");
  {
    await using server = await startServer({ args: [`-Dout=${there}`] });
    assert.ok(!await exists(server.root, "conf", "log.conf"));
    assert.doesNotMatch(server.output(), /Z I /);
    assert.match(server.output(), /Z A server-main root: /);
  }
  {
    await using server = await startServer({ args: [`-Dout=${missing}`] });
    assert.ok(!await exists(server.root, "conf", "log.conf") && !await exists(missing));
    assert.ok(server.output().includes(`using factory defaults: ${missing} does not exist`), server.output());
  }
  await Deno.remove(directory, { recursive: true });
});

Deno.test("log: a console that is not read blocks neither statements nor the shutdown", SIGNALS, async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const [port, ...others] = freePorts(4);
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", ...START_FLAGS, fromFileUrl("../main.ts"), "start", "-d", root],
    env: {
      SVC_HTTP_NET_BIND_TO: `127.0.0.1:${port}`,
      SVC_PG_NET_BIND_TO: `127.0.0.1:${others[0]}`,
      SVC_HTTP_MIN_BIND_TO: `127.0.0.1:${others[1]}`,
      SVC_LINE_TCP_NET_BIND_TO: `127.0.0.1:${others[2]}`,
      SVC_LOG_SQL_QUERY_PROGRESS_EXE: "true",
    },
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const ask = async (sql: string) => {
    const reply = await fetch(`http://127.0.0.1:${port}/exec?${new URLSearchParams({ query: sql })}`);
    await reply.body?.cancel();
    return reply.status;
  };
  for (let attempt = 0; await ask("select 1").catch(() => 0) !== 200; attempt++) {
    assert.ok(attempt < 600, "the server is not ready");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  // Twice as much as a pipe can hold.
  for (let n = 0; n < 40; n++) assert.equal(await ask(`select '${"x".repeat(3000)}${n}'`), 200);
  process.kill("SIGTERM");
  const late = setTimeout(() => process.kill("SIGKILL"), 20_000);
  assert.equal((await process.status).code, 0);
  clearTimeout(late);
  await process.stdout.cancel();
  await Deno.remove(root, { recursive: true });
});

Deno.test("log: each wire logs refused statements with their position, in one line, without secrets", async () => {
  await using server = await startServer();
  await server.exec("selec 1");
  await server.exec("select nothing\nfrom long_sequence(1)");
  await server.exec("alter user ann with password 'hunter2'");
  await fetch(`${server.http}/exp?${new URLSearchParams({ query: "select x from no_table" })}`).then((r) => r.text());
  const client = pgClient(server);
  await client.connect();
  await assert.rejects(client.query("select 1; select broken"));
  await assert.rejects(client.query("select $1::int + nowhere", ["secret value"]));
  await client.end();
  await server.stop();
  const lines = server.output().split("\r\n").filter((line) => / err \[/.test(line)).map((line) => line.slice(28));
  assert.deepEqual(lines.map((line) => line.replace(/msg=.*, (pos=\d+)/, "$1")), [
    "I http-server err [sql=`selec 1`, principal=admin, pos=0, state=42601]",
    "I http-server err [sql=`select nothing\\nfrom long_sequence(1)`, principal=admin, pos=7, state=42703]",
    "I http-server err [sql=`alter user ann with password '****'`, principal=admin, pos=0, state=55000]",
    "I http-server err [sql=`select x from no_table`, principal=admin, pos=14, state=42P01]",
    "I pg-server err [sql=`select broken`, principal=admin, pos=7, state=42703]",
    "I pg-server err [sql=`select $1::int + nowhere`, principal=admin, pos=17, state=42703]",
  ]);
  assert.doesNotMatch(server.output(), /hunter2|secret value/);
});

Deno.test("log: -Debug logs connections, requests and statements; without it there is no such line", async () => {
  const talk = async ({ http, pgPort, linePort, minPort, exec }: TestServer) => {
    await fetch(`http://127.0.0.1:${minPort}/health?secret`).then((reply) => reply.text());
    await exec("select 42");
    await fetch(`${http}/nothing?secret`).then((reply) => reply.text());
    const client = pgClient({ pgPort: pgPort });
    await client.connect();
    await client.end();
    (await Deno.connect({ hostname: "127.0.0.1", port: linePort })).close();
  };
  const told = [
    / D http-server 200 GET \/exec \[client=127\.0\.0\.1:\d+\]\r\n/,
    / D http-server 404 GET \/nothing \[client=127\.0\.0\.1:\d+\]\r\n/,
    / D pg-server connected \[client=127\.0\.0\.1:\d+, principal=admin, connections=1\]\r\n/,
    / D pg-server disconnected \[client=127\.0\.0\.1:\d+, connections=0\]\r\n/,
    / D line-tcp-server connected \[client=127\.0\.0\.1:\d+, connections=1\]\r\n/,
    / D line-tcp-server disconnected \[client=127\.0\.0\.1:\d+, connections=0\]\r\n/,
    / D http-min-server 200 GET \/health \[client=127\.0\.0\.1:\d+\]\r\n/,
    / D database exe \[id=\d+, sql=`select 42`, principal=admin\]\r\n/,
    / D database fin \[id=\d+, sql=`select 42`, principal=admin, micros=\d+\]\r\n/,
  ];
  for (const SVC_HTTP_MIN_WORKER_COUNT of ["0", "1"]) {
    await using server = await startServer({ args: ["-Debug"], env: { SVC_HTTP_MIN_WORKER_COUNT } });
    await talk(server);
    await until("every line is there", () => told.every((pattern) => pattern.test(server.output()))).catch(() => {});
    for (const pattern of told) assert.match(server.output(), pattern);
    assert.doesNotMatch(server.output(), /secret/);
  }
  await using quiet = await startServer();
  await talk(quiet);
  await quiet.stop();
  assert.doesNotMatch(quiet.output(), / D /);
});

Deno.test("log: the reason of a failed start is logged as critical", async () => {
  await using server = await startServer();
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  const env = { ...ROLLING, SVC_HTTP_MIN_BIND_TO: `127.0.0.1:${server.minPort}` };
  const message = `http.min.bind.to: 127.0.0.1:${server.minPort} is in use by another process`;
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...START_FLAGS, fromFileUrl("../main.ts"), "start", "-d", root],
    env,
  }).output();
  assert.deepEqual([code, new TextDecoder().decode(stderr)], [1, `sundial: ${message}\n`]);
  const lines = Deno.readTextFileSync(join(root, "log", `one-${new Date().getFullYear()}.log`));
  assert.ok(lines.endsWith(` C server-main the server ends: ${message}\r\n`), lines);
  await Deno.remove(root, { recursive: true });
});

Deno.test("log: each wire logs refused clients with their address, in few lines", async () => {
  await using server = await startServer({
    env: { SVC_HTTP_USER: "ann", SVC_HTTP_PASSWORD: "secret" },
    authorization: `Basic ${btoa("ann:secret")}`,
  });
  for (let n = 0; n < 30; n++) {
    await fetch(`${server.http}/exec?query=hidden`, { headers: { authorization: "Basic guessed" } }).then((r) =>
      r.text()
    );
  }
  const settings = { host: "127.0.0.1", port: server.pgPort, user: "bo\nb", database: "qdb" };
  await assert.rejects(new pg.Client({ ...settings, password: "wrong" }).connect());
  await server.stop();
  const lines = server.output().split("\r\n").filter((line) => line.includes("turned away"));
  const ofHttp = lines.filter((line) =>
    / I http-server turned away \[client=127\.0\.0\.1:\d+, msg=GET \/exec: /.test(line)
  );
  assert.ok(ofHttp.length >= 10 && ofHttp.length <= 30, server.output());
  assert.match(server.output(), / I pg-server turned away \[client=127\.0\.0\.1:\d+, msg=.*"bo\\nb"\]\r\n/);
  assert.doesNotMatch(server.output(), /hidden|guessed|wrong|secret/);
});
