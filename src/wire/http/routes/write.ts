/** POST /write: line protocol. */
import { shownText } from "../../../log/mod.ts";
import { gunzipSync } from "node:zlib";
import { LineError } from "../../../errors.ts";
import type { Call, Route } from "../contract.ts";
import { foreignChange } from "../query.ts";
import { textReply } from "../reply.ts";

export const write: Route = {
  name: "write",
  paths: ["/write", "/api/v2/write"],
  wire: "line_http",
  methods: { POST: countedLines },
  open: false,
};

const PRECISIONS = { n: "n", ns: "n", u: "u", us: "u", ms: "ms", s: "s", m: "m", h: "h" } as const;

let errorCount = 0;

async function countedLines(call: Call): Promise<Response> {
  const reply = await writeLines(call);
  if (reply.status >= 400) call.options.metrics?.wires.line_http.lineErrors.inc();
  return reply;
}

async function writeLines(call: Call): Promise<Response> {
  const { config } = call.options;
  if (config.readOnly) return notAccepting();
  const refusal = foreignChange(call);
  if (refusal !== undefined) return textReply(403, refusal);
  const precision = call.parameters.get("precision") || "n";
  if (!Object.hasOwn(PRECISIONS, precision)) {
    return lineFailure(400, new LineError(0, `unknown precision '${precision}'`, "not supported"));
  }
  let received: Uint8Array | undefined;
  try {
    received = await readBody(call.request, config.maxBodySizeBytes);
  } catch {
    // Its client has gone: nobody reads this.
    return textReply(400, "the body breaks off");
  }
  if (received === undefined) return tooLarge(call);
  let body = received;
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
    return new Response(null, { status: 204 });
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

/** The whole body; undefined when it is longer than `maxBytes`, of which no more is kept than that. */
async function readBody(request: Request, maxBytes: number): Promise<Uint8Array | undefined> {
  const told = request.headers.get("content-length");
  if (told !== null) return Number(told) > maxBytes ? undefined : new Uint8Array(await request.arrayBuffer());
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of request.body ?? []) {
    size += part.length;
    if (size > maxBytes) return undefined;
    parts.push(part);
  }
  const body = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}

function lineFailure(status: number, error: LineError): Response {
  const message = error.line > 0
    ? `cannot take the lines: error in line ${error.line}: ${error.message}`
    : error.message;
  return lineJson(status, { code: error.code, message, line: error.line, errorId: nextErrorId() });
}

function notAccepting(): Response {
  return lineJson(421, { code: "not accepting writes", message: "the server is read-only", errorId: nextErrorId() });
}

function tooLarge(call: Call): Response {
  return textReply(413, `the body is larger than ${call.options.config.maxBodySizeBytes} bytes`);
}

/** Without a charset: clients of the line protocol read the fields only of this very type. */
function lineJson(status: number, fields: Record<string, unknown>): Response {
  return new Response(JSON.stringify(fields), {
    status,
    headers: [["content-type", "application/json"], ["transfer-encoding", "chunked"]],
  });
}

/** Names the failure, so that a client's report can be found in the log. */
function nextErrorId(): string {
  return `${crypto.randomUUID().slice(0, 8)}-${++errorCount}`;
}
