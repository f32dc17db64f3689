import { join } from "node:path";

/** Programs and libraries that `.ci/run` installs for the tests. */
export const CI_TOOLS = join(
  Deno.env.get("XDG_CACHE_HOME") ?? join(Deno.env.get("HOME") ?? "", ".cache"),
  "sundial-ci",
);
