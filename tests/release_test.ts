/** Tests of the release that need no executable: what is distributed with it, the workflows, and the image. */
import * as CycloneDX from "@cyclonedx/cyclonedx-library";
// The validator uses these if they are available.
import "ajv";
import "ajv-formats";
import "ajv-formats-draft2019";
import { unzipSync } from "fflate";
import { parseTar } from "nanotar";
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { parse } from "yaml";
import about from "../deno.json" with { type: "json" };
import page from "../src/console/deno.json" with { type: "json" };
import { type ArchiveFile, tarGz, zip } from "../scripts/release/archive.ts";
import { consoleDirectory } from "../scripts/console/mod.ts";
import { licenseTexts } from "../scripts/release/licenses.ts";
import { CONSOLE, PackageCache, PROGRAM, ROOT, shippedPackages } from "../scripts/release/packages.ts";
import { billOfMaterials, purlOf } from "../scripts/release/sbom.ts";
import { TARGETS } from "../scripts/release/targets.ts";
import { smoke } from "../scripts/smoke.ts";
import { configOf } from "../src/command/testing.ts";
import { healthSettings } from "../src/wire/health/settings.ts";
import { httpSettings } from "../src/wire/http/settings.ts";
import { lineTcpSettings } from "../src/wire/line-tcp/settings.ts";
import { pgSettings } from "../src/wire/pg/settings.ts";
import { installed } from "./programs.ts";

const TIME = new Date("2026-01-02T03:04:06Z");
const read = (path: string) => Deno.readTextFileSync(join(ROOT, path));

const FILES: ArchiveFile[] = [
  { path: "top/sundial", bytes: new TextEncoder().encode("executable ".repeat(9)), executable: true },
  { path: "top/LICENSE", bytes: new TextEncoder().encode("licence") },
  { path: "top/conf/server.conf", bytes: new Uint8Array() },
];

Deno.test("tarGz() is reproducible: sorted files, no owner, one time", () => {
  const bytes = tarGz(FILES, TIME);
  assert.deepEqual(bytes, tarGz(FILES.toReversed(), TIME));
  assert.notDeepEqual(bytes, tarGz(FILES, new Date(TIME.getTime() + 1000)));
  const entries = parseTar(gunzipSync(bytes));
  assert.deepEqual(entries.map(({ name }) => name), ["top/LICENSE", "top/conf/server.conf", "top/sundial"]);
  assert.deepEqual(entries.map(({ attrs }) => Number.parseInt(attrs!.mode!, 8)), [0o644, 0o644, 0o755]);
  for (const { attrs } of entries) {
    assert.deepEqual([attrs!.uid, attrs!.gid, attrs!.user, attrs!.group], [0, 0, "", ""]);
    assert.equal(new Date(attrs!.mtime! * 1000).toISOString(), TIME.toISOString());
  }
  assert.equal(entries[2].text, "executable ".repeat(9));
  // gzip has its own time and system.
  assert.equal(Buffer.from(bytes).readUInt32LE(4), 0);
});

Deno.test("zip() is reproducible: sorted files, one time in every time zone", async () => {
  const bytes = zip(FILES, TIME);
  assert.deepEqual(bytes, zip(FILES.toReversed(), TIME));
  const unpacked = unzipSync(bytes);
  assert.deepEqual(Object.keys(unpacked), ["top/LICENSE", "top/conf/server.conf", "top/sundial"]);
  assert.equal(new TextDecoder().decode(unpacked["top/sundial"]), "executable ".repeat(9));
  // The first entry's time and date, in DOS format: 03:04:06 on 2026-01-02.
  assert.equal(Buffer.from(bytes).readUInt16LE(10), (3 << 11) | (4 << 5) | 3);
  assert.equal(Buffer.from(bytes).readUInt16LE(12), ((2026 - 1980) << 9) | (1 << 5) | 2);
  const code = `import { zip } from ${JSON.stringify(new URL("../scripts/release/archive.ts", import.meta.url).href)};
    Deno.stdout.writeSync(zip([{ path: "a", bytes: new Uint8Array(3) }], new Date(${TIME.getTime()})));`;
  const inZone = async (zone: string) =>
    (await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--lock=dev.lock", "--frozen", code],
      cwd: ROOT,
      env: { TZ: zone },
    }).output()).stdout;
  const [west, east] = await Promise.all(["America/Anchorage", "Asia/Kathmandu"].map(inZone));
  assert.ok(west.length > 0);
  assert.deepEqual(west, east);
});

Deno.test("billOfMaterials() is valid CycloneDX, and lists deno.lock, Deno and V8", async () => {
  const cache = await PackageCache.open([...PROGRAM, ...CONSOLE]);
  const packages = shippedPackages(await consoleDirectory(ROOT));
  const text = billOfMaterials(about.version, packages, cache, TIME);
  assert.equal(text, billOfMaterials(about.version, packages, cache, TIME));
  const validator = new CycloneDX.Validation.JsonStrictValidator(CycloneDX.Spec.Version.v1dot6);
  assert.equal(await validator.validate(text), null);
  // Check that the validator rejects an invalid document.
  assert.notEqual(await validator.validate(text.replace(`"type": "library"`, `"type": "shelf"`)), null);

  const { components, dependencies, metadata } = JSON.parse(text);
  const purls = components.map(({ purl }: { purl: string }) => purl);
  const runtime = [`pkg:github/denoland/deno@v${Deno.version.deno}`, `pkg:generic/v8@${Deno.version.v8}`];
  assert.deepEqual(purls, [...packages.map(purlOf), ...runtime]);
  for (const { licenses, hashes, type } of components) {
    assert.match(licenses[0].expression, /^[\w.-]+$/);
    if (type === "library") assert.match(hashes[0].content, /^[0-9a-f]{128}$/);
  }
  assert.equal(metadata.timestamp, "2026-01-02T03:04:06Z");
  const refs = dependencies.map(({ ref }: { ref: string }) => ref);
  assert.deepEqual(refs.toSorted(), [metadata.component["bom-ref"], ...purls].sort());
  const imported = [...Object.values(about.imports), ...Object.values(page.imports)];
  const own = new Set(imported.map((specifier) => /^npm:(@?[^@]+@[^/]+)/.exec(specifier)![1]));
  const direct = dependencies[0].dependsOn.filter((ref: string) => ref.startsWith("pkg:npm/"));
  assert.deepEqual(
    direct.map((ref: string) => ref.slice("pkg:npm/".length).replace("%40", "@")).sort(),
    [...own].sort(),
  );
});

Deno.test("licenseTexts() has the terms of every package, of Deno and of V8", async () => {
  const packages = shippedPackages(await consoleDirectory(ROOT));
  const text = licenseTexts(packages, await PackageCache.open([...PROGRAM, ...CONSOLE]));
  for (const { id } of packages) {
    assert.match(text, new RegExp(`^${id.replaceAll(".", "\\.")} \\(.+\\)$`, "m"));
  }
  for (const part of [/^deno 2\..* \(MIT\)$/m, /^v8 .* \(BSD-3-Clause\)$/m, /Copyright .* the Deno authors/]) {
    assert.match(text, part);
  }
  assert.doesNotMatch(text, /\r/);
});

Deno.test({
  name: "smoke() passes for `deno task start`",
  // A task passes signals on to its command, but not on Windows.
  ignore: Deno.build.os === "windows",
  fn: () => smoke([Deno.execPath(), "task", "start"], { cwd: ROOT }),
});

Deno.test("smoke() fails with the output of a program that does not serve", async () => {
  const sleeper = [Deno.execPath(), "eval", "console.error('no such root'); Deno.exit(3)"];
  await assert.rejects(smoke(sleeper), /ended with status 3[^]*no such root/);
});

interface Job {
  needs?: string | string[];
  strategy?: { matrix: { include?: Record<string, string>[]; os?: string[]; suite?: string[] } };
  steps: { run?: string; uses?: string; with?: Record<string, unknown> }[];
}

const workflows = ["release", "test", "nightly"].map((name) => ({
  name,
  jobs: parse(read(`.github/workflows/${name}.yml`)).jobs as Record<string, Job>,
}));
const [release, test, nightly] = workflows.map(({ jobs }) => jobs);
const runs = (job: Job) => job.steps.map(({ run }) => run ?? "").join("\n");

Deno.test("the release runs each executable on its own system before it is published", () => {
  assert.match(runs(release.compile), /deno task compile --all/);
  const systems = release.smoke.strategy!.matrix.include!;
  assert.deepEqual(systems.map(({ system }) => system).sort(), Object.values(TARGETS).toSorted());
  for (const { os, system } of systems) {
    assert.match(os, new RegExp(`^${{ l: "ubuntu", m: "macos", w: "windows" }[system[0]]}`));
  }
  assert.match(runs(release.smoke), /scripts\/smoke\.ts/);
  assert.deepEqual([release.publish.needs].flat().includes("smoke"), true);
});

Deno.test("tests run on Linux, Windows and macOS, and all workflows use one version of Deno", () => {
  assert.match(runs(test.linux), /\.ci\/run/);
  assert.deepEqual(test.others.strategy!.matrix.os!.map((os) => os.replace(/-.*/, "")), ["windows", "macos"]);
  assert.match(runs(test.others), /deno task test/);
  const version = /deno@(\S+) task test/.exec(read(".ci/run"))![1];
  for (const { name, jobs } of workflows) {
    for (const step of Object.values(jobs).flatMap(({ steps }) => steps)) {
      if (step.uses?.startsWith("denoland/setup-deno")) assert.equal(step.with!["deno-version"], version, name);
      // A tag can be moved to other code.
      if (step.uses !== undefined) assert.match(step.uses, /@(?:v\d+|[0-9a-f]{40})$/, name);
    }
  }
});

Deno.test("the suites that CONTRIBUTING.md lists at full length run each night", () => {
  const listed = [...read("CONTRIBUTING.md").matchAll(/^\| `(SUNDIAL_[^`]*)`/gm)].map(([, command]) => command);
  assert.ok(listed.length > 0);
  assert.deepEqual(nightly.long.strategy!.matrix.suite, listed);
});

Deno.test("actionlint finds nothing in the workflows", async () => {
  if ((await installed(["actionlint"], "workflows by actionlint")).length === 0) return;
  const { success, stdout } = await new Deno.Command("actionlint", { args: ["-no-color"], cwd: ROOT }).output();
  assert.ok(success, new TextDecoder().decode(stdout));
});

/** Instructions of the stage that becomes the image, each with its words. Elements of a JSON array are words. */
function lastStage(text: string): Map<string, string[]> {
  const lines = text.replaceAll(/^#.*\n/gm, "").replaceAll(/\\\n\s*/g, " ").split("\n").filter((line) =>
    line.trim() !== ""
  );
  const from = lines.findLastIndex((line) => line.startsWith("FROM "));
  return new Map(
    lines.slice(from).map((line) => {
      const [, name, rest] = /^([A-Z]+) (.*)$/.exec(line)!;
      const array = rest.indexOf("[");
      const words = (part: string) => part.split(/\s+/).filter((word) => word !== "");
      return [name, array < 0 ? words(rest) : [...words(rest.slice(0, array)), ...JSON.parse(rest.slice(array))]];
    }),
  );
}

Deno.test("the image contains only the executable, does not run as root, and declares ports, volume, signal and health", () => {
  const text = read("Containerfile");
  const image = lastStage(text);
  assert.deepEqual(image.get("FROM"), ["scratch"]);
  assert.match(image.get("USER")![0], /^[1-9]\d*:[1-9]\d*$/);
  const config = configOf();
  const listeners = [httpSettings, pgSettings, lineTcpSettings, healthSettings];
  assert.deepEqual(image.get("EXPOSE")!.map(Number), listeners.map(({ address }) => config.get(address).port));
  for (const { address } of listeners) {
    assert.equal(config.get(address).hostname, "0.0.0.0", "a container is reached from outside");
  }
  assert.deepEqual(image.get("STOPSIGNAL"), ["SIGTERM"]);
  // Without a shell, all commands must be arrays.
  const [program] = image.get("ENTRYPOINT")!;
  assert.match(text, /^ENTRYPOINT \[/m);
  assert.deepEqual(image.get("CMD"), ["start", "-d", image.get("VOLUME")![0]]);
  const health = image.get("HEALTHCHECK")!;
  assert.deepEqual(health.slice(health.indexOf("CMD")), ["CMD", program, "health", "-d", image.get("VOLUME")![0]]);
  // The files that it copies are made by the release, under the same names.
  const compiled = read("scripts/release/make.ts");
  for (const [, file] of text.matchAll(/\/dist\/([\w.-]+)/g)) {
    if (file !== "sundial") assert.ok(compiled.includes(`"${file}"`), file);
  }
  assert.match(text, new RegExp(`ARG SYSTEM=${TARGETS["x86_64-unknown-linux-gnu"]}\n`));
  assert.match(runs(release.image), /docker build .*Containerfile/);
});
