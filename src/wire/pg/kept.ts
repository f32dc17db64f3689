/**
 * Limits the memory of what clients make the server keep from one message to the next: prepared statements and portals.
 * All connections share it, as one client may open many.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";

/** Smaller unnamed statements and portals are not counted: a connection has at most one of each. */
const UNNAMED_BYTES_MIN = 64 << 10;

/** A connection that waits for its client. */
interface Waiting {
  /** Forgets its unnamed statement and portal. Drivers make them again for each use. */
  forgetUnnamed(): void;
}

export class KeptMemory {
  private usedBytes = 0;
  /** The bytes of large unnamed statements and portals, by connection, the one that has waited longest first. */
  private readonly unnamed = new Map<Waiting, number>();

  constructor(private readonly bytesMax: number) {}

  /** For a named statement or portal. @throws {SqlError} if there is too little memory, even without the unnamed ones. */
  take(bytes: number): void {
    this.makeRoom(bytes);
    if (this.usedBytes + bytes > this.bytesMax) {
      throw new SqlError(
        `prepared statements and portals of all clients fill pg.statement.memory.size, ${this.bytesMax} bytes: ` +
          `found ${this.usedBytes} bytes, and ${bytes} more are wanted; close some`,
        0,
        SQLSTATE.outOfMemory,
      );
    }
    this.usedBytes += bytes;
  }

  give(bytes: number): void {
    this.usedBytes -= bytes;
  }

  /** For the unnamed statement and portal of a connection that begins to wait. They may be forgotten at once. Returns whether they are counted. */
  keepUnnamed(connection: Waiting, bytes: number): boolean {
    if (bytes < UNNAMED_BYTES_MIN) return false;
    this.usedBytes += bytes;
    this.unnamed.set(connection, bytes);
    this.makeRoom(0);
    return true;
  }

  /** The connection does not wait any more. */
  endWait(connection: Waiting): void {
    this.usedBytes -= this.unnamed.get(connection) ?? 0;
    this.unnamed.delete(connection);
  }

  private makeRoom(bytes: number): void {
    for (const connection of this.unnamed.keys()) {
      if (this.usedBytes + bytes <= this.bytesMax) return;
      this.endWait(connection);
      connection.forgetUnnamed();
    }
  }
}
