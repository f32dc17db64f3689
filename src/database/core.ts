/** Options and services shared by the parts of the database. */
import type { Answer, Database, Identity } from "../api.ts";
import type { IdentityProvider } from "../auth/oidc/mod.ts";
import type { Values } from "../config/mod.ts";
import type { Scheduler, SchedulerOptions } from "../engine/mod.ts";
import type { LogRecord } from "../log/mod.ts";
import type { MetricSample } from "../metrics/mod.ts";
import type { ServerFacts } from "../sql/mod.ts";
import type { Catalogue, PackedMemory, SharedHeap, SharedPool, StorageWriter, TableRows } from "../storage/mod.ts";
import type { AccessControl } from "./access/control.ts";
import type { AccessStatements } from "./access/statements.ts";
import type { Activity } from "./activity.ts";
import type { Backups } from "./backups.ts";
import type { RowsToAdd } from "./constant-rows.ts";
import type { Copies } from "./copies.ts";
import type { Execution } from "./execution.ts";
import type { LastWrites } from "./last-writes.ts";
import type { TableLocks } from "./locks.ts";
import type { Planner } from "./planner.ts";
import type { Progress } from "./progress.ts";
import type { databaseSettings } from "./settings.ts";
import type { StatementCache } from "./statements.ts";
import type { MaterializedViews } from "./materialized-views.ts";
import type { ViewFacts } from "./view-facts.ts";
import type { StoredViews } from "./views.ts";

/** The settings, and the services of the process. */
export interface DatabaseOptions extends Values<typeof databaseSettings> {
  /** True if statements are logged at DEBUG, unless the settings ask for INFO. */
  logsDebug: boolean;
  log: (level: "DEBUG" | "INFO" | "ERROR" | "CRITICAL", message: string) => void;
  /** For SHOW PARAMETERS: rows of property_path, env_var_name, value, value_source, sensitive, reloadable. */
  parameters: () => (string | boolean)[][];
  /** Reloads the settings. Returns true if a changed setting takes effect immediately. */
  reloadConfig?: () => boolean;
  /** Settings changed by the last reload that need a restart. */
  pendingConfig?: () => { path: string; value: string; pendingValue: string }[];
  /** For server_metrics(). */
  metrics?: () => MetricSample[];
  /** For recent_errors(), latest first. */
  recentErrors?: () => LogRecord[];
  /** Undefined if there is no sign-on by a provider (acl.oidc.enabled). */
  provider?: IdentityProvider;
  /** Called for each change of access control, with a line of user, action and address. */
  audit?: (line: string) => void;
  /** How long query threads look for more work before they sleep, in microseconds; 0 by default. */
  busyMicros?: number;
  awaitAnswer?: SchedulerOptions["awaitAnswer"];
  /** The same for the writer. */
  awaitWriter?: SchedulerOptions["awaitAnswer"];
  /** Called after some seconds without queries and commits, when there have been some. */
  onRest?: () => void;
  /** Keeps the process within the memory of a small machine. Returns a function that ends this. */
  watchMemory?: (memory: { heap: SharedHeap; pool: SharedPool }) => () => void;
  /** Called for an internal error. */
  onUnhandledError?: () => void;
  /** Called when the disk has become full, and when a change was written again. */
  onDiskFull?: (isFull: boolean) => void;
  /** Called when nothing can be written until a restart. */
  onWriterFailed?: (reason: string) => void;
  /** The writer's thread, if it was started in advance. */
  writerThread?: Worker;
  nowMicros?: () => bigint;
}

/** Services that sessions and other parts of the database share. */
export interface Core {
  readonly options: DatabaseOptions;
  readonly heap: SharedHeap;
  readonly further: readonly PackedMemory[];
  readonly catalogue: Catalogue;
  readonly writer: StorageWriter;
  readonly execution: Execution;
  readonly statements: StatementCache;
  readonly planner: Planner;
  readonly locks: TableLocks;
  readonly scheduler: Scheduler;
  readonly backups: Backups;
  readonly copies: Copies;
  readonly views: StoredViews;
  readonly viewFacts: ViewFacts;
  readonly materialized: MaterializedViews;
  readonly progress: Progress;
  /** Facts about the process, for functions that the server evaluates. */
  readonly server: Pick<ServerFacts, "startedMicros" | "reloadConfig" | "log">;
  readonly activity: Activity;
  readonly lastWrites: LastWrites;
  /** Undefined if access control is off (acl.enabled). */
  readonly access?: AccessControl;
  readonly accessStatements?: AccessStatements;
  /** Adds rows to tables in one commit, after any exclusive change of these tables. */
  append(changes: TableRows[]): Promise<void>;
  /** Adds constant rows to a table, as `append` does. */
  appendRows(rows: RowsToAdd): Promise<void>;
  /** Runs `change` while no rows are added to the table. */
  exclusively<T>(tableId: number, change: () => Promise<T>): Promise<T>;
  /** A cache for statements bound with tables that other sessions do not see. */
  statementsOf(tables: Catalogue, schemaVersion: () => number): StatementCache;
  /** The version of all schemas. Statements bound with another version are bound again. */
  schemaVersion(): number;
  /** A unique version, for the tables as changed by a transaction. */
  privateSchemaVersion(): number;
  /** Called after a change of a schema, so that statements are bound again. */
  schemaChanged(tag: string): Answer;
}

export interface OpenedDatabase extends Database {
  /** For tests: causes an uncaught error in a thread. */
  crash(thread: "query" | "writer", text: string): void;
}

/** The user for statements of the server itself. They are not tracked. */
export const SERVER: Identity = { name: "server" };
