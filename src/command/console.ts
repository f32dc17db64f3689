/** Locates the files of the console. */
import { join } from "node:path";

/** The directory of the console's files. Releases contain them. A start from the sources builds them once. */
export async function consoleDirectory(): Promise<string> {
  const top = join(import.meta.dirname!, "../..");
  const released = join(top, "build/console");
  try {
    if (Deno.statSync(released).isDirectory) return released;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  // The specifier is computed, so that the bundler is not part of the program's module graph.
  const builder: typeof import("../../scripts/console/mod.ts") = await import(
    import.meta.resolve("../../scripts/console/mod.ts")
  );
  return await builder.consoleDirectory(top);
}
