/** The options of the log. */
import { type Config, generalSettings, shippedFile } from "../config/mod.ts";
import { eventOutput, standardOutput, windowsServiceName } from "../log/mod.ts";
import { logSettings } from "../log/settings.ts";
import { VERSION } from "../version.ts";
import type { CommandLine } from "./command-line.ts";

export function logOptions(line: CommandLine, config: Config) {
  const instance = config.get(generalSettings.instanceName);
  const env = { ...instance === "" ? {} : { INSTANCE_NAME: instance }, ...Deno.env.toObject() };
  const { verbose, ...timestamp } = config.of(logSettings);
  const host = { os: Deno.build.os, env, dataDirectory: line.isRootGiven ? line.root : undefined, now: new Date() };
  const service = windowsServiceName(host);
  return {
    root: line.root,
    env,
    stdout: standardOutput(host, Deno.stdout),
    events: service === undefined ? undefined : eventOutput(service),
    out: line.logConf,
    debug: line.debug,
    defaults: shippedText("conf/log.conf"),
    alertTemplate: shippedText("conf/alert-manager-tpl.json"),
    version: VERSION,
    verbose,
    timestamp,
  };
}

const shippedText = (path: string) => new TextDecoder().decode(shippedFile(path));
