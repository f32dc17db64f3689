/** Functions shared by the routes that run statements. */
import { type Chunk, type Prepared, shownUser } from "../../api.ts";
import { SqlError, SQLSTATE } from "../../errors.ts";
import { shownText } from "../../log/mod.ts";
import { QueryCount, type QueryEnd } from "../../metrics/mod.ts";
import { acceptedCoding, type ContentCoding } from "./compression.ts";
import type { Call } from "./contract.ts";
import { judge } from "./origin.ts";
import { errorFields, isUnhandled } from "./reply.ts";
import { httpSettings, isReadOnly, keepAliveHeader, originRules } from "./settings.ts";

/** The time limit from the header; 0 if it is missing or invalid. */
export function statementTimeoutMs(call: Call): number {
  const header = call.request.headers.get("statement-timeout");
  return header !== null && /^\d{1,15}$/.test(header) ? Number(header) : 0;
}

/**
 * Refuses statements that change something, on a read-only server and for pages of other sites.
 * @throws {SqlError} 25006, 42501
 */
export function refuseChange(call: Call, { category, isRead }: Prepared): void {
  if (isReadOnly(call.options.config) && (category === "ddl" || category === "dml")) {
    throw new SqlError("the server is read-only", 0, SQLSTATE.readOnly);
  }
  if (call.parameters.isTrue("readOnly") && !isRead) {
    throw new SqlError("only statements that read data are allowed here", 0, SQLSTATE.readOnly);
  }
  const refusal = isRead ? undefined : foreignChange(call);
  if (refusal !== undefined) throw new SqlError(refusal, 0, SQLSTATE.insufficientPrivilege);
}

/** Why the sender of the request may not change data; undefined if it may. */
export function foreignChange({ request: { method, headers }, options }: Call): string | undefined {
  return judge({ method, header: (name) => headers.get(name) }, () => originRules(options.config), true).refusal;
}

/** Starts counting a request's statement. */
export function beginQuery(call: Call, wire: "exec" | "exp"): QueryCount {
  const metrics = call.options.metrics?.wires[wire];
  metrics?.bytesIn.inc(call.request.target.length);
  return new QueryCount(metrics, call.startedMs);
}

/** Options that all replies with rows share. */
export function rowsOptions(
  call: Call,
  query: QueryCount,
): { coding: ContentCoding | undefined; keepAlive: string; onChunk(chunk: Chunk): void; onEnd(how: QueryEnd): void } {
  const { metrics } = query;
  const { config } = call.options;
  return {
    coding: config.of(httpSettings).compresses
      ? acceptedCoding(call.request.headers.get("accept-encoding"))
      : undefined,
    keepAlive: keepAliveHeader(config),
    onChunk(chunk) {
      metrics?.rowsOut.inc(chunk.rows);
      metrics?.bytesOut.inc(chunk.bytes.length);
    },
    onEnd: (how) => query.end(how),
  };
}

/** Counts and logs a failed statement. Returns the fields of the reply. */
export function failed(
  call: Call,
  query: QueryCount,
  error: unknown,
  text: string,
): { status: number; message: string; position: number } {
  const { log, metrics } = call.options;
  query.end(
    error instanceof SqlError && error.sqlState === SQLSTATE.queryCanceled ? "queriesCancelled" : "queriesFailed",
  );
  if (isUnhandled(error)) {
    metrics?.unhandledErrors.inc();
    log.error(`failed: ${shownText(text)}: ${error instanceof Error ? error.stack ?? error.message : String(error)}`);
  } else {
    metrics?.queryErrors.inc();
    log.refused?.({ text, user: shownUser(call.identity), error });
  }
  return errorFields(error);
}
