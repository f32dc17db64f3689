/** GET /exp: the rows of a query as a CSV or Parquet file. */
import type { ExecuteOptions, Prepared, ResultColumn } from "../../../api.ts";
import { int, list } from "../../../config/mod.ts";
import { SqlError } from "../../../errors.ts";
import type { Reply } from "../../http1/mod.ts";
import type { Call, Route } from "../contract.ts";
import { capWindow, expWindow } from "../parameters.ts";
import { attachment, parquetReply, parquetSettings } from "../parquet-file.ts";
import { beginQuery, failed, refuseChange, rowsOptions, statementTimeoutMs } from "../query.ts";
import { queryError, rowsReply } from "../reply.ts";
import { httpSettings } from "../settings.ts";

const settings = {
  paths: list("http.context.export", "/exp", "Paths of the export endpoint."),
  inFlightMax: int(
    "http.export.connection.limit",
    -1,
    "Maximum number of /exp requests in flight. Further ones are answered 429. -1: no separate limit.",
    { min: -1, reloadable: true },
  ),
  ...parquetSettings,
};

export const exp: Route = {
  name: "exp",
  summary: "rows of a query as CSV or Parquet",
  paths: settings.paths,
  settings,
  inFlightMax: settings.inFlightMax,
  wire: "exp",
  methods: { GET: exportRows },
  open: false,
};

async function exportRows(call: Call): Promise<Reply> {
  const { parameters } = call;
  const count = beginQuery(call, "exp");
  const query = parameters.get("query") ?? "";
  if (parameters.isBroken("query") || query === "") {
    count.end("queriesFailed");
    return queryError("", query === "" ? "no query text" : "the query is not percent-encoded UTF-8", 0);
  }
  const session = call.database.session(call.identity, call.client);
  try {
    const format = (parameters.get("fmt") || "csv").toLowerCase();
    if (format !== "csv" && format !== "parquet") {
      throw new SqlError(`unknown export format '${format}': expected csv or parquet`, 0);
    }
    // Changes are refused both before and after preparation, because only queries may run here.
    const timeoutMs = statementTimeoutMs(call);
    const prepared = await session.prepare(query, [], { signal: call.request.signal, timeoutMs });
    if (prepared.category !== "query") throw new SqlError("only rows can be exported: expected a query", 0);
    refuseChange(call, prepared);
    const window = capWindow(
      format === "parquet" ? undefined : expWindow(parameters.get("limit")),
      call.options.config.of(httpSettings).maxResponseRows,
    );
    if (format === "parquet") {
      const execute = (options: ExecuteOptions) => prepared.execute([], { ...options, window });
      return await parquetReply(call, count, { query, execute, headers: noticesHeader(prepared) });
    }
    const delimiter = oneByteDelimiter(parameters.get("delimiter"));
    const answer = await prepared.execute([], {
      encoding: { name: "csv", delimiter },
      window,
      signal: call.request.signal,
      timeoutMs,
    });
    if (answer.kind === "done") throw new SqlError("only rows can be exported: expected a query", 0);
    return await rowsReply({
      contentType: "text/csv; charset=utf-8",
      headers: [attachment(call, "csv"), ...noticesHeader(prepared)],
      ...rowsOptions(call, count),
      head: parameters.isTrue("nm") ? "" : headerLine(answer.columns, delimiter),
      chunks: answer.chunks,
      tail: () => "",
      errorTail(error) {
        // CSV cannot represent an error. The broken connection shows the client that rows are missing.
        failed(call, count, error, query);
        return undefined;
      },
    });
  } catch (error) {
    const { status, message, position } = failed(call, count, error, query);
    return queryError(query, message, position, status);
  } finally {
    session.close();
  }
}

/** Notices as a JSON list in ASCII, in a header because the file cannot contain them. */
function noticesHeader({ notices }: Prepared): [string, string][] {
  if (notices.length === 0) return [];
  const list = JSON.stringify(notices).replaceAll(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return [["sundial-notices", list]];
}

/** Names have the escapes of the texts below them. */
function headerLine(columns: ResultColumn[], delimiter: string): string {
  const quoted = columns.map(({ name }) => `"${name.split('"').map(escaped).join('""')}"`);
  return quoted.join(delimiter) + "\r\n";
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

function oneByteDelimiter(text: string | undefined): string {
  return text !== undefined && text.length === 1 && text.charCodeAt(0) < 0x80 ? text : ",";
}
