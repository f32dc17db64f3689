/** The command line: each case runs a process. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DEVELOPMENT_FLAGS } from "../scripts/flags.ts";
import { fromFileUrl } from "./paths.ts";
import { freePort, startServer } from "./server.ts";

interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

async function sundial(args: string[], env: Record<string, string> = {}, flags: string[] = []): Promise<Ended> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", ...DEVELOPMENT_FLAGS, ...flags, fromFileUrl("../main.ts"), ...args],
    env: { NO_COLOR: "1", ...env },
  }).output();
  const decoder = new TextDecoder();
  return { code, stdout: decoder.decode(stdout), stderr: decoder.decode(stderr) };
}

const newRoot = () => join(Deno.makeTempDirSync({ prefix: "sundial-" }), "root");
const names = (directory: string) => [...Deno.readDirSync(directory)].map((entry) => entry.name).sort();

Deno.test("start creates the root, prints its addresses, and exits with 0 on SIGTERM; status and stop find it", async () => {
  const root = newRoot();
  const server = await startServer({ root });
  assert.deepEqual(names(root), ["conf", "db", "import", "log", "sundial.lock", "sundial.pid"]);
  assert.ok(names(join(root, "conf")).includes("server.conf") && names(join(root, "conf")).includes("log.conf"));
  assert.deepEqual(names(join(root, "import")), ["trades.parquet"]);
  const status = await sundial(["status", "-d", root]);
  assert.deepEqual([status.code, status.stdout], [0, `process ${server.process.pid} runs on ${root}\n`]);
  const again = await sundial(["start", "-d", root]);
  assert.deepEqual([again.code, again.stdout, again.stderr], [
    1,
    "",
    `sundial: the root ${root} is in use by another process (${server.process.pid})\n`,
  ]);
  const stopped = await sundial(["stop", "-d", root]);
  assert.deepEqual([stopped.code, stopped.stdout], [0, `process ${server.process.pid} has ended\n`]);
  assert.equal(await server.stop(), 0);
  const output = server.output();
  for (
    const [logger, port] of [["http-server", server.httpPort], ["pg-server", server.pgPort], [
      "http-min-server",
      server.minPort,
    ]]
  ) {
    assert.ok(output.includes(` A ${logger} listening on 127.0.0.1:${port}\r\n`), output);
  }
  assert.match(output, / A server-main Sundial \d+\.\d+\.\d+, /);
  assert.ok(output.includes(` A server-main root: ${root} (new)\r\n`));
  assert.equal((await sundial(["status", "-d", root])).code, 1);
});

Deno.test("health queries the server with these settings and exits with its status", async () => {
  await using server = await startServer();
  // A proxy for external hosts must not be used.
  const at = (port: number) => ({
    SVC_HTTP_MIN_BIND_TO: `0.0.0.0:${port}`,
    HTTP_PROXY: `http://127.0.0.1:${freePort()}`,
    http_proxy: `http://127.0.0.1:${freePort()}`,
  });
  const well = await sundial(["health", "-d", server.root], at(server.minPort));
  assert.deepEqual([well.code, well.stdout], [0, `healthy: 200 from http://127.0.0.1:${server.minPort}/\n`]);
  assert.equal(await server.stop(), 0);
  const gone = await sundial(["health", "-d", server.root], at(server.minPort));
  assert.equal(gone.code, 1);
  assert.match(gone.stdout, /^not healthy: no answer from http:/);
  const off = await sundial(["health", "-d", server.root], { SVC_HTTP_MIN_ENABLED: "false" });
  assert.deepEqual([off.code, off.stderr], [
    1,
    "sundial: http.min.enabled: the minimal server, which reports health, is off\n",
  ]);
});

Deno.test("a writer that fails while it loads ends the start with 1", async () => {
  const map = await Deno.makeTempFile({ prefix: "sundial-", suffix: ".json" });
  const { imports } = JSON.parse(await Deno.readTextFile(fromFileUrl("../deno.json")));
  // Paths in packages, which need no entries in deno.json.
  for (const [name, target] of Object.entries<string>(imports)) {
    if (target.startsWith("npm:")) imports[`${name}/`] ??= `${target.replace("npm:", "npm:/")}/`;
  }
  const url = (path: string) => new URL(path, import.meta.url).href;
  const broken = { [url("../src/storage/turns.ts")]: url("missing.ts") };
  await Deno.writeTextFile(map, JSON.stringify({ imports, scopes: { [url("../src/workers/writer.ts")]: broken } }));
  const { code, stderr } = await sundial(["start", "-d", newRoot()], {
    SVC_HTTP_BIND_TO: `127.0.0.1:${freePort()}`,
    SVC_HTTP_MIN_ENABLED: "false",
  }, [`--import-map=${map}`]);
  assert.equal(code, 1);
  assert.match(stderr, /^sundial: Error: the writer has failed: .*missing\.ts/m);
});

Deno.test(
  "SIGINT ends a server with a query under way, with 0",
  { ignore: Deno.build.os === "windows" },
  async () => {
    await using server = await startServer();
    const query = server.exec(
      "select count(), sum(a.x * b.x) from long_sequence(10000000) a cross join long_sequence(1000) b",
    ).catch(() => "ended with the server");
    await new Promise((resolve) => setTimeout(resolve, 300));
    server.process.kill("SIGINT");
    // The query would take minutes.
    assert.equal((await server.process.status).code, 0);
    await query;
  },
);

Deno.test("a port in use gives one clear line and exit status 1", async () => {
  await using server = await startServer();
  for (
    const [variable, key] of [["SVC_HTTP_MIN_BIND_TO", "http.min.bind.to"], ["SVC_HTTP_BIND_TO", "http.net.bind.to"], [
      "SVC_PG_NET_BIND_TO",
      "pg.net.bind.to",
    ]]
  ) {
    const free = () => `127.0.0.1:${freePort()}`;
    const env = { SVC_HTTP_MIN_BIND_TO: free(), SVC_HTTP_BIND_TO: free(), SVC_PG_NET_BIND_TO: free() };
    const { code, stderr } = await sundial(["start", "-d", newRoot()], {
      ...env,
      [variable]: `127.0.0.1:${server.httpPort}`,
    });
    assert.deepEqual([code, stderr], [
      1,
      `sundial: ${key}: 127.0.0.1:${server.httpPort} is in use by another process\n`,
    ]);
  }
});

const refused: [string, string[], Record<string, string>, RegExp][] = [
  [
    "a bad value",
    ["start"],
    { SVC_QUERY_TIMEOUT: "soon" },
    /^sundial: SVC_QUERY_TIMEOUT: query\.timeout: found "soon", expected a duration .*\n$/,
  ],
  [
    "an address without a port",
    ["start"],
    { SVC_HTTP_BIND_TO: "localhost" },
    /^sundial: SVC_HTTP_BIND_TO: .*expected an address .*\n$/,
  ],
  ["an unknown option", ["start", "--fast"], {}, /^sundial: unknown option --fast; see --help\n$/],
  ["an option of another command", ["start", "--print"], {}, /^sundial: start does not accept --print; see --help\n$/],
  [
    "an option that a service has not",
    ["service", "install", "-f"],
    {},
    /^sundial: service does not accept -f; see --help\n$/,
  ],
  ["an unknown command", ["begin"], {}, /^sundial: unknown command begin; see --help\n$/],
  [
    "a bad value in check-config",
    ["check-config"],
    { SVC_HTTP_ENABLED: "maybe" },
    /^sundial: .*found "maybe", expected true or false\n$/,
  ],
  [
    "a bad log writer in check-config",
    ["check-config"],
    { SVC_LOG_W_STDOUT_LEVEL: "LOUD" },
    /^sundial: w\.stdout\.level: found "LOUD", .*\n$/,
  ],
];
if (Deno.build.os === "linux") {
  refused.push([
    "a core that is not there in check-config",
    ["check-config"],
    { SVC_HTTP_MIN_WORKER_COUNT: "1", SVC_HTTP_MIN_WORKER_AFFINITY: "4000" },
    /^sundial: http\.min\.worker\.affinity: found 4000, expected a core from 0 to \d+\n$/,
  ]);
}
for (const [title, args, env, message] of refused) {
  Deno.test(`${title} gives one clear line, exit status 1 and no root`, async () => {
    const root = newRoot();
    const { code, stderr } = await sundial([...args, "-d", root], env);
    assert.equal(code, 1);
    assert.match(stderr, message);
    assert.throws(() => Deno.statSync(root), Deno.errors.NotFound);
  });
}

Deno.test("check-config reports every fault of server.conf, the environment and log.conf on a line", async () => {
  const root = newRoot();
  Deno.mkdirSync(join(root, "conf"), { recursive: true });
  const write = (name: string, lines: string[]) => Deno.writeTextFileSync(join(root, "conf", name), lines.join("\n"));
  write("server.conf", [
    "query.timeout=soon",
    "http.enabeld=true",
    "log.timestamp.timezone=Mars",
    "http.user=a",
    "cairo.commit.mode=never",
    "config.validation.strict=true",
  ]);
  write("log.conf", [
    "writters=a",
    "writers=a,b",
    "w.a.class=io.service.log.LogRollingFileWriter",
    "w.a.location=/no/such/place/x.log",
    "w.a.rollEvery=fortnight",
    "w.a.rollSize=big",
    "w.a.rollsize=1g",
    "w.a.level=LOUD",
    "w.b.class=NoSuchWriter",
  ]);
  const { code, stdout, stderr } = await sundial(["check-config", "-d", root], {
    SVC_HTTP_MIN_WORKER_COUNT: "2",
    SVC_PG_PASSWORD_FILE: join(root, "none"),
    SVC_LOG_W_A_LEVL: "INFO",
  });
  assert.deepEqual([code, stdout], [1, ""]);
  const conf = join(root, "conf", "server.conf");
  const expected = [
    `${conf}:2: unknown key http.enabeld; did you mean http.enabled?`,
    `SVC_PG_PASSWORD_FILE: ${join(root, "none")} does not exist`,
    `${conf}:5: cairo.commit.mode: found "never", expected one of `,
    `${conf}:1: query.timeout: found "soon", expected a duration`,
    `SVC_HTTP_MIN_WORKER_COUNT: http.min.worker.count: found "2", expected `,
    "http.password: found an empty value, expected a password, because http.user is set",
    'log.timestamp.timezone: found "Mars", expected Z or the name of a time zone',
    "log.conf:1: unknown key writters; did you mean writers?",
    "SVC_LOG_W_A_LEVL: no writer has this property; did you mean SVC_LOG_W_A_LEVEL?",
    "w.a.rollsize: unknown property; did you mean w.a.rollSize?",
    'w.a.level: found "LOUD", expected ',
    'w.a.location: found "/no/such/place/x.log", expected a file in an existing directory',
    'w.a.rollEvery: found "fortnight", expected one of ',
    'w.a.rollSize: found "big", expected a size',
    'w.b.class: found "NoSuchWriter", expected one of ',
  ].map((line) => `sundial: ${line}`);
  const told = stderr.trimEnd().split("\n");
  for (const line of expected) assert.equal(told.filter((one) => one.startsWith(line)).length, 1, `${line}\n${stderr}`);
  assert.equal(told.length, expected.length, stderr);
  const { code: started, stderr: stopped } = await sundial(["start", "-d", root]);
  assert.equal(started, 1);
  assert.match(
    stopped,
    /^sundial: .*http\.enabeld.*\nsundial: .*query\.timeout.*\n/,
    "a start tells those of its settings",
  );
  Deno.removeSync(root, { recursive: true });
});

Deno.test("a bad log.conf stops the start with its key", async () => {
  const { code, stderr } = await sundial(["start", "-d", newRoot()], {
    SVC_LOG_W_STDOUT_CLASS: "io.service.log.NoSuchWriter",
  });
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^sundial: w\.stdout\.class: found "io\.service\.log\.NoSuchWriter", expected one of io\.service\.log\.LogConsoleWriter, .*\n$/,
  );
});

Deno.test("version, help and check-config", async () => {
  const about = JSON.parse(Deno.readTextFileSync(fromFileUrl("../deno.json")));
  assert.equal((await sundial(["version"])).stdout, `${about.version}\n`);
  assert.match((await sundial(["--help"])).stdout, /check-config/);
  assert.match((await sundial(["--help", "keys"])).stdout, /http\.min\.bind\.to \(0\.0\.0\.0:9003\)\n/);
  const checked = await sundial(["check-config", "-d", newRoot()], { SVC_PG_PASSWORD: "s3cret", SVC_PG_USR: "x" });
  assert.equal(checked.code, 0);
  assert.match(
    checked.stdout,
    /^warning: the environment: unknown key SVC_PG_USR; did you mean SVC_PG_USER\?\npg\.password=\*\*\*\* \(env\)\n/,
  );
});

Deno.test("check-config reports unknown keys in addition to faults", async () => {
  const env = { SVC_PG_USR: "x", SVC_QUERY_TIMEOUT: "soon" };
  const { code, stderr } = await sundial(["check-config", "-d", newRoot()], env);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^sundial: warning: the environment: unknown key SVC_PG_USR; did you mean SVC_PG_USER\?\nsundial: SVC_QUERY_TIMEOUT: .*"soon".*\n$/,
  );
});

Deno.test("the same version is shown everywhere", async () => {
  const { version } = JSON.parse(Deno.readTextFileSync(fromFileUrl("../deno.json")));
  await using server = await startServer();
  const said = (await server.exec("select build(), version()")).dataset![0];
  assert.deepEqual(said, [`Sundial ${version}`, `PostgreSQL 12.3, Sundial ${version}`]);
  const settings = await (await fetch(`${server.http}/settings`)).json();
  assert.equal(settings.config["release.version"], version);
});

Deno.test("check-config reports addresses that no adapter has, but not those in use by a server", async () => {
  await using server = await startServer();
  const env = {
    SVC_HTTP_BIND_TO: `127.0.0.1:${server.httpPort}`,
    SVC_PG_NET_BIND_TO: "203.0.113.7:8812",
    SVC_HTTP_MIN_BIND_TO: "nosuch.invalid:9003",
  };
  const { code, stderr } = await sundial(["check-config", "-d", newRoot()], env);
  assert.deepEqual([code, stderr], [
    1,
    "sundial: http.min.bind.to: the host of nosuch.invalid:9003 has no address\n" +
    "sundial: pg.net.bind.to: no network adapter of this machine has the address 203.0.113.7:8812\n",
  ]);
  const off = await sundial(["check-config", "-d", newRoot()], {
    ...env,
    SVC_PG_ENABLED: "false",
    SVC_HTTP_MIN_ENABLED: "false",
  });
  assert.equal(off.code, 0, off.stderr);
});

Deno.test("check-config with -Dout names the file that it has read", async () => {
  const missing = join(newRoot(), "none.conf");
  const { code, stdout } = await sundial(["check-config", "-d", newRoot(), `-Dout=${missing}`]);
  assert.equal(code, 0);
  assert.ok(stdout.startsWith(`Log configuration loaded using factory defaults: ${missing} does not exist\n`), stdout);
});

Deno.test("-t: stop and status find a server by its tag, from anywhere; a second one of that tag is refused", async () => {
  const tag = `test-${crypto.randomUUID()}`;
  const [root, other] = [newRoot(), newRoot()];
  const unknown = await sundial(["status", "-t", tag]);
  assert.equal(unknown.code, 1);
  assert.match(unknown.stdout, new RegExp(`^no server runs on .*, tag ${tag}\n$`));
  await using server = await startServer({ root, args: ["-t", tag] });
  assert.match(server.output(), new RegExp(` A server-main Sundial .*, tag ${tag}\r\n`));
  const { pid } = server.process;
  const status = await sundial(["status", "-t", tag]);
  assert.deepEqual([status.code, status.stdout], [0, `process ${pid} runs on ${root}, tag ${tag}\n`]);
  assert.equal((await sundial(["status", "-t", tag, "-d", other])).code, 1);
  assert.equal(
    (await sundial(["stop", "-t", "another", "-d", root])).code,
    1,
    "the server of that root has another tag",
  );
  const again = await sundial(["start", "-t", tag, "-d", other]);
  assert.deepEqual([again.code, again.stderr], [
    1,
    `sundial: -t: process ${pid} already has the tag ${tag}, on ${root}\n`,
  ]);
  const stopped = await sundial(["stop", "-t", tag]);
  assert.deepEqual([stopped.code, stopped.stdout], [0, `process ${pid} has ended\n`]);
});

Deno.test("SIGHUP ends a server, but not one started with -n", { ignore: Deno.build.os === "windows" }, async () => {
  await using server = await startServer();
  server.process.kill("SIGHUP");
  assert.equal((await server.process.status).code, 0);
  await using stays = await startServer({ args: ["-n"] });
  for (let n = 0; n < 3; n++) stays.process.kill("SIGHUP");
  assert.deepEqual((await stays.exec("select 1")).dataset, [[1]]);
  assert.equal(await stays.stop(), 0);
});

Deno.test("-f updates shipped files, and never changes the configuration", async () => {
  await using first = await startServer({ keepRoot: true });
  const { root } = first;
  await first.stop();
  const write = (path: string) => Deno.writeTextFileSync(join(root, path), "# mine\n");
  for (const path of ["conf/server.conf", "import/trades.parquet"]) write(path);
  await using again = await startServer({ root, args: ["-f"] });
  assert.equal(Deno.readTextFileSync(join(root, "conf", "server.conf")), "# mine\n");
  assert.deepEqual(names(join(root, "import")), ["trades.parquet", "trades.parquet.bak"]);
  assert.deepEqual((await again.exec("select count() from read_parquet('trades.parquet')")).dataset, [[100_000]]);
  await again.stop();
  await Deno.remove(root, { recursive: true });
});

Deno.test("service --print shows steps with absolute paths of this program, and executes none", async () => {
  const root = newRoot();
  const options = ["-d", root, "-t", "west", "-Dout=conf/my log.conf", "-Debug"];
  const { code, stdout } = await sundial(["service", "install", "--print", ...options]);
  assert.equal(code, 0);
  assert.match(stdout, new RegExp(`start -d ${root} -t west "-Dout=/[^"]*/conf/my log\\.conf" -Debug\n`));
  const main = fromFileUrl("../main.ts");
  assert.ok(stdout.includes(Deno.execPath()) && stdout.includes(main) && stdout.includes(root), stdout);
  assert.ok(stdout.includes(`--lock=${fromFileUrl("../deno.lock")}`), stdout);
  assert.throws(() => Deno.statSync(root), Deno.errors.NotFound);
  const removed = await sundial(["service", "remove", "--print", "-t", "west"]);
  assert.match(removed.stdout, /west/);
  const { stderr } = await sundial(["service", "start"]);
  assert.equal(stderr, 'sundial: service: found "start", expected install, remove or status; see --help\n');
});
