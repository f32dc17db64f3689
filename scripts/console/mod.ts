/** Locates the built console. A start from the sources builds it if the sources have changed since the last build. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { exists, filesBelow } from "../release/packages.ts";
import { isSource, MADE_WITH } from "./sources.ts";

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
  const sources = filesBelow(join(root, "src/console")).map((path) => `src/console/${path}`).filter(isSource);
  for (const path of [...sources, ...MADE_WITH]) {
    hash.update(path).update("\0").update(Deno.readFileSync(join(root, path))).update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}
