/**
 * Runs all tests that need only Deno and npm packages, with the flags of the program, except those of the garbage collector.
 *
 *     deno task test [PATH…] [--filter …]
 *
 * Without a path every test runs: types are checked once, and then each file of `tests/` runs in a process of its own, several at a
 * time (`TEST_JOBS`; default: one more than the number of cores, at most 5). Many tests wait for servers and clients.
 */
import { join, relative } from "node:path";
import { checkIndexes } from "./check-indexes.ts";
import { deno, DEVELOPMENT_FLAGS } from "./flags.ts";

const root = new URL("../", import.meta.url).pathname;
// Removing it removes all files that tests leave. The path is short, because sockets require that.
const temporary = Deno.makeTempDirSync({ prefix: "sundial-test-" });
for (const name of ["TMPDIR", "TMP", "TEMP"]) Deno.env.set(name, temporary);
// Longer assertions run as well, see `src/assert.ts`.
Deno.env.set("SUNDIAL_VERIFY", "true");
/**
 * The program keeps its heaps small. Tests make rows and compare them as objects: with a large young generation they take a quarter less
 * processor time. Servers that tests start have the flags of the program.
 */
const FLAGS = DEVELOPMENT_FLAGS.map((flag) =>
  flag.startsWith("--v8-flags=")
    ? flag.replace("--max-semi-space-size=2", "--min-semi-space-size=32")
      .replace(/,--(no-parallel-scavenge|heap-growing-percent=\d+)/g, "")
    : flag
);
/** They begin first, so that no process runs alone at the end. */
const LONG = ["tests/spill_test.ts", "tests/conformance_test.ts"];
let status = 1;
try {
  status = Deno.args.some((arg) => !arg.startsWith("-"))
    ? await deno("test", ...FLAGS, ...Deno.args)
    : await everything(Deno.args);
} finally {
  try {
    Deno.removeSync(temporary, { recursive: true });
  } catch (error) {
    console.error(`${temporary} could not be removed: ${(error as Error).message}`);
  }
}
Deno.exit(status);

/**
 * Prints the output of each process when it ends, those that failed again at the end, and one summary like that of `deno test`.
 * Returns the exit code.
 */
async function everything(options: readonly string[]): Promise<number> {
  const started = performance.now();
  const isLong = ([path]: string[]) => LONG.includes(path!);
  const files = testFiles(), rest = [layers(), ...files.filter(isLong), ...files.filter((paths) => !isLong(paths))];
  const [checked, indexesAreChecked] = await Promise.all([
    deno("test", ...FLAGS, "--no-run", ...rest.flat()),
    checkIndexes(),
  ]);
  if (checked !== 0 || !indexesAreChecked) return 1;
  const total = { passed: 0, steps: 0, failed: 0, ignored: 0 };
  const failures: { path: string; output: Uint8Array<ArrayBuffer> }[] = [];
  const lane = async () => {
    for (let paths = rest.shift(); paths !== undefined; paths = rest.shift()) {
      const counts = await run(paths, options);
      for (const name of Object.keys(total) as (keyof typeof total)[]) total[name] += counts[name];
      if (counts.failed > 0) failures.push({ path: paths.length === 1 ? paths[0] : "src/", output: counts.output });
    }
  };
  const jobs = Number(Deno.env.get("TEST_JOBS")) || Math.min(navigator.hardwareConcurrency + 1, 5);
  await Promise.all(Array.from({ length: jobs }, lane));
  const { passed, steps, failed, ignored } = total;
  for (const { path, output } of failures) {
    console.log(`FAILED: ${path}`);
    await Deno.stdout.write(output);
  }
  const seconds = Math.round((performance.now() - started) / 1000);
  console.log(
    `\n${failed === 0 ? "ok" : "FAILED"} | ${passed} passed (${steps} steps) | ${failed} failed${
      ignored > 0 ? ` | ${ignored} ignored` : ""
    }` +
      ` (${Math.floor(seconds / 60)}m${seconds % 60}s)`,
  );
  return failed === 0 ? 0 : 1;
}

/** Runs the tests in `paths` in one process. One that ends without a summary, for example by a crash, counts as a failure. */
async function run(paths: readonly string[], options: readonly string[]) {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["test", ...FLAGS, "--no-check", ...paths, ...options],
    cwd: root,
    env: { NO_COLOR: "1" },
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stdout, stderr } = await command.output();
  const text = new TextDecoder().decode(stdout);
  await Deno.stdout.write(stdout);
  await Deno.stderr.write(stderr);
  const summary = text.split("\n").findLast((line) => /^(ok|FAILED) \| \d+ passed/.test(line)) ?? "";
  const count = (pattern: RegExp) => Number(pattern.exec(summary)?.[1] ?? 0);
  const failed = count(/(\d+) failed/);
  return {
    output: stdout,
    passed: count(/(\d+) passed/),
    steps: sum(summary.matchAll(/\((\d+) steps?\)/g)),
    failed: code !== 0 && failed === 0 ? 1 : failed,
    ignored: count(/(\d+) ignored/),
  };
}

function sum(matches: Iterable<RegExpMatchArray>): number {
  return [...matches].reduce((total, match) => total + Number(match[1]), 0);
}

/** Each by its name: for `src/` itself, `deno test` would run only the tests of the workspace member in it. */
function layers(): string[] {
  return [...Deno.readDirSync(join(root, "src"))]
    .filter(({ name, isDirectory }) => isDirectory || /_test\.ts$/.test(name))
    .map(({ name }) => `src/${name}`).sort();
}

/** One entry for each file: files do not share a process, so that a leak or a crash of one does not reach another. */
function testFiles(folder = join(root, "tests")): string[][] {
  return [...Deno.readDirSync(folder)].sort((a, b) => a.name < b.name ? -1 : 1).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory) return testFiles(path);
    return entry.name.endsWith("_test.ts") ? [[relative(root, path)]] : [];
  });
}
