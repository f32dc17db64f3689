/** Copies a database's files while its writer holds them (`StorageWriter.hold`) and continues to work. */
import * as fs from "node:fs/promises";
import { DIRECTORY_MODE, join } from "./files.ts";

/** Files that a start creates again. */
const LEFT_OUT = new Set(["lock", "reserve"]);

/**
 * Copies the database. The copy contains everything that was acknowledged before the call, and it is on stable storage
 * at the end. Data that the writer adds meanwhile is after the end of the listed data, or in the log, which is copied
 * to its current end. If the last block was copied only in part, opening the copy truncates it like any torn tail.
 */
export async function copyDatabase(
  from: string,
  to: string,
  signal?: AbortSignal,
): Promise<{ fileCount: number; sizeBytes: number }> {
  const total = { fileCount: 0, sizeBytes: 0 };
  await copyDirectory(from, to, total, signal, LEFT_OUT);
  return total;
}

async function copyDirectory(
  from: string,
  to: string,
  total: { fileCount: number; sizeBytes: number },
  signal: AbortSignal | undefined,
  leftOut: ReadonlySet<string> = new Set(),
): Promise<void> {
  await fs.mkdir(to, { recursive: true, mode: DIRECTORY_MODE });
  const entries = await fs.readdir(from, { withFileTypes: true });
  // The log is copied first, because its blocks may refer to files that were created before them.
  entries.sort((a, b) => Number(b.name === "log") - Number(a.name === "log"));
  for (const entry of entries) {
    signal?.throwIfAborted();
    if (leftOut.has(entry.name)) continue;
    const source = join(from, entry.name), target = join(to, entry.name);
    if (entry.isDirectory()) {
      await copyDirectory(source, target, total, signal);
      continue;
    }
    await fs.copyFile(source, target);
    total.sizeBytes += await syncFile(target, "r+");
    total.fileCount++;
  }
  await syncDirectory(to);
}

async function syncFile(path: string, flags: "r" | "r+"): Promise<number> {
  const file = await fs.open(path, flags);
  try {
    await file.sync();
    return (await file.stat()).size;
  } finally {
    await file.close();
  }
}

/** Windows cannot open a directory; its file system journals names. */
export async function syncDirectory(path: string): Promise<void> {
  if (Deno.build.os !== "windows") await syncFile(path, "r");
}
