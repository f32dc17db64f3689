/** The command line: reads it, runs its command, and tells what is wrong. This room sees all others and puts them together. */
import { ConfigError } from "../errors.ts";
import { parseCommandLine } from "./command-line.ts";
import { COMMANDS } from "./commands.ts";

/** Runs a command line; gives the exit status. */
export async function run(args: string[]): Promise<number> {
  try {
    const line = parseCommandLine(args, COMMANDS);
    return await COMMANDS[line.command].run(line);
  } catch (error) {
    // What the user can mend is a line for each fault; what we must mend keeps its stack.
    if (error instanceof ConfigError) {
      for (const line of error.message.split("\n")) console.error(`sundial: ${line}`);
    } else console.error(`sundial: ${error instanceof Error ? error.stack : String(error)}`);
    return 1;
  }
}
