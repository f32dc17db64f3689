/**
 * The kinds of errors, by their cause: the client (SqlError, ProtocolError) or the machine (CorruptFileError,
 * DiskFullError, ConfigError). Internal errors are `assert`s. Only `wire/` converts them to status codes and fields.
 */

/** SQLSTATE classes that this server uses. @see https://www.postgresql.org/docs/current/errcodes-appendix.html */
export const SQLSTATE = {
  featureNotSupported: "0A000",
  syntax: "42601",
  undefinedColumn: "42703",
  undefinedFunction: "42883",
  undefinedTable: "42P01",
  duplicateTable: "42P07",
  wrongObjectType: "42809",
  reservedName: "42939",
  duplicateColumn: "42701",
  ambiguousColumn: "42702",
  datatypeMismatch: "42804",
  invalidName: "42602",
  grouping: "42803",
  invalidRecursion: "42P19",
  invalidParameter: "22023",
  invalidText: "22P02",
  outOfRange: "22003",
  divisionByZero: "22012",
  invalidPassword: "28P01",
  insufficientPrivilege: "42501",
  outOfMemory: "53200",
  configurationLimitExceeded: "53400",
  diskFull: "53100",
  serializationFailure: "40001",
  activeTransaction: "25001",
  noActiveTransaction: "25P01",
  failedTransaction: "25P02",
  invalidSavepoint: "3B001",
  invalidStatementName: "26000",
  invalidCursorName: "34000",
  queryCanceled: "57014",
  readOnly: "25006",
  programLimitExceeded: "54000",
  protocolViolation: "08P01",
  internal: "XX000",
  corrupted: "XX001",
  duplicateObject: "42710",
  undefinedObject: "42704",
  objectNotInState: "55000",
} as const;

/** A message may quote a text of the client, which can have millions of characters. */
const MESSAGE_LENGTH_MAX = 4_096;

/** A sub-query that gives the values of a list: where it ends, and where the DECLARE and WITH of the queries around it are. */
export interface SubqueryList {
  end: number;
  preludes: readonly { from: number; to: number }[];
}

/**
 * A client error with a message and a position. Long messages are truncated. `position` counts UTF-16 units from 0 in the text
 * sent; -1 means none.
 */
export class SqlError extends Error {
  override readonly name = "SqlError";
  /**
   * The position that clients should show in the text. The dialect reports values that do not fit at position 0, which
   * users' scripts compare, while the caret is at the value.
   */
  readonly caret: number;
  /** The sub-query at `position` gives the values of a list, on which the statement's columns depend: bind it again with literals. */
  readonly list?: SubqueryList;
  constructor(
    message: string,
    readonly position: number,
    readonly sqlState: string = SQLSTATE.syntax,
    options?: ErrorOptions & { caret?: number; list?: SubqueryList },
  ) {
    super(message.length > MESSAGE_LENGTH_MAX ? `${message.slice(0, MESSAGE_LENGTH_MAX)}…` : message, options);
    this.caret = options?.caret ?? position;
    this.list = options?.list;
  }
}

/** Adds a caret to an error without a position, such as an error of a function, which does not know the text. */
export function withCaret(error: unknown, caret: number): unknown {
  if (!(error instanceof SqlError) || error.position !== 0 || error.caret !== 0) return error;
  return new SqlError(error.message, 0, error.sqlState, { cause: error, caret });
}

/**
 * Statements are walked recursively, so a stack overflow is reported as a client error. Returns other errors unchanged.
 */
export function asClientFault(error: unknown): unknown {
  if (!(error instanceof RangeError && /call stack/.test(error.message))) return error;
  return new SqlError("The statement is too complex", 0, SQLSTATE.programLimitExceeded, { cause: error });
}

/**
 * Thrown on access to a table that has not been opened since the start. The caller opens it and retries. It never
 * reaches a client.
 */
export class TableClosedError extends Error {
  override readonly name = "TableClosedError";
  constructor(readonly tableId: number) {
    super(`table ${tableId} is not open yet`);
  }
}

/**
 * Thrown when a statement uses a column that the table no longer has, before the statement has any effect. It is bound again. The error never
 * reaches a client.
 */
export class TableChangedError extends Error {
  override readonly name = "TableChangedError";
  constructor(readonly tableId: number) {
    super(`table ${tableId} has other columns by now`);
  }
}

/** A known but unimplemented part of SQL. SQLSTATE 0A000, at its position. */
export function notSupported(what: string, position: number): SqlError {
  return new SqlError(`${what} is not supported`, position, SQLSTATE.featureNotSupported);
}

/** A statement in a transaction that has failed. SQLSTATE 25P02. */
export function failedTransaction(): SqlError {
  return new SqlError(
    "Cannot run the statement: the transaction has failed, and only ROLLBACK or ROLLBACK TO a savepoint is possible",
    -1,
    SQLSTATE.failedTransaction,
  );
}

/** SQLSTATE 26000. */
export function noPreparedStatement(name: string, position: number): SqlError {
  return new SqlError(`prepared statement "${name}" does not exist`, position, SQLSTATE.invalidStatementName);
}

/** SQLSTATE 34000. */
export function noPortal(name: string, position: number): SqlError {
  return new SqlError(`portal "${name}" does not exist`, position, SQLSTATE.invalidCursorName);
}

/** An invalid line of a line-protocol request. `line` counts from 1 in the request; 0 if the error is not in a line. */
export class LineError extends Error {
  override readonly name = "LineError";
  /** The line's text, for messages. */
  text: string | undefined;
  constructor(
    readonly line: number,
    message: string,
    readonly code: "invalid" | "not supported" | "denied" | "too busy" | "internal error" = "invalid",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** A request that would create too many tables or columns: it creates none. */
export class LineLimitError extends LineError {}

/** A message that violates a protocol. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  constructor(message: string, readonly sqlState: string = SQLSTATE.protocolViolation) {
    super(message);
  }
}

/** An invalid setting, which prevents the start. `key` is spelled as in server.conf or log.conf. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(readonly key: string, message: string) {
    super(message);
  }
}

/** Several errors, one per line. */
class ConfigErrors extends ConfigError {
  constructor(faults: readonly ConfigError[]) {
    super(faults[0]!.key, faults.map((fault) => fault.message).join("\n"));
  }
}

/** @throws {ConfigError} if there are any. */
export function throwFaults(faults: readonly ConfigError[]): void {
  if (faults.length > 0) throw faults.length === 1 ? faults[0] : new ConfigErrors(faults);
}

/** The bytes on disk differ from what was written. */
export class CorruptFileError extends Error {
  override readonly name = "CorruptFileError";
  constructor(readonly path: string, message: string, options?: ErrorOptions) {
    super(`${path}: ${message}`, options);
  }
}

/** There is no space left for `path`. */
export class DiskFullError extends Error {
  override readonly name = "DiskFullError";
  constructor(readonly path: string, options?: ErrorOptions) {
    super(`${path}: the disk is full`, options);
  }
}

/** Converts the system's error of a write to `path` to a DiskFullError if the disk is full. */
export function asDiskFull(path: string, error: unknown): unknown {
  const code = (error as { code?: string }).code;
  return code === "ENOSPC" || code === "EDQUOT" ? new DiskFullError(path, { cause: error }) : error;
}

/** The error at another place, for a text within a statement. */
export function movedError(error: unknown, to: (position: number) => number): unknown {
  if (!(error instanceof SqlError)) return error;
  const { message, position, sqlState, caret } = error;
  return new SqlError(message, to(position), sqlState, { cause: error, caret: to(caret) });
}
