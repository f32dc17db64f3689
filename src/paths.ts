/** Paths of files, for all layers. */
import { isAbsolute, relative, sep } from "node:path";

/** True if a path is a directory or in it. Both are absolute and without links. */
export function isWithin(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

/** True if there is something at a path. Links are followed. @throws if that cannot be told. */
export async function exists(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Like `exists`, for work before the server serves. */
export function existsSync(path: string): boolean {
  return unlessMissing(() => Deno.statSync(path)) !== undefined;
}

/** What `read` returns. Undefined if the file or directory is missing. @throws other errors of `read` */
export function unlessMissing<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}
