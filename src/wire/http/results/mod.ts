/**
 * Results that are spooled for the console, each owned by one identity. They are limited in size, number and idle time, and none
 * outlives the process.
 */
import { join } from "node:path";
import type { Identity } from "../../../api.ts";
import type { Config } from "../../../config/mod.ts";
import { SqlError, SQLSTATE } from "../../../errors.ts";
import { SpooledResult } from "./result.ts";
import { resultSettings } from "./settings.ts";
import { Spool } from "./spool.ts";

export { SpooledResult } from "./result.ts";
export { resultSettings } from "./settings.ts";
export { BLOCK_BYTES } from "./spool.ts";

/** A running statement is cancelled after this time without a request, because its page has been closed. */
const ABANDONED_MS = 60_000;
const LOOK_MS = 5_000;

export class Results {
  /** In order of the last read, oldest first. */
  private readonly byId = new Map<string, SpooledResult>();
  private readonly directory: string;
  private readonly ready: Promise<void>;
  private readonly timer: ReturnType<typeof setInterval>;
  private isClosed = false;

  /** `onError`: called for files that cannot be removed. */
  constructor(
    private readonly config: Config,
    private readonly onError: (error: unknown) => void,
    private readonly nowMs: () => number = () => performance.now(),
  ) {
    this.directory = join(config.root, "tmp", "results");
    this.ready = this.clear();
    // It is awaited, and its failure reported, when the first result is created.
    this.ready.catch(() => {});
    this.timer = setInterval(() => this.removeIdle(), LOOK_MS);
    Deno.unrefTimer(this.timer as unknown as number);
  }

  /**
   * Creates an empty result.
   * @throws {SqlError} if the owner has too many running ones, or the server is closing.
   */
  async begin(owner: Identity, statement: string): Promise<SpooledResult> {
    await this.ready;
    if (this.isClosed) throw new SqlError("the server ends", 0, SQLSTATE.queryCanceled);
    const { userCountMax } = this.config.of(resultSettings);
    const own = this.ofOwner(owner);
    if (own.length >= userCountMax) {
      const oldest = own.find(({ state }) => state !== "running");
      if (oldest === undefined) {
        throw new SqlError(
          `too many running statements of ${owner.name}: ${own.length}, the maximum of ${resultSettings.userCountMax.key}`,
          0,
          SQLSTATE.programLimitExceeded,
        );
      }
      this.remove(oldest);
    }
    const result = new SpooledResult(
      owner,
      statement,
      new Spool(join(this.directory, crypto.randomUUID())),
      this.nowMs(),
    );
    this.byId.set(result.id, result);
    return result;
  }

  /** Undefined if it does not exist, has expired, or belongs to another identity. */
  find(id: string, identity: Identity): SpooledResult | undefined {
    const result = this.byId.get(id);
    if (result === undefined || !result.isOf(identity)) return undefined;
    result.lastReadMs = this.nowMs();
    this.byId.delete(id);
    this.byId.set(id, result);
    return result;
  }

  /** The setting that forbids more rows. Removes older results of the same owner to free space. */
  limitOf({ spool, owner, id }: SpooledResult): string | undefined {
    const { sizeBytesMax, totalBytesMax } = this.config.of(resultSettings);
    if (spool.sizeBytes > sizeBytesMax) return resultSettings.sizeBytesMax.key;
    let total = 0;
    for (const result of this.byId.values()) total += result.spool.sizeBytes;
    for (const other of this.ofOwner(owner)) {
      if (total <= totalBytesMax) return undefined;
      if (other.id === id || other.state === "running") continue;
      total -= other.spool.sizeBytes;
      this.remove(other);
    }
    return total <= totalBytesMax ? undefined : resultSettings.totalBytesMax.key;
  }

  async remove(result: SpooledResult): Promise<void> {
    this.byId.delete(result.id);
    try {
      await result.remove();
    } catch (error) {
      this.onError(error);
    }
  }

  removeIdle(): void {
    const { idleTimeoutMs } = this.config.of(resultSettings);
    const now = this.nowMs();
    for (const result of [...this.byId.values()]) {
      const limitMs = result.state === "running" ? Math.min(ABANDONED_MS, idleTimeoutMs) : idleTimeoutMs;
      if (now - result.lastReadMs > limitMs) this.remove(result);
    }
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.timer);
    await this.ready.catch(() => {});
    await Promise.all([...this.byId.values()].map((result) => this.remove(result)));
    await Deno.remove(this.directory, { recursive: true }).catch(() => {});
  }

  private ofOwner(owner: Identity): SpooledResult[] {
    return [...this.byId.values()].filter((result) => result.isOf(owner));
  }

  /** Removes files of a process that was killed. */
  private async clear(): Promise<void> {
    try {
      await Deno.remove(this.directory, { recursive: true });
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}
