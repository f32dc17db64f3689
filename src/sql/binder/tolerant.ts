/** Parts of a query that are never computed may use functions and types that do not exist here. */
import { SqlError, SQLSTATE } from "../../errors.ts";

const TOLERATED: ReadonlySet<string> = new Set([
  SQLSTATE.undefinedFunction,
  SQLSTATE.featureNotSupported,
  SQLSTATE.datatypeMismatch,
  SQLSTATE.grouping,
]);

/** What `bind` gives, or undefined where it asks for something that does not exist here. */
export function tolerant<T>(bind: () => T): T | undefined {
  try {
    return bind();
  } catch (error) {
    if (error instanceof SqlError && TOLERATED.has(error.sqlState)) return undefined;
    throw error;
  }
}
