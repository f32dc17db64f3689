/** Messages between main and the query workers. Requests and small results are in shared memory instead (`mailbox.ts`, `letter.ts`). */
import type { PostedError } from "./posted-error.ts";

/** The only message to a worker: its start. */
export interface WorkerStart {
  memory: WebAssembly.Memory;
  further: SharedArrayBuffer[];
  mailboxes: SharedArrayBuffer;
  /** The number of its mailbox. */
  seat: number;
  /** Workers that run queries of any length. */
  workerCount: number;
  busyMicros: number;
  /** Brings a `PostedTask` before each entry for a task, and the text of a simulated crash. */
  port: MessagePort;
}

export interface PostedTask {
  name: string;
  payload: unknown;
  /** Bare, with the place of the body in it: the synchronous receive walks through views value by value. */
  buffer?: ArrayBuffer;
  at?: number;
  length?: number;
}

/** Messages from a worker to main. Whole small results and errors are in shared memory instead. */
export type FromWorker =
  /** It can be given work. */
  | { type: "ready" }
  /** The query waits for its reader, and the worker is free. */
  | { type: "parked" }
  | { type: "chunk"; bytes: Uint8Array; rows: number }
  | { type: "done"; totalRows: number }
  | { type: "result"; value: unknown }
  | { type: "failed"; error: PostedError };
