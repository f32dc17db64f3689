/** Rows of files(), import_files() and export_files(): the files in a directory and in those below it. */
import { isAbsolute, join } from "node:path";
import { SqlError, SQLSTATE } from "../errors.ts";
import { readableSize } from "../sql/mod.ts";
import type { Value } from "../types/mod.ts";
import { isWithin, UNFINISHED } from "./copies.ts";

/** The main thread lists them, which takes 13 us a file, and others wait. */
const FILES_MAX = 10_000;

/** The files of a directory that may not exist yet. */
export function fileRows(directory: string, at: number): Value[][] {
  try {
    return listed(directory, at);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

/** The files of a directory in one of `roots`. A relative path starts in the first one. */
export function fileRowsOf(path: string, roots: readonly string[], at: number): Value[][] {
  const directory = isAbsolute(path) ? path : join(roots[0]!, path);
  try {
    // Links must not lead out of the roots.
    const real = Deno.realPathSync(directory);
    if (!roots.some((root) => isIn(root, real))) throw outside(path, at);
    return listed(real, at);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) throw outside(path, at);
    throw error;
  }
}

function isIn(root: string, real: string): boolean {
  try {
    return isWithin(Deno.realPathSync(root), real);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** One message for all, because it must not tell which other directories exist. */
function outside(path: string, at: number): SqlError {
  const message = `${path} is not a directory in the import or export directory`;
  return new SqlError(message, at, SQLSTATE.insufficientPrivilege);
}

function listed(directory: string, at: number): Value[][] {
  const rows: Value[][] = [];
  const add = (folder: string) => {
    for (const { name, isFile, isDirectory } of Deno.readDirSync(join(directory, folder))) {
      const path = join(folder, name);
      if (isDirectory) add(path);
      if (!isFile || name.startsWith(UNFINISHED)) continue;
      if (rows.length === FILES_MAX) {
        throw new SqlError(`more than ${FILES_MAX} files`, at, SQLSTATE.programLimitExceeded);
      }
      const { size, mtime } = Deno.statSync(join(directory, path));
      rows.push([path, BigInt(size), readableSize(size), mtime === null ? null : BigInt(mtime.getTime())]);
    }
  };
  add("");
  return rows.sort(([a], [b]) => String(a) < String(b) ? -1 : 1);
}
