/**
 * /api/v1/sql/results: runs a statement and spools its rows, so that a page can show any of them without holding all.
 * POST creates a result, GET returns its state or rows, DELETE cancels and removes it.
 */
import type { Prepared, ResultColumn } from "../../../api.ts";
import { SqlError } from "../../../errors.ts";
import { type Reply, textReply } from "../../http1/mod.ts";
import type { Call, Route } from "../contract.ts";
import type { Parameters } from "../parameters.ts";
import { beginQuery, failed, foreignChange, refuseChange, rowsOptions, statementTimeoutMs } from "../query.ts";
import { columnJson, errorFields, jsonReply, queryError } from "../reply.ts";
import { BLOCK_BYTES, resultSettings, type SpooledResult } from "../results/mod.ts";
import { httpSettings } from "../settings.ts";
import { type Argument, prepareWith, readStatement, StatementBodyError } from "../statement-body.ts";

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

async function create(call: Call): Promise<Reply> {
  try {
    const { parameters, args } = await readStatement(call, call.options.config.of(httpSettings).statementSizeMax);
    return await run({ ...call, parameters }, args);
  } catch (error) {
    if (error instanceof StatementBodyError) return queryError("", error.message, 0, error.status);
    throw error;
  }
}

async function run(call: Call, args: readonly Argument[]): Promise<Reply> {
  const { parameters, request, results } = call;
  const count = beginQuery(call, "exec");
  const given = parameters.get("query") ?? "";
  const session = call.database.session(call.identity, call.client);
  const fail = (error: unknown): Reply => {
    const { status, message, position } = failed(call, count, error, given);
    return queryError(given, message, position, status);
  };
  let isRunning = false;
  try {
    const timeoutMs = statementTimeoutMs(call);
    const samples = finer(given, parameters, (text, range) => session.finerSamples(text, range));
    const query = await withOrder(samples.text, parameters, (text) => session.split(text, { timeoutMs }));
    const { prepared, values } = await prepareWith(session, query, args, { signal: request.signal, timeoutMs });
    if (prepared.category === "empty") throw new SqlError("a statement is expected", 0);
    refuseChange(call, prepared);
    const result = await results.begin(call.identity);
    const rowsMax = call.options.config.of(httpSettings).maxResponseRows;
    const execute = () =>
      prepared.execute(values, {
        encoding: { name: "json", quoteLargeNumbers: true, isLines: true },
        chunkBytes: BLOCK_BYTES,
        window: { first: 0, count: rowsMax },
        signal: result.controller.signal,
        timeoutMs,
        onBegin: (progress) => result.progress = progress,
      });
    const { onChunk } = rowsOptions(call, count);
    isRunning = true;
    const filled = result.fill(execute, (chunk) => {
      onChunk(chunk);
      return result.spool.rowCount >= rowsMax ? httpSettings.maxResponseRows.key : results.limitOf(result);
    }).finally(() => session.close());
    filled.then(() => {
      if (result.error === undefined) count.end("queriesCompleted");
    });
    await result.ended(waitOf(parameters), request.signal);
    if (request.signal.aborted) {
      await results.remove(result);
      return textReply(400, "the client has disconnected");
    }
    if (result.state === "running") filled.then(() => result.error !== undefined && fail(result.error));
    if (result.state === "failed") {
      await results.remove(result);
      return fail(result.error);
    }
    return await firstReply(call, result, prepared, samples.bucket);
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
  const [fromMs, toMs, bucketsMax] = ["from", "to", "buckets"].map((name) => {
    const text = parameters.get(name) ?? "";
    if (/^-?\d{1,14}$/.test(text)) return Number(text);
    throw new SqlError(`${name}: found '${text}', expected a whole number`, 0);
  });
  if (toMs <= fromMs || bucketsMax < 1) {
    throw new SqlError("invalid range: expected from before to, and at least 1 bucket", 0);
  }
  const narrowed = narrow(query, { fromMs, toMs, bucketsMax });
  if (narrowed === undefined) throw new SqlError("the statement has no SAMPLE BY that can be narrowed", 0);
  return narrowed;
}

/** Returns the statement ordered by the column in `sort`, counted from 1, if it is given. */
async function withOrder(
  query: string,
  parameters: Parameters,
  split: (text: string) => { text: string }[] | Promise<{ text: string }[]>,
): Promise<string> {
  const sort = parameters.get("sort");
  if (sort === undefined) return query;
  if (!/^[1-9]\d{0,4}$/.test(sort)) throw new SqlError(`sort: found '${sort}', expected a column's number from 1`, 0);
  const parts = await split(query);
  if (parts.length !== 1) throw new SqlError(`sort needs one statement: found ${parts.length}`, 0);
  // The line feed ends a comment.
  return `select * from (${parts[0].text}\n) order by ${sort}${parameters.isTrue("descending") ? " desc" : ""}`;
}

/** A result whose rows are all in the reply is not stored and has no id. */
async function firstReply(call: Call, result: SpooledResult, prepared: Prepared, bucket?: string): Promise<Reply> {
  const { spool, done, explained } = result;
  const fields: Fields = [["compileNs", Math.round(prepared.compileNs)]];
  if (prepared.notices.length > 0) fields.push(["notices", prepared.notices]);
  if (bucket !== undefined) fields.push(["bucket", bucket]);
  if (explained !== undefined) fields.push(["plan", explained]);
  if (done !== undefined) {
    await call.results.remove(result);
    if (done.tag.startsWith("INSERT")) call.options.metrics?.wires.exec.rowsIn.inc(done.rows);
    const { category, tag, rows } = done;
    return documentOf(result, [...fields, ["category", category], ["tag", tag], ["changed", rows]]);
  }
  const isWhole = result.state === "done" && spool.isInMemory;
  const rows = await spool.read(0, isWhole ? spool.rowCount : ROWS_DEFAULT);
  if (isWhole) await call.results.remove(result);
  return documentOf(result, [...isWhole ? [] : [["id", result.id]] as Fields, ...fields], {
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
