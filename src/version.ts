/** The version of the program, from deno.json. */
import about from "../deno.json" with { type: "json" };

export const VERSION: string = about.version;
