/** Opens files of the import directory, but none that a symbolic link outside of it leads to. */
import fs from "node:fs";
import { isWithin } from "../../paths.ts";
import { ParquetError } from "./error.ts";

/** The file's path leads out of the import directory through a symbolic link. */
export class OutsideError extends ParquetError {}

/**
 * Checks the file that was opened instead of the path, because links can be replaced between a check and an open. Links
 * to files inside the directory are followed. @throws {OutsideError}
 */
export function openImportFile(path: string, root: string): Deno.FsFile {
  const realRoot = Deno.realPathSync(root);
  return Deno.build.os === "linux" ? openByDescriptor(path, realRoot) : openAndCompare(path, realRoot);
}

/** /proc shows the path of the open descriptor, which is then opened again as a Deno.FsFile. */
function openByDescriptor(path: string, realRoot: string): Deno.FsFile {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  const descriptor = openDescriptor(path, fs.constants.O_RDONLY | fs.constants.O_NONBLOCK);
  try {
    const link = `/proc/self/fd/${descriptor}`;
    checkInside(Deno.readLinkSync(link), realRoot);
    if (!fs.fstatSync(descriptor).isFile()) throw new ParquetError("it is not a file");
    return Deno.openSync(link);
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Deno.openSync() accepts no flags. @throws the same errors as Deno.openSync(). */
function openDescriptor(path: string, flags: number): number {
  try {
    return fs.openSync(path, flags);
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (code === "ENOENT") throw new Deno.errors.NotFound(message);
    if (code === "EACCES") throw new Deno.errors.PermissionDenied(message);
    if (code === "ENOTDIR") throw new Deno.errors.NotADirectory(message);
    if (code === "ELOOP") throw new ParquetError("its symbolic links lead in a circle");
    throw error;
  }
}

/** Resolves the path after opening; it must lead to the same file. */
function openAndCompare(path: string, realRoot: string): Deno.FsFile {
  if (!Deno.statSync(path).isFile) throw new ParquetError("it is not a file");
  const file = Deno.openSync(path);
  try {
    const real = Deno.realPathSync(path);
    checkInside(real, realRoot);
    const opened = file.statSync(), found = Deno.lstatSync(real);
    if (opened.dev !== found.dev || opened.ino !== found.ino) throw new OutsideError("it was replaced in the meantime");
    return file;
  } catch (error) {
    file.close();
    throw error;
  }
}

function checkInside(real: string, realRoot: string): void {
  if (!isWithin(realRoot, real)) throw new OutsideError("a symbolic link leads out of the import directory");
}
