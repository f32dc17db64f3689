/** Converts errors to fields of an ErrorResponse. */
import { CorruptFileError, DiskFullError, ProtocolError, SqlError, SQLSTATE } from "../../errors.ts";

/** Fields of an ErrorResponse. */
export interface ErrorFields {
  severity: "ERROR" | "FATAL";
  code: string;
  message: string;
  /** Counted from 1. */
  position?: number;
}

/** SQLSTATEs used only by this protocol, in addition to those of `SQLSTATE`. */
export const PG_SQLSTATE = {
  tooManyConnections: "53300",
  configurationLimit: "53400",
  adminShutdown: "57P01",
  cannotConnectNow: "57P03",
  idleSessionTimeout: "57P05",
  invalidAuthorization: "28000",
  duplicateStatement: "42P05",
  duplicateCursor: "42P03",
  undefinedParameter: "42P02",
  invalidBinary: "22P03",
} as const;

/** Ends the connection after it was sent to the client. */
export class FatalError extends ProtocolError {}

/** The client has disconnected. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/** A read or write of the connection has failed. */
export function connectionLost(cause: unknown): ConnectionLost {
  return new ConnectionLost("the client has closed the connection", { cause });
}

/** These have no position in the text: they are caused by the machine, the clock, another client or the protocol. */
const WITHOUT_PLACE = /^(?:08|25|26|34|3B|42P0[35]|53|57|58|XX)/;

/** `text`: the statement. `at`: its position in the text that the client sent. */
export function errorFields(error: unknown, text = "", at = 0): ErrorFields {
  if (error instanceof SqlError) {
    const { message, sqlState: code, caret } = error;
    return {
      severity: "ERROR",
      code,
      message,
      position: caret < 0 || WITHOUT_PLACE.test(code) ? undefined : characters(text, caret) + at + 1,
    };
  }
  if (error instanceof ProtocolError) {
    return { severity: error instanceof FatalError ? "FATAL" : "ERROR", code: error.sqlState, message: error.message };
  }
  if (error instanceof DiskFullError) return { severity: "ERROR", code: SQLSTATE.diskFull, message: error.message };
  if (error instanceof CorruptFileError) return { severity: "ERROR", code: SQLSTATE.corrupted, message: error.message };
  if (isAbort(error)) {
    return { severity: "ERROR", code: SQLSTATE.queryCanceled, message: "query cancelled by the user" };
  }
  return {
    severity: "ERROR",
    code: SQLSTATE.internal,
    message: `internal error: ${error instanceof Error ? error.message : String(error)}`,
  };
}

/** True for internal errors, which are logged and counted: not caused by the client or a full disk. */
export function isUnhandled(error: unknown): boolean {
  return !(error instanceof SqlError || error instanceof ProtocolError || error instanceof DiskFullError ||
    isAbort(error));
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** PostgreSQL counts characters, not UTF-16 units. */
function characters(text: string, units: number): number {
  let count = 0;
  for (let at = 0; at < units && at < text.length; count++) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return Math.max(count, units - text.length + count);
}
