/** The version of the program, as deno.json has it. */
import about from "../deno.json" with { type: "json" };

export const VERSION: string = about.version;
