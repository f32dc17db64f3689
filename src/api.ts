/**
 * The API between the wires and everything behind it. `database/` implements it.
 * A wire: `database.session(identity)` → `session.prepare(text)` → `prepared.execute(values)` → an answer.
 */
import type { Sender } from "./slow-senders.ts";
import type { Verifier } from "./auth/mod.ts";
import type { IdentityProvider } from "./auth/oidc/mod.ts";
import type { PartitionUnit } from "./sql/plan.ts";
import type { AppendBatch, TableSchema, TableSnapshot } from "./storage/contract.ts";
import type { Value } from "./types/mod.ts";

export interface Identity {
  name: string;
  /** Set for a user that only the identity provider knows. A database user may have the same name. */
  external?: ExternalUser;
  /** Distinguishes the principal from earlier or later ones of the same name. */
  id?: string;
  /** The service account that the session has assumed. */
  assumed?: string;
  /** Identifies the secret with which the client signed in, so that a changed secret is detected. */
  secret?: string;
}

/**
 * The latest facts about a user from the identity provider. All sessions of the user share the object, so that they see
 * changes.
 */
export interface ExternalUser {
  /** The user's name for people. */
  readonly fullName: string | undefined;
  /** Names of its groups at the provider: external aliases of groups here. */
  readonly groups: readonly string[];
  /** True until the provider has to be asked again. */
  readonly isCurrent: boolean;
  /** Asks the provider again. Returns false if the user is no longer signed in. @throws {ProviderUnavailable} */
  renew(): Promise<boolean>;
}

/** Name of a user for logs and lists: `8c1f (Alice Smith)`. */
export function shownUser({ name, external }: Pick<Identity, "name" | "external">): string {
  if (external === undefined) return name;
  return `${name} (${external.fullName ?? "external"})`;
}

/** The origin of statements, for lists of connections and running statements. */
export interface Client {
  wire: "http" | "pg";
  /** host:port */
  address(): string;
  /** Settings made by SET, by lower-case name, such as `application_name`. */
  settings?: ReadonlyMap<string, string>;
  /** The number of a persistent connection, which pg_stat_activity lists even if it is idle. */
  pid?: number;
  /** performance.now() of its last answer; undefined while the next one is made. */
  idleSinceMs?(): number | undefined;
  /** True if it may write. */
  canWrite: boolean;
}

export interface ResultColumn {
  name: string;
  /** The type's tag; `typeOf(tag).name` is its name in responses. */
  type: string;
}

/**
 * The encoding of result batches as bytes. Each has an encoder in `src/wire/encode/`, which runs where the batch was
 * made.
 */
export type Encoding =
  /**
   * Rows of the dataset of /exec: `[…],[…]`, with a comma before each row except the first one of the result.
   * `isLines`: a line feed follows each comma and occurs nowhere else.
   */
  | { name: "json"; quoteLargeNumbers: boolean; columns?: number[]; isLines?: boolean }
  | { name: "csv"; delimiter: string }
  /** Row groups of a Parquet file. See `src/wire/encode/parquet.ts`. */
  | {
    name: "parquet";
    codec: "UNCOMPRESSED" | "SNAPPY" | "GZIP" | "BROTLI" | "ZSTD" | "LZ4_RAW";
    level?: number;
    pageSizeBytes?: number;
  }
  /** DataRow messages. Formats by column: 0 text, 1 binary. */
  | { name: "pg"; formats: number[] };

/** Rows of an earlier answer as lines of JSON (`isLines`) in a file. */
export interface SpooledRows {
  path: string;
  sizeBytes: number;
  rowCount: number;
  columns: readonly ResultColumn[];
  /** The statement that they answered, for the list of running statements. */
  statement: string;
}

export interface ExecuteOptions {
  encoding: Encoding;
  /** Rows first+1 … first+count of the result; other rows are not encoded. */
  window?: { first: number; count: number };
  /** Count all rows, even after the end of the window. */
  countAll?: boolean;
  /** Approximate size of a chunk; undefined: some megabytes. */
  chunkBytes?: number;
  signal?: AbortSignal;
  /** 0 or undefined: the configured timeout. */
  timeoutMs?: number;
  /** performance.now() at the start of the statement. Undefined: when it is executed. */
  startedMs?: number;
  /** Called repeatedly with the progress of the statement, as text for users. */
  progress?: { everyMs: number; report(text: string): void };
  /** State of the client's connection that statements such as SET change. Undefined over HTTP. */
  connection?: ConnectionState;
  /**
   * The rows of an answer that is there at once (not by a promise) may be in a buffer that the next execution of the statement overwrites:
   * the caller copies them before anything else runs.
   */
  lends?: boolean;
  /** Called when the statement begins, with a function that returns its progress. */
  onBegin?(progress: () => StatementProgress): void;
}

/** State of a client's connection besides the transaction. */
export interface ConnectionState {
  readonly settings: {
    /** `isLocal`: until the end of the transaction. @throws {SqlError} at `at` if the value is not allowed. */
    set(name: string, value: string, options: { isLocal: boolean; at: number }): void;
    /** Restores the value that the connection began with; without a name, that of all settings. */
    reset(name?: string): void;
  };
  /** Ends a prepared statement; without a name, all. @throws {SqlError} 26000 if there is none. */
  deallocate(name?: { text: string; at: number }): void;
  /** Ends a portal; without a name, all. @throws {SqlError} 34000 if there is none. */
  closePortals(name?: { text: string; at: number }): void;
}

export interface StatementProgress {
  seconds: number;
  rowsRead: number;
  /** Upper bound. Undefined if it is not known. */
  rowsToRead?: number;
  rowsWritten: number;
  memoryBytes: number;
}

export interface Chunk {
  bytes: Uint8Array;
  /** Number of rows in `bytes`. */
  rows: number;
}

export interface ExplainedPlan {
  root: ExplainedNode;
  /** For EXPLAIN ANALYZE: execution time of the whole statement. */
  executionNanos?: number;
  memoryPeakBytes?: number;
  changedRows?: number;
}

export interface ExplainedNode {
  /** "Sort price, first 10" */
  text: string;
  /** Further lines, such as conditions. */
  details: readonly string[];
  /** The operator's algorithm, and the part of its table that it reads. */
  notes: readonly string[];
  /** True if the operator above does its work in the same pass. */
  isFused: boolean;
  /** For EXPLAIN ANALYZE. */
  measured?: Measured;
  inputs: ExplainedNode[];
}

export interface Measured {
  /** Rows that it returned. Undefined for a node without measurements. */
  rows?: number;
  bytes?: number;
  /** Time including and excluding its inputs. */
  nanos?: number;
  ownNanos?: number;
  memoryPeakBytes?: number;
  /** For scans. */
  rowsRead?: number;
  bytesRead?: number;
}

/** The result of a statement. Rows are encoded chunks; a slow reader slows the producer down. */
export type Answer =
  | {
    kind: "rows";
    columns: ResultColumn[]; /** Index of the designated timestamp, or -1. */
    timestamp: number;
    chunks: AsyncIterable<Chunk>; /** All chunks, if the query has ended already: then `chunks` need not be read. */
    ready?: readonly Chunk[]; /** Rows of the whole query, known when the chunks have ended. */
    totalRows(): number;
    /** For EXPLAIN: the contents of the rows as data. */
    explained?: ExplainedPlan;
  }
  /** `tag`: PostgreSQL's command tag, such as "INSERT 0 3" or "CREATE TABLE". `rows`: number of changed rows. */
  | { kind: "done"; category: Exclude<StatementCategory, "query">; tag: string; rows: number };

/** Some protocols answer each category in a different way. "session": changes only the state of the session. */
export type StatementCategory = "query" | "ddl" | "dml" | "transaction" | "session" | "empty";

export interface Prepared {
  /** Result columns; undefined if the statement returns no rows. */
  columns: ResultColumn[] | undefined;
  /** PostgreSQL's command tag if it returns rows, before their number. Undefined: SELECT. */
  rowsTag?: "EXPLAIN";
  timestamp: number;
  /** Type tags of $1, $2, … */
  parameters: string[];
  /**
   * For each parameter: the element type if PostgreSQL declares it as an array, as in `$1::oid[]`. Arrays are texts
   * here.
   */
  parameterArrays: readonly (string | undefined)[];
  /** Notices to the client, in addition to the result. */
  notices: readonly string[];
  category: StatementCategory;
  /** True if it only reads data. */
  isRead: boolean;
  /** Nanoseconds of parsing, binding and planning. */
  compileNs: number;
  /** Small queries are answered synchronously. */
  execute(values: Value[], options: ExecuteOptions): Answer | Promise<Answer>;
}

/** The statements of a text, with their offsets in it. */
export interface StatementTexts extends Iterable<{ text: string; at: number }> {
  readonly length: number;
}

export interface Session {
  readonly identity: Identity;
  /**
   * Compiles a statement. Returns synchronously, except for long statements, which another thread compiles.
   * `parameterTypes`: tags from the client, undefined to infer. @throws {SqlError} with positions as offsets into
   * `text`.
   */
  prepare(
    text: string,
    parameterTypes?: (string | undefined)[],
    options?: Pick<ExecuteOptions, "signal" | "timeoutMs">,
  ): Prepared | Promise<Prepared>;
  /**
   * Splits a text at its semicolons. Long texts are split by another thread, as in `prepare`.
   */
  split(
    text: string,
    options?: Pick<ExecuteOptions, "signal" | "timeoutMs">,
  ): StatementTexts | Promise<StatementTexts>;
  /**
   * Returns the query with its SAMPLE BY narrowed to a time range, with finer buckets. Undefined if there is no SAMPLE
   * BY that can be narrowed, or the query is long. @throws {SqlError} if it cannot be parsed.
   */
  finerSamples(
    text: string,
    range: { fromMs: number; toMs: number; bucketsMax: number },
  ): { text: string; bucket: string } | undefined;
  /**
   * Reads the rows of an earlier answer again, in the order of a column if one is given by its index. Nulls are last. No
   * statement is run. Columns of BINARY have no bytes.
   */
  readSpooled(
    rows: SpooledRows,
    order: { column: number; descending: boolean } | undefined,
    options: ExecuteOptions,
  ): Promise<Extract<Answer, { kind: "rows" }>>;
  /**
   * "idle", "open" (inside BEGIN) or "failed", for ReadyForQuery. Transactions of requests with several statements are
   * ignored.
   */
  readonly transaction: "idle" | "open" | "failed";
  /**
   * Runs the following statements in one transaction, unless one is open already, until `endRequest`, or longer if one
   * of them is BEGIN.
   */
  beginRequest(): void;
  /** Commits the transaction of `beginRequest`. */
  endRequest(): Promise<void>;
  /** Marks the transaction as failed. A transaction of `beginRequest` is rolled back. */
  fail(): Promise<void>;
  /** Rolls the open transaction back. */
  close(): Promise<void>;
  /** Rolls back and ends the session, because its connection has ended. */
  end(): Promise<void>;
}

/** Unit of timestamps in line protocol. */
export type LinePrecision = "n" | "u" | "ms" | "s" | "m" | "h";

/** Bytes of line protocol, split at any position. A piece is valid until the next one is requested. */
export interface LineBody extends AsyncIterable<Uint8Array> {
  /** Undefined if unknown. */
  sizeBytes?: number;
  /** Undefined if it cannot be ended. */
  sender?: Sender;
}

/** Access control: authentication of clients, and permissions of endpoints. */
export interface Access {
  /** Undefined if there is no sign-on by a provider (acl.oidc.enabled). */
  readonly provider?: Pick<IdentityProvider, "settings" | "endpoints">;
  /**
   * Authenticates by Basic authentication or a password in clear text. Undefined if the password is wrong. Returns
   * synchronously if it was verified before. @throws {TooManyDerivations} while too many are being verified. @throws
   * {ProviderUnavailable}
   */
  withPassword(name: string, password: string): Identity | undefined | Promise<Identity | undefined>;
  /** Authenticates by `Authorization: Bearer`. @throws {ProviderUnavailable} */
  withToken(token: string): Identity | undefined | Promise<Identity | undefined>;
  /** The verifier for SCRAM. For an unknown name, a verifier that no password matches. */
  verifierOf(name: string): Promise<Verifier>;
  /** The identity after a successful proof. Undefined if the principal no longer exists or is disabled. */
  identify(name: string): Identity | undefined;
  /**
   * How a client of the PostgreSQL wire authenticates as the user. "local": with a password of this database, which
   * allows SCRAM. "password": with a password of the identity provider. "token": with a token as the password.
   */
  proofOf(name: string): "local" | "password" | "token";
  /** The name under which wrong passwords are counted. "" for unknown names, because their number is unlimited. */
  knownName(name: string): string;
  /**
   * True if the secret with which the identity signed in is still valid, as far as is known without asking the
   * provider.
   */
  isCurrent(identity: Identity): boolean;
  /** Like `isCurrent`, but asks the provider if necessary. @throws {ProviderUnavailable} */
  renew(identity: Identity): boolean | Promise<boolean>;
  /** The reason why the identity may not use the endpoint; undefined if it may. */
  refusalOf(identity: Identity, endpoint: "http" | "pg" | "line"): string | undefined;
  /** True if the identity may see that the table exists. */
  sees(identity: Identity, table: TableSchema): boolean;
}

/** What `isCsvDelimiter()` accepts. */
export const CSV_DELIMITER = "one ASCII character other than a quote or a line end";

/** True if the values of a CSV file may be separated by this text. */
export function isCsvDelimiter(text: string): boolean {
  return text.length === 1 && text.charCodeAt(0) < 0x80 && !'"\r\n'.includes(text);
}

/** Options for the import of a CSV file. */
export interface ImportOptions {
  table: string;
  /** Replace an existing table of that name by a new one. */
  overwrite: boolean;
  /** Create the table if it does not exist. */
  create: boolean;
  /** Designated timestamp of a new table. */
  timestamp?: string;
  partitionBy?: PartitionUnit;
  atomicity: "skipCol" | "skipRow" | "abort";
  forceHeader: boolean;
  /** A byte. Undefined: detected from the first lines. */
  delimiter?: number;
  /** Number of rows after which rows of an existing table are committed. Undefined: the default. */
  maxUncommittedRows?: number;
  /** Types and formats of columns that are given instead of detected. `type`: type tag. */
  schema: readonly { name: string; type: string; pattern?: string; index?: boolean }[];
  /** Names of columns of the file, or their indices, that are left out. */
  omit: readonly string[];
  /** Maximum number of faults that `onFaults` gets. */
  faultsMax: number;
  /** Called in the order of the lines. The import goes on when it resolves. */
  onFaults?(faults: readonly ImportFault[]): Promise<void>;
}

/** A line that was left out, or a value that did not fit its column. */
export interface ImportFault {
  /** From 1, which is the header if there is one. */
  line: number;
  /** Name of the column. Undefined if the line as a whole is at fault. */
  column?: string;
  /** The start of the value, or of the line. Undefined if there is no value. */
  value?: string;
  reason: string;
}

export interface ImportColumn {
  name: string;
  /** Type tag. */
  type: string;
  /** Values that did not fit. */
  errors: number;
}

export interface ImportReport {
  rowsImported: number;
  /** Lines that were skipped. */
  rowsRejected: number;
  hasHeader: boolean;
  partitionBy: PartitionUnit;
  /** Name of the designated timestamp. */
  timestamp: string | undefined;
  warnings: string[];
  columns: readonly ImportColumn[];
}

export interface DashboardHead {
  id: string;
  name: string;
  /** Name of the user who created it. */
  owner: string;
  /** Names of users and groups. `*` means everybody. */
  sharedWith: string[];
  /** Incremented by each change. */
  version: number;
  /** Time of the last change, in the format of /exec. */
  changed: string;
  canEdit: boolean;
}

export interface Dashboard extends DashboardHead {
  /** JSON, defined by the console. */
  definition: string;
}

/** `id` and `version`: of the dashboard to replace. Without them a new one is created. */
export interface DashboardSave extends Pick<Dashboard, "name" | "sharedWith" | "definition"> {
  id?: string;
  version?: number;
}

/** Dashboards of the console. Users see their own and shared ones. */
export interface Dashboards {
  list(identity: Identity): Promise<DashboardHead[]>;
  /** Undefined if it does not exist or the user may not see it. */
  read(identity: Identity, id: string): Promise<Dashboard | undefined>;
  /** @throws {SqlError} 40001 if another version is stored, 42501, 42704, 54000 */
  save(identity: Identity, save: DashboardSave): Promise<DashboardHead>;
  /** @throws {SqlError} 42501, 42704 */
  remove(identity: Identity, id: string): Promise<void>;
}

export interface Database {
  /** Undefined if access control is off (acl.enabled). */
  readonly access?: Access;
  session(identity: Identity, client?: Client): Session;
  /**
   * Writes line protocol in one transaction. After an invalid line no row is kept, but tables and columns created for
   * earlier lines are kept. The body is read while it is processed. @throws {LineError} with the invalid line, and
   * errors of the body's iterator.
   */
  writeLines(
    body: LineBody,
    precision: LinePrecision,
    identity: Identity,
    client?: Client,
  ): Promise<{ rows: number }>;
  /**
   * Writes a part of an endless stream in one transaction, from a sender that cannot authenticate. `lines` ends with a
   * line feed. Lines from `doneBytes` on are not written, either because their data follows in the stream or because
   * they are too many for one transaction. @throws {LineError} as `writeLines`
   */
  takeLines(
    lines: Uint8Array,
    precision: LinePrecision,
  ): Promise<{ rows: number; doneBytes: number }>;
  /**
   * Imports a CSV file of any size. A new table is created completely or not at all. Rows of an existing table are
   * committed in steps, or all at once with `abort`. @throws {SqlError} if the file or the options are invalid; and
   * errors of `body`.
   */
  importCsv(
    body: AsyncIterable<Uint8Array>,
    options: ImportOptions,
    identity: Identity,
    client?: Client,
    signal?: AbortSignal,
  ): Promise<ImportReport>;
  /** Appends rows in columnar form, for COPY and batches of drivers. */
  append(table: string, batch: AppendBatch, identity: Identity): Promise<void>;
  table(name: string): TableSnapshot | undefined;
  readonly dashboards: Dashboards;
  /** Functions, keywords and types for editors, as a JSON document. It is constant while the server runs. */
  languageReference(): string;
  /**
   * Counters of storage and engine, by the metric's key. Records are by the metric's label. Arrays count values by the
   * ranges between bounds.
   */
  statistics(): Record<
    string,
    number | Record<string, number> | { bounds: readonly number[]; counts: ArrayLike<number>; sum: number }
  >;
  close(): Promise<void>;
}
