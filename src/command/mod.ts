/** The command line: parses it, runs the command and reports errors. This layer uses all others and combines them. */
import { ConfigError } from "../errors.ts";
import { parseCommandLine } from "./command-line.ts";
import { COMMANDS } from "./commands.ts";

/** Runs a command line and returns the exit status. */
export async function run(args: string[]): Promise<number> {
  try {
    const line = parseCommandLine(args, COMMANDS);
    return await COMMANDS[line.command]!.run(line);
  } catch (error) {
    // Errors that the user can correct are printed as one line each; internal errors keep their stack.
    if (error instanceof ConfigError) {
      for (const line of error.message.split("\n")) console.error(`sundial: ${line}`);
    } else console.error(`sundial: ${error instanceof Error ? error.stack : String(error)}`);
    return 1;
  }
}
