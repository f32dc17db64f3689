/**
 * One process at a time holds a root. The lock is the system's on `sundial.lock`, so it ends with the process however that ends.
 * Who holds it stands in `sundial.pid`, a file of its own: Windows lets nobody else read one that is locked.
 */
import { join } from "node:path";
import { ConfigError } from "../errors.ts";
import { DEFAULT_TAG } from "./tags.ts";

const LOCK_FILE = "sundial.lock";
const PID_FILE = "sundial.pid";
const STOP_FILE = "sundial.stop";

/** Where processes cannot send each other signals, the server looks for the request to stop this often. */
const STOP_POLL_MS = 200;

export interface RunningServer {
  pid: number;
  tag: string;
}

/** Gives what releases it. @throws {ConfigError} with the key "root". */
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
    // Files are left: whoever opened one a moment ago must not lock a file that has no name any more.
    Deno.truncateSync(pidFile);
    file.close();
  };
}

/** Who holds the root, or undefined. */
export function runningServer(root: string): RunningServer | undefined {
  let file: Deno.FsFile;
  try {
    file = Deno.openSync(join(root, LOCK_FILE), { read: true, write: true });
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
  try {
    if (file.tryLockSync(true)) return undefined;
    const [pid, tag] = Deno.readTextFileSync(join(root, PID_FILE)).split("\n");
    return Number(pid) > 0 ? { pid: Number(pid), tag: tag || DEFAULT_TAG } : undefined;
  } catch (error) {
    // It is just being made.
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  } finally {
    file.close();
  }
}

/** Its process. */
export const runningPid = (root: string): number | undefined => runningServer(root)?.pid;

/** For Windows, where SIGTERM ends a process on the spot. */
export function askToStop(root: string): void {
  Deno.writeTextFileSync(join(root, STOP_FILE), "");
}

/** Calls `stop` once somebody has asked; keeps no process alive. Gives what ends the looking. */
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
