/** The root directory: created on the first start with the shipped files, and held by one process at a time. */
import { join } from "node:path";
import { ConfigError } from "../errors.ts";
import { existsSync } from "../paths.ts";
import { lockRoot } from "./lock.ts";
import { DEFAULT_TAG } from "./tags.ts";

/** Files that are copied into a new root. */
const SHIPPED = ["conf/server.conf", "conf/log.conf", "import/trades.parquet"];
/** Configuration belongs to the user and is never replaced. */
const isConfiguration = (file: string) => file.startsWith("conf/");
/**
 * Directory modes of a new root: private, because it contains data and passwords. `log` follows the umask, for programs
 * that read logs.
 */
const PRIVATE = 0o700;
const DIRECTORIES = { conf: PRIVATE, db: PRIVATE, import: PRIVATE, log: undefined };
const PRIVATE_FILE = 0o600;

/** Reads a file that is shipped with the program, also from a compiled executable. */
export function shippedFile(path: string): Uint8Array {
  return Deno.readFileSync(new URL(`../../${path}`, import.meta.url));
}

export interface Root {
  readonly path: string;
  /** True if the root was empty before. */
  readonly isNew: boolean;
  release(): void;
}

/**
 * Creates missing files and takes the lock. `refresh`: replaces shipped files by this version's, except configuration;
 * modified files are kept as `*.bak`. `except`: shipped files to omit.
 * @throws {ConfigError} with the key "root".
 */
export function openRoot(path: string, options: { refresh?: boolean; except?: string[]; tag?: string } = {}): Root {
  try {
    const isNew = !existsSync(join(path, "db"));
    Deno.mkdirSync(path, { recursive: true, mode: PRIVATE });
    for (const [name, mode] of Object.entries(DIRECTORIES)) Deno.mkdirSync(join(path, name), { recursive: true, mode });
    const release = lockRoot(path, options.tag ?? DEFAULT_TAG);
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

/** Writes a file atomically, so that a killed start leaves no partial file. */
function place(path: string, bytes: Uint8Array, refresh: boolean): void {
  if (existsSync(path)) {
    if (!refresh) return;
    const old = Deno.readFileSync(path);
    if (old.length === bytes.length && old.every((byte, index) => byte === bytes[index])) return;
    Deno.renameSync(path, `${path}.bak`);
  }
  const temporary = `${path}.new`;
  Deno.writeFileSync(temporary, bytes, { mode: PRIVATE_FILE });
  Deno.renameSync(temporary, path);
}
