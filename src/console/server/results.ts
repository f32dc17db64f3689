/** Runs the user's statements. The server spools their rows, and the page requests those that it shows. */
import { type Column, errorOf, type Outcome, type Rows, saveReply, UNREACHABLE } from "./client.ts";
import type { QueryPlan } from "./plan.ts";
import { ownHeaders, request, send } from "./request.ts";

export interface Progress {
  seconds: number;
  rowsRead: number;
  /** Unknown for some statements. */
  rowsToRead?: number;
  memoryBytes: number;
}

export interface RunOptions {
  signal?: AbortSignal;
  /** The server refuses the statement if it does more than read. */
  readOnly?: boolean;
  /** The server keeps the rows even if the page has all of them, so that they are available after a reload. */
  isKept?: boolean;
  /** Finer samples of a time range, in milliseconds since 1970. The statement needs a SAMPLE BY. */
  samples?: { from: number; to: number; bucketsMax: number };
  /** Called while the statement runs, with the rows so far. */
  onUpdate?(rows: Rows | undefined, progress: Progress | undefined): void;
}

/** Number of rows at the start of a large result that the page holds. */
const FIRST_ROWS = 1_000;
/** A result with at most this many rows is held completely, if the server sends it in one reply. */
const WHOLE_ROWS_MAX = 10_000;
/** Time until the first update of a statement, and between further ones. */
const FIRST_WAIT_MS = 250, WAIT_MS = 500;
const PATH = "api/v1/sql/results";

/** The result has been removed by the server. */
export class ExpiredError extends Error {}

interface Reply {
  id?: string;
  state: "running" | "done";
  rows: number;
  columns?: Column[];
  dataset?: unknown[][];
  progress?: Progress;
  cutBy?: string;
  plan?: QueryPlan;
  notices?: string[];
  changed?: number;
  category?: string;
  compileNs?: number;
  executeNs?: number;
}

class RefusedError extends Error {
  constructor(message: string, readonly position: unknown, readonly status: number) {
    super(message);
  }
}

/** Runs one statement. Errors of the statement and of the network are outcomes; only an abort throws. */
export async function runStatement(text: string, options: RunOptions = {}): Promise<Outcome> {
  const started = performance.now();
  const { readOnly, samples } = options;
  const body = new URLSearchParams({ query: text });
  if (readOnly) body.set("readOnly", "true");
  if (samples !== undefined) {
    body.set("from", String(Math.floor(samples.from)));
    body.set("to", String(Math.ceil(samples.to)));
    body.set("buckets", String(samples.bucketsMax));
  }
  try {
    return await outcomeOf(body, options);
  } catch (error) {
    if (!(error instanceof ExpiredError)) throw error;
    return { error: { message: error.message }, durationMs: performance.now() - started };
  }
}

/** Orders the rows of a spooled result by a column. They become another result. @throws {ExpiredError}, and on an abort */
export function sortedResult(
  id: string,
  { column, order }: { column: number; order: "ascending" | "descending" },
  signal?: AbortSignal,
): Promise<Outcome> {
  const body = new URLSearchParams({ of: id, sort: String(column + 1), descending: String(order === "descending") });
  return outcomeOf(body, { signal });
}

/** @throws {ExpiredError}, and on an abort */
async function outcomeOf(body: URLSearchParams, { signal, isKept, onUpdate }: RunOptions): Promise<Outcome> {
  const started = performance.now();
  const after = (outcome: Omit<Outcome, "durationMs">) => ({ ...outcome, durationMs: performance.now() - started });
  body.set("wait", String(FIRST_WAIT_MS));
  if (isKept) body.set("keep", "true");
  let id: string | undefined;
  try {
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const first: Reply = await ask(PATH, { method: "POST", headers, body, signal });
    id = first.id;
    let dataset = first.dataset ?? [], last = first, keptId: string | undefined;
    const rowsOf = ({ columns, rows, cutBy, plan, state }: Reply): Rows | undefined => {
      if (columns === undefined) return undefined;
      return {
        columns,
        dataset,
        count: rows,
        spool: id === undefined ? undefined : { id, isRunning: state === "running" },
        cutBy,
        plan,
      };
    };
    while (last.state === "running") {
      onUpdate?.(rowsOf(last), last.progress);
      last = await ask(pathOf({ id, wait: WAIT_MS, ...rowsAfter(dataset) }), { signal });
      dataset = [...dataset, ...last.dataset ?? []];
    }
    if (id !== undefined && dataset.length < last.rows && last.rows <= WHOLE_ROWS_MAX) {
      const more: Reply = await ask(pathOf({ id, first: dataset.length, count: WHOLE_ROWS_MAX }), { signal });
      dataset = [...dataset, ...more.dataset ?? []];
    }
    if (id !== undefined && dataset.length === last.rows) {
      if (isKept && last.columns !== undefined) keptId = id;
      else release(id);
      id = undefined;
    }
    const more = { notices: first.notices, compileMs: millis(first.compileNs), executeMs: millis(last.executeNs) };
    const rows = rowsOf(last);
    if (rows !== undefined) rows.keptId = keptId;
    if (rows === undefined) return after({ changed: last.category === "dml" ? last.changed : undefined, ...more });
    return after({ rows, ...more });
  } catch (error) {
    if (id !== undefined) release(id);
    if (signal?.aborted || error instanceof ExpiredError) throw error;
    if (error instanceof RefusedError) return after({ error: errorOf(error.message, error.position) });
    return after({ error: { message: UNREACHABLE } });
  }
}

/** The rows to request while the page does not have all of the first rows. */
function rowsAfter(dataset: readonly unknown[][]): { first?: number; count?: number } {
  const { length } = dataset;
  return length < FIRST_ROWS ? { first: length, count: FIRST_ROWS - length } : {};
}

/**
 * Fetches rows of a result, and reports their size in bytes. The server may send fewer than requested.
 * @throws {ExpiredError}
 */
export async function fetchRows(
  id: string,
  first: number,
  count: number,
  signal?: AbortSignal,
): Promise<{ dataset: unknown[][]; sizeBytes: number }> {
  const reply = await request(pathOf({ id, first, count }), { signal });
  const text = await reply.text();
  return { dataset: readReply(reply, text).dataset ?? [], sizeBytes: text.length };
}

/** A result that the server has made besides its reply. @throws {ExpiredError} */
export async function spooledRows(id: string): Promise<Rows> {
  const { columns = [], rows } = await ask(pathOf({ id }), {});
  return { columns, dataset: [], count: rows, spool: { id, isRunning: false } };
}

const released = new Set<string>();

/** Removes a result from the server and cancels its statement. */
export function release(id: string): void {
  if (released.has(id)) return;
  released.add(id);
  // The request continues while the page is left, and does not wait for a sign-in. A result that is not removed
  // expires.
  ownHeaders().then((headers) => send(pathOf({ id }), { method: "DELETE", keepalive: true, headers })).catch(() => {});
}

/** Saves the rows of a result as a Parquet file. @throws {ExpiredError} */
export async function saveParquet(id: string): Promise<void> {
  // A link cannot tell that the result has expired.
  readReply(...await replyOf(pathOf({ id })));
  await saveReply(pathOf({ id, fmt: "parquet" }), "parquet");
}

const pathOf = (parameters: Record<string, string | number | undefined>) =>
  `${PATH}?${new URLSearchParams(
    Object.entries(parameters).flatMap(([name, value]) => value === undefined ? [] : [[name, String(value)]]),
  )}`;

async function ask(path: string, options: Parameters<typeof request>[1]): Promise<Reply> {
  return readReply(...await replyOf(path, options));
}

async function replyOf(path: string, options?: Parameters<typeof request>[1]): Promise<[Response, string]> {
  const reply = await request(path, options);
  return [reply, await reply.text()];
}

function readReply(reply: Response, text: string): Reply {
  if (!reply.headers.get("content-type")?.startsWith("application/json")) {
    throw new RefusedError(text.trim() || `${reply.status} ${reply.statusText}`, undefined, reply.status);
  }
  const body = JSON.parse(text);
  if (reply.status === 404) throw new ExpiredError(body.error);
  if (body.error !== undefined) throw new RefusedError(body.error, body.position, reply.status);
  return body;
}

const millis = (nanos: number | undefined) => nanos === undefined ? undefined : nanos / 1e6;
