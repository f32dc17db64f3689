/**
 * /api/v1/sql/results: runs a statement and spools its rows, so that a page can show any of them without holding all.
 * POST creates a result, GET returns its state or rows, DELETE cancels and removes it.
 */
import type { Answer, ExecuteOptions, ResultColumn, Session } from "../../../api.ts";
import { SqlError } from "../../../errors.ts";
import { type Reply, textReply } from "../../http1/mod.ts";
import type { Call, Route } from "../contract.ts";
import type { Parameters } from "../parameters.ts";
import { parquetReply } from "../parquet-file.ts";
import { beginQuery, failed, foreignChange, refuseChange, rowsOptions, statementTimeoutMs } from "../query.ts";
import { columnJson, errorFields, jsonReply, queryError } from "../reply.ts";
import { BLOCK_BYTES, resultSettings, type SpooledResult } from "../results/mod.ts";
import { httpSettings } from "../settings.ts";
import { type Argument, prepareWith, StatementBodyError, withStatement } from "../statement-body.ts";

export const results: Route = {
  name: "results",
  summary: "runs a statement and spools its rows for reading in any order; for the console",
  usage: "POST, GET and DELETE /api/v1/sql/results",
  paths: ["/api/v1/sql/results"],
  settings: resultSettings,
  methods: { POST: create, GET: read, DELETE: remove },
  open: false,
};

type Fields = [name: string, value: unknown][];
type SampleRange = { fromMs: number; toMs: number; bucketsMax: number };

const ROWS_DEFAULT = 1_000;
const ROWS_MAX = 100_000;
const WAIT_MS_MAX = 30_000;
/** A larger result that is kept although the client has all rows is only in its file. */
const KEPT_IN_MEMORY_BYTES = 64 << 10;

async function create(call: Call): Promise<Reply> {
  try {
    return await withStatement(call, ({ parameters, args }) => {
      const source = parameters.get("of"), given = { ...call, parameters };
      return source === undefined ? run(given, args) : orderRows(given, source);
    });
  } catch (error) {
    if (error instanceof StatementBodyError) return queryError("", error.message, 0, error.status);
    throw error;
  }
}

interface Execution {
  execute(options: ExecuteOptions): Answer | Promise<Answer>;
  /** Fields of the reply that are known before the rows. */
  fields: Fields;
  /** The setting that has already limited the rows. */
  cutBy?: string;
}

/** Runs the statement of the request. */
async function run(call: Call, args: readonly Argument[]): Promise<Reply> {
  const { parameters, request } = call;
  const given = parameters.get("query") ?? "", timeoutMs = statementTimeoutMs(call);
  return await spooled(call, given, async (session) => {
    const samples = finer(given, parameters, (text, range) => session.finerSamples(text, range));
    const { prepared, values } = await prepareWith(session, samples.text, args, { signal: request.signal, timeoutMs });
    if (prepared.category === "empty") throw new SqlError("a statement is expected", 0);
    refuseChange(call, prepared);
    const { notices, compileNs } = prepared;
    return {
      execute: (options) => prepared.execute(values, options),
      fields: [
        ["compileNs", Math.round(compileNs)],
        ["notices", notices.length > 0 ? notices : undefined],
        ["bucket", samples.bucket],
      ],
    };
  });
}

/** Orders the rows of a result, which become another result. */
async function orderRows(call: Call, id: string): Promise<Reply> {
  const source = call.results.find(id, call.identity);
  if (source === undefined) return expired(call);
  return await spooled(call, source.statement, async (session) => {
    const rows = await source.rows();
    const order = orderOf(call.parameters, rows.columns.length);
    return { execute: (options) => session.readSpooled(rows, order, options), fields: [], cutBy: source.cutBy };
  });
}

function orderOf(parameters: Parameters, columnCount: number): { column: number; descending: boolean } {
  const sort = parameters.get("sort") ?? "", column = Number(sort);
  if (!/^\d{1,5}$/.test(sort) || column < 1 || column > columnCount) {
    throw new SqlError(`sort: found '${sort}', expected a column's number from 1 to ${columnCount}`, 0);
  }
  return { column: column - 1, descending: parameters.isTrue("descending") };
}

/** Spools the rows of an execution, and replies with the first ones. */
async function spooled(
  call: Call,
  text: string,
  prepare: (session: Session) => Promise<Execution>,
): Promise<Reply> {
  const { request, results } = call;
  const count = beginQuery(call, "exec");
  const session = call.database.session(call.identity, call.client);
  const fail = (error: unknown): Reply => {
    const { status, message, position } = failed(call, count, error, text);
    return queryError(text, message, position, status);
  };
  let isRunning = false;
  try {
    const { execute, fields, cutBy } = await prepare(session);
    const result = await results.begin(call.identity, text);
    result.cutBy = cutBy;
    const rowsMax = call.options.config.of(httpSettings).maxResponseRows;
    const start = () =>
      execute({
        encoding: { name: "json", quoteLargeNumbers: true, isLines: true },
        chunkBytes: BLOCK_BYTES,
        window: { first: 0, count: rowsMax },
        signal: result.controller.signal,
        timeoutMs: statementTimeoutMs(call),
        onBegin: (progress) => result.progress = progress,
      });
    const { onChunk } = rowsOptions(call, count);
    isRunning = true;
    const filled = result.fill(start, (chunk) => {
      onChunk(chunk);
      return result.spool.rowCount >= rowsMax ? httpSettings.maxResponseRows.key : results.limitOf(result);
    }).finally(() => session.close());
    filled.then(() => {
      if (result.error === undefined) count.end("queriesCompleted");
    });
    await result.ended(waitOf(call.parameters), request.signal);
    if (request.signal.aborted) {
      await results.remove(result);
      return textReply(400, "the client has disconnected");
    }
    if (result.state === "running") filled.then(() => result.error !== undefined && fail(result.error));
    if (result.state === "failed") {
      await results.remove(result);
      return fail(result.error);
    }
    return await firstReply(call, result, fields);
  } catch (error) {
    return fail(error);
  } finally {
    if (!isRunning) await session.close();
  }
}

/** Returns the statement with finer samples of the range from `from` to `to`, if these are given. */
function finer(
  query: string,
  parameters: Parameters,
  narrow: (text: string, range: SampleRange) => { text: string; bucket: string } | undefined,
): { text: string; bucket?: string } {
  if (parameters.get("from") === undefined) return { text: query };
  const number = (name: string) => {
    const text = parameters.get(name) ?? "";
    if (/^-?\d{1,14}$/.test(text)) return Number(text);
    throw new SqlError(`${name}: found '${text}', expected a whole number`, 0);
  };
  const fromMs = number("from"), toMs = number("to"), bucketsMax = number("buckets");
  if (toMs <= fromMs || bucketsMax < 1) {
    throw new SqlError("invalid range: expected from before to, and at least 1 bucket", 0);
  }
  const narrowed = narrow(query, { fromMs, toMs, bucketsMax });
  if (narrowed === undefined) throw new SqlError("the statement has no SAMPLE BY that can be narrowed", 0);
  return narrowed;
}

/** A result whose rows are all in the reply is not stored and has no id, unless `keep=true`. */
async function firstReply(call: Call, result: SpooledResult, before: Fields): Promise<Reply> {
  const { spool, done, explained } = result;
  const fields: Fields = [...before, ["plan", explained]];
  if (done !== undefined) {
    await call.results.remove(result);
    if (done.tag.startsWith("INSERT")) call.options.metrics?.wires.exec.rowsIn.inc(done.rows);
    const { category, tag, rows } = done;
    return documentOf(result, [...fields, ["category", category], ["tag", tag], ["changed", rows]]);
  }
  const isWhole = result.state === "done" && spool.isInMemory, isKept = call.parameters.isTrue("keep");
  const rows = await spool.read(0, isWhole ? spool.rowCount : ROWS_DEFAULT);
  if (isWhole && !isKept) await call.results.remove(result);
  else if (isWhole && spool.sizeBytes > KEPT_IN_MEMORY_BYTES) await spool.store();
  return documentOf(result, [["id", isWhole && !isKept ? undefined : result.id], ...fields], {
    first: 0,
    parts: rows.parts,
    total: isWhole ? rows.rowCount : spool.rowCount,
  });
}

async function read(call: Call): Promise<Reply> {
  const { parameters, request } = call;
  const result = call.results.find(parameters.get("id") ?? "", call.identity);
  if (result === undefined) return expired(call);
  await result.ended(waitOf(parameters), request.signal);
  if (parameters.get("fmt") === "parquet") return await parquetOf(call, result);
  if (result.state === "failed") {
    const { status, message, position } = errorFields(result.error);
    return queryError("", message, position, status);
  }
  const fields: Fields = [["id", result.id], ["plan", result.explained]];
  if (parameters.get("first") === undefined) return documentOf(result, fields);
  const first = wholeNumber(parameters, "first", 0, Number.MAX_SAFE_INTEGER);
  const count = wholeNumber(parameters, "count", ROWS_DEFAULT, ROWS_MAX);
  if (typeof first === "string" || typeof count === "string") {
    return textReply(
      400,
      [first, count].find((one) => typeof one === "string") as string,
    );
  }
  try {
    const { parts } = await result.spool.read(first, count);
    return documentOf(result, fields, { first, parts, total: result.spool.rowCount });
  } catch (error) {
    // The result was removed in the meantime.
    if (error instanceof Deno.errors.NotFound) return expired(call);
    throw error;
  }
}

/** The rows as a Parquet file. */
async function parquetOf(call: Call, result: SpooledResult): Promise<Reply> {
  const query = result.statement, count = beginQuery(call, "exp");
  const session = call.database.session(call.identity, call.client);
  try {
    const rows = await result.rows();
    const binary = rows.columns.find(({ type }) => type === "BINARY");
    if (binary !== undefined) {
      throw new SqlError(`column ${binary.name}: spooled rows have no bytes of BINARY columns: export the query`, 0);
    }
    const execute = (options: ExecuteOptions) => session.readSpooled(rows, undefined, options);
    return await parquetReply(call, count, { query, execute, headers: [] });
  } catch (error) {
    const { status, message, position } = failed(call, count, error, query);
    return queryError("", message, position, status);
  } finally {
    await session.close();
  }
}

async function remove(call: Call): Promise<Reply> {
  const refusal = foreignChange(call);
  if (refusal !== undefined) return textReply(403, refusal);
  const result = call.results.find(call.parameters.get("id") ?? "", call.identity);
  if (result === undefined) return expired(call);
  await call.results.remove(result);
  return { status: 204, headers: [] };
}

function expired(call: Call): Reply {
  const minutes = call.options.config.of(resultSettings).idleTimeoutMs / 60_000;
  const message = `the result does not exist: results are removed after ${minutes} minutes without a read`;
  return jsonReply(JSON.stringify({ error: message }), 404);
}

/** `sent`: the rows in the reply, and the number of rows that can be requested. */
function documentOf(
  result: SpooledResult,
  more: Fields,
  sent?: { first: number; parts: Uint8Array[]; total: number },
): Reply {
  const { state, columns, timestamp, cutBy, progress, executeNs } = result;
  const fields: Fields = [["state", state], ...more, ["rows", sent?.total ?? result.spool.rowCount]];
  if (state === "running") fields.push(["progress", progress?.()]);
  else fields.push(["executeNs", executeNs]);
  if (cutBy !== undefined) fields.push(["cutBy", cutBy]);
  const known = fields.filter(([, value]) => value !== undefined);
  const described = columns === undefined ? "" : `"columns":${columnsJson(columns)},"timestamp":${timestamp},`;
  const text = described + JSON.stringify(Object.fromEntries(known)).slice(1, -1);
  if (sent === undefined) return jsonReply(`{${text}}`);
  const reply = jsonReply("");
  return {
    ...reply,
    body: [encoder.encode(`{${text},"first":${sent.first},"dataset":[`), ...sent.parts, encoder.encode("]}")],
  };
}

const columnsJson = (columns: readonly ResultColumn[]) => `[${columns.map(columnJson).join(",")}]`;

const encoder = new TextEncoder();

function waitOf(parameters: Parameters): number {
  const text = parameters.get("wait") ?? "";
  return /^\d{1,9}$/.test(text) ? Math.min(Number(text), WAIT_MS_MAX) : 0;
}

/** Returns the number, or the error as a text. */
function wholeNumber(parameters: Parameters, name: string, byDefault: number, max: number): number | string {
  const text = parameters.get(name) ?? String(byDefault), value = Number(text);
  return /^\d{1,15}$/.test(text) && value <= max
    ? value
    : `${name}: found '${text}', expected a number from 0 to ${max}`;
}
