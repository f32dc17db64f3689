import assert from "node:assert/strict";
import type { ConfigError } from "../errors.ts";
import { SECTIONS } from "../command/settings.ts";
import { configOf } from "../command/testing.ts";
import {
  Catalogue,
  Config,
  type ConfigSources,
  formatSize,
  parseAddress,
  parseDuration,
  parseProperties,
  parseSize,
} from "./mod.ts";

const catalogue = new Catalogue(SECTIONS).settings;
const sections = SECTIONS;
const valueOf = (config: Config, key: string) => config.get(catalogue.get(key)!);

const machine = { cores: 2, memoryBytes: 8 * 2 ** 30, hostName: "box.example.org" };
function load(file: string, env: Record<string, string> = {}, files: Record<string, string> = {}): Config {
  const sources: ConfigSources = {
    root: "/r",
    sections,
    env,
    machine,
    readFile: (path) => path.endsWith("server.conf") ? file : files[path],
  };
  return new Config(sources);
}

Deno.test("parseProperties() reads Java's format", () => {
  const text = "# c\n! c\n a = b \r\nk:v\nplain word\nlong=one, \\\n   two\npath=C:\\log\\\\x\nu=\\u0041\nempty=\n";
  assert.deepEqual(parseProperties(text).map(({ key, value, line }) => [key, value, line]), [
    ["a", "b", 3],
    ["k", "v", 4],
    ["plain", "word", 5],
    ["long", "one, two", 6],
    ["path", "C:\\log\\x", 8],
    ["u", "A", 9],
    ["empty", "", 10],
  ]);
});

Deno.test("units: sizes, durations, addresses", () => {
  assert.deepEqual(["64k", "2M", "1g", "17", "x", "1.5m", ""].map(parseSize), [
    65_536,
    2 << 20,
    2 ** 30,
    17,
    undefined,
    undefined,
    undefined,
  ]);
  assert.deepEqual([65_536, 1000, 3 * 2 ** 30].map(formatSize), ["64k", "1000", "3g"]);
  assert.deepEqual(["5m", "500ms", "7", "1500us", "2x"].map((text) => parseDuration(text, "ms")), [
    300_000,
    500,
    7,
    2,
    undefined,
  ]);
  assert.deepEqual(parseAddress("0:9003"), { hostname: "0.0.0.0", port: 9003 });
  assert.deepEqual(parseAddress("[::1]:1"), { hostname: "::1", port: 1 });
  for (const bad of ["9003", "host", "h:70000", "a b:1", ":1"]) assert.equal(parseAddress(bad), undefined, bad);
});

Deno.test("Config: the environment has precedence over the file, the file over the default", () => {
  const config = load("pg.user=a\nhttp.bind.to=127.0.0.1:1\nquery.timeout=5m", {
    SVC_PG_USER: "b",
    SVC_HTTP_KEEP_ALIVE_MAX: "7",
    PATH: "/",
  });
  assert.equal(valueOf(config, "pg.user"), "b");
  assert.deepEqual(valueOf(config, "http.net.bind.to"), { hostname: "127.0.0.1", port: 1 });
  assert.equal(valueOf(config, "query.timeout"), 300_000);
  assert.equal(valueOf(config, "http.keep-alive.max"), 7);
  assert.equal(valueOf(config, "http.min.net.connection.limit"), 4);
  assert.equal(valueOf(config, "http.min.worker.count"), null);
  assert.equal(valueOf(config, "shared.worker.count"), 2);
  assert.equal(config.source(catalogue.get("http.net.bind.to")!), "conf");
  assert.deepEqual(config.warnings, []);
});

Deno.test("Config: secrets come from files and are never shown", () => {
  const config = load("", { SVC_PG_PASSWORD_FILE: "/run/pw" }, { "/run/pw": "s3cret\n" });
  assert.equal(valueOf(config, "pg.password"), "s3cret");
  const shown = config.parameters().find((parameter) => parameter.path === "pg.password")!;
  assert.deepEqual(shown, {
    path: "pg.password",
    envName: "SVC_PG_PASSWORD",
    value: "****",
    source: "env",
    sensitive: true,
    reloadable: true,
  });
  assert.ok(!JSON.stringify(config.parameters()).includes("s3cret"));
});

Deno.test("Config: an unknown key is a warning with the nearest known one, or a fault in strict mode", () => {
  assert.deepEqual(load("http.enabeld=true").warnings, [
    "/r/conf/server.conf:1: unknown key http.enabeld; did you mean http.enabled?",
  ]);
  assert.deepEqual(load("", { SVC_PG_USR: "x" }).warnings, [
    "the environment: unknown key SVC_PG_USR; did you mean SVC_PG_USER?",
  ]);
  assert.deepEqual(
    load("", { SVC_LOG_W_STDOUT_LEVEL: "INFO", SVC_LOG_QUEUEDEPTH: "8", SVC_DEBUG: "true", SVC_VERSION: "1" }).warnings,
    [],
  );
  assert.throws(() => load("nosuch.key=1\nconfig.validation.strict=true"), { name: "ConfigError", key: "nosuch.key" });
});

Deno.test("Config: keys of QuestDB for parts that do not exist here are reported but are not faults, even in strict mode", () => {
  const config = load("config.validation.strict=true\ncairo.o3.max.lag=5s\nhttp.worker.count=2", {
    SVC_CAIRO_MAX_UNCOMMITTED_ROWS: "1000",
  });
  assert.deepEqual(config.warnings, [
    "keys of QuestDB that have no effect here: cairo.o3.max.lag, http.worker.count, SVC_CAIRO_MAX_UNCOMMITTED_ROWS",
  ]);
});

const refused: [string, string, Record<string, string>?][] = [
  ["http.enabled=maybe", "http.enabled"],
  ["http.bind.to=localhost", "http.net.bind.to"],
  ["query.timeout=2x", "query.timeout"],
  ["http.min.worker.count=2", "http.min.worker.count"],
  ["cairo.commit.mode=never", "cairo.commit.mode"],
  ["cairo.pool.size=12", "cairo.pool.size"],
  ["http.user=a", "http.password"],
  ["http.redirect.1=/ to /x", "http.redirect.1"],
  ["line.tcp.auth.db.path=conf/auth.db", "line.tcp.auth.db.path"],
  ["pg.net.bind.to=127.0.0.1:9000", "pg.net.bind.to"],
  ["", "pg.password", { SVC_PG_PASSWORD_FILE: "/missing" }],
];
for (const [file, key, env] of refused) {
  Deno.test(`Config refuses ${file || JSON.stringify(env)}`, () =>
    assert.throws(() => load(file, env), { name: "ConfigError", key }));
}

Deno.test("Config: a message names key, found and expected", () => {
  assert.throws(() => load("\nquery.timeout=soon"), {
    message:
      '/r/conf/server.conf:2: query.timeout: found "soon", expected a duration (milliseconds, or with us, ms, s, m, h, d)',
  });
});

Deno.test("Config: listeners may share a port at different addresses, if one is off, or if the system chooses it", () => {
  for (
    const file of [
      "http.net.bind.to=127.0.0.1:1\npg.net.bind.to=127.0.0.2:1",
      "pg.net.bind.to=0:9000\npg.enabled=false",
      "http.net.bind.to=0:0\npg.net.bind.to=0:0",
    ]
  ) load(file);
});

Deno.test("Config: all faults are reported together, and a key's fault causes no further ones", () => {
  const faults: ConfigError[] = [];
  const readFile = () => {
    throw new Error("no permission");
  };
  const env = { SVC_CAIRO_POOL_SIZE: "all", SVC_CAIRO_MEMORY_SIZE: "256m", SVC_QUERY_TIMEOUT: "soon" };
  const config = new Config({ root: "/r", sections, env, machine, readFile, faults });
  assert.deepEqual(faults.map(({ key }) => key), ["server.conf", "query.timeout", "cairo.pool.size"]);
  assert.equal(valueOf(config, "query.timeout"), 60_000);
  assert.throws(() => new Config({ root: "/r", sections, env, machine, readFile }), {
    name: "ConfigError",
    key: "server.conf",
    message: faults.map(({ message }) => message).join("\n"),
  });
});

Deno.test("Config.reload() applies reloadable keys only", () => {
  let file = "pg.user=a\nquery.timeout=1s";
  const config = new Config({ root: "/r", sections, env: {}, machine, readFile: () => file });
  file = "pg.user=b\nquery.timeout=2s";
  assert.deepEqual(config.reload(), { changed: ["pg.user"], ignored: ["query.timeout"] });
  assert.equal(valueOf(config, "pg.user"), "b");
  assert.equal(valueOf(config, "query.timeout"), 1000);
  file = "pg.net.connection.limit=many";
  assert.throws(() => config.reload());
  assert.equal(valueOf(config, "pg.user"), "b");
});

Deno.test("Config: a default follows the setting that it depends on", () => {
  const MIB = 2 ** 20;
  for (
    const [memory, pool] of [
      ["64m", 32 * MIB],
      ["1g", 512 * MIB],
      ["4095m", 2048 * MIB],
      ["14335m", 12_288 * MIB],
    ] satisfies [string, number][]
  ) {
    assert.equal(valueOf(load(`cairo.memory.size=${memory}`), "cairo.pool.size"), pool);
  }
  assert.equal(valueOf(load("cairo.memory.size=1g\ncairo.pool.size=17m"), "cairo.pool.size"), 17 * MIB);
});

function configOfMachine(memoryBytes: number): Config {
  return new Config({
    root: "/r",
    sections,
    env: {},
    machine: { cores: 1, memoryBytes, hostName: "box" },
    readFile: () => undefined,
  });
}

Deno.test("the pool has a quarter of a small machine's memory, and half of a large one's", () => {
  const sizes = [
    [0.25, "memory 128", "pool 64"],
    [2, "memory 1024", "pool 512"],
    [8, "memory 4095", "pool 2048"],
    [9, "memory 5119", "pool 3072"],
    [12, "memory 8191", "pool 6144"],
    [16, "memory 10239", "pool 8192"],
    [24, "memory 14335", "pool 12288"],
    [256, "memory 133119", "pool 131072"],
  ] as const;
  for (const [gib, memory, pool] of sizes) {
    const config = configOfMachine(gib * 2 ** 30), mib = (key: string) => Number(valueOf(config, key)) / 2 ** 20;
    assert.deepEqual(
      [`memory ${mib("cairo.memory.size")}`, `pool ${mib("cairo.pool.size")}`],
      [memory, pool],
      `${gib} GiB`,
    );
  }
});

Deno.test("every default is a valid value, on small and large machines", () => {
  for (const memoryBytes of [2 ** 28, 2 ** 40, 2 ** 43]) configOfMachine(memoryBytes);
  assert.equal(valueOf(configOf({ "instance.name": "a\\b" }), "instance.name"), "a\\b");
});
