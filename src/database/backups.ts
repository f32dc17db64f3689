/**
 * Copies of the running database. `CHECKPOINT CREATE` keeps the files unchanged for an external copy until `CHECKPOINT
 * RELEASE`. `BACKUP DATABASE` makes a copy itself.
 */
import * as fs from "node:fs/promises";
import { join } from "node:path";
import { SqlError, SQLSTATE } from "../errors.ts";
import { exists } from "../paths.ts";
import { copyDatabase, type StorageWriter, syncDirectory } from "../storage/mod.ts";

/** Prefix of incomplete backups. They must not be used. */
const UNFINISHED = ".unfinished-";

export interface BackupOptions {
  /** The database's directory. */
  root: string;
  backupRoot: string;
  log: (level: "INFO" | "ERROR", message: string) => void;
}

export class Backups {
  /** Time of CHECKPOINT CREATE, while the checkpoint is open. */
  startedAtMicros: bigint | undefined;
  /** Number of backups that are being made. */
  private backupCount = 0;
  private readonly waiting: ((value: unknown) => void)[] = [];

  constructor(
    private readonly writer: StorageWriter,
    private readonly options: BackupOptions,
    private readonly nowMicros: () => bigint,
  ) {}

  /** @throws {SqlError} at `at` if a checkpoint is open. */
  async begin(at: number): Promise<void> {
    if (this.startedAtMicros !== undefined) {
      throw new SqlError(
        "Cannot create a checkpoint: one is already open; use CHECKPOINT RELEASE to end it",
        at,
        SQLSTATE.objectNotInState,
      );
    }
    this.startedAtMicros = this.nowMicros();
    try {
      await this.writer.hold();
    } catch (error) {
      this.startedAtMicros = undefined;
      this.wake();
      throw error;
    }
    this.options.log(
      "INFO",
      `checkpoint created: ${this.options.root} can be copied, and the log grows until CHECKPOINT RELEASE`,
    );
  }

  /** A checkpoint is open, or a backup is being made. */
  get isCopying(): boolean {
    return this.startedAtMicros !== undefined || this.backupCount > 0;
  }

  /** Waits until no files are being copied. @throws the signal's reason. */
  async released(signal?: AbortSignal): Promise<void> {
    while (this.isCopying) {
      signal?.throwIfAborted();
      await new Promise((done) => {
        this.waiting.push(done);
        signal?.addEventListener("abort", done, { once: true });
      });
    }
  }

  /** Releases the checkpoint. Does nothing if none is open. */
  async end(): Promise<void> {
    if (this.startedAtMicros === undefined) return;
    this.startedAtMicros = undefined;
    await this.writer.release();
    this.wake();
    this.options.log("INFO", "checkpoint released");
  }

  /**
   * Makes a copy in `<backup root>/<name>/db`, so that `<backup root>/<name>` can be used as a server's root. It gets
   * its name only once it is complete and on stable storage. @returns its path.
   */
  async backup(name: string | undefined, at: number, signal?: AbortSignal): Promise<string> {
    const { root, backupRoot, log } = this.options;
    const called = name ?? new Date(Number(this.nowMicros() / 1000n)).toISOString().replace(/[:.]/g, "-");
    if (!/^[A-Za-z0-9_][\w.-]{0,127}$/.test(called)) {
      throw new SqlError(
        "Cannot back up: the name of a backup may contain only letters, digits, _, - and .",
        at,
        SQLSTATE.invalidParameter,
      );
    }
    const target = join(backupRoot, called);
    await fs.mkdir(backupRoot, { recursive: true, mode: 0o700 });
    if (await exists(target)) {
      throw new SqlError(`Cannot back up: a backup called ${called} already exists`, at, SQLSTATE.duplicateObject);
    }
    const unfinished = join(backupRoot, UNFINISHED + called);
    try {
      await fs.mkdir(unfinished, { mode: 0o700 });
    } catch (error) {
      if ((error as { code?: string }).code !== "EEXIST") throw error;
      throw new SqlError(
        `Cannot back up: ${unfinished} exists, from a running or an interrupted backup; remove it if no backup is running`,
        at,
        SQLSTATE.objectNotInState,
      );
    }
    const startedMs = performance.now();
    this.backupCount++;
    let isHeld = false;
    try {
      await this.writer.hold();
      isHeld = true;
      const { fileCount, sizeBytes } = await copyDatabase(root, join(unfinished, "db"), signal);
      await syncDirectory(unfinished);
      await fs.rename(unfinished, target);
      await syncDirectory(backupRoot);
      log(
        "INFO",
        `backup ${target}: ${fileCount} files with ${sizeBytes} bytes in ${
          Math.round(performance.now() - startedMs)
        } ms`,
      );
    } catch (error) {
      await fs.rm(unfinished, { recursive: true, force: true });
      log("ERROR", `backup ${target} failed: ${(error as Error).message}`);
      if ((error as { code?: string }).code === "ENOSPC") {
        throw new SqlError(`Cannot back up: the disk of ${backupRoot} is full`, at, SQLSTATE.diskFull, {
          cause: error,
        });
      }
      throw error;
    } finally {
      this.backupCount--;
      if (isHeld) await this.writer.release();
      this.wake();
    }
    return target;
  }

  private wake(): void {
    for (const done of this.waiting.splice(0)) done(undefined);
  }
}
