/** POST /write: line protocol. */
import type { LineBody } from "../../../api.ts";
import { shownText } from "../../../log/mod.ts";
import { bool, int, list, size } from "../../../config/mod.ts";
import { DiskFullError, LineError, SqlError, SQLSTATE } from "../../../errors.ts";
import type { Call, Route } from "../contract.ts";
import { foreignChange } from "../query.ts";
import { DISK_FULL_STATUS } from "../reply.ts";
import { isReadOnly } from "../settings.ts";
import { lineErrorSettings } from "../../line/settings.ts";
import { ConnectionLostError, type Reply, RequestError, textReply } from "../../http1/mod.ts";
import { boundaryOf, MultipartError, multipartSettings } from "../multipart.ts";
import { BodyError, inflated, linesOfParts, ReceivedBody } from "./write-body.ts";

const own = {
  isServed: bool("line.http.enabled", true, "Line protocol over HTTP: /write and /api/v2/write."),
  paths: list("http.context.ilp", "/write,/api/v2/write", "Paths of the line-protocol endpoint."),
  inFlightMax: int(
    "http.ilp.connection.limit",
    -1,
    "Maximum number of line-protocol requests in flight. Further ones are answered 429. -1: no separate limit.",
    { min: -1, reloadable: true },
  ),
  bodySizeMax: size(
    "line.http.max.recv.buffer.size",
    "1g",
    "Maximum size of a line-protocol request, also after it is inflated.",
    { min: 1024, reloadable: true },
  ),
  inflateRatioMax: int(
    "line.http.inflate.ratio.max",
    200,
    "Maximum ratio of the inflated size to the gzip size, for requests of more than 16 MiB when inflated.",
    { min: 1 },
  ),
};
export const writeSettings = { ...own, ...lineErrorSettings };

export const write: Route = {
  name: "write",
  summary: "[line protocol](line-protocol.md)",
  paths: own.paths,
  hasNoPrefix: true,
  settings: own,
  isServed: (config) => config.get(own.isServed),
  inFlightMax: own.inFlightMax,
  wire: "line_http",
  methods: { POST: countedLines },
  open: false,
};

const PRECISIONS = { n: "n", ns: "n", u: "u", us: "u", ms: "ms", s: "s", m: "m", h: "h" } as const;

const encoder = new TextEncoder();
let errorCount = 0;

async function countedLines(call: Call): Promise<Reply> {
  const reply = await writeLines(call);
  if (reply.status >= 400) call.options.metrics?.wires.line_http.lineErrors.inc();
  return reply;
}

async function writeLines(call: Call): Promise<Reply> {
  const { bodySizeMax, inflateRatioMax } = call.options.config.of(writeSettings);
  if (isReadOnly(call.options.config)) return notAccepting();
  const refusal = foreignChange(call);
  if (refusal !== undefined) return textReply(403, refusal);
  const precision = call.parameters.get("precision") || "n";
  if (!Object.hasOwn(PRECISIONS, precision)) {
    return lineFailure(400, new LineError(0, `unknown precision '${precision}'`, "not supported"));
  }
  const unit = PRECISIONS[precision as keyof typeof PRECISIONS];
  const received = new ReceivedBody(call.request, bodySizeMax);
  const { headers } = call.request, boundary = boundaryOf(headers.get("content-type"));
  const isGzip = headers.get("content-encoding")?.toLowerCase() === "gzip";
  const body = isGzip ? inflated(received, bodySizeMax, inflateRatioMax) : received;
  const lines: LineBody = boundary === undefined
    ? body
    : linesOfParts(body, boundary, call.options.config.of(multipartSettings).headerSizeMax);
  lines.sender = call.request;
  try {
    const { rows } = await call.database.writeLines(lines, unit, call.identity, call.client);
    call.options.metrics?.wires.line_http.rowsIn.inc(rows);
    return { status: 204, headers: [] };
  } catch (error) {
    if (error instanceof RequestError || error instanceof ConnectionLostError) throw error;
    // A client that is still sending would not see the reply.
    if (!(error instanceof BodyError && error.status === 413)) await received.drain();
    return failed(call, error);
  } finally {
    call.options.metrics?.wires.line_http.bytesIn.inc(received.bytesRead);
  }
}

function failed(call: Call, error: unknown): Reply {
  const { log, config, metrics } = call.options;
  if (error instanceof BodyError) {
    return error.status === 415
      ? lineFailure(415, new LineError(0, error.message, "not supported"))
      : textReply(error.status, error.message);
  }
  if (error instanceof MultipartError) return lineFailure(400, new LineError(0, error.message));
  if (error instanceof LineError) {
    const shown = config.of(writeSettings).showsLines && error.text !== undefined ? `: ${shownText(error.text)}` : "";
    log.error(`line protocol: line ${error.line}: ${shownText(error.message)}${shown}`);
    return lineFailure(STATUS[error.code], error);
  }
  if (error instanceof DiskFullError) {
    return lineFailure(DISK_FULL_STATUS, new LineError(0, error.message, "internal error"));
  }
  if (error instanceof SqlError && error.sqlState === SQLSTATE.outOfMemory) {
    log.error(`line protocol: ${error.message}`);
    return lineFailure(STATUS["too busy"], new LineError(0, error.message, "too busy"));
  }
  metrics?.unhandledErrors.inc();
  log.error(`line protocol failed: ${error instanceof Error ? error.stack ?? error.message : String(error)}`);
  const message = error instanceof Error ? error.message : String(error);
  return lineFailure(500, new LineError(0, message, "internal error"));
}

/** Clients retry after 500 and 503. */
const STATUS = { "invalid": 400, "not supported": 400, "denied": 403, "too busy": 503, "internal error": 500 } as const;

function lineFailure(status: number, error: LineError): Reply {
  const message = error.line > 0
    ? `cannot take the lines: error in line ${error.line}: ${error.message}`
    : error.message;
  return lineJson(status, { code: error.code, message, line: error.line, errorId: nextErrorId() });
}

function notAccepting(): Reply {
  return lineJson(421, { code: "not accepting writes", message: "the server is read-only", errorId: nextErrorId() });
}

/** The type has no charset, because clients of the line protocol read the fields only with exactly this type. */
function lineJson(status: number, fields: Record<string, unknown>): Reply {
  const body = encoder.encode(JSON.stringify(fields));
  return { status, headers: [["Content-Type", "application/json"]], body, isChunked: true };
}

/** An id that identifies a client's error in the log. */
function nextErrorId(): string {
  return `${crypto.randomUUID().slice(0, 8)}-${++errorCount}`;
}
