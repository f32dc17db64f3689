/**
 * Writes the lock files. deno.lock, for the task `start`, lists only what the program imports and what builds the console: a first
 * start downloads everything in it, and DuckDB for the benchmark alone is 170 MB. dev.lock, for tests and benchmarks, lists
 * everything. deno.json names neither, because `deno task` itself would download the packages; for the same reason development
 * tools are in its `scopes`.
 *
 *     deno task lock [--check]
 */
import { deno } from "./flags.ts";
import { CONSOLE, PROGRAM } from "./release/packages.ts";

const ROOT = new URL("../", import.meta.url);
const LOCKS: [string, string[]][] = [
  ["deno.lock", [...PROGRAM, ...CONSOLE]],
  ["dev.lock", [...PROGRAM, ...CONSOLE, ...["src/", "tests/", "bench/", "scripts/"].flatMap(sources)]],
];

const check = Deno.args.includes("--check");
let status = 0;
for (const [name, entries] of LOCKS) {
  const fresh = Deno.makeTempFileSync({ suffix: ".lock" });
  Deno.removeSync(fresh);
  if (await deno("cache", "--quiet", `--lock=${fresh}`, ...entries) !== 0) Deno.exit(1);
  const [before, after] = [read(new URL(name, ROOT)), Deno.readTextFileSync(fresh)];
  Deno.removeSync(fresh);
  if (before === after) continue;
  if (check) {
    console.error(`${name} is not up to date: run deno task lock`);
    status = 1;
  } else Deno.writeTextFileSync(new URL(name, ROOT), after);
}
Deno.exit(status);

function read(url: URL): string {
  try {
    return Deno.readTextFileSync(url);
  } catch {
    return "";
  }
}

function sources(directory: string): string[] {
  return [...Deno.readDirSync(new URL(directory, ROOT))].flatMap((entry) => {
    if (entry.isDirectory) return sources(`${directory}${entry.name}/`);
    return /\.ts$/.test(entry.name) ? [directory + entry.name] : [];
  });
}
