/** POST /write: line protocol. */
import { gunzipSync } from "node:zlib";
import { LineError } from "../../../errors.ts";
import type { Call, Route } from "../contract.ts";
import { textReply } from "../reply.ts";

export const write: Route = { paths: ["/write", "/api/v2/write"], methods: { POST: writeLines }, open: false };

const PRECISIONS = { n: "n", ns: "n", u: "u", us: "u", ms: "ms", s: "s", m: "m", h: "h" } as const;

let errorCount = 0;

async function writeLines(call: Call): Promise<Response> {
  const { config } = call.options;
  if (config.readOnly) return notAccepting();
  const precision = call.parameters.get("precision") || "n";
  if (!Object.hasOwn(PRECISIONS, precision)) {
    return lineFailure(400, new LineError(0, `unknown precision '${precision}'`, "not supported"));
  }
  if (Number(call.request.headers.get("content-length") ?? 0) > config.maxBodySizeBytes) return tooLarge(call);
  let body: Uint8Array = new Uint8Array(await call.request.arrayBuffer());
  if (call.request.headers.get("content-encoding")?.toLowerCase() === "gzip") {
    try {
      body = gunzipSync(body, { maxOutputLength: config.maxBodySizeBytes });
    } catch (error) {
      if ((error as { code?: string }).code === "ERR_BUFFER_TOO_LARGE") return tooLarge(call);
      return lineFailure(415, new LineError(0, "the body is not gzip", "not supported"));
    }
  }
  if (body.length > config.maxBodySizeBytes) return tooLarge(call);
  try {
    await call.database.writeLines(body, PRECISIONS[precision as keyof typeof PRECISIONS], call.identity);
    return new Response(null, { status: 204 });
  } catch (error) {
    if (error instanceof LineError) return lineFailure(error.code === "internal error" ? 500 : 400, error);
    call.options.metrics?.unhandledErrors?.inc();
    call.options.log.error(`line protocol failed: ${error instanceof Error ? error.stack ?? error.message : String(error)}`);
    const message = error instanceof Error ? error.message : String(error);
    return lineFailure(500, new LineError(0, message, "internal error"));
  }
}

function lineFailure(status: number, error: LineError): Response {
  const message = error.line > 0 ? `cannot take the lines: error in line ${error.line}: ${error.message}` : error.message;
  return lineJson(status, { code: error.code, message, line: error.line, errorId: nextErrorId() });
}

function notAccepting(): Response {
  return lineJson(421, { code: "not accepting writes", message: "the server is read-only", errorId: nextErrorId() });
}

function tooLarge(call: Call): Response {
  return textReply(413, `the body is larger than ${call.options.config.maxBodySizeBytes} bytes`);
}

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
