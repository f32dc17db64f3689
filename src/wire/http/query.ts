/** What the routes that run statements have in common. */
import type { Chunk, Prepared } from "../../door.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Call } from "./contract.ts";
import { errorFields, isUnhandled } from "./reply.ts";

/** The header's time limit; 0 when there is none that makes sense. */
export function statementTimeoutMs(call: Call): number {
  const header = call.request.headers.get("statement-timeout");
  return header !== null && /^\d{1,15}$/.test(header) ? Number(header) : 0;
}

function acceptsGzip(call: Call): boolean {
  if (!call.options.config.gzip) return false;
  return (call.request.headers.get("accept-encoding") ?? "").split(",").some((name) =>
    name.trim().split(";")[0] === "gzip"
  );
}

/** Statements that change something are refused where nothing may change. @throws {SqlError} 25006 */
export function refuseChange(call: Call, category: Prepared["category"]): void {
  if (!call.options.config.readOnly || (category !== "ddl" && category !== "dml")) return;
  throw new SqlError("the server is read-only", 0, SQLSTATE.readOnly);
}

/** What replies with rows have in common. */
export function rowsOptions(call: Call): { gzip: boolean; keepAlive: string; onChunk(chunk: Chunk): void } {
  const { config, metrics } = call.options;
  return {
    gzip: acceptsGzip(call),
    keepAlive: config.keepAlive,
    onChunk(chunk) {
      metrics?.rowsOut?.inc(chunk.rows);
      metrics?.bytesOut?.inc(chunk.bytes.length);
    },
  };
}

/** Counts a failed statement, logs what is not the client's fault, and gives the reply's fields. */
export function failed(
  call: Call,
  error: unknown,
  query: string,
): { status: number; message: string; position: number } {
  const { log, metrics } = call.options;
  if (isUnhandled(error)) {
    metrics?.unhandledErrors?.inc();
    log.error(`failed: ${query}: ${error instanceof Error ? error.stack ?? error.message : String(error)}`);
  } else {
    metrics?.queryErrors?.inc();
  }
  return errorFields(error);
}
