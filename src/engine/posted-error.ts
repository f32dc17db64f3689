/** Errors as posted between threads. */
import { asClientFault, CorruptFileError, SqlError, SQLSTATE, type SubqueryList } from "../errors.ts";

/** An error as plain data. */
export interface PostedError {
  name: string;
  message: string;
  position: number;
  caret?: number;
  list?: SubqueryList;
  sqlState: string;
  path?: string;
  stack?: string;
}

export function postedError(thrown: unknown): PostedError {
  const error = asClientFault(thrown);
  if (error instanceof SqlError) {
    const { message, position, caret, list, sqlState } = error;
    return { name: "SqlError", message, position, caret, list, sqlState };
  }
  if (error instanceof CorruptFileError) {
    return {
      name: "CorruptFileError",
      message: error.message,
      position: 0,
      sqlState: SQLSTATE.corrupted,
      path: error.path,
    };
  }
  const { message, stack } = error instanceof Error ? error : new Error(String(error));
  return { name: "Error", message, position: 0, sqlState: SQLSTATE.internal, stack };
}

/** Restores the error in another thread. */
export function revivedError(
  { name, message, position, caret, list, sqlState, path, stack }: PostedError,
): Error {
  if (name === "SqlError") return new SqlError(message, position, sqlState, { caret, list });
  if (name === "CorruptFileError") return new CorruptFileError(path!, message.slice(path!.length + ": ".length));
  return Object.assign(new Error(message), { stack });
}
