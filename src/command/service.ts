/** `sundial service`: installs the server as a service of the system. */
import { join, resolve } from "node:path";
import about from "../../deno.json" with { type: "json" };
import { ConfigError } from "../errors.ts";
import {
  defaultServiceRoot,
  defaultServiceUser,
  isServiceAction,
  type Service,
  serviceCommand,
  serviceName,
  thisSystem,
} from "../service/mod.ts";
import type { Command, CommandLine } from "./command-line.ts";

export const service: Command = { run: runService, takesWords: true };

function runService({ rest, tag, root, isRootGiven, user, print, logConf, debug }: CommandLine): number {
  const [action = "nothing", ...more] = rest;
  if (!isServiceAction(action) || more.length > 0) {
    const found = [action, ...more].join(" ");
    throw new ConfigError("service", `service: found "${found}", expected install, remove or status; see --help`);
  }
  const system = thisSystem();
  return serviceCommand(
    action,
    {
      tag,
      root: isRootGiven ? root : defaultServiceRoot(system.os, serviceName(tag)),
      program: program(),
      user: user ?? defaultServiceUser(system.os, Deno.env.toObject()),
      options: [...logConf === undefined ? [] : [`-Dout=${resolve(logConf)}`], ...debug ? ["-Debug"] : []],
    },
    print,
    system,
  );
}

/** The command that starts this program from any directory. */
function program(): Service["program"] {
  if (Deno.build.standalone) return [Deno.execPath()];
  const top = join(import.meta.dirname!, "../..");
  const words = about.tasks.start.replace(/^deno /, "").replace(/ main\.ts.*$/, "").split(" ");
  const flags = words.map((word) => word.replace(/^--lock=/, (option) => option + join(top, "/")));
  return [Deno.execPath(), ...flags, join(top, "main.ts")];
}
