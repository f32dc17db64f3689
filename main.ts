/** The program: see `src/command/`. */
import { run } from "./src/command/mod.ts";

if (import.meta.main) Deno.exit(await run(Deno.args));
