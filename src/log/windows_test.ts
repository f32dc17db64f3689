import assert from "node:assert/strict";
import { Log, standardOutput, windowsServiceName } from "./mod.ts";
import type { Level } from "./record.ts";
import { consoleFile, eventArguments, eventOutput } from "./windows.ts";

const now = new Date(2026, 2, 4, 5, 6, 7);
const service = { WINSW_SERVICE_ID: "Sundial" };
const paths: [string, Partial<Parameters<typeof consoleFile>[0]>, string | undefined][] = [
  ["interactively", {}, "log\\stdout-2026-03-04T05-06-07.txt"],
  ["interactively with -d", { dataDirectory: "D:\\data" }, "D:\\data\\log\\stdout-2026-03-04T05-06-07.txt"],
  ["as a service", { env: service }, "C:\\Windows\\System32\\qdbroot\\log\\service-2026-03-04T05-06-07.txt"],
  [
    "as a service with -d",
    { env: service, dataDirectory: "D:\\data" },
    "D:\\data\\log\\service-2026-03-04T05-06-07.txt",
  ],
  ["on Linux", { os: "linux", env: service, dataDirectory: "/data" }, undefined],
];
for (const [title, host, path] of paths) {
  Deno.test(`consoleFile() ${title}`, () =>
    assert.equal(consoleFile({ os: "windows", env: {}, dataDirectory: undefined, now, ...host }), path));
}

Deno.test("windowsServiceName() is the name given by the wrapper, on Windows", () => {
  assert.equal(windowsServiceName({ os: "windows", env: service }), "Sundial");
  assert.equal(windowsServiceName({ os: "windows", env: {} }), undefined);
  assert.equal(windowsServiceName({ os: "linux", env: service }), undefined);
});

function target(chunkBytes: number) {
  const bytes: number[] = [];
  const write = (part: Uint8Array) =>
    Promise.resolve(bytes.push(...part.subarray(0, chunkBytes)) && Math.min(chunkBytes, part.length));
  return { write, text: () => new TextDecoder().decode(Uint8Array.from(bytes)) };
}

Deno.test("standardOutput() on Windows writes to console and file, and opens the file with the first message", async () => {
  const [console, file] = [target(2), target(3)];
  const opened: string[] = [];
  const host = { os: "windows", env: {}, dataDirectory: "D:\\data", now };
  const output = standardOutput(host, console, (path) => (opened.push(path), file));
  assert.deepEqual(opened, []);
  for (const text of ["first\r\n", "second\r\n"]) {
    assert.equal(await output.write(new TextEncoder().encode(text)), text.length);
  }
  assert.deepEqual(opened, ["D:\\data\\log\\stdout-2026-03-04T05-06-07.txt"]);
  assert.deepEqual([console.text(), file.text()], ["first\r\nsecond\r\n", "first\r\nsecond\r\n"]);
  assert.equal(standardOutput({ ...host, os: "linux" }, console), console);
});

Deno.test("events: the service's name is the source, in the Application log; a failure is reported", async () => {
  assert.deepEqual(eventArguments("Sundial", "CRITICAL", 'a "fault"\r\n'), [
    ...["/L", "APPLICATION", "/SO", "Sundial", "/T", "ERROR", "/ID", "2", "/D", 'a "fault"'],
  ]);
  assert.equal(eventArguments("Sundial", "ADVISORY", "x".repeat(9000)).at(-1)!.length, 4000);
  const failing = eventOutput("Sundial", () => Promise.resolve({ code: 1 }));
  await assert.rejects(
    failing.write([{ timeMicros: 0, level: "CRITICAL", text: "x" }]),
    /eventcreate\.exe ended with 1/,
  );
});

Deno.test("events: a service sends critical and advisory records of every logger, regardless of log.conf", async () => {
  const runs: string[][] = [];
  const run = (program: string, args: string[]) => Promise.resolve({ code: 0 * runs.push([program, ...args]) });
  const root = Deno.makeTempDirSync();
  const log = new Log({ root, env: {}, defaults: "writers=\n", events: eventOutput("Sundial", run) });
  for (const level of ["DEBUG", "INFO", "ERROR", "CRITICAL", "ADVISORY"] satisfies Level[]) {
    log.receive({ timeMicros: 0, level, logger: "http-min-server", message: level });
  }
  await log.close();
  assert.deepEqual(runs.map((args) => [args[0], args[6], args.at(-1)!.slice(-25)]), [
    ["eventcreate.exe", "ERROR", " http-min-server CRITICAL"],
    ["eventcreate.exe", "INFORMATION", " http-min-server ADVISORY"],
  ]);
  Deno.removeSync(root, { recursive: true });
});
