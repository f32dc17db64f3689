/** GET /exp: the rows of a query as a CSV file. */
import type { ResultColumn } from "../../../door.ts";
import { notSupported, SqlError } from "../../../errors.ts";
import type { Call, Route } from "../contract.ts";
import { capWindow, expWindow } from "../parameters.ts";
import { failed, rowsOptions, statementTimeoutMs } from "../query.ts";
import { queryError, rowsReply } from "../reply.ts";

export const exp: Route = { name: "exp", paths: ["/exp"], methods: { GET: exportRows }, open: false };

async function exportRows(call: Call): Promise<Response> {
  const { parameters } = call;
  if (parameters.isBroken("query")) return queryError("", "the query is not percent-encoded UTF-8", 0);
  const query = parameters.get("query") ?? "";
  if (query === "") return queryError("", "no query text", 0);
  const session = call.database.session(call.identity);
  try {
    const format = (parameters.get("fmt") ?? "csv").toLowerCase();
    if (format === "parquet") throw notSupported("export as Parquet", 0);
    if (format !== "csv") throw new SqlError(`unknown export format '${format}': known are csv and parquet`, 0);
    // Refused before it is prepared as well as after: nothing but a query may run here.
    const prepared = session.prepare(query);
    if (prepared.category !== "query") throw new SqlError("only rows can be exported: a query is expected", 0);
    const delimiter = oneByteDelimiter(parameters.get("delimiter"));
    const answer = await prepared.execute([], {
      encoding: { name: "csv", delimiter },
      window: capWindow(expWindow(parameters.get("limit")), call.options.config.maxResponseRows),
      signal: call.request.signal,
      timeoutMs: statementTimeoutMs(call),
    });
    if (answer.kind === "done") throw new SqlError("only rows can be exported: a query is expected", 0);
    return await rowsReply({
      contentType: "text/csv; charset=utf-8",
      headers: [["content-disposition", `attachment; filename="${fileName(parameters.get("filename"))}.csv"`]],
      ...rowsOptions(call),
      head: parameters.isTrue("nm") ? "" : headerLine(answer.columns, delimiter),
      chunks: answer.chunks,
      tail: () => "",
      errorTail(error) {
        // CSV has no place for an error: the broken connection tells the client that rows are missing.
        failed(call, error, query);
        return undefined;
      },
    });
  } catch (error) {
    const { status, message, position } = failed(call, error, query);
    return queryError(query, message, position, status);
  } finally {
    session.close();
  }
}

function headerLine(columns: ResultColumn[], delimiter: string): string {
  return columns.map((column) => `"${column.name.replaceAll('"', '""')}"`).join(delimiter) + "\r\n";
}

function oneByteDelimiter(text: string | undefined): string {
  return text !== undefined && text.length === 1 && text.charCodeAt(0) < 0x80 ? text : ",";
}

/** The name goes into a header: no quotes, line ends or other controls, and ASCII only. */
function fileName(text: string | undefined): string {
  const clean = (text ?? "").replaceAll(/[^\x20-\x7e]|["\\]/g, "");
  return clean === "" ? `sundial-query-${Date.now()}` : clean;
}
