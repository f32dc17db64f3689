import assert from "node:assert/strict";
import { join } from "node:path";
import { type Location, parseLocation, type RollEvery, type Rolling, RollingOutput } from "./files.ts";
import { Log } from "./mod.ts";

const at = (iso: string) => Date.parse(iso) * 1000;
const line = (timeMicros: number, text: string) => ({ timeMicros, level: "INFO" as const, text });
const names = (directory: string) => [...Deno.readDirSync(directory)].map((entry) => entry.name).sort();

function rolling(pattern: string, settings: Partial<Rolling>): { directory: string; rolling: Rolling } {
  const directory = Deno.makeTempDirSync();
  const location = parseLocation(join(directory, pattern), {}) as Location;
  return {
    directory,
    rolling: { location, rollEvery: "NONE", rollSize: 0, lifeDurationMs: 0, sizeLimit: 0, ...settings },
  };
}

const periods: [RollEvery, string, string, string][] = [
  ["MINUTE", "2026-03-31T23:59:00Z", "2026-03-31T23:59:59Z", "2026-04-01T00:00:00Z"],
  ["HOUR", "2026-03-31T23:00:00Z", "2026-03-31T23:59:59Z", "2026-04-01T00:00:00Z"],
  ["DAY", "2026-03-31T00:00:00Z", "2026-03-31T23:59:59Z", "2026-04-01T00:00:00Z"],
  ["MONTH", "2026-03-01T00:00:00Z", "2026-03-31T23:59:59Z", "2026-04-01T00:00:00Z"],
  ["YEAR", "2026-01-01T00:00:00Z", "2026-12-31T23:59:59Z", "2027-01-01T00:00:00Z"],
];
for (const [rollEvery, first, last, next] of periods) {
  Deno.test(`RollingOutput rolls every ${rollEvery.toLowerCase()}, and not before its last second ends`, async () => {
    const { directory, rolling: settings } = rolling("x.log", { rollEvery });
    const output = new RollingOutput(settings, at(first));
    await output.write([line(at(first), "a"), line(at(last), "b"), line(at(next), "c")]);
    await output.close();
    const read = (name: string) => Deno.readTextFileSync(join(directory, name));
    assert.deepEqual([names(directory), read("x.log"), read("x.log.1")], [["x.log", "x.log.1"], "c", "ab"]);
  });
}

Deno.test("RollingOutput deletes files of its pattern that are older than lifeDuration when a new one begins, and no others", async () => {
  const day = 86_400_000;
  const { directory, rolling: settings } = rolling("x-${date:yyyyMMdd}.log", {
    rollEvery: "DAY",
    lifeDurationMs: 3 * day,
  });
  const old: [string, number][] = [["x-20260301.log", 5], ["x-20260302.log.7", 4], ["x-20260303.log", 2], [
    "x-notes.log.txt",
    9,
  ], ["y-20260301.log", 9]];
  const now = Date.parse("2026-03-06T12:00:00Z");
  for (const [name, ageDays] of old) {
    Deno.writeTextFileSync(join(directory, name), "old");
    Deno.utimeSync(join(directory, name), (now - ageDays * day) / 1000, (now - ageDays * day) / 1000);
  }
  const output = new RollingOutput(settings, at("2026-03-05T23:00:00Z"));
  assert.equal(names(directory).length, 6, "nothing is deleted while nothing rolls");
  await output.write([line(at("2026-03-05T23:30:00Z"), "a"), line(now * 1000, "b")]);
  await output.close();
  assert.deepEqual(names(directory), [
    "x-20260303.log",
    "x-20260305.log",
    "x-20260306.log",
    "x-notes.log.txt",
    "y-20260301.log",
  ]);
});

Deno.test("RollingOutput creates directories from dates, and resumes writing when a missing directory is back", async () => {
  const { directory, rolling: settings } = rolling("x.log", { rollEvery: "MONTH" });
  Deno.mkdirSync(join(directory, "202603"));
  const location = parseLocation(join(directory, "${date:yyyyMM}", "x.log"), {}) as Location;
  const output = new RollingOutput({ ...settings, location }, at("2026-03-31T23:00:00Z"));
  await output.write([line(at("2026-03-31T23:30:00Z"), "a"), line(at("2026-04-01T00:00:00Z"), "b")]);
  assert.equal(Deno.readTextFileSync(join(directory, "202604", "x.log")), "b");
  // A path that is a file cannot become a directory.
  Deno.writeTextFileSync(join(directory, "202605"), "");
  await assert.rejects(output.write([line(at("2026-05-01T00:00:00Z"), "lost")]));
  Deno.removeSync(join(directory, "202605"));
  await output.write([line(at("2026-05-02T00:00:00Z"), "c")]);
  await output.close();
  assert.equal(Deno.readTextFileSync(join(directory, "202605", "x.log")), "c");
});

const classes: [string, string][] = ["io.service.log.", "io.questdb.log.", ""].flatMap((prefix) =>
  ["LogRollingFileWriter", "LogFileWriter"].map((name): [string, string] => [prefix, name])
);
for (const [prefix, name] of classes) {
  Deno.test(`${prefix}${name} appends to its location, with date, log directory and environment variables replaced`, async () => {
    const root = Deno.makeTempDirSync();
    Deno.mkdirSync(join(root, "conf"));
    Deno.mkdirSync(join(root, "log"));
    Deno.writeTextFileSync(join(root, "log", "a-20260306.log"), "before\r\n");
    Deno.writeTextFileSync(
      join(root, "conf", "log.conf"),
      `writers=f\nw.f.class=${prefix}${name}\nw.f.location=\${log.dir}/\${WHO}-\${date:yyyyMMdd}.log\nw.f.level=ERROR\n`,
    );
    const nowMicros = () => at("2026-03-06T12:00:00Z");
    const log = new Log({ root, env: { WHO: "a" }, defaults: "", nowMicros });
    log.receive({ timeMicros: nowMicros(), level: "ERROR", logger: "x", message: "after" });
    log.receive({ timeMicros: nowMicros(), level: "INFO", logger: "x", message: "not wanted" });
    await log.close();
    assert.equal(
      Deno.readTextFileSync(join(root, "log", "a-20260306.log")),
      "before\r\n2026-03-06T12:00:00.000000Z E x after\r\n",
    );
  });
}

Deno.test("SVC_LOG_ variables can set every key, including all keys of a writer that is not in the file", async () => {
  const root = Deno.makeTempDirSync();
  Deno.mkdirSync(join(root, "log"));
  const env = {
    SVC_LOG_WRITERS: "extra.one",
    SVC_LOG_W_EXTRA_ONE_CLASS: "LogRollingFileWriter",
    SVC_LOG_W_EXTRA_ONE_LOCATION: "${log.dir}/e.log",
    SVC_LOG_W_EXTRA_ONE_LEVEL: "DEBUG,CRITICAL",
    SVC_LOG_W_EXTRA_ONE_SCOPE: "pg-",
    SVC_LOG_W_EXTRA_ONE_ROLLSIZE: "1g",
    SVC_LOG_W_EXTRA_ONE_ROLLEVERY: "day",
  };
  const log = new Log({ root, env, defaults: "writers=\n" });
  for (const logger of ["pg-server", "http-server"]) {
    for (const level of ["DEBUG", "INFO", "CRITICAL"] as const) {
      log.receive({ timeMicros: 0, level, logger, message: "m" });
    }
  }
  await log.close();
  const letters = [...Deno.readTextFileSync(join(root, "log", "e.log")).matchAll(/Z (\w) (\S+)/g)];
  assert.deepEqual(letters.map(([, letter, logger]) => `${letter} ${logger}`), ["D pg-server", "C pg-server"]);
  for (const key of ["CLASS", "LEVEL", "ROLLEVERY", "ROLLSIZE"]) {
    const name = `SVC_LOG_W_EXTRA_ONE_${key}`;
    assert.throws(() => new Log({ root, env: { ...env, [name]: "nonsense" }, defaults: "writers=\n" }), {
      name: "ConfigError",
      message: new RegExp(`^w\\.extra\\.one\\.${key}: found "nonsense"`, "i"),
    });
  }
});
