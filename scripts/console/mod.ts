/** Locates the built console. A start from the sources builds it if the sources have changed since the last build. */
import { createHash } from "node:crypto";
import { join, relative } from "node:path";

/** The file that lists the bundled packages as `name@version`. A dependency of which nothing is used is not among them. */
export const PACKAGES = "packages.json";

/** Further inputs of the build, besides `src/console/`. */
const MADE_WITH = ["deno.lock", "scripts/console/build.ts"];
/** Files of older sources are kept: a change may be undone. */
const NAME = "console-";

/**
 * The directory of the files below `root`, the repository. Builds them if they do not exist for the present sources.
 */
export async function consoleDirectory(root: string): Promise<string> {
  const directory = join(root, "build", NAME + sourceHash(root));
  if (!exists(directory)) {
    const { buildConsole } = await import("./build.ts");
    await buildConsole(root, directory);
  }
  return directory;
}

function sourceHash(root: string): string {
  const hash = createHash("sha256");
  const source = join(root, "src/console");
  const paths = [...filesBelow(source)].filter((path) => !/_test\.tsx?$/.test(path)).sort();
  for (const path of [...paths, ...MADE_WITH.map((name) => join(root, name))]) {
    hash.update(relative(root, path).replaceAll("\\", "/")).update("\0").update(Deno.readFileSync(path)).update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}

function* filesBelow(directory: string): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(directory)) {
    if (isDirectory) yield* filesBelow(join(directory, name));
    else yield join(directory, name);
  }
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
