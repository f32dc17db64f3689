/**
 * Every test that needs only Deno and npm packages, with the flags of the program.
 *
 *     deno task test [PATH…] [--filter …]
 */
import { deno, DEVELOPMENT_FLAGS } from "./flags.ts";

const paths = Deno.args.some((arg) => !arg.startsWith("-")) ? [] : ["src/", "tests/"];
Deno.exit(await deno("test", ...DEVELOPMENT_FLAGS, ...paths, ...Deno.args));
