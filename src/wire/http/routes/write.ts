/** POST /write: line protocol. */
import { shownText } from "../../../log/mod.ts";
import { gunzipSync } from "node:zlib";
import { LineError } from "../../../errors.ts";
import type { Call, Route } from "../contract.ts";
import { foreignChange } from "../query.ts";
import { type Reply, textReply } from "../../http1/mod.ts";

export const write: Route = {
  name: "write",
  paths: ["/write", "/api/v2/write"],
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
  const { config } = call.options;
  if (config.readOnly) return notAccepting();
  const refusal = foreignChange(call);
  if (refusal !== undefined) return textReply(403, refusal);
  const precision = call.parameters.get("precision") || "n";
  if (!Object.hasOwn(PRECISIONS, precision)) {
    return lineFailure(400, new LineError(0, `unknown precision '${precision}'`, "not supported"));
  }
  const received = await call.request.bytes(config.maxBodySizeBytes);
  if (received === undefined) return tooLarge(call);
  let body: Uint8Array = received;
  call.options.metrics?.wires.line_http.bytesIn.inc(body.length);
  if (call.request.headers.get("content-encoding")?.toLowerCase() === "gzip") {
    try {
      body = gunzipSync(body, { maxOutputLength: config.maxBodySizeBytes });
    } catch (error) {
      if ((error as { code?: string }).code === "ERR_BUFFER_TOO_LARGE") return tooLarge(call);
      return lineFailure(415, new LineError(0, "the body is not gzip", "not supported"));
    }
  }
  try {
    const unit = PRECISIONS[precision as keyof typeof PRECISIONS];
    const { rows } = await call.database.writeLines(body, unit, call.identity);
    call.options.metrics?.wires.line_http.rowsIn.inc(rows);
    return { status: 204, headers: [] };
  } catch (error) {
    if (error instanceof LineError) {
      const shown = config.logLineErrors && error.text !== undefined ? `: ${shownText(error.text)}` : "";
      call.options.log.error(`line protocol: line ${error.line}: ${shownText(error.message)}${shown}`);
      return lineFailure(error.code === "internal error" ? 500 : 400, error);
    }
    call.options.metrics?.unhandledErrors.inc();
    call.options.log.error(
      `line protocol failed: ${error instanceof Error ? error.stack ?? error.message : String(error)}`,
    );
    const message = error instanceof Error ? error.message : String(error);
    return lineFailure(500, new LineError(0, message, "internal error"));
  }
}

function lineFailure(status: number, error: LineError): Reply {
  const message = error.line > 0
    ? `cannot take the lines: error in line ${error.line}: ${error.message}`
    : error.message;
  return lineJson(status, { code: error.code, message, line: error.line, errorId: nextErrorId() });
}

function notAccepting(): Reply {
  return lineJson(421, { code: "not accepting writes", message: "the server is read-only", errorId: nextErrorId() });
}

function tooLarge(call: Call): Reply {
  return textReply(413, `the body is larger than ${call.options.config.maxBodySizeBytes} bytes`);
}

/** Without a charset: clients of the line protocol read the fields only of this very type. */
function lineJson(status: number, fields: Record<string, unknown>): Reply {
  const body = encoder.encode(JSON.stringify(fields));
  return { status, headers: [["Content-Type", "application/json"]], body, isChunked: true };
}

/** Names the failure, so that a client's report can be found in the log. */
function nextErrorId(): string {
  return `${crypto.randomUUID().slice(0, 8)}-${++errorCount}`;
}
