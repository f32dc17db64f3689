/** POST /imp: imports a CSV file. */
import { CSV_DELIMITER, type ImportOptions, type ImportReport, isCsvDelimiter } from "../../../api.ts";
import { list } from "../../../config/mod.ts";
import { DiskFullError, SqlError, SQLSTATE } from "../../../errors.ts";
import { shownText } from "../../../log/mod.ts";
import { PARTITION_UNITS } from "../../../sql/plan.ts";
import { ConnectionLostError, type Reply, RequestError, textReply } from "../../http1/mod.ts";
import { csvSettings } from "../../csv/settings.ts";
import { tableNameFault } from "../../line/names.ts";
import type { Call, Route } from "../contract.ts";
import { FAULTS_MAX, ImportFaults } from "../import-faults.ts";
import { jsonReport, textReport } from "../import-report.ts";
import { readSchema } from "../import-schema.ts";
import { boundaryOf, MultipartError, multipartSettings, type Part, partsOf } from "../multipart.ts";
import type { Parameters } from "../parameters.ts";
import { foreignChange } from "../query.ts";
import { DISK_FULL_STATUS, documentReply } from "../reply.ts";
import { isReadOnly } from "../settings.ts";
import { ReceivedBody } from "./write-body.ts";

const settings = {
  paths: list("http.context.import", "/imp", "Paths of the import endpoint."),
  ...multipartSettings,
  ...csvSettings,
};

export const imp: Route = {
  name: "imp",
  summary: "imports a CSV file",
  paths: settings.paths,
  settings,
  wire: "imp",
  methods: { POST: importFile },
  open: false,
};

/** Longest `schema` part. */
const SCHEMA_SIZE_MAX = 1 << 20;
const ATOMICITIES = { skipcol: "skipCol", skiprow: "skipRow", abort: "abort" } as const;
/** Faults in a report. All of them are in a result. */
const SHOWN_FAULTS_MAX = 10_000;

/** Warnings of parts that come after the file. */
const LATE_PARTS = new Map([
  ["data", "another part data is behind the file: it was not imported"],
  ["schema", "the part schema is behind the file: it has no effect, send it before the file"],
]);

/** An invalid request. */
class Refusal extends Error {}

async function importFile(call: Call): Promise<Reply> {
  const { request, options: { metrics } } = call;
  const refusal = foreignChange(call);
  if (refusal !== undefined) return textReply(403, refusal);
  const boundary = boundaryOf(request.headers.get("content-type"));
  if (boundary === undefined) return textReply(400, "Non-multipart POST not supported");
  const received = new ReceivedBody(request, Infinity);
  let faults: ImportFaults | undefined;
  try {
    if (isReadOnly(call.options.config)) throw new Refusal("the server is read-only");
    faults = faultsOf(call);
    const { table, report } = await importParts(call, received, boundary, faults);
    metrics?.wires.imp.rowsIn.inc(report.rowsImported);
    const isJson = call.parameters.isWord("fmt", "json");
    const told = faults && { first: faults.first, count: faults.count, result: await faults.end() };
    return isJson
      ? documentReply(jsonReport(table, report, told), "application/json; charset=utf-8")
      : documentReply(textReport(table, report, told), "text/plain; charset=utf-8");
  } catch (error) {
    await faults?.drop();
    if (error instanceof RequestError || error instanceof ConnectionLostError) throw error;
    // A client that is still sending would not see the reply.
    await received.drain();
    return failed(call, error);
  } finally {
    metrics?.wires.imp.bytesIn.inc(received.bytesRead);
  }
}

async function importParts(
  call: Call,
  body: AsyncIterable<Uint8Array>,
  boundary: string,
  faults: ImportFaults | undefined,
): Promise<{ table: string; report: ImportReport }> {
  const { database, identity, options: { config } } = call;
  const { headerSizeMax } = config.of(settings);
  let schema: ImportOptions["schema"] = [];
  let result: { table: string; report: ImportReport } | undefined;
  for await (const part of partsOf(body, boundary, headerSizeMax)) {
    if (result !== undefined) {
      // It is read and dropped.
      const warning = LATE_PARTS.get(part.name), { warnings } = result.report;
      if (warning !== undefined && !warnings.includes(warning)) warnings.push(warning);
      continue;
    }
    if (part.name === "schema") schema = schemaOf(await textOf(part));
    if (part.name !== "data") continue;
    const options = optionsOf(call.parameters, part, {
      schema,
      faultsMax: FAULTS_MAX,
      onFaults: faults && ((list) => faults.add(list)),
    });
    result = {
      table: options.table,
      report: await database.importCsv(part.bytes, options, identity, call.client, call.request.signal),
    };
  }
  if (result === undefined) throw new Refusal("the body has no part named data");
  return result;
}

function optionsOf(
  parameters: Parameters,
  part: Part,
  more: Pick<ImportOptions, "schema" | "faultsMax" | "onFaults">,
): ImportOptions {
  const table = parameters.get("name") || part.fileName;
  if (table === undefined) throw new Refusal("the table is missing: set the parameter name or the file's name");
  const fault = tableNameFault(table);
  if (fault !== undefined) throw new Refusal(fault);
  const partitionBy = parameters.get("partitionBy") || undefined;
  const unit = PARTITION_UNITS.find((known) => known === partitionBy?.toUpperCase());
  if (partitionBy !== undefined && unit === undefined) {
    throw new Refusal(`partitionBy: found '${partitionBy}', expected one of ${PARTITION_UNITS.join(", ")}`);
  }
  const atomicity = (parameters.get("atomicity") ?? "").toLowerCase();
  return {
    table,
    overwrite: parameters.isTrue("overwrite"),
    create: (parameters.get("create") ?? "").toLowerCase() !== "false",
    timestamp: parameters.get("timestamp") || undefined,
    partitionBy: unit,
    atomicity: Object.hasOwn(ATOMICITIES, atomicity) ? ATOMICITIES[atomicity as keyof typeof ATOMICITIES] : "skipCol",
    forceHeader: parameters.isTrue("forceHeader"),
    delimiter: delimiterOf(parameters.get("delimiter")),
    omit: (parameters.get("omit") ?? "").split(",").map((name) => name.trim()).filter((name) => name !== ""),
    // 0 and less mean the default.
    maxUncommittedRows: /^(?:0|-\d{1,9})$/.test(parameters.get("maxUncommittedRows") ?? "")
      ? undefined
      : countOf(parameters, "maxUncommittedRows"),
    ...more,
  };
}

function delimiterOf(text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  if (!isCsvDelimiter(text)) throw new Refusal(`delimiter: found ${JSON.stringify(text)}, expected ${CSV_DELIMITER}`);
  return text.charCodeAt(0);
}

function countOf(parameters: Parameters, name: string): number | undefined {
  const text = parameters.get(name) || undefined;
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!/^\d{1,9}$/.test(text) || value === 0) throw new Refusal(`${name}: found '${text}', expected a number from 1`);
  return value;
}

/** Undefined if the report has none. */
function faultsOf({ parameters, results, identity }: Call): ImportFaults | undefined {
  const shownMax = countOf(parameters, "faults");
  if (shownMax === undefined) return undefined;
  if (shownMax > SHOWN_FAULTS_MAX) throw new Refusal(`faults: found ${shownMax}, expected at most ${SHOWN_FAULTS_MAX}`);
  return new ImportFaults(shownMax, results, identity);
}

function schemaOf(text: string): ImportOptions["schema"] {
  const schema = readSchema(text);
  if (typeof schema === "string") throw new Refusal(`schema: ${schema}`);
  return schema;
}

async function textOf({ bytes }: Part): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of bytes) {
    text += decoder.decode(piece, { stream: true });
    if (text.length > SCHEMA_SIZE_MAX) throw new Refusal(`schema: it is longer than ${SCHEMA_SIZE_MAX} characters`);
  }
  return text + decoder.decode();
}

/** Refusals have status 200, as clients of QuestDB expect. The text has the error. */
function failed(call: Call, error: unknown): Reply {
  const { log, metrics } = call.options;
  if (error instanceof MultipartError) return textReply(400, error.message);
  if (error instanceof Refusal || error instanceof SqlError) {
    log.error(`import refused: ${shownText(error.message)}`);
    const isDenied = error instanceof SqlError && error.sqlState === SQLSTATE.insufficientPrivilege;
    return refused(call, error.message, isDenied ? 403 : 200);
  }
  if (error instanceof DiskFullError) return refused(call, error.message, DISK_FULL_STATUS);
  metrics?.unhandledErrors.inc();
  log.error(`import failed: ${error instanceof Error ? error.stack ?? error.message : String(error)}`);
  return refused(call, `internal error: ${error instanceof Error ? error.message : String(error)}`, 500);
}

function refused(call: Call, message: string, status: number): Reply {
  const isJson = call.parameters.isWord("fmt", "json");
  const reply = isJson
    ? documentReply(JSON.stringify({ status: message }), "application/json; charset=utf-8")
    : documentReply(message, "text/plain; charset=utf-8");
  return { ...reply, status };
}
