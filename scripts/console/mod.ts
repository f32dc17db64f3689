/** Locates the built console. A start from the sources builds it if the sources have changed since the last build. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { exists, filesBelow } from "../release/packages.ts";

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
  const sources = filesBelow(join(root, "src/console")).filter((path) => !/_test\.tsx?$/.test(path));
  for (const path of [...sources.map((path) => `src/console/${path}`), ...MADE_WITH]) {
    hash.update(path).update("\0").update(Deno.readFileSync(join(root, path))).update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}
