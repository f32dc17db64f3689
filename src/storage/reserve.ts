/** Disk space reserved for operations that free space, or must not fail, when the disk is full. */
import { DiskFullError } from "../errors.ts";
import { type Files, writeFully } from "./files.ts";
import type { LogLevel } from "./options.ts";

export class DiskReserve {
  constructor(
    private readonly files: Files,
    private readonly path: string,
    private readonly sizeBytes: number,
    private readonly log: (level: LogLevel, message: string) => void,
  ) {}

  /** Runs `action`. If the disk is full, releases the reserve and tries once more. */
  use<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      if (!(error instanceof DiskFullError) || !this.files.exists(this.path)) throw error;
      this.files.remove(this.path);
      this.log("ERROR", `${error.message}: the reserve is used`);
      return action();
    }
  }

  /** Allocates the reserve again if there is space for it. */
  keep(): void {
    if (this.sizeBytes === 0 || this.files.exists(this.path)) return;
    try {
      const file = this.files.open(this.path, "create");
      try {
        writeFully(file, [new Uint8Array(this.sizeBytes)], 0);
      } finally {
        file.close();
      }
    } catch (error) {
      if (!(error instanceof DiskFullError)) throw error;
      this.files.remove(this.path);
    }
  }
}
