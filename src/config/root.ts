/** The root directory: made on the first start with the shipped files, and held by one process at a time. */
import { join } from "node:path";
import { ConfigError } from "../errors.ts";
import { DEFAULT_TAG } from "./tags.ts";

/** Copied into a new root. */
const SHIPPED = ["conf/server.conf", "conf/log.conf", "import/trades.parquet"];
/** What the user writes there is the user's own for ever. */
const isConfiguration = (file: string) => file.startsWith("conf/");
const DIRECTORIES = ["conf", "db", "import", "log"];
const PID_FILE = "sundial.pid";

/** A file that comes with the program, also out of a compiled executable. */
export function shippedFile(path: string): Uint8Array {
  return Deno.readFileSync(new URL(`../../${path}`, import.meta.url));
}

export interface Root {
  readonly path: string;
  /** The root was empty before. */
  readonly isNew: boolean;
  release(): void;
}

/**
 * Makes what is missing and takes the lock. `refresh`: exchanges shipped files for those of this version, but never the
 * configuration; changed ones are kept as `*.bak`. `except`: shipped files that are not wanted.
 * @throws {ConfigError} with the key "root".
 */
export function openRoot(path: string, options: { refresh?: boolean; except?: string[]; tag?: string } = {}): Root {
  try {
    const isNew = !exists(join(path, "db"));
    for (const directory of DIRECTORIES) Deno.mkdirSync(join(path, directory), { recursive: true });
    const release = lock(path, options.tag ?? DEFAULT_TAG);
    for (const file of SHIPPED) {
      const refresh = options.refresh === true && !isConfiguration(file);
      if (!options.except?.includes(file)) place(join(path, file), shippedFile(file), refresh);
    }
    return { path, isNew, release };
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError("root", `cannot use ${path} as the root: ${(error as Error).message}`);
  }
}

/** The lock is the system's on an open file, so it ends with the process however that ends; the text in it is for people and `stop`. */
function lock(root: string, tag: string): () => void {
  const path = join(root, PID_FILE);
  const file = Deno.openSync(path, { create: true, read: true, write: true });
  if (!file.tryLockSync(true)) {
    file.close();
    const pid = runningPid(root);
    throw new ConfigError(
      "root",
      `the root ${root} is in use by another process${pid === undefined ? "" : ` (${pid})`}`,
    );
  }
  file.truncateSync(0);
  file.writeSync(new TextEncoder().encode(`${Deno.pid}\n${tag}\n`));
  return () => {
    // Emptied and not removed: whoever opened it a moment ago must not lock a file that has no name any more.
    file.truncateSync(0);
    file.close();
  };
}

export interface RunningServer {
  pid: number;
  tag: string;
}

/** Who holds the root, or undefined. */
export function runningServer(root: string): RunningServer | undefined {
  let file: Deno.FsFile;
  try {
    file = Deno.openSync(join(root, PID_FILE), { read: true, write: true });
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
  try {
    if (file.tryLockSync(true)) return undefined;
    const bytes = new Uint8Array(256);
    const [pid, tag] = new TextDecoder().decode(bytes.subarray(0, file.readSync(bytes) ?? 0)).split("\n");
    return Number(pid) > 0 ? { pid: Number(pid), tag: tag || DEFAULT_TAG } : undefined;
  } finally {
    file.close();
  }
}

/** Its process. */
export const runningPid = (root: string): number | undefined => runningServer(root)?.pid;

/** Whole or not at all: a start that is killed here leaves no half file. */
function place(path: string, bytes: Uint8Array, refresh: boolean): void {
  if (exists(path)) {
    if (!refresh) return;
    const old = Deno.readFileSync(path);
    if (old.length === bytes.length && old.every((byte, index) => byte === bytes[index])) return;
    Deno.renameSync(path, `${path}.bak`);
  }
  const temporary = `${path}.new`;
  Deno.writeFileSync(temporary, bytes);
  Deno.renameSync(temporary, path);
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
