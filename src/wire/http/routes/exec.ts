/** GET and POST /exec: runs a statement and answers in JSON. */
import type { Answer, ExecuteOptions, Prepared, ResultColumn } from "../../../api.ts";
import { int, list } from "../../../config/mod.ts";
import { SqlError } from "../../../errors.ts";
import type { QueryCount } from "../../../metrics/mod.ts";
import type { HttpRequest, Reply } from "../../http1/mod.ts";
import type { Call, Route } from "../contract.ts";
import { capWindow, columnNames, execWindow } from "../parameters.ts";
import { beginQuery, failed, refuseChange, rowsOptions, statementTimeoutMs } from "../query.ts";
import { columnJson, jsonReply, queryError, rowsReply } from "../reply.ts";
import { httpSettings } from "../settings.ts";
import {
  type Argument,
  type PreparedArguments,
  prepareWith,
  StatementBodyError,
  withStatement,
} from "../statement-body.ts";

/** Longer statements are not repeated. */
const KEPT_QUERY_LENGTH_MAX = 4_096;

const settings = {
  paths: list("http.context.execute", "/exec,/api/v1/sql/execute", "Paths of the SQL endpoint."),
  inFlightMax: int(
    "http.json.query.connection.limit",
    -1,
    "Maximum number of /exec requests in flight. Further ones are answered 429. -1: no separate limit.",
    { min: -1, reloadable: true },
  ),
};

export const exec: Route = {
  name: "exec",
  summary: "runs a statement and answers in JSON",
  paths: settings.paths,
  settings,
  inFlightMax: settings.inFlightMax,
  wire: "exec",
  methods: { GET: execute, POST: executeBody },
  open: false,
};

async function executeBody(call: Call): Promise<Reply> {
  try {
    return await withStatement(call, ({ parameters, args }) => execute({ ...call, parameters }, args));
  } catch (error) {
    if (error instanceof StatementBodyError) return queryError("", error.message, 0, error.status);
    throw error;
  }
}

function execute(call: Call, args: readonly Argument[] = []): Reply | Promise<Reply> {
  const { parameters } = call;
  const count = beginQuery(call, "exec");
  if (parameters.isBroken("query")) {
    count.end("queriesFailed");
    return queryError("", "the query is not percent-encoded UTF-8", 0);
  }
  const query = parameters.get("query") ?? "";
  const session = call.database.session(call.identity, call.client);
  const failure = (error: unknown): Reply => {
    const { status, message, position } = failed(call, count, error, query);
    return queryError(query, message, position, status);
  };
  let reply: Reply | Promise<Reply>;
  try {
    const options = new Options(call, statementTimeoutMs(call), {
      name: "json",
      quoteLargeNumbers: parameters.isTrue("quoteLargeNum") || parameters.get("src")?.toLowerCase() === "con",
    });
    const prepared = prepareWith(session, query, args, options);
    const statement: Statement = { call, count, query, options };
    reply = prepared instanceof Promise
      ? prepared.then((prepared) => run(statement, prepared))
      : run(statement, prepared);
  } catch (error) {
    reply = failure(error);
  }
  if (reply instanceof Promise) return reply.catch(failure).finally(() => session.close());
  session.close();
  return reply;
}

interface Statement {
  call: Call;
  count: QueryCount;
  query: string;
  options: Options;
  /** When it began to be executed, if the client wants to know how long that takes. */
  compiledMs?: number;
}

function run(statement: Statement, { prepared, values }: PreparedArguments): Reply | Promise<Reply> {
  const { call, count, query, options } = statement, { parameters } = call;
  if (prepared.category === "empty") {
    if (query.trim().startsWith(";")) throw new SqlError("expected a statement before ';'", 0);
    count.end("queriesFailed");
    return emptyQuery(query);
  }
  refuseChange(call, prepared);
  const columns = chooseColumns(prepared, parameters.get("cols"));
  if (typeof columns === "string") {
    count.end("queriesFailed");
    const error = columns === "" ? "cols has an empty name" : `column '${columns}' is not in the result`;
    return jsonReply(JSON.stringify({ query, error }), 400);
  }
  const window = capWindow(execWindow(parameters.get("limit")), call.options.config.of(httpSettings).maxResponseRows);
  options.window = window;
  options.countAll = parameters.isTrue("count");
  options.encoding.columns = columns;
  if (parameters.isTrue("timings")) statement.compiledMs = performance.now();
  const answer = prepared.execute(values, options);
  return answer instanceof Promise
    ? answer.then((answer) => replyOf(statement, prepared, answer))
    : replyOf(statement, prepared, answer);
}

function replyOf(
  { call, count, query, options, compiledMs }: Statement,
  prepared: Prepared,
  answer: Answer,
): Reply | Promise<Reply> {
  const { countAll, window, encoding: { columns } } = options;
  if (answer.kind === "done") {
    if (answer.tag.startsWith("INSERT")) call.options.metrics?.wires.exec.rowsIn.inc(answer.rows);
    count.end(answer.category === "empty" ? "queriesFailed" : "queriesCompleted");
    return doneReply(answer, query, noticesField(prepared));
  }
  return rowsReply({
    contentType: "application/json; charset=utf-8",
    headers: [],
    ...rowsOptions(call, count),
    head: documentHead(call, query, answer, columns),
    chunks: answer.chunks,
    ready: answer.ready,
    tail(rowCount) {
      const lastRow = rowCount === 0 ? 0 : (window?.first ?? 0) + rowCount;
      const rows = countAll ? answer.totalRows() : lastRow;
      return `],"count":${rows}${noticesField(prepared)}${timings(call, prepared, compiledMs)}${explain(call)}}`;
    },
    errorTail(error, rowCount) {
      const { message, position } = failed(call, count, error, query);
      return `],"count":${rowCount},"error":${JSON.stringify(message)}, "errorPos":${position}}`;
    },
  });
}

/** Makes the signal when it is asked for: few queries need one, and it takes longer than some of them. */
class Options implements ExecuteOptions {
  window: ExecuteOptions["window"];
  countAll = false;
  readonly startedMs: number;
  private readonly request: HttpRequest;

  constructor(
    { request, startedMs }: Call,
    readonly timeoutMs: number,
    public encoding: Extract<ExecuteOptions["encoding"], { name: "json" }>,
  ) {
    this.request = request;
    this.startedMs = startedMs;
  }

  get signal(): AbortSignal {
    return this.request.signal;
  }
}

function emptyQuery(query: string): Reply {
  return jsonReply(JSON.stringify({ error: "empty query", query, position: "0" }));
}

/** Indices of the columns in `cols`, undefined for all columns, or the name of an unknown column. */
function chooseColumns(prepared: Prepared, cols: string | undefined): number[] | undefined | string {
  if (cols === undefined || cols === "" || prepared.columns === undefined) return undefined;
  const chosen: number[] = [];
  // Names with a dot have quotes as part of them.
  const plain = prepared.columns.map(({ name }) => name.replaceAll('"', "").toLowerCase());
  for (const name of columnNames(cols)) {
    const index = plain.indexOf(name.toLowerCase());
    if (index < 0) return name;
    chosen.push(index);
  }
  return chosen;
}

function doneReply(answer: Answer & { kind: "done" }, query: string, more: string): Reply {
  if (answer.category === "empty") return emptyQuery(query);
  if (answer.category !== "dml") return jsonReply(`{"ddl":"OK"${more}}`);
  const updated = answer.tag.startsWith("UPDATE") ? `,"updated":${answer.rows}` : "";
  return jsonReply(`{"dml":"OK"${updated}${more}}`);
}

/** Notices for the client; most statements have none. */
function noticesField({ notices }: Prepared): string {
  return notices.length === 0 ? "" : `,"notices":${JSON.stringify(notices)}`;
}

function documentHead(
  call: Call,
  query: string,
  answer: Answer & { kind: "rows" },
  chosen: number[] | undefined,
): string | Uint8Array {
  if (call.parameters.isTrue("nm")) return '{"dataset":[';
  if (chosen === undefined) return wholeHead(query, answer);
  const columns = chosen.map((index) => answer.columns[index]!);
  return headOf(query, columns, chosen.indexOf(answer.timestamp));
}

function headOf(query: string, columns: readonly ResultColumn[], timestamp: number): string {
  const described = columns.map(columnJson).join(",");
  return `{"query":${JSON.stringify(query)},"columns":[${described}],"timestamp":${timestamp},"dataset":[`;
}

/** By the columns, which are the same object in each execution of a known statement. */
const heads = new WeakMap<readonly ResultColumn[], { query: string; timestamp: number; bytes: Uint8Array }>();
const encoder = new TextEncoder();

function wholeHead(query: string, { columns, timestamp }: Answer & { kind: "rows" }): Uint8Array {
  const known = heads.get(columns);
  if (known?.query === query && known.timestamp === timestamp) return known.bytes;
  const bytes = encoder.encode(headOf(query, columns, timestamp));
  if (query.length <= KEPT_QUERY_LENGTH_MAX) heads.set(columns, { query, timestamp, bytes });
  return bytes;
}

function timings(call: Call, prepared: Prepared, compiledMs?: number): string {
  if (compiledMs === undefined) return "";
  const execute = Math.round((performance.now() - compiledMs) * 1e6);
  const compiler = Math.round(prepared.compileNs);
  return `,"timings":{"authentication":${call.authenticationNs},"compiler":${compiler},"execute":${execute},"count":0}`;
}

/** The reply is the same for every query, because every query is compiled. */
function explain(call: Call): string {
  return call.parameters.isTrue("explain") ? ',"explain":{"jitCompiled":true}' : "";
}
