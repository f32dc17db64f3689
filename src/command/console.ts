/** Where the files of the console are. */
import { join } from "node:path";

/** Releases have them; a start from the sources builds them once. */
export async function consoleDirectory(): Promise<string> {
  const top = join(import.meta.dirname!, "../..");
  const released = join(top, "build/console");
  try {
    if (Deno.statSync(released).isDirectory) return released;
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
  // The address is computed, so that the bundler is no part of the program's module graph.
  const builder: typeof import("../../scripts/console/mod.ts") = await import(
    import.meta.resolve("../../scripts/console/mod.ts")
  );
  return await builder.consoleDirectory(top);
}
