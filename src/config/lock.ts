/**
 * The lock of a root, which only one process at a time can hold. It is a file lock of the operating system on
 * `sundial.lock`, so it ends with the process. `sundial.pid` has the holder's process id. It is a separate file because
 * a locked file cannot be read by others on Windows.
 */
import { join } from "node:path";
import { ConfigError } from "../errors.ts";
import { unlessMissing } from "../paths.ts";
import { DEFAULT_TAG } from "./tags.ts";

const LOCK_FILE = "sundial.lock";
const PID_FILE = "sundial.pid";
const STOP_FILE = "sundial.stop";

/** On systems without signals between processes, the server polls for the request to stop at this interval. */
const STOP_POLL_MS = 200;

export interface RunningServer {
  pid: number;
  tag: string;
}

/** Returns a function that releases the lock. @throws {ConfigError} with the key "root". */
export function lockRoot(root: string, tag: string): () => void {
  const file = Deno.openSync(join(root, LOCK_FILE), { create: true, read: true, write: true, mode: 0o600 });
  if (!file.tryLockSync(true)) {
    file.close();
    const pid = runningPid(root);
    throw new ConfigError(
      "root",
      `the root ${root} is in use by another process${pid === undefined ? "" : ` (${pid})`}`,
    );
  }
  const pidFile = join(root, PID_FILE);
  Deno.writeTextFileSync(pidFile, `${Deno.pid}\n${tag}\n`, { mode: 0o600 });
  removeIfThere(join(root, STOP_FILE));
  return () => {
    // The files are kept, because a process that has just opened one must not lock a removed file.
    Deno.truncateSync(pidFile);
    file.close();
  };
}

/** Returns the process that holds the root, or undefined. */
export function runningServer(root: string): RunningServer | undefined {
  const file = unlessMissing(() => Deno.openSync(join(root, LOCK_FILE), { read: true, write: true }));
  if (file === undefined) return undefined;
  try {
    if (file.tryLockSync(true)) return undefined;
    const [pid, tag] = Deno.readTextFileSync(join(root, PID_FILE)).split("\n");
    return Number(pid) > 0 ? { pid: Number(pid), tag: tag || DEFAULT_TAG } : undefined;
  } catch (error) {
    // The holder is about to create the file.
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  } finally {
    file.close();
  }
}

export const runningPid = (root: string): number | undefined => runningServer(root)?.pid;

/** Requests a stop through a file, for Windows, where SIGTERM kills a process immediately. */
export function askToStop(root: string): void {
  Deno.writeTextFileSync(join(root, STOP_FILE), "");
}

/** Calls `stop` when a stop is requested. Does not keep the process alive. Returns a function that ends the polling. */
export function onAskedToStop(root: string, stop: () => void): () => void {
  const timer = setInterval(() => {
    if (!removeIfThere(join(root, STOP_FILE))) return;
    clearInterval(timer);
    stop();
  }, STOP_POLL_MS);
  Deno.unrefTimer(timer);
  return () => clearInterval(timer);
}

function removeIfThere(path: string): boolean {
  try {
    Deno.removeSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
