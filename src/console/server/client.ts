/** All requests of the page to its server. */
import type { QueryPlan } from "./plan.ts";
import { saveAddress, saveBlob } from "../store/files.ts";
import { ownHeaders, request, untilSignedIn } from "./request.ts";

export interface Column {
  name: string;
  type: string;
}

export interface Rows {
  columns: Column[];
  /** All rows, or the first ones of a spooled result. */
  dataset: unknown[][];
  /** Number of all rows, or of those so far. */
  count: number;
  /** The result in the server, if the page does not have all of its rows. */
  spool?: { id: string; isRunning: boolean };
  /** The result in the server, if it was kept although the page has all rows. */
  keptId?: string;
  /** The server's setting that limited the rows. */
  cutBy?: string;
  /** For EXPLAIN. */
  plan?: QueryPlan;
}

export interface Outcome {
  rows?: Rows;
  /** Number of rows that the statement changed. */
  changed?: number;
  error?: QueryError;
  notices?: string[];
  /** The statement was cancelled, or its rows were dropped, when the page was left. */
  isLost?: boolean;
  /** Time until the whole answer had arrived. */
  durationMs: number;
  /** Times within the server. */
  compileMs?: number;
  executeMs?: number;
}

export interface QueryError {
  message: string;
  /** UTF-16 units from the statement's start, if known. */
  position?: number;
  /** Replacement text at the position. */
  suggestion?: string;
}

export interface FunctionHelp {
  name: string;
  /** The form of a call. */
  form: string;
  /** Argument and result types, one entry for each overload. */
  types: string[];
  summary: string;
  example?: string;
  isAggregate: boolean;
  isTable: boolean;
}

export interface Language {
  functions: FunctionHelp[];
  keywords: string[];
  /** Keywords that are names only in double quotes. */
  reserved: string[];
  types: string[];
}

export const UNREACHABLE = "The server cannot be reached.";

export interface QueryOptions {
  /** The server refuses the statement if it does more than read. */
  readOnly?: boolean;
  /** Maximum number of rows. */
  limit?: number;
  signal?: AbortSignal;
}

/** Runs a statement for the page itself. Errors of the statement and of the network, and an abort, are outcomes. */
export async function query(text: string, { readOnly, limit, signal }: QueryOptions = {}): Promise<Outcome> {
  const started = performance.now();
  const after = (outcome: Omit<Outcome, "durationMs">) => ({ ...outcome, durationMs: performance.now() - started });
  let reply: Response, body: string;
  try {
    reply = await request("exec", {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({
        query: text,
        src: "con",
        ...readOnly && { readOnly: "true" },
        ...limit !== undefined && { limit: String(limit) },
      }),
      signal,
    });
    body = await reply.text();
  } catch {
    return after({ error: { message: UNREACHABLE } });
  }
  if (!reply.headers.get("content-type")?.startsWith("application/json")) {
    return after({ error: { message: body.trim() || `${reply.status} ${reply.statusText}` } });
  }
  const { columns, dataset, count, error, position, errorPos, updated, notices } = JSON.parse(body);
  if (error !== undefined) return after({ error: errorOf(error, position ?? errorPos) });
  if (columns === undefined) return after({ changed: updated, notices });
  return after({ rows: { columns, dataset, count }, notices });
}

/** True if the server confirms that the statement changes nothing. False if it cannot be compiled. */
export async function onlyReads(statement: string): Promise<boolean> {
  try {
    const reply = await request(`api/v1/sql/validate?${new URLSearchParams({ query: statement })}`);
    return reply.ok && (await reply.json()).isRead === true;
  } catch {
    return false;
  }
}

/** Runs a statement and saves all of its rows as a file. `format`: "csv" or "parquet". Throws if the server refuses. */
export async function download(statement: string, format: string): Promise<void> {
  await saveReply(`exp?${new URLSearchParams({ query: statement, fmt: format })}`, format);
}

/** Saves what the server replies as a file. Throws if it refuses. */
export async function saveReply(url: string, format: string): Promise<void> {
  const { authorization } = await ownHeaders();
  if (authorization === undefined) return saveAddress(url);
  // A link cannot have headers, so the browser holds the file until it is complete.
  const reply = await request(url);
  if (!reply.ok) throw new Error(messageOf(await reply.text()));
  const name = /filename="([^"]*)"/.exec(reply.headers.get("content-disposition") ?? "")?.[1];
  saveBlob(name ?? `sundial-query.${format}`, await reply.blob());
}

/** Errors are JSON, or text if they are not about the statement. */
function messageOf(body: string): string {
  try {
    return JSON.parse(body).error;
  } catch {
    return body.trim();
  }
}

/** Undefined if the server does not answer. */
export async function fetchLanguage(): Promise<Language | undefined> {
  try {
    const reply = await request("language");
    return reply.ok ? await reply.json() : undefined;
  } catch {
    return undefined;
  }
}

export function errorOf(message: string, position: unknown): QueryError {
  return {
    message,
    position: typeof position === "number" ? position : undefined,
    suggestion: /; did you mean (\S+)\?$/.exec(message)?.[1],
  };
}

export interface ImportReport {
  /** The error if nothing was imported. */
  error?: string;
  table: string;
  imported: number;
  rejected: number;
  columns: { name: string; type: string; errors: number }[];
  faults?: ImportFaults;
}

/** Lines and values that did not fit. */
export interface ImportFaults {
  first: { line: number; column?: string; value?: string; reason: string }[];
  count: number;
  /** The spooled result with all of them, if there are more than the first ones. */
  result?: string;
}

/** Faults in a report. */
const FAULTS_MAX = 100;

/** How a CSV file is read. */
export interface CsvForm {
  delimiter: string;
  hasHeader: boolean;
  /** Size of the header. */
  headBytes: number;
  columns: { name: string; type: string; isInstant: boolean }[];
}

/** Asks the server for the form of a file by its first bytes. A text tells why it has none. */
export async function csvFormOf(head: Blob, isWhole: boolean, forceHeader: boolean): Promise<CsvForm | string> {
  const parameters = new URLSearchParams({ isWhole: String(isWhole), forceHeader: String(forceHeader) });
  try {
    const reply = await request(`api/v1/sql/csv?${parameters}`, { method: "POST", body: head });
    const text = await reply.text();
    return reply.ok ? JSON.parse(text) : messageOf(text);
  } catch {
    return UNREACHABLE;
  }
}

/** Parameters of /imp; `name` is that of the table. */
export type ImportParameters = Record<string, string> & { name: string };

/** Sends a CSV file. `onProgress` is told what share has been sent, from 0 to 1. */
export async function importFile(
  file: Blob,
  schema: readonly { name: string; type: string }[],
  parameters: ImportParameters,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<ImportReport> {
  const { name, timestamp, ...more } = parameters;
  const query = new URLSearchParams({
    name,
    fmt: "json",
    faults: String(FAULTS_MAX),
    ...timestamp ? { timestamp } : {},
    ...more,
  });
  const failed = (error: string): ImportReport => ({ error, table: name, imported: 0, rejected: 0, columns: [] });
  try {
    const { text } = await untilSignedIn(() => {
      const form = new FormData();
      if (schema.length > 0) form.append("schema", JSON.stringify(schema));
      form.append("data", file);
      return upload(`imp?${query}`, form, onProgress, signal);
    }, signal);
    return reportOf(text) ?? failed(text.trim());
  } catch {
    return failed(signal.aborted ? "Cancelled." : UNREACHABLE);
  }
}

const UPLOADS = "api/v1/sql/uploads";

/** Sends a Parquet file. `file` is its name for read_parquet(). */
export async function uploadFile(
  file: File,
  onProgress: (share: number) => void,
  signal: AbortSignal,
): Promise<{ file: string } | { file: undefined; error: string }> {
  try {
    const { text } = await untilSignedIn(() => upload(UPLOADS, file, onProgress, signal), signal);
    const { file: name, error } = text.startsWith("{") ? JSON.parse(text) : { file: undefined, error: text.trim() };
    return { file: name, error };
  } catch {
    return { file: undefined, error: signal.aborted ? "Cancelled." : UNREACHABLE };
  }
}

export function removeUpload(file: string): void {
  // If the request fails, the file expires.
  request(`${UPLOADS}?${new URLSearchParams({ file })}`, { method: "DELETE", keepalive: true }).catch(() => {});
}

/** Uses XMLHttpRequest, because fetch() does not report the progress of a body. */
async function upload(
  path: string,
  body: XMLHttpRequestBodyInit,
  onProgress: (share: number) => void,
  signal: AbortSignal,
) {
  const headers = await ownHeaders();
  return await new Promise<{ status: number; text: string }>((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    for (const [header, value] of Object.entries(headers)) request.setRequestHeader(header, value);
    request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
    request.onload = () => resolve({ status: request.status, text: request.responseText });
    request.onerror = request.onabort = () => reject(new Error(UNREACHABLE));
    signal.addEventListener("abort", () => request.abort());
    request.send(body);
  });
}

/** Undefined if the text is not a report. */
function reportOf(text: string): ImportReport | undefined {
  try {
    const { status, location, rowsImported, rowsRejected, columns, faults, faultCount, faultsResult } = JSON.parse(
      text,
    );
    return {
      error: status === "OK" ? undefined : String(status),
      table: location,
      imported: rowsImported ?? 0,
      rejected: rowsRejected ?? 0,
      columns: columns ?? [],
      faults: faults && { first: faults, count: faultCount, result: faultsResult },
    };
  } catch {
    return undefined;
  }
}
