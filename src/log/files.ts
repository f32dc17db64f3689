/** Outputs of the writers: console, single file, rolling files. */
import { basename, dirname, join } from "node:path";
import { writeAll } from "../bytes.ts";
import { exists } from "../paths.ts";
import { dateFormat } from "./dates.ts";
import { logger } from "./logger.ts";
import type { Output, QueuedLine } from "./queue.ts";

const encoder = new TextEncoder();
const encode = (lines: QueuedLine[]) => encoder.encode(lines.map((line) => line.text).join(""));

export function consoleOutput(target: { write(bytes: Uint8Array): Promise<number> } = Deno.stdout): Output {
  return { write: (lines) => writeAll(target, encode(lines)), close: () => Promise.resolve() };
}

/** A `location` with its variables replaced. */
export interface Location {
  /** The path of a file opened at that time. */
  path(timeMicros: number): string;
  /** Matches the base names of all files that the location can produce, including rolled ones. */
  pattern: RegExp;
}

/**
 * Supports `${log.dir}`, `${date:pattern}` and environment variables. `unknown`: a name in braces that is none of
 * these.
 */
export function parseLocation(
  text: string,
  variables: Record<string, string | undefined>,
): Location | { unknown: string } {
  const parts: (string | ((timeMicros: number) => string))[] = [];
  let at = 0;
  for (const match of text.matchAll(/\$\{\s*(?:date:([^}]*)|([^}]*?))\s*\}/g)) {
    parts.push(text.slice(at, match.index));
    at = match.index + match[0].length;
    const [, dates, name = ""] = match;
    const value = dates === undefined ? variables[name] : dateFormat(dates.trim());
    if (value === undefined) return { unknown: name };
    parts.push(value);
  }
  parts.push(text.slice(at));
  // Dates are represented by NULs, which paths cannot contain, until the last part of the path is known.
  const shape = parts.map((part) => typeof part === "string" ? part : "\0".repeat(part(0).length)).join("");
  const base = shape.split(Deno.build.os === "windows" ? /[/\\]/ : "/").at(-1)!;
  const pattern = base.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("\0", ".");
  return {
    path: (timeMicros) => parts.map((part) => typeof part === "string" ? part : part(timeMicros)).join(""),
    pattern: new RegExp(`^${pattern}(\\.\\d+)?$`),
  };
}

/** Appends to one file. @throws if it cannot be opened. */
export function fileOutput(path: string): Output {
  const file = Deno.openSync(path, { create: true, append: true });
  return {
    write: (lines) => writeAll(file, encode(lines)),
    close: () => Promise.resolve(file.close()),
  };
}

export type RollEvery = "NONE" | "MINUTE" | "HOUR" | "DAY" | "MONTH" | "YEAR";
export const ROLL_EVERY: readonly RollEvery[] = ["NONE", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR"];
/** Number of leading characters of an ISO time that are constant within a period. */
const PERIOD_PREFIX: Record<RollEvery, number> = { NONE: 0, MINUTE: 16, HOUR: 13, DAY: 10, MONTH: 7, YEAR: 4 };

export interface Rolling {
  location: Location;
  rollEvery: RollEvery;
  /** Bytes; 0: no limit. */
  rollSize: number;
  /** Files older than this are deleted when a new one begins; 0: never. */
  lifeDurationMs: number;
  /** The oldest files are deleted while the total size exceeds this; 0: no limit. */
  sizeLimit: number;
}

/**
 * A file that is replaced by a new one when a period ends or when it grows too large. If the new file has the same
 * name, the old ones are renamed, and `name.1` is the newest of them.
 */
export class RollingOutput implements Output {
  /** Undefined if the last attempt to open a file failed. */
  #file: Deno.FsFile | undefined;
  #path: string;
  #sizeBytes: number;
  #period: string;

  constructor(readonly rolling: Rolling, nowMicros: number) {
    this.#path = rolling.location.path(nowMicros);
    this.#file = Deno.openSync(this.#path, { create: true, append: true });
    const stat = this.#file.statSync();
    this.#sizeBytes = stat.size;
    // An existing file belongs to the period of its last modification.
    this.#period = this.#periodOf(stat.size > 0 && stat.mtime ? stat.mtime.getTime() * 1000 : nowMicros);
  }

  async write(lines: QueuedLine[]): Promise<void> {
    let from = 0;
    let pendingBytes = 0;
    for (const [at, line] of lines.entries()) {
      const lineBytes = encoder.encode(line.text).length;
      const full = this.rolling.rollSize > 0 && this.#sizeBytes + pendingBytes > 0 &&
        this.#sizeBytes + pendingBytes + lineBytes > this.rolling.rollSize;
      if (full || this.#periodOf(line.timeMicros) !== this.#period) {
        await this.#append(lines.slice(from, at));
        [from, pendingBytes] = [at, 0];
        await this.#roll(line.timeMicros);
      }
      pendingBytes += lineBytes;
    }
    await this.#append(lines.slice(from));
  }

  async #append(lines: QueuedLine[]): Promise<void> {
    if (lines.length === 0) return;
    const bytes = encode(lines);
    await writeAll(this.#file ?? await this.#open(), bytes);
    this.#sizeBytes += bytes.length;
  }

  /** Opens the file. Its directory may contain a date and not exist yet. */
  async #open(): Promise<Deno.FsFile> {
    await Deno.mkdir(dirname(this.#path), { recursive: true });
    this.#file = await Deno.open(this.#path, { create: true, append: true });
    this.#sizeBytes = (await this.#file.stat()).size;
    return this.#file;
  }

  #periodOf(timeMicros: number): string {
    return new Date(timeMicros / 1000).toISOString().slice(0, PERIOD_PREFIX[this.rolling.rollEvery]);
  }

  async #roll(timeMicros: number): Promise<void> {
    this.#file?.close();
    this.#file = undefined;
    const path = this.rolling.location.path(timeMicros);
    if (path === this.#path) await moveUp(path);
    this.#path = path;
    this.#period = this.#periodOf(timeMicros);
    await this.#open();
    try {
      await this.#deleteOld(timeMicros);
    } catch (error) {
      // Only report the error, because writing the log is more important.
      logger("log").error(`old files in the directory of ${path} could not be deleted: ${(error as Error).message}`);
    }
  }

  async #deleteOld(timeMicros: number): Promise<void> {
    const { lifeDurationMs, sizeLimit, location } = this.rolling;
    if (lifeDurationMs === 0 && sizeLimit === 0) return;
    const directory = dirname(this.#path);
    const files: { path: string; time: number; size: number }[] = [];
    for await (const entry of Deno.readDir(directory)) {
      const path = join(directory, entry.name);
      if (!entry.isFile || entry.name === basename(this.#path) || !location.pattern.test(entry.name)) continue;
      const stat = await Deno.stat(path);
      files.push({ path, time: stat.mtime?.getTime() ?? 0, size: stat.size });
    }
    files.sort((a, b) => b.time - a.time);
    let total = this.#sizeBytes;
    for (const file of files) {
      total += file.size;
      const old = lifeDurationMs > 0 && file.time < timeMicros / 1000 - lifeDurationMs;
      if (old || (sizeLimit > 0 && total > sizeLimit)) await Deno.remove(file.path);
    }
  }

  close(): Promise<void> {
    return Promise.resolve(this.#file?.close());
  }
}

/** Renames `name` → `name.1`, `name.1` → `name.2`, … */
async function moveUp(path: string): Promise<void> {
  let count = 1;
  while (await exists(`${path}.${count}`)) count++;
  for (let at = count; at > 1; at--) await Deno.rename(`${path}.${at - 1}`, `${path}.${at}`);
  await Deno.rename(path, `${path}.1`);
}
