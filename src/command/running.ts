/** `sundial stop`, `status` and `health`: commands about a running server. */
import process from "node:process";
import { askToStop, DEFAULT_TAG, type RunningServer, runningServer, Tags } from "../config/mod.ts";
import { probeHealth } from "../wire/health/mod.ts";
import type { Command, CommandLine } from "./command-line.ts";
import { pause, SHUTDOWN_MS } from "./ending.ts";
import { print } from "./print.ts";
import { loadSettings } from "./settings.ts";
import { tagText } from "./tag.ts";

export const stop: Command = { run: stopServer };
export const status: Command = { run: tellStatus };
export const health: Command = { run: askHealth };

/** Finds the server for the command line. @throws {ConfigError} */
function find({ root, isRootGiven, tag }: CommandLine): { root: string; server: RunningServer | undefined } {
  if (tag === DEFAULT_TAG) return { root, server: runningServer(root) };
  const place = isRootGiven ? root : new Tags().root(tag) ?? root;
  const server = runningServer(place);
  return { root: place, server: server?.tag === tag ? server : undefined };
}

async function stopServer(line: CommandLine): Promise<number> {
  const { root, server } = find(line);
  if (server === undefined) return print(`no server runs on ${root}${tagText(line.tag)}`, 1);
  if (Deno.build.os === "windows") askToStop(root);
  else process.kill(server.pid, "SIGTERM");
  for (const until = Date.now() + 2 * SHUTDOWN_MS; Date.now() < until;) {
    if (runningServer(root)?.pid !== server.pid) return print(`process ${server.pid} has ended`);
    await pause(50);
  }
  return print(`process ${server.pid} is still running`, 1);
}

function tellStatus(line: CommandLine): number {
  const { root, server } = find(line);
  if (server === undefined) return print(`no server runs on ${root}${tagText(line.tag)}`, 1);
  return print(`process ${server.pid} runs on ${root}${tagText(server.tag)}`);
}

async function askHealth({ root }: CommandLine): Promise<number> {
  const { isHealthy, said } = await probeHealth(loadSettings(root));
  return print(said, isHealthy ? 0 : 1);
}
