import assert from "node:assert/strict";
import { join } from "node:path";
import { dateFormat } from "./dates.ts";
import { parseLocation, RollingOutput } from "./files.ts";
import { Log, logger, type LogOptions, openLog } from "./mod.ts";
import { WriterQueue } from "./queue.ts";
import { allProperties, classNames } from "./writers.ts";
import { type Level, levelBit, LEVELS, parseLevels } from "./record.ts";

/** 2026-11-21T09:56:12.388239Z */
const NOON = Date.UTC(2026, 10, 21, 9, 56, 12, 388) * 1000 + 239;

function capture() {
  const chunks: string[] = [];
  const stdout = {
    write: (bytes: Uint8Array) => Promise.resolve(chunks.push(new TextDecoder().decode(bytes)) && bytes.length),
  };
  return { stdout, text: () => chunks.join("") };
}

function withConf(conf: string, options: Partial<LogOptions> = {}) {
  const root = Deno.makeTempDirSync();
  Deno.mkdirSync(join(root, "conf"));
  Deno.mkdirSync(join(root, "log"));
  Deno.writeTextFileSync(join(root, "conf", "log.conf"), conf);
  const out = capture();
  return { root, out, options: { root, env: {}, defaults: "", stdout: out.stdout, ...options } };
}

async function linesOf(conf: string, options: Partial<LogOptions> = {}, loggerName = "server-main"): Promise<string> {
  const { out, options: all } = withConf(conf, options);
  const log = new Log(all);
  for (const level of LEVELS) {
    log.receive({ timeMicros: NOON, level, logger: loggerName, message: level.toLowerCase() });
  }
  await log.close();
  return out.text();
}

const lettersOf = async (...args: Parameters<typeof linesOf>) =>
  [...(await linesOf(...args)).matchAll(/Z ([A-Z]) /g)].map((match) => match[1]).join("");
const STDOUT = "writers=stdout\nw.stdout.class=io.questdb.log.LogConsoleWriter\n";

Deno.test("a line: time with microseconds, letter, logger, message, CRLF", async () => {
  assert.equal(
    await linesOf(`${STDOUT}w.stdout.level=CRITICAL`),
    "2026-11-21T09:56:12.388239Z C server-main critical\r\n2026-11-21T09:56:12.388239Z A server-main advisory\r\n",
  );
});

Deno.test("verbose levels and a time zone", async () => {
  const timestamp = { format: "yyyy-MM-ddTHH:mm:ss.SSSUUUz", zone: "Europe/Berlin", locale: "en" };
  assert.equal(
    await linesOf(`${STDOUT}w.stdout.level=ADVISORY`, { verbose: true, timestamp }),
    "2026-11-21T10:56:12.388239Europe/Berlin ADVISORY server-main advisory\r\n",
  );
});

Deno.test("levels: a word means itself and all above, DEBUG only itself, lists are unions", async () => {
  const cases: [string, string][] = [["INFO", "IECA"], ["ERROR", "ECA"], ["DEBUG", "D"], ["error,debug", "DECA"], [
    "ADVISORY",
    "A",
  ]];
  for (const [level, letters] of cases) {
    assert.equal(await lettersOf(`${STDOUT}w.stdout.level=${level}`), letters, level);
  }
  assert.equal(parseLevels("LOUD"), undefined);
  assert.equal(parseLevels("ADVISORY"), levelBit("ADVISORY"));
});

Deno.test("-Debug and SVC_DEBUG add DEBUG to every writer; SVC_LOG_… has precedence over the file", async () => {
  assert.equal(await lettersOf(`${STDOUT}w.stdout.level=CRITICAL`, { debug: true }), "DCA");
  assert.equal(await lettersOf(`${STDOUT}w.stdout.level=CRITICAL`, { env: { SVC_DEBUG: "true" } }), "DCA");
  assert.equal(
    await lettersOf(`${STDOUT}w.stdout.level=CRITICAL`, { env: { SVC_LOG_W_STDOUT_LEVEL: "INFO" } }),
    "IECA",
  );
  assert.equal(await lettersOf(`${STDOUT}`, { env: { SVC_LOG_WRITERS: "" } }), "");
});

Deno.test("a logger uses the writers with the longest matching scope", async () => {
  const conf = STDOUT.replace("stdout\n", "stdout,http.min\n") +
    "w.http.min.class=LogConsoleWriter\nw.http.min.level=ERROR\nw.http.min.scope=http-min-server\n";
  assert.equal(await lettersOf(conf, {}, "http-server"), "IECA");
  assert.equal(await lettersOf(conf, {}, "http-min-server"), "ECA");
});

const refused: [string, string][] = [
  ["writers=a\nw.a.class=io.questdb.log.NoSuchWriter", "w.a.class"],
  ["writers=a\nw.a.class=LogConsoleWriter\nw.a.level=LOUD", "w.a.level"],
  ["writers=a\nw.a.class=LogConsoleWriter\nw.a.nosuchkey=1", "w.a.nosuchkey"],
  ["writers=a\nw.a.class=LogFileWriter", "w.a.location"],
  ["writers=a\nw.a.class=LogFileWriter\nw.a.location=/nowhere/at/all/x.log", "w.a.location"],
  ["writers=a\nw.a.class=LogFileWriter\nw.a.location=${nosuch}/x.log", "w.a.location"],
  ["writers=a\nw.a.class=LogRollingFileWriter\nw.a.location=${log.dir}/x\nw.a.rollEvery=fortnight", "w.a.rollEvery"],
  ["writers=a\nw.a.class=LogRollingFileWriter\nw.a.location=${log.dir}/x\nw.a.rollSize=big", "w.a.rollSize"],
  // A bare number would mean milliseconds and delete every old file.
  ["writers=a\nw.a.class=LogRollingFileWriter\nw.a.location=${log.dir}/x\nw.a.lifeDuration=30", "w.a.lifeDuration"],
  ["writers=a\nw.a.class=LogRollingFileWriter\nw.a.location=${log.dir}/x\nw.a.lifeDuration=30ms", "w.a.lifeDuration"],
  // A writer without any property is accepted, because the shipped file has one.
  ["writers=a\nw.a.level=CRITICAL\nw.a.alertTargets=localhost:9093", "w.a.class"],
  ["writer=a", "writer"],
];
for (const [conf, key] of refused) {
  Deno.test(`log.conf is refused with its key: ${key}`, () =>
    assert.throws(() => new Log(withConf(conf).options), { name: "ConfigError", key }));
}

Deno.test("a misspelt SVC_LOG_ name of an enabled writer prevents the start; those of other writers are ignored", () => {
  const conf = `${STDOUT.replace("stdout\n", "stdout,http.min\n")}w.http.min.class=LogConsoleWriter\n`;
  const { options } = withConf(conf);
  const check = (name: string) =>
    Log.check({ ...options, env: { [name]: "INFO" } }).faults.map(({ key, message }) => [key, message]);
  const message = "SVC_LOG_W_STDOUT_LEVL: no writer has this property; did you mean SVC_LOG_W_STDOUT_LEVEL?";
  assert.deepEqual(check("SVC_LOG_W_STDOUT_LEVL"), [["SVC_LOG_W_STDOUT_LEVL", message]]);
  for (const name of ["SVC_LOG_W_HTTP_MIN_LEVEL", "SVC_LOG_W_FILE_LEVL", "SVC_LOG_LEVEL_VERBOSE"]) {
    assert.deepEqual(check(name), []);
  }
});

Deno.test("SVC_DEBUG accepts only true and false", () => {
  const faults = (SVC_DEBUG: string) => Log.check(withConf(STDOUT, { env: { SVC_DEBUG } }).options).faults;
  assert.deepEqual(["true", "FALSE", ""].map((text) => faults(text).length), [0, 0, 0]);
  assert.deepEqual(faults("1").map(({ message }) => message), ['SVC_DEBUG: found "1", expected true or false']);
});

Deno.test("SVC_LOG_LOG_DIR sets ${log.dir}", async () => {
  const directory = Deno.makeTempDirSync();
  const conf = "writers=a\nw.a.class=LogFileWriter\nw.a.location=${log.dir}/x.log";
  const { options } = withConf(conf, { env: { SVC_LOG_LOG_DIR: directory } });
  const log = new Log(options);
  log.receive({ timeMicros: NOON, level: "INFO", logger: "x", message: "here" });
  await log.close();
  assert.match(Deno.readTextFileSync(join(directory, "x.log")), / I x here\r\n$/);
  const elsewhere = { ...options, env: { SVC_LOG_LOG_DIR: join(directory, "none") } };
  assert.deepEqual(Log.check(elsewhere).faults.map(({ key }) => key), ["w.a.location"]);
});

Deno.test("properties of writers that are not enabled are ignored", async () => {
  assert.equal(await lettersOf(`${STDOUT}w.other.class=Nonsense\nw.other.what=1\nw.stdout.level=ADVISORY`), "A");
});

Deno.test("-Dout names another file, and the defaults apply if it is missing", () => {
  const { root, options } = withConf(STDOUT);
  const other = join(root, "other.conf");
  Deno.writeTextFileSync(other, "writers=\n");
  assert.equal(new Log({ ...options, out: other }).origin, `Log configuration loaded from: ${other}`);
  assert.match(new Log({ ...options, out: join(root, "none.conf") }).origin, /factory defaults/);
});

Deno.test("logger() keeps braces, and LogTape's own loggers do not interfere", async () => {
  const { out, options } = withConf(`${STDOUT}w.stdout.level=INFO`);
  const log = openLog(options);
  logger("q").info("select {a} from '{b}'");
  logger("q").debug(() => assert.fail("nobody wants DEBUG"));
  await log.close();
  logger("q").info("after the end");
  assert.match(out.text(), /^\S+Z I q select \{a\} from '\{b\}'\r\n$/);
});

Deno.test("rolling by size: .1 is the newest of the old files, and the oldest are deleted", async () => {
  const { root } = withConf("");
  const path = join(root, "log", "r.log");
  const location = parseLocation(path, {}) as Exclude<ReturnType<typeof parseLocation>, { unknown: string }>;
  const output = new RollingOutput(
    { location, rollEvery: "NONE", rollSize: 25, lifeDurationMs: 0, sizeLimit: 45 },
    NOON,
  );
  const line = (text: string) => ({ timeMicros: NOON, level: "INFO" as Level, text: `${text.padEnd(9)}\n` });
  await output.write(["a", "b", "c", "d"].map(line));
  await output.write(["e", "f", "g"].map(line));
  await output.close();
  const read = (name: string) => Deno.readTextFileSync(join(root, "log", name)).replace(/\s/g, "");
  assert.deepEqual([read("r.log"), read("r.log.1")], ["g", "ef"]);
  // a+b is 20 bytes: with e+f and g it is above the limit of 45.
  assert.deepEqual([...Deno.readDirSync(join(root, "log"))].map((entry) => entry.name).sort(), [
    "r.log",
    "r.log.1",
    "r.log.2",
  ]);
  assert.equal(read("r.log.2"), "cd");
});

Deno.test("rolling by time: the first message after the boundary opens the next file", async () => {
  const { root } = withConf("");
  const location = parseLocation("${log.dir}/x-${date:yyyyMMdd-HHmm}.log", { "log.dir": join(root, "log") });
  assert.ok(!("unknown" in location));
  const output = new RollingOutput(
    { location, rollEvery: "MINUTE", rollSize: 0, lifeDurationMs: 0, sizeLimit: 0 },
    NOON,
  );
  const line = (timeMicros: number, text: string) => ({ timeMicros, level: "INFO" as Level, text });
  await output.write([line(NOON, "a"), line(NOON + 60e6, "b"), line(NOON + 61e6, "c")]);
  await output.close();
  const read = (name: string) => Deno.readTextFileSync(join(root, "log", name));
  assert.deepEqual([read("x-20261121-0956.log"), read("x-20261121-0957.log")], ["a", "bc"]);
});

Deno.test("WriterQueue drops DEBUG and INFO when the disk is slow, never ERROR, and reports the number", async () => {
  const written: string[] = [];
  let release = () => {};
  const gate = new Promise<void>((resolve) => release = resolve);
  const output = {
    write: async (lines: { text: string }[]) => {
      await gate;
      written.push(...lines.map((line) => line.text));
    },
    close: () => Promise.resolve(),
  };
  const queue = new WriterQueue(output, 10, (count) => ({ timeMicros: 0, level: "ERROR", text: `dropped ${count}` }));
  for (let index = 0; index < 100; index++) {
    queue.push({ timeMicros: 0, level: index % 10 === 0 ? "ERROR" : "INFO", text: `${index % 10 === 0 ? "E" : "I"}` });
  }
  await Promise.resolve();
  for (let index = 0; index < 100; index++) {
    queue.push({ timeMicros: 0, level: index % 2 ? "CRITICAL" : "DEBUG", text: `${index % 2 ? "C" : "D"}` });
  }
  release();
  await queue.close();
  assert.equal(written.filter((text) => text === "E").length, 10);
  assert.equal(written.filter((text) => text === "C").length, 50);
  const told = written.filter((text) => text.startsWith("dropped")).reduce(
    (sum, text) => sum + Number(text.slice(8)),
    0,
  );
  assert.equal(told, queue.state.dropped);
  assert.ok(told > 0);
});

Deno.test("WriterQueue counts the lines that a failing disk loses", async () => {
  const written: string[] = [], rescued: string[] = [];
  let fails = true;
  const output = {
    write: (lines: { text: string }[]) => {
      if (fails) return Promise.reject(new Error("no space"));
      written.push(...lines.map((line) => line.text));
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  };
  const line = (level: Level) => ({ timeMicros: 0, level, text: level });
  const queue = new WriterQueue(
    output,
    1000,
    (count) => ({ timeMicros: 0, level: "ERROR", text: `dropped ${count}` }),
    (lines) => rescued.push(...lines.map(({ text }) => text)),
  );
  for (const level of ["INFO", "ERROR", "DEBUG"] as const) queue.push(line(level));
  await queue.flush();
  fails = false;
  queue.push(line("INFO"));
  await queue.close();
  assert.deepEqual([rescued, written, queue.state.dropped], [["INFO", "ERROR", "DEBUG"], ["INFO", "dropped 2"], 2]);
});

Deno.test("dateFormat() supports Java's pattern letters", () => {
  assert.equal(dateFormat("EEE d MMM yy 'at' H:mm z")(NOON), "Sat 21 Nov 26 at 9:56 Z");
  assert.equal(dateFormat("yyyy/MM/dd", "Asia/Tokyo")(Date.UTC(2026, 11, 31, 16) * 1000), "2027/01/01");
  assert.throws(() => dateFormat("yyyy", "Mars/Olympus"));
});

Deno.test("docs/log.md has every property of every class", () => {
  const page = Deno.readTextFileSync(new URL("../../docs/log.md", import.meta.url));
  const told = new Set(
    [...page.matchAll(/^\| ((?:`\w+`(?:, )?)+) \|/gm)].flatMap(([, names]) => names.match(/\w+/g)!),
  );
  // Accepted without effect in files for QuestDB.
  const known = ["class", "level", "scope", "bufferSize", ...allProperties()].filter((name) =>
    name !== "spinBeforeFlush"
  );
  assert.deepEqual(known.filter((name) => !told.has(name)), []);
  for (const name of classNames()) assert.ok(page.includes(name.split(".").at(-1)!), name);
});
