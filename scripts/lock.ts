/**
 * Writes deno.lock, the lock file of `deno task start`: only what the program itself imports, for whoever starts it downloads
 * what is listed there, and DuckDB for the benchmark alone is 170 MB. Everything else is locked in dev.lock.
 *
 *     deno task lock [--check]
 */
import { deno } from "./flags.ts";

const lockUrl = new URL("../deno.lock", import.meta.url);
const before = read();
const fresh = Deno.makeTempFileSync({ suffix: ".lock" });
Deno.removeSync(fresh);
// Workers are entry points of their own: nothing imports them.
const entries = ["main.ts", ...workers(new URL("../src/", import.meta.url))];
if (await deno("cache", "--quiet", `--lock=${fresh}`, ...entries) !== 0) Deno.exit(1);
const after = Deno.readTextFileSync(fresh);
Deno.removeSync(fresh);
if (Deno.args.includes("--check")) {
  if (before !== after) console.error("deno.lock is not up to date: run deno task lock");
  Deno.exit(before === after ? 0 : 1);
}
if (before !== after) Deno.writeTextFileSync(lockUrl, after);

function read(): string {
  try {
    return Deno.readTextFileSync(lockUrl);
  } catch {
    return "";
  }
}

function workers(directory: URL): string[] {
  const found: string[] = [];
  for (const entry of Deno.readDirSync(directory)) {
    if (entry.isDirectory) found.push(...workers(new URL(`${entry.name}/`, directory)));
    else if (entry.name === "worker.ts" || directory.pathname.endsWith("/workers/")) {
      found.push(new URL(entry.name, directory).href);
    }
  }
  return found;
}
