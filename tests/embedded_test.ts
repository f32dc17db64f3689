/**
 * Compares the contents of an executable with the sources: a missing worker would fail only in the executable. `deno compile` adds
 * modules and files to a downloaded base; here the base is Deno itself, which needs no network. Such an executable does not run the
 * program (Deno ignores what was added), but the added contents are the same.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { unzipSync } from "fflate";
import { parseTar } from "nanotar";
import about from "../deno.json" with { type: "json" };
import { EMBEDDED } from "../scripts/embedded.ts";
import { consoleDirectory } from "../scripts/console/mod.ts";
import { START_FLAGS } from "../scripts/flags.ts";
import { readExecutable } from "../scripts/release/executable.ts";
import { makeRelease } from "../scripts/release/make.ts";
import {
  CONSOLE,
  filesBelow,
  PackageCache,
  PROGRAM,
  programPackages,
  ROOT,
  shippedPackages,
} from "../scripts/release/packages.ts";
import { compile, type Stage, stage } from "../scripts/release/stage.ts";
import { namesOf, TARGETS } from "../scripts/release/targets.ts";
import { smoke } from "../scripts/smoke.ts";

const PACKAGES = ".deno_compile_node_modules/localhost/";
const TIME = new Date("2026-01-02T03:04:06Z");

Deno.test("embedded: every worker and every file that the source reads by URL", () => {
  const read = new Set<string>();
  for (const path of ["main.ts", ...filesBelow(join(ROOT, "src")).map((path) => `src/${path}`)]) {
    if (!/\.ts$/.test(path) || /_test\.ts$/.test(path)) continue;
    const text = Deno.readTextFileSync(join(ROOT, path));
    for (const [, relative] of text.matchAll(/new URL\(\s*"([^"]+)"\s*,\s*import\.meta\.url/g)) {
      read.add(join(path, "..", relative).replaceAll("\\", "/"));
    }
    // Shipped files are read by name: see src/config/root.ts.
    for (const [, shipped] of text.matchAll(/"((?:conf|import)\/[\w.-]+)"/g)) read.add(shipped);
  }
  assert.deepEqual([...read].sort(), [...EMBEDDED].sort());
});

Deno.test("embedded: an executable", async (t) => {
  const [one, two] = [Deno.makeTempDirSync({ prefix: "sundial-" }), Deno.makeTempDirSync({ prefix: "sundial-other-" })];
  const base = Deno.env.get("DENORT_BIN");
  Deno.env.set("DENORT_BIN", Deno.execPath());
  try {
    const packages = await PackageCache.open([...PROGRAM, ...CONSOLE]);
    const system = TARGETS[Deno.build.target];
    const { archive, program } = namesOf(system, about.version);
    const consoleFiles = await consoleDirectory(ROOT);
    const dist = join(one, "dist");
    const made = await makeRelease({ targets: [Deno.build.target], dist, build: one, time: TIME });
    const outputs = [join(dist, system, program), join(two, program)];
    await compile(stage(two, packages, consoleFiles, TIME), Deno.build.target, outputs[1]);
    const executable = readExecutable(outputs[0]);
    const paths = executable.files.map(({ path }) => path);

    await t.step("has every worker, every shipped file, and the modules that they import", async () => {
      const modules = await importedBy(PROGRAM);
      const consolePaths = filesBelow(consoleFiles).map((path) => `build/console/${path}`);
      const own = paths.filter((path) => !path.startsWith(PACKAGES));
      assert.deepEqual(own.sort(), [...new Set([...modules, ...EMBEDDED, ...consolePaths])].sort());
      assert.ok(own.length > 100);
    });

    await t.step("has the program's packages, each with its code and nothing else", () => {
      assert.deepEqual(executable.packages, programPackages().map(({ id }) => id).sort(byId));
      for (const { name, version } of programPackages()) {
        const own = paths.filter((path) => path.startsWith(`${PACKAGES}${name}/${version}/`));
        assert.ok(own.some((path) => path.endsWith("/package.json")), name);
        assert.ok(own.some((path) => /\.[cm]?js$/.test(path)), name);
      }
      assert.deepEqual(paths.filter((path) => !/\.(?:[cm]?js|ts|json|conf|parquet|css|html|gz)$/.test(path)), []);
    });

    await t.step("has the flags, permissions and unstable features of the task start", () => {
      assert.ok(START_FLAGS.includes("-A"));
      const kinds = Object.entries(executable.permissions).filter(([key]) => key.startsWith("allow_"));
      assert.ok(kinds.length > 6);
      // An empty list allows everything.
      for (const [kind, allowed] of kinds) assert.deepEqual(allowed, [], kind);
      const v8Flags = START_FLAGS.filter((flag) => flag.startsWith("--v8-flags=")).flatMap((flag) =>
        flag.slice("--v8-flags=".length).split(",")
      );
      assert.deepEqual(v8Flags.filter((flag) => !executable.v8Flags.includes(flag)), []);
      const unstable = START_FLAGS.filter((flag) => flag.startsWith("--unstable-"))
        .map((flag) => flag.slice("--unstable-".length));
      assert.deepEqual(executable.unstableFeatures.toSorted(), unstable.sort());
      assert.equal(executable.entry, "main.ts");
    });

    await t.step("has the same bytes wherever it was compiled, and no paths of that machine", () => {
      const [first, second] = outputs.map((path) => sha256(Deno.readFileSync(path)));
      assert.equal(first, second);
      assert.deepEqual(new Set(executable.files.map(({ timeMs }) => timeMs)), new Set([TIME.getTime()]));
      for (const place of [one, ROOT]) assert.equal(Buffer.from(executable.bytes).indexOf(place), -1, place);
    });

    await t.step("is in an archive with its licences, its bill of materials and the configuration", () => {
      assert.deepEqual(made, [archive]);
      const sums = Deno.readTextFileSync(join(dist, "SHA256SUMS")).trim().split("\n").map((line) => line.split("  "));
      assert.deepEqual(sums.map(([, name]) => name), [archive, `sundial-${about.version}.cdx.json`]);
      for (const [sum, name] of sums) assert.equal(sha256(Deno.readFileSync(join(dist, name))), sum, name);

      const packed = Deno.readFileSync(join(dist, archive));
      const files = archive.endsWith(".zip")
        ? new Map(Object.entries(unzipSync(packed)))
        : new Map(parseTar(gunzipSync(packed)).map(({ name, data }) => [name, data!]));
      const top = `sundial-${about.version}-${system}/`;
      const expected = ["CHANGELOG.md", "LICENSE", "README.md", "THIRD-PARTY-LICENSES", program, "sundial.cdx.json"];
      const configuration = ["alert-manager-tpl.json", "log.conf", "server.conf"].map((name) => `conf/${name}`);
      assert.deepEqual([...files.keys()].sort(), [...expected, ...configuration].map((name) => top + name).sort());
      assert.equal(sha256(files.get(top + program)!), sha256(Deno.readFileSync(outputs[0])));

      const { components } = JSON.parse(new TextDecoder().decode(files.get(`${top}sundial.cdx.json`)));
      const listed = components.map(({ purl }: { purl: string }) => purl).filter((purl: string) =>
        purl.startsWith("pkg:npm/")
      );
      const embedded = shippedPackages(consoleFiles).map(({ id }) => id).map((id) =>
        `pkg:npm/${id.replace(/^@/, "%40")}`
      );
      assert.deepEqual(listed.sort(), embedded.sort());
    });

    await t.step("the staged packages are enough to start, query, scrape and stop", async () => {
      await smokeStaged({ tree: join(one, "tree"), cache: join(one, "cache") });
    });
  } finally {
    if (base === undefined) Deno.env.delete("DENORT_BIN");
    else Deno.env.set("DENORT_BIN", base);
    for (const directory of [one, two]) Deno.removeSync(directory, { recursive: true });
  }
});

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

const byId = (a: string, b: string) => {
  const [nameA, nameB] = [a, b].map((id) => id.slice(0, id.lastIndexOf("@")));
  return nameA < nameB ? -1 : 1;
};

interface Graph {
  modules: { specifier: string; dependencies?: { code?: { specifier: string } }[] }[];
}

/** Modules of the repository that `entries` load according to `deno info`, without modules imported only for types. */
async function importedBy(entries: readonly string[]): Promise<string[]> {
  const root = new URL("../", import.meta.url).href;
  const found = new Set<string>();
  for (const entry of entries) {
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["info", "--json", "--lock=deno.lock", entry],
      cwd: ROOT,
    }).output();
    const { modules } = JSON.parse(new TextDecoder().decode(stdout)) as Graph;
    const bySpecifier = new Map(modules.map((module) => [module.specifier, module]));
    const visit = (specifier: string) => {
      const path = specifier.slice(root.length);
      if (!specifier.startsWith(root) || found.has(path)) return;
      found.add(path);
      for (const { code } of bySpecifier.get(specifier)?.dependencies ?? []) if (code) visit(code.specifier);
    };
    visit(root + entry);
  }
  return [...found];
}

/** Runs the staged sources with only the embedded packages. */
async function smokeStaged({ tree, cache }: Stage): Promise<void> {
  await smoke([Deno.execPath(), "run", "--cached-only", ...START_FLAGS, join(tree, "main.ts")], {
    cwd: tree,
    env: { DENO_DIR: cache },
  });
}
