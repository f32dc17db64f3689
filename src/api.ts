/**
 * The API between the wires and everything behind it. `database/` implements it.
 * A wire: `database.session(identity)` → `session.prepare(text)` → `prepared.execute(values)` → an answer.
 */
import type { Verifier } from "./auth/mod.ts";
import type { PartitionUnit } from "./sql/plan.ts";
import type { AppendBatch, TableSchema, TableSnapshot } from "./storage/contract.ts";
import type { Value } from "./types/mod.ts";

export interface Identity {
  name: string;
  /** Of a user whom only an identity provider knows: the groups here that it belongs to, at least one. Others have them by their name. */
  groups: string[];
  /** Tells the principal from others that had or will have its name. */
  id?: string;
  /** The service account whose rights the session has taken on. */
  assumed?: string;
  /** Of the secret with which it signed in: what tells it from the next one. */
  secret?: string;
}

/** Where statements come from, for the list of what runs. */
export interface Client {
  wire: "http" | "pg";
  /** host:port */
  address(): string;
  /** What it has set by SET, by names in lower case. `application_name` is what it calls itself. */
  settings?: ReadonlyMap<string, string>;
  /** The number of a connection that lasts: pg_stat_activity lists it also while it is idle. */
  pid?: number;
  /** It may do more than read. */
  canWrite: boolean;
}

export interface ResultColumn {
  name: string;
  /** Type tag; `typeOf(tag).name` is what replies call it. */
  type: string;
}

/** How result batches become bytes. Each has an encoder in `src/wire/encode/`, run where the batch was made. */
export type Encoding =
  /** Rows of /exec's dataset: `[…],[…]` with a comma before each row but the first of the whole result. */
  | { name: "json"; quoteLargeNumbers: boolean; columns?: number[] }
  | { name: "csv"; delimiter: string }
  /** Row groups of a Parquet file: see `src/wire/encode/parquet.ts`. */
  | {
    name: "parquet";
    codec: "UNCOMPRESSED" | "SNAPPY" | "GZIP" | "BROTLI" | "ZSTD" | "LZ4_RAW";
    level?: number;
    pageSizeBytes?: number;
  }
  /** DataRow messages; formats by column: 0 text, 1 binary. */
  | { name: "pg"; formats: number[] };

export interface ExecuteOptions {
  encoding: Encoding;
  /** Rows first+1 … first+count of the answer; the others are not encoded. */
  window?: { first: number; count: number };
  /** Go on to the end for the row count although the window is full. */
  countAll?: boolean;
  signal?: AbortSignal;
  /** 0 or undefined: the configured one. */
  timeoutMs?: number;
  /** Told again and again how far the statement is, for people. */
  progress?: { everyMs: number; tell(text: string): void };
}

export interface Chunk {
  bytes: Uint8Array;
  /** Rows in `bytes`. */
  rows: number;
}

/** What a statement gave. Rows come as encoded chunks; the reader's pace holds the producer back. */
export type Answer =
  | {
    kind: "rows";
    columns: ResultColumn[]; /** Index of the designated timestamp, or -1. */
    timestamp: number;
    chunks: AsyncIterable<Chunk>; /** Rows of the whole query, known when the chunks have ended. */
    totalRows: () => number;
  }
  /** `tag` as PostgreSQL's command tags: "INSERT 0 3", "UPDATE 2", "CREATE TABLE". `rows`: how many were changed. */
  | { kind: "done"; category: "ddl" | "dml" | "transaction" | "empty"; tag: string; rows: number };

export interface Prepared {
  /** Of the result; undefined when the statement gives no rows. */
  columns: ResultColumn[] | undefined;
  timestamp: number;
  /** Type tags of $1, $2, … */
  parameters: string[];
  /** By parameter: the element type of an array of PostgreSQL that is a text here, as in `$1::oid[]`. */
  parameterArrays: readonly (string | undefined)[];
  /** What the client is told besides the answer. */
  notices: readonly string[];
  /** The statement's sort, for wires that treat some of them apart. */
  category: "query" | "ddl" | "dml" | "transaction" | "empty";
  /** It reads data and has no other effect. */
  isRead: boolean;
  /** Nanoseconds that parsing, binding and planning took. */
  compileNs: number;
  execute(values: Value[], options: ExecuteOptions): Promise<Answer>;
}

export interface Session {
  readonly identity: Identity;
  /**
   * At once, but for long statements, which another thread reads. @throws {SqlError} positions are offsets into `text`.
   * `parameterTypes`: tags that the client gave, undefined to infer.
   */
  prepare(
    text: string,
    parameterTypes?: (string | undefined)[],
    options?: Pick<ExecuteOptions, "signal" | "timeoutMs">,
  ): Prepared | Promise<Prepared>;
  /** Splits a text at its semicolons: each statement with its offset in `text`. Long ones as above. */
  split(
    text: string,
    options?: Pick<ExecuteOptions, "signal" | "timeoutMs">,
  ): { text: string; at: number }[] | Promise<{ text: string; at: number }[]>;
  /** "idle", "open" (inside BEGIN) or "failed": what ReadyForQuery says. That of a request of several statements is not told. */
  readonly transaction: "idle" | "open" | "failed";
  /** Statements from now on are one transaction, unless they are in one already: until `endRequest`, or for longer if one of them is BEGIN. */
  beginRequest(): void;
  /** Commits what `beginRequest` began. */
  endRequest(): Promise<void>;
  /** @throws {SqlError} 25P01 outside of a block that BEGIN has begun, 25P02 in one that has failed. */
  savepoint(name: string): void;
  /** @throws {SqlError} also when there is none of that name. */
  release(name: string): void;
  rollbackTo(name: string): Promise<void>;
  /** Tells the transaction that a statement of it failed. What `beginRequest` began is undone then. */
  fail(): Promise<void>;
  /** Undoes the open transaction. */
  close(): Promise<void>;
  /** The same, for good: the session's connection has ended. */
  end(): Promise<void>;
}

/** Unit of row times in line protocol. */
export type LinePrecision = "n" | "u" | "ms" | "s" | "m" | "h";

/** Bytes of line protocol, cut anywhere. */
export interface LineBody extends AsyncIterable<Uint8Array> {
  /** If it is known. */
  sizeBytes?: number;
}

/** Access control: who signs in, and what for. */
export interface Access {
  /**
   * Of Basic authentication and of passwords in clear text: undefined if the password is wrong. At once if it was right before.
   * @throws {TooManyDerivations} while too many are being checked.
   */
  withPassword(name: string, password: string): Identity | undefined | Promise<Identity | undefined>;
  /** Of `Authorization: Bearer`. */
  withToken(token: string): Identity | undefined | Promise<Identity | undefined>;
  /** For SCRAM. Of an unknown name, one that no password fits. */
  verifierOf(name: string): Promise<Verifier>;
  /** Who has proved to know the password of this name. Undefined if there is no such principal by now, or it is disabled. */
  identify(name: string): Identity | undefined;
  /** Would this identity sign in with the same secret again? */
  isCurrent(identity: Identity): boolean;
  /** Has it the permission of this endpoint? */
  allows(identity: Identity, endpoint: "http" | "pg" | "line"): boolean;
  /** May it know that there is this table? */
  sees(identity: Identity, table: TableSchema): boolean;
}

/** How a file of CSV is imported. */
export interface ImportOptions {
  table: string;
  /** Put a new table in the place of one of that name. */
  overwrite: boolean;
  /** Make the table if there is none. */
  create: boolean;
  /** Designated timestamp of a new table. */
  timestamp?: string;
  partitionBy?: PartitionUnit;
  atomicity: "skipCol" | "skipRow" | "abort";
  forceHeader: boolean;
  /** A byte; undefined: found from the first lines. */
  delimiter?: number;
  /** Rows of an existing table are committed when there are so many. */
  maxUncommittedRows: number;
  /** Types and forms of columns that are not to be found from the lines. `type`: type tag. */
  schema: readonly { name: string; type: string; pattern?: string; index?: boolean }[];
  /** Lines from which the form of the file is found. */
  linesMax: number;
  /** Bytes of a line. */
  lineSizeMax: number;
}

export interface ImportColumn {
  name: string;
  /** Type tag. */
  type: string;
  /** Of a value; 0 for types of any size. */
  sizeBytes: number;
  /** Values that did not fit. */
  errors: number;
}

export interface ImportReport {
  rowsImported: number;
  /** Lines left out. */
  rowsRejected: number;
  hasHeader: boolean;
  partitionBy: PartitionUnit;
  /** Name of the designated timestamp. */
  timestamp: string | undefined;
  warnings: readonly string[];
  columns: readonly ImportColumn[];
}

export interface Database {
  /** Undefined: everything is allowed (acl.enabled). */
  readonly access?: Access;
  session(identity: Identity, client?: Client): Session;
  /**
   * Line protocol, one transaction: at the first fault no row is kept, but tables and columns that the lines before it made
   * stay. The body is read as it is worked on. @throws {LineError} with the line at fault; and what the body's iterator throws.
   */
  writeLines(body: LineBody, precision: LinePrecision, identity: Identity): Promise<{ rows: number }>;
  /**
   * Lines of a sender that cannot say who it is, out of a stream without end, a transaction too: `lines` ends with a line feed. Those from `doneBytes` on are not
   * taken: what they need follows in the stream, or there are too many for one transaction. @throws {LineError} as above
   */
  takeLines(
    lines: Uint8Array,
    precision: LinePrecision,
  ): Promise<{ rows: number; doneBytes: number }>;
  /**
   * Imports a file of CSV, of any size. A new table is made as a whole or not at all; rows of an existing one are committed in
   * steps, or all at once with `abort`. @throws {SqlError} if the file or the options do not fit; and what `body` throws.
   */
  importCsv(
    body: AsyncIterable<Uint8Array>,
    options: ImportOptions,
    identity: Identity,
    signal?: AbortSignal,
  ): Promise<ImportReport>;
  /** Rows in columnar form: COPY and drivers' batches. */
  append(table: string, batch: AppendBatch, identity: Identity): Promise<void>;
  table(name: string): TableSnapshot | undefined;
  /** Functions, keywords and types, for editors: a JSON document. It does not change while the server runs. */
  languageReference(): string;
  /** What storage and engine count, by the metric's key; a record is by the metric's label; counts are of ranges that end at bounds. */
  statistics(): Record<
    string,
    number | Record<string, number> | { bounds: readonly number[]; counts: ArrayLike<number>; sum: number }
  >;
  close(): Promise<void>;
}
