/** GET /exp: the rows of a query as a CSV or Parquet file. */
import type { Chunk, Prepared, ResultColumn } from "../../../api.ts";
import { int, list, ms, oneOf } from "../../../config/mod.ts";
import { VERSION } from "../../../version.ts";
import { notSupported, SqlError } from "../../../errors.ts";
import type { Reply } from "../../http1/mod.ts";
import type { Call, Route } from "../contract.ts";
import { capWindow, expWindow } from "../parameters.ts";
import type { QueryCount } from "../../../metrics/mod.ts";
import { beginQuery, failed, refuseChange, rowsOptions, statementTimeoutMs } from "../query.ts";
import { ParquetAssembler, type ParquetEncoding } from "../../encode/parquet.ts";
import { queryError, rowsReply } from "../reply.ts";
import { httpSettings } from "../settings.ts";

const CODECS = [
  "UNCOMPRESSED",
  "SNAPPY",
  "GZIP",
  "BROTLI",
  "ZSTD",
  "LZ4_RAW",
] as const satisfies ParquetEncoding["codec"][];

const settings = {
  paths: list("http.context.export", "/exp", "Paths of the export endpoint."),
  inFlightMax: int(
    "http.export.connection.limit",
    -1,
    "Maximum number of /exp requests in flight. Further ones are answered 429. -1: no separate limit.",
    { min: -1, reloadable: true },
  ),
  timeoutMs: ms(
    "http.export.timeout",
    "300s",
    "Time limit of a Parquet export, in place of query.timeout; 0: query.timeout applies.",
  ),
  codec: oneOf(
    "cairo.parquet.export.compression.codec",
    CODECS,
    "ZSTD",
    "Compression of exported Parquet files, unless the request has a compression_codec.",
    { reloadable: true },
  ),
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
    const format = (parameters.get("fmt") ?? "csv").toLowerCase();
    if (format !== "csv" && format !== "parquet") {
      throw new SqlError(`unknown export format '${format}': expected csv or parquet`, 0);
    }
    // Changes are refused both before and after preparation, because only queries may run here.
    const timeoutMs = statementTimeoutMs(call);
    const prepared = await session.prepare(query, [], { signal: call.request.signal, timeoutMs });
    if (prepared.category !== "query") throw new SqlError("only rows can be exported: expected a query", 0);
    refuseChange(call, prepared);
    if (format === "parquet") return await parquetReply(call, count, query, prepared);
    const delimiter = oneByteDelimiter(parameters.get("delimiter"));
    const answer = await prepared.execute([], {
      encoding: { name: "csv", delimiter },
      window: capWindow(expWindow(parameters.get("limit")), call.options.config.of(httpSettings).maxResponseRows),
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

/** `limit` does not apply: a file is always complete. */
async function parquetReply(call: Call, count: QueryCount, query: string, prepared: Prepared): Promise<Reply> {
  const answer = await prepared.execute([], {
    encoding: parquetEncoding(call),
    window: capWindow(undefined, call.options.config.of(httpSettings).maxResponseRows),
    signal: call.request.signal,
    timeoutMs: statementTimeoutMs(call) || call.options.config.get(settings.timeoutMs),
  });
  if (answer.kind === "done") throw new SqlError("only rows can be exported: expected a query", 0);
  const file = new ParquetAssembler(answer.columns, `Sundial ${VERSION}`);
  return await rowsReply({
    ...rowsOptions(call, count),
    contentType: "application/vnd.apache.parquet",
    headers: [attachment(call, "parquet"), ...noticesHeader(prepared)],
    head: file.head,
    chunks: groupsOf(answer.chunks, file),
    tail: () => file.footer(),
    errorTail(error) {
      failed(call, count, error, query);
      return undefined;
    },
  });
}

async function* groupsOf(chunks: AsyncIterable<Chunk>, file: ParquetAssembler): AsyncIterable<Chunk> {
  for await (const { bytes, rows } of chunks) yield { bytes: file.group(bytes), rows };
}

/** The parameters of a Parquet file. A group has the rows of one batch, so `row_group_size` is only validated. */
function parquetEncoding({ parameters, options }: Call): ParquetEncoding {
  if (parameters.get("partition_by")) throw notSupported("partition_by", 0);
  const codec = (parameters.get("compression_codec") || options.config.get(settings.codec)).toUpperCase();
  if (!CODECS.some((known) => known === codec)) {
    throw new SqlError(
      `unknown compression_codec '${codec.toLowerCase()}': known are ${CODECS.join(", ").toLowerCase()}`,
      0,
    );
  }
  const version = parameters.get("parquet_version");
  if (version !== undefined && version !== "1" && version !== "2") throw new SqlError("parquet_version is 1 or 2", 0);
  for (const name of ["row_group_size", "data_page_size", "compression_level"]) {
    if (!/^\d{0,9}$/.test(parameters.get(name) ?? "")) throw new SqlError(`${name} is not a number`, 0);
  }
  const level = parameters.get("compression_level"), pageSize = parameters.get("data_page_size");
  return {
    name: "parquet",
    codec: codec as ParquetEncoding["codec"],
    level: level ? Number(level) : undefined,
    pageSizeBytes: pageSize ? Math.max(1024, Number(pageSize)) : undefined,
  };
}

function attachment(call: Call, extension: string): [string, string] {
  return ["Content-Disposition", `attachment; filename="${fileName(call.parameters.get("filename"))}.${extension}"`];
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

function headerLine(columns: ResultColumn[], delimiter: string): string {
  return columns.map((column) => `"${column.name.replaceAll('"', '""')}"`).join(delimiter) + "\r\n";
}

function oneByteDelimiter(text: string | undefined): string {
  return text !== undefined && text.length === 1 && text.charCodeAt(0) < 0x80 ? text : ",";
}

/** The name is part of a header: ASCII only, without quotes and control characters. */
function fileName(text: string | undefined): string {
  const clean = (text ?? "").replaceAll(/[^\x20-\x7e]|["\\]/g, "");
  return clean === "" ? `sundial-query-${Date.now()}` : clean;
}
