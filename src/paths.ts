/** Paths of files, for all rooms. */
import { isAbsolute, relative, sep } from "node:path";

/** True if a path is a directory or in it. Both are absolute and without links. */
export function isWithin(directory: string, path: string): boolean {
  const way = relative(directory, path);
  return way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
