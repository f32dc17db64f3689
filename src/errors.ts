/**
 * The kinds of failure, each with its place: the client's (SqlError, ProtocolError), the machine's (CorruptFileError,
 * DiskFullError, ConfigError). Ours are `assert`s. Only `wire/` turns them into status codes and fields.
 */

/** SQLSTATE classes that this server uses. @see https://www.postgresql.org/docs/current/errcodes-appendix.html */
export const SQLSTATE = {
  featureNotSupported: "0A000",
  syntax: "42601",
  undefinedColumn: "42703",
  undefinedFunction: "42883",
  undefinedTable: "42P01",
  duplicateTable: "42P07",
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
  diskFull: "53100",
  serializationFailure: "40001",
  activeTransaction: "25001",
  noActiveTransaction: "25P01",
  failedTransaction: "25P02",
  invalidSavepoint: "3B001",
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

/** The client's fault: what was found and expected, and where. `position` counts UTF-16 units from 0 in the text sent; -1: it has none. */
export class SqlError extends Error {
  override readonly name = "SqlError";
  /**
   * Where clients that show the place in the text shall show it. The dialect reports values that do not fit at 0, and its
   * users' scripts compare positions; the caret stands at the value.
   */
  readonly caret: number;
  constructor(
    message: string,
    readonly position: number,
    readonly sqlState: string = SQLSTATE.syntax,
    options?: ErrorOptions & { caret?: number },
  ) {
    super(message, options);
    this.caret = options?.caret ?? position;
  }
}

/** The same error with a caret, if it has no place: one of a function knows no text. */
export function withCaret(error: unknown, caret: number): unknown {
  if (!(error instanceof SqlError) || error.position !== 0 || error.caret !== 0) return error;
  return new SqlError(error.message, 0, error.sqlState, { cause: error, caret });
}

/** Who walks a statement does so by recursion: a stack that is full is the fault of the statement. Others stay as they are. */
export function asClientFault(error: unknown): unknown {
  if (!(error instanceof RangeError && /call stack/.test(error.message))) return error;
  return new SqlError("The statement is too complex", 0, SQLSTATE.programLimitExceeded, { cause: error });
}

/** Somebody asks for what a table holds that nobody has opened since the start: open it, and ask again. Never reaches a client. */
export class TableClosedError extends Error {
  override readonly name = "TableClosedError";
  constructor(readonly tableId: number) {
    super(`table ${tableId} is not open yet`);
  }
}

/** What is known to SQL but not built yet. SQLSTATE 0A000, at its position. */
export function notSupported(what: string, position: number): SqlError {
  return new SqlError(`${what} is not supported`, position, SQLSTATE.featureNotSupported);
}

/** A statement of a transaction of which an earlier one has failed. SQLSTATE 25P02. */
export function failedTransaction(): SqlError {
  return new SqlError(
    "Cannot run the statement: the transaction has failed, and only ROLLBACK or ROLLBACK TO a savepoint is possible",
    -1,
    SQLSTATE.failedTransaction,
  );
}

/** A line of a line-protocol request that cannot be taken. `line` counts from 1 over the request; 0 when it is none of them. */
export class LineError extends Error {
  override readonly name = "LineError";
  /** The line as it came, to show. */
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

/** A message of a wire that does not follow its protocol. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
  constructor(message: string, readonly sqlState: string = SQLSTATE.protocolViolation) {
    super(message);
  }
}

/** A setting that stops the start: `key` is spelled as in server.conf or log.conf. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  constructor(readonly key: string, message: string) {
    super(message);
  }
}

/** Several of them, a line each. */
class ConfigErrors extends ConfigError {
  constructor(faults: readonly ConfigError[]) {
    super(faults[0].key, faults.map((fault) => fault.message).join("\n"));
  }
}

/** @throws {ConfigError} when there are any. */
export function throwFaults(faults: readonly ConfigError[]): void {
  if (faults.length > 0) throw faults.length === 1 ? faults[0] : new ConfigErrors(faults);
}

/** Bytes on disk that are not what was written. */
export class CorruptFileError extends Error {
  override readonly name = "CorruptFileError";
  constructor(readonly path: string, message: string, options?: ErrorOptions) {
    super(`${path}: ${message}`, options);
  }
}

/** No room is left where `path` should grow. */
export class DiskFullError extends Error {
  override readonly name = "DiskFullError";
  constructor(readonly path: string, options?: ErrorOptions) {
    super(`${path}: the disk is full`, options);
  }
}

/** Ours: no input can reach a failing one. */
export function assert(condition: unknown, message = "assertion failed"): asserts condition {
  if (!condition) throw new Error(message);
}
