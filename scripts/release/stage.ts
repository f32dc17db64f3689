/**
 * The input of `deno compile`: a copy of the sources, and a Deno cache with the packages that the program imports. The work tree is not
 * used directly, for four reasons:
 *
 * - `deno compile` writes each file's modification time into the executable. In the stage all times are equal, so that two
 *   compilations give the same bytes.
 * - It embeds all packages of the lock file, and deno.lock also lists those that build the console.
 * - It embeds whole packages. The stage contains only what can be imported, without types, tests, examples and source maps.
 * - It parses all files that could be code by their names, including those without extension. In Deno 2.9 lists of numbers among
 *   the tests of bintrees overflow its stack (denoland/deno#36746), and each LICENSE leaves a syntax error with this machine's
 *   paths in the executable. Licence texts are placed beside the executable instead.
 */
import { dirname, join } from "node:path";
import { EMBEDDED } from "../embedded.ts";
import { START_FLAGS } from "../flags.ts";
import {
  exists,
  filesBelow,
  type PackageCache,
  programLock,
  programPackages,
  readJson,
  ROOT,
  run,
} from "./packages.ts";

export interface Stage {
  /** Directory of the sources. */
  readonly tree: string;
  /** A DENO_DIR. */
  readonly cache: string;
}

/** A file of a package that code can import or read. */
const CODE = /\.(?:[cm]?js|json|wasm)$/;
const NOT_OF_THE_PROGRAM = /^(?:test|tests|example|examples|benchmark|benchmarks|docs)\//;

/** Where the program first looks for the console's files. */
const CONSOLE = "build/console";

/**
 * Creates the stage again, but keeps downloaded base executables. `consoleFiles`: a directory built by
 * `scripts/console/`.
 */
export function stage(directory: string, packages: PackageCache, consoleFiles: string, time: Date): Stage {
  const [tree, cache] = [join(directory, "tree"), join(directory, "cache")];
  for (const old of [tree, join(cache, "npm")]) if (exists(old)) Deno.removeSync(old, { recursive: true });
  for (const path of sources()) copy(join(ROOT, path), join(tree, path), time);
  write(join(tree, "deno.json"), programConfig(), time);
  write(join(tree, "deno.lock"), programLock(), time);
  for (const path of filesBelow(consoleFiles)) copy(join(consoleFiles, path), join(tree, CONSOLE, path), time);
  for (const one of programPackages()) {
    const { path, relative } = packages.find(one);
    const files = filesBelow(path).filter((file) => CODE.test(file) && !NOT_OF_THE_PROGRAM.test(file));
    for (const file of files) copy(join(path, file), join(cache, "npm", relative, file), time);
  }
  return { tree, cache };
}

/** The last part of `output` is also the program's name: keep it the same. */
export async function compile({ tree, cache }: Stage, target: string, output: string): Promise<void> {
  const includes = [...EMBEDDED, CONSOLE].flatMap((path) => ["--include", path]);
  const flags = ["--quiet", "--no-check", "--frozen", ...START_FLAGS, ...includes];
  Deno.mkdirSync(dirname(output), { recursive: true });
  await run(["compile", ...flags, "--target", target, "--output", output, "main.ts"], {
    cwd: tree,
    env: { DENO_DIR: cache },
  });
}

function sources(): string[] {
  const below = ["src", "conf", "import"].flatMap((name) =>
    filesBelow(join(ROOT, name)).map((path) => `${name}/${path}`)
  );
  return ["main.ts", ...below].filter((path) => !/_test\.ts$/.test(path) && !path.startsWith("src/console/"));
}

/** deno.json without the parts for the console and the repository's own tools. */
function programConfig(): unknown {
  const { workspace: _, scopes: __, ...rest } = readJson(join(ROOT, "deno.json")) as Record<string, unknown>;
  return rest;
}

function write(path: string, value: unknown, time: Date): void {
  Deno.writeTextFileSync(path, JSON.stringify(value, null, 2) + "\n");
  Deno.utimeSync(path, time, time);
}

function copy(from: string, to: string, time: Date): void {
  Deno.mkdirSync(dirname(to), { recursive: true });
  Deno.copyFileSync(from, to);
  Deno.utimeSync(to, time, time);
}
