/**
 * Runs all tests that need only Deno and npm packages, with the flags of the program.
 *
 *     deno task test [PATH…] [--filter …]
 */
import { deno, DEVELOPMENT_FLAGS } from "./flags.ts";

const paths = Deno.args.some((arg) => !arg.startsWith("-")) ? [] : [...rooms(), "tests/"];
// Removing it removes everything that tests leave behind. The path is short, as sockets require.
const temporary = Deno.makeTempDirSync({ prefix: "sundial-test-" });
for (const name of ["TMPDIR", "TMP", "TEMP"]) Deno.env.set(name, temporary);
let status = 1;
try {
  status = await deno("test", ...DEVELOPMENT_FLAGS, ...paths, ...Deno.args);
} finally {
  try {
    Deno.removeSync(temporary, { recursive: true });
  } catch (error) {
    console.error(`${temporary} could not be removed: ${(error as Error).message}`);
  }
}
Deno.exit(status);

/** Each by its name: for `src/` itself, `deno test` would run only the tests of the workspace member in it. */
function rooms(): string[] {
  return [...Deno.readDirSync(new URL("../src/", import.meta.url))]
    .filter(({ name, isDirectory }) => isDirectory || /_test\.ts$/.test(name))
    .map(({ name }) => `src/${name}`).sort();
}
