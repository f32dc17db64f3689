/** Parses the words after `sundial`. */
import { isAbsolute, resolve } from "node:path";
import { checkTag, DEFAULT_TAG } from "../config/mod.ts";
import { ConfigError } from "../errors.ts";

export interface CommandLine {
  command: string;
  root: string;
  /** True if the root was given by -d. */
  isRootGiven: boolean;
  refresh: boolean;
  ignoreHangup: boolean;
  tag: string;
  logConf: string | undefined;
  debug: boolean;
  user: string | undefined;
  print: boolean;
  rest: string[];
}

/** A command. It returns the exit status. */
export interface Command {
  run(line: CommandLine): number | Promise<number>;
  /** Further words follow the command. */
  takesWords?: boolean;
}

/** Options of `service`, which other commands would ignore silently. */
const OF_SERVICES = ["--user", "--print"];
const NOT_OF_SERVICES = ["-f", "-n"];

/** @throws {ConfigError} */
export function parseCommandLine(args: string[], commands: Readonly<Record<string, Command>>): CommandLine {
  const line: CommandLine = {
    command: "",
    root: "sundial-root",
    isRootGiven: false,
    refresh: false,
    ignoreHangup: false,
    tag: DEFAULT_TAG,
    logConf: undefined,
    debug: false,
    user: undefined,
    print: false,
    rest: [],
  };
  const left = args.values();
  for (const arg of left) {
    const value = () => {
      const next = left.next().value;
      if (next === undefined) throw new ConfigError(arg, `${arg} needs a value; see --help`);
      return next;
    };
    if (arg === "-d") [line.root, line.isRootGiven] = [value(), true];
    else if (arg === "-t") checkTag(line.tag = value());
    else if (arg === "--user") line.user = value();
    else if (arg === "--print") line.print = true;
    else if (arg === "-f") line.refresh = true;
    else if (arg === "-n") line.ignoreHangup = true;
    else if (arg === "-Debug") line.debug = true;
    else if (arg.startsWith("-Dout=")) line.logConf = arg.slice("-Dout=".length);
    else if (arg === "--help" || arg === "-h") line.command = "help";
    else if (arg === "--version") line.command = "version";
    else if (arg.startsWith("-")) throw new ConfigError(arg, `unknown option ${arg}; see --help`);
    else if (line.command === "") line.command = arg;
    else line.rest.push(arg);
  }
  line.command ||= "start";
  line.root = isAbsolute(line.root) ? line.root : resolve(line.root);
  if (!Object.hasOwn(commands, line.command)) {
    throw new ConfigError(line.command, `unknown command ${line.command}; see --help`);
  }
  const [word] = line.rest;
  if (word !== undefined && commands[line.command]?.takesWords !== true) {
    throw new ConfigError(word, `${line.command} does not accept "${word}"; see --help`);
  }
  const isService = line.command === "service";
  const [stray] = args.filter((arg) => isService ? NOT_OF_SERVICES.includes(arg) : OF_SERVICES.includes(arg));
  if (stray !== undefined) throw new ConfigError(stray, `${line.command} does not accept ${stray}; see --help`);
  return line;
}
