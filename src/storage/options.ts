/** The options of the writer. */
import type { Encoders } from "./encoders.ts";
import type { Mergers } from "./mergers.ts";
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
  /** Called when a table was found damaged. */
  onDamage: (message: string) => void;
  /** Receives each new version before the commands that caused it are answered. */
  publish: (publication: Publication) => void;
  /** Makes a checkpoint when the log is larger. */
  checkpointLogBytes: number;
  /**
   * Makes a checkpoint when the log has more blocks: small blocks take longer to replay than their size suggests.
   * Default: 100,000.
   */
  checkpointLogBlocks?: number;
  /**
   * Makes a checkpoint when the last one is older, there is something to write and no command is waiting. Default:
   * never.
   */
  checkpointIntervalMs?: number;
  /** Most bytes of the log that are kept only for readers of it. Default: 1 GiB. */
  heldLogBytes?: number;
  /** More tables are refused. Default: any number. */
  tableCountMax?: number;
  /** Time that a checkpoint may take between two groups of commits; at least one step is done. Default: 10. */
  checkpointStepMs?: number;
  /** How many bytes of segments a checkpoint writes between two groups of commits. Default: 4 MiB. */
  flushStepBytes?: number;
  /** Flushes segments when those in memory take more. */
  memoryBytes: number;
  random: () => number;
  /** The clock, in microseconds since 1970: for the time to live. */
  nowMicros: () => bigint;
  /** Disk space kept free for checkpoints and deletes on a full disk. */
  reserveBytes: number;
  /** Data files of at least this size are rewritten when more than half of them is dead. */
  compactBytes: number;
  /** How many bytes of them are moved between two groups of commits. Default: 4 MiB. */
  compactStepBytes?: number;
  /** How columns are stored: encoded where that is smaller (default), or as they are. */
  encoding?: "auto" | "raw";
  /** Other threads that encode segments. Default: the writer does it. */
  encoders?: Encoders;
  /** Other threads that merge late rows beside the writer. Default: the writer does it. */
  mergers?: Mergers;
  /** Time that the writer waits for them without a result. Default: 1,000. */
  patienceMs?: number;
  /** Stores anew what is raw, or was stored by older programs, after this time without commands. Default: 1,000. */
  idleMs?: number;
  /** True while queries run. */
  isReading?: () => boolean;
  /** Rows of a segment at most. Default: 65,536. Tests take fewer, so that small tables have many segments. */
  segmentRowsMax?: number;
  /** Asks the pool to give back shared memory. */
  evict: (sizeBytes: number) => boolean;
}
