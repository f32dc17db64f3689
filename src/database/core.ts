/** What the parts of the database share: its options and its services. */
import type { Answer, Database, Identity } from "../api.ts";
import type { Values } from "../config/mod.ts";
import type { Scheduler } from "../engine/mod.ts";
import type { AppendBatch, Catalogue, StorageWriter } from "../storage/mod.ts";
import type { AccessControl } from "./access/control.ts";
import type { AccessStatements } from "./access/statements.ts";
import type { Activity } from "./activity.ts";
import type { Backups } from "./backups.ts";
import type { Execution } from "./execution.ts";
import type { TableLocks } from "./locks.ts";
import type { Planner } from "./planner.ts";
import type { Progress } from "./progress.ts";
import type { databaseSettings } from "./settings.ts";
import type { StatementCache } from "./statements.ts";

/** The settings, and services of the process. */
export interface DatabaseOptions extends Values<typeof databaseSettings> {
  /** Statements are logged at DEBUG where the setting does not ask for more. */
  logsDebug: boolean;
  log: (level: "DEBUG" | "INFO" | "ERROR" | "CRITICAL", message: string) => void;
  /** For SHOW PARAMETERS: rows of property_path, env_var_name, value, value_source, sensitive, reloadable. */
  parameters: () => (string | boolean)[][];
  /** Reads the settings again: has one changed that takes effect at once? */
  reloadConfig?: () => boolean;
  /** Settings that the last reload found changed and that wait for a restart. */
  pendingConfig?: () => { path: string; value: string; pendingValue: string }[];
  /** Told of each change of access control: who, what, from where. */
  audit?: (line: string) => void;
  /** An error that is ours, not a client's. */
  onUnhandledError?: () => void;
  /** The disk has become full, or a change has found room again. */
  onDiskFull?: (isFull: boolean) => void;
  /** Nothing can be written any more until a new start. */
  onWriterFailed?: (reason: string) => void;
  /** The writer's thread, if it was started ahead. */
  writerThread?: Worker;
  nowMicros?: () => bigint;
}

/** Services that sessions and other parts of the database share. */
export interface Core {
  readonly options: DatabaseOptions;
  readonly catalogue: Catalogue;
  readonly writer: StorageWriter;
  readonly execution: Execution;
  readonly statements: StatementCache;
  readonly planner: Planner;
  readonly locks: TableLocks;
  readonly scheduler: Scheduler;
  readonly backups: Backups;
  readonly progress: Progress;
  readonly activity: Activity;
  /** Undefined: everything is allowed (acl.enabled). */
  readonly access?: AccessControl;
  readonly accessStatements?: AccessStatements;
  /** Adds rows to tables in one commit, after changes that hold a table back. */
  append(changes: { tableId: number; batches: AppendBatch[] }[]): Promise<void>;
  /** Runs `change` while no rows are added to the table. */
  exclusively<T>(tableId: number, change: () => Promise<T>): Promise<T>;
  /** Statements bound with tables that not everybody sees. */
  statementsOf(tables: Catalogue, schemaVersion: () => number): StatementCache;
  /** Of all tables: statements that were bound under another one are bound anew. */
  schemaVersion(): number;
  /** One that is nobody else's: of the tables as a transaction has changed them. */
  privateSchemaVersion(): number;
  /** A schema has changed: statements that were bound before are bound anew. */
  schemaChanged(tag: string): Answer;
}

export interface OpenedDatabase extends Database {
  /** For tests: an error reaches the top of a thread. */
  crash(thread: "query" | "writer", text: string): void;
}

/** Runs statements of the server itself. They are not watched. */
export const SERVER: Identity = { name: "server", groups: [] };
