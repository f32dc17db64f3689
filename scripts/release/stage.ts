/**
 * What an executable is compiled from: a copy of the sources, and a cache of Deno's with the packages of deno.lock. Not the
 * work tree itself, for three reasons:
 *
 * - `deno compile` writes each file's time of change into the executable: here all are the same, and so are the bytes of two
 *   compilations.
 * - It embeds packages whole: here they are what can be imported, without types, tests, examples and source maps.
 * - It parses all that could be code by its name, which is also what has no extension: in Deno 2.9 lists of numbers that bintrees
 *   has for its tests end that with an overflow of the stack (denoland/deno#36746), and each LICENSE leaves a syntax error with
 *   this machine's paths in the executable. Licence texts lie beside the executable instead.
 */
import { dirname, join } from "node:path";
import { EMBEDDED } from "../embedded.ts";
import { START_FLAGS } from "../flags.ts";
import { exists, filesBelow, lockedPackages, type PackageCache, ROOT, run } from "./packages.ts";

export interface Stage {
  /** The sources. */
  readonly tree: string;
  /** A DENO_DIR. */
  readonly cache: string;
}

/** A file of a package that code can import or read. */
const CODE = /\.(?:[cm]?js|json|wasm)$/;
const NOT_OF_THE_PROGRAM = /^(?:test|tests|example|examples|benchmark|benchmarks|docs)\//;

/** Made anew, but for the bases of executables, which were downloaded. */
export function stage(directory: string, packages: PackageCache, time: Date): Stage {
  const [tree, cache] = [join(directory, "tree"), join(directory, "cache")];
  for (const old of [tree, join(cache, "npm")]) if (exists(old)) Deno.removeSync(old, { recursive: true });
  for (const path of sources()) copy(join(ROOT, path), join(tree, path), time);
  for (const one of lockedPackages()) {
    const { path, relative } = packages.find(one);
    const files = filesBelow(path).filter((file) => CODE.test(file) && !NOT_OF_THE_PROGRAM.test(file));
    for (const file of files) copy(join(path, file), join(cache, "npm", relative, file), time);
  }
  return { tree, cache };
}

/** `output` names the program too: keep its last part the same. */
export async function compile({ tree, cache }: Stage, target: string, output: string): Promise<void> {
  const includes = EMBEDDED.flatMap((path) => ["--include", path]);
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
  return ["main.ts", "deno.json", "deno.lock", ...below].filter((path) => !/_test\.ts$/.test(path));
}

function copy(from: string, to: string, time: Date): void {
  Deno.mkdirSync(dirname(to), { recursive: true });
  Deno.copyFileSync(from, to);
  Deno.utimeSync(to, time, time);
}
