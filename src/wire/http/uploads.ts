/**
 * Parquet files that the console has sent, in the directory of read_parquet(), so that a statement can import them.
 * Each belongs to one user, and none is kept for long or outlives the process.
 */
import { join } from "node:path";
import type { Identity } from "../../api.ts";
import { type Config, size } from "../../config/mod.ts";
import { databaseSettings } from "../../database/settings.ts";
import { asDiskFull } from "../../errors.ts";

export const uploadSettings = {
  sizeBytesMax: size(
    "http.uploads.size.max",
    "2g",
    "Maximum size of a Parquet file that the console uploads for import.",
    { min: 1024, reloadable: true },
  ),
};

/** The file is larger than allowed. */
export class UploadTooLargeError extends Error {}

interface Upload {
  path: string;
  owner: string;
  atMs: number;
}

/** A name that users do not give to their own directories, because its contents are removed. */
const DIRECTORY = ".sundial-uploads";
/** Maximum number of files of one user. A further one replaces the oldest. */
const FILES_MAX = 3;
const KEPT_MS = 3_600_000;
const LOOK_MS = 60_000;
const PRIVATE_FILE = 0o600, PRIVATE_DIRECTORY = 0o700;

export class Uploads {
  /** By name, oldest first. */
  private readonly files = new Map<string, Upload>();
  private readonly ready: Promise<void>;
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(
    private readonly config: Config,
    private readonly onError: (error: unknown) => void,
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    this.ready = this.clear();
    this.timer = setInterval(() => this.removeOld(), LOOK_MS);
    Deno.unrefTimer(this.timer as unknown as number);
  }

  /**
   * Stores a body. Returns its name for read_parquet().
   * @throws {DiskFullError} {UploadTooLargeError} and errors of `body`. Nothing is kept then.
   */
  async store(body: AsyncIterable<Uint8Array>, owner: Identity): Promise<{ name: string; sizeBytes: number }> {
    await this.ready;
    const { sizeBytesMax } = this.config.of(uploadSettings);
    const name = `${DIRECTORY}/${crypto.randomUUID()}.parquet`, path = join(this.root, name);
    let sizeBytes = 0;
    try {
      await Deno.mkdir(join(this.root, DIRECTORY), { recursive: true, mode: PRIVATE_DIRECTORY });
      using file = await Deno.open(path, { write: true, createNew: true, mode: PRIVATE_FILE });
      for await (const bytes of body) {
        sizeBytes += bytes.length;
        if (sizeBytes > sizeBytesMax) {
          throw new UploadTooLargeError(
            `the file is larger than ${sizeBytesMax} bytes (${uploadSettings.sizeBytesMax.key})`,
          );
        }
        for (let at = 0; at < bytes.length;) at += await file.write(bytes.subarray(at));
      }
    } catch (error) {
      await this.delete(path);
      throw asDiskFull(path, error);
    }
    const own = [...this.files].filter(([, upload]) => upload.owner === ownerOf(owner));
    const [oldest] = own;
    if (oldest !== undefined && own.length >= FILES_MAX) await this.drop(oldest[0]);
    this.files.set(name, { path, owner: ownerOf(owner), atMs: this.nowMs() });
    return { name, sizeBytes };
  }

  /** Returns false if there is no such file of this identity. */
  async remove(name: string, owner: Identity): Promise<boolean> {
    if (this.files.get(name)?.owner !== ownerOf(owner)) return false;
    await this.drop(name);
    return true;
  }

  removeOld(): void {
    for (const [name, { atMs }] of this.files) if (this.nowMs() - atMs > KEPT_MS) this.drop(name);
  }

  async close(): Promise<void> {
    clearInterval(this.timer);
    await this.ready;
    await this.clear();
  }

  private get root(): string {
    return this.config.get(databaseSettings.importRoot);
  }

  private async drop(name: string): Promise<void> {
    const { path } = this.files.get(name)!;
    this.files.delete(name);
    await this.delete(path);
  }

  private async delete(path: string): Promise<void> {
    try {
      await Deno.remove(path, { recursive: true });
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) this.onError(error);
    }
  }

  /** Removes all files, including those of a process that was killed. */
  private clear(): Promise<void> {
    return this.delete(join(this.root, DIRECTORY));
  }
}

const ownerOf = ({ name, id }: Identity) => `${name} ${id ?? ""}`;
