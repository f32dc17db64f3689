/** Commands to the writer, as plain data: one kind for each method of `StorageWriter`. */
import type { NewColumn, NewTable } from "../sql/plan.ts";
import type { AccessChange, Change, OrderedChange, PartitionChange } from "./contract.ts";
import { CorruptFileError, DiskFullError, SqlError } from "../errors.ts";
import { HeapFullError } from "./heap.ts";

export type Command =
  | Change
  | PartitionChange
  /** The first change with a new transaction id begins the transaction. */
  | { kind: "change"; transactionId: number; limitBytes: number; changes: OrderedChange[] }
  | { kind: "fork"; transactionId: number; limitBytes: number; tableId: number }
  | { kind: "rollbackTo"; transactionId: number; ordinal: number }
  | { kind: "commit"; transactionId: number; limitBytes: number; changes: OrderedChange[] }
  | { kind: "rollback"; transactionId: number }
  | { kind: "changeAccess"; changes: readonly AccessChange[] }
  | { kind: "beginLoad"; table: NewTable; creator?: string }
  | { kind: "beginAppend"; tableId: number; columnIds: readonly number[] }
  | { kind: "beginChange"; tableId: number; change: "update" | "delete"; columnIds: readonly number[] }
  | { kind: "beginTypeChange"; tableId: number; columnId: number; column: NewColumn }
  /** `packed`: see `packed.ts`. Its columns are those of the new table, of `beginAppend` or of `beginChange`, in order. */
  | { kind: "load"; loadId: number; packed: Uint8Array }
  /** Does a step of the work of endLoad. */
  | { kind: "prepareLoad"; loadId: number }
  | { kind: "endLoad"; loadId: number }
  | { kind: "abortLoad"; loadId: number }
  | { kind: "open"; tableId: number }
  | { kind: "checkpoint" }
  | { kind: "hold" }
  | { kind: "release" }
  | { kind: "holdLog"; name: string; lsn?: number }
  | { kind: "releaseLog"; name: string }
  | { kind: "close" }
  /** For tests: throws an error at the top of the writer's thread. */
  | { kind: "crash"; text: string };

/**
 * `value` is the table's id for createTable and endLoad, the load's id for the others that begin one, 1 for prepareLoad if
 * another step is left, otherwise 0, and the LSN for holdLog.
 */
export interface Outcome {
  value?: number;
  error?: unknown;
}

/** An error as plain data, because error classes do not survive posting. */
export interface PlainError {
  name: string;
  message: string;
  stack?: string;
  position?: number;
  sqlState?: string;
  path?: string;
}

export function toPlainError(error: unknown): PlainError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { name, message, stack } = error;
  const { position, sqlState, path } = error as { position?: number; sqlState?: string; path?: string };
  return { name, message, stack, position, sqlState, path };
}

export function fromPlainError({ name, message, stack, position, sqlState, path }: PlainError): Error {
  const error = name === "SqlError"
    ? new SqlError(message, position!, sqlState)
    : name === "CorruptFileError"
    ? new CorruptFileError(path!, message.slice(path!.length + 2))
    : name === "DiskFullError"
    ? new DiskFullError(path!)
    : name === "HeapFullError"
    ? new HeapFullError(message)
    : new Error(message);
  if (stack !== undefined) error.stack = stack;
  return error;
}
