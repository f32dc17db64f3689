/** The one way from the page to its server. */

export interface Column {
  name: string;
  type: string;
}

export interface Rows {
  columns: Column[];
  /** The first rows, at most `ROWS_SHOWN_MAX`. */
  dataset: unknown[][];
  /** All of them. */
  count: number;
}

export interface Outcome {
  rows?: Rows;
  /** Of a statement that changes rows. */
  changed?: number;
  error?: { message: string; /** In UTF-16 units from the statement's start, where it is known. */ position?: number };
  /** Until the whole answer had come. */
  durationMs: number;
  /** Within the server. */
  compileMs?: number;
  executeMs?: number;
}

export const ROWS_SHOWN_MAX = 1000;

/** The server takes changes from this page only: see `src/wire/http/origin.ts`. */
const OWN_PAGE = { "x-sundial-page": "1" };

/** Runs one statement. Failures of the statement and of the network are outcomes; only an abort throws. */
export async function runStatement(text: string, signal?: AbortSignal): Promise<Outcome> {
  const started = performance.now();
  const after = (outcome: Omit<Outcome, "durationMs">) => ({ ...outcome, durationMs: performance.now() - started });
  let reply: Response, body: string;
  try {
    reply = await fetch("exec", {
      method: "POST",
      headers: { ...OWN_PAGE, "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({
        query: text,
        limit: String(ROWS_SHOWN_MAX),
        count: "true",
        timings: "true",
        src: "con",
      }),
      signal,
    });
    body = await reply.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    return after({ error: { message: "The server cannot be reached." } });
  }
  if (!reply.headers.get("content-type")?.startsWith("application/json")) {
    return after({ error: { message: body.trim() || `${reply.status} ${reply.statusText}` } });
  }
  const answer = JSON.parse(body);
  if (answer.error !== undefined) return after({ error: { message: answer.error, position: answer.position } });
  const times = { compileMs: millis(answer.timings?.compiler), executeMs: millis(answer.timings?.execute) };
  if (answer.columns === undefined) return after({ changed: answer.updated ?? answer.inserted, ...times });
  return after({ rows: { columns: answer.columns, dataset: answer.dataset, count: answer.count }, ...times });
}

const millis = (nanos: number | undefined) => nanos === undefined ? undefined : nanos / 1e6;
