/** Allows functions and types that do not exist here, in parts of a query that are never computed. */
import { SqlError, SQLSTATE } from "../../errors.ts";

const TOLERATED: ReadonlySet<string> = new Set([
  SQLSTATE.undefinedFunction,
  SQLSTATE.featureNotSupported,
  SQLSTATE.datatypeMismatch,
  SQLSTATE.grouping,
]);

/** Returns the result of `bind`, or undefined if it needs something that does not exist here. */
export function tolerant<T>(bind: () => T): T | undefined {
  try {
    return bind();
  } catch (error) {
    if (error instanceof SqlError && TOLERATED.has(error.sqlState)) return undefined;
    throw error;
  }
}
