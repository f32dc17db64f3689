/** Paths of files, for all rooms. */
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
    return falseIfMissing(error);
  }
}

/** Like `exists`, for work before the server serves. */
export function existsSync(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch (error) {
    return falseIfMissing(error);
  }
}

function falseIfMissing(error: unknown): false {
  if (error instanceof Deno.errors.NotFound) return false;
  throw error;
}
