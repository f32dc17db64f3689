/** What the writer is given. */
import type { Files } from "./files.ts";
import type { SharedHeap } from "./heap.ts";
import type { Publication } from "./publication.ts";

export type LogLevel = "CRITICAL" | "ERROR" | "INFO";

export interface WriterOptions {
  files: Files;
  /** The `db` directory. */
  root: string;
  heap: SharedHeap;
  commitMode: "sync" | "nosync";
  log: (level: LogLevel, message: string) => void;
  /** A table was found damaged: nobody's fault here, but somebody has to know. */
  onDamage: (message: string) => void;
  /** Gets each new version before the commands that made it are answered. */
  publish: (publication: Publication) => void;
  /** Checkpoint when the log is larger. */
  checkpointLogBytes: number;
  /** Checkpoint when the log has more blocks, as small ones take longer to replay than their bytes tell. Default: 100,000. */
  checkpointLogBlocks?: number;
  /** Checkpoint when the last one is so long ago, there is something to write and nobody waits. Default: never. */
  checkpointIntervalMs?: number;
  /** A checkpoint goes on for so long between two groups of commits, at least by a table. Default: 10. */
  checkpointStepMs?: number;
  /** Store segments when those in memory take more. */
  memoryBytes: number;
  random: () => number;
  /** Kept free on the disk for checkpoints and deletes when it is full. */
  reserveBytes: number;
  /** Data files from this size on are rewritten when more than half of them is dead. */
  compactBytes: number;
  /** Asks the pool to give back shared memory. */
  evict: (sizeBytes: number) => boolean;
}
