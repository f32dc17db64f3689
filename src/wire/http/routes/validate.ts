/** GET /api/v1/sql/validate: compiles a statement without running it. */
import { SqlError } from "../../../errors.ts";
import type { Reply } from "../../http1/mod.ts";
import type { Call, Route } from "../contract.ts";
import { statementTimeoutMs } from "../query.ts";
import { columnJson, errorFields, isUnhandled, jsonReply, queryError } from "../reply.ts";

export const validate: Route = {
  name: "validate",
  summary:
    "compiles a statement without running it: returns its columns and whether it only reads, or the error with its position",
  usage: "GET /api/v1/sql/validate?query=SQL",
  paths: ["/api/v1/sql/validate"],
  settings: {},
  methods: { GET: validateStatement },
  open: false,
};

async function validateStatement(call: Call): Promise<Reply> {
  const query = call.parameters.get("query") ?? "";
  if (call.parameters.isBroken("query")) return queryError("", "the query is not percent-encoded UTF-8", 0);
  const session = call.database.session(call.identity, call.client);
  try {
    const limits = { signal: call.request.signal, timeoutMs: statementTimeoutMs(call) };
    const { columns, timestamp, category, isRead } = await session.prepare(query, [], limits);
    if (category === "empty") throw new SqlError("a statement is expected", 0);
    if (columns === undefined) return jsonReply(JSON.stringify({ queryType: category.toUpperCase() }));
    const described = columns.map(columnJson).join(",");
    return jsonReply(
      `{"query":${JSON.stringify(query)},"columns":[${described}],"timestamp":${timestamp},"isRead":${isRead}}`,
    );
  } catch (error) {
    // The server's own failures are logged and counted by the caller.
    if (isUnhandled(error)) throw error;
    const { status, message, position } = errorFields(error);
    return queryError(query, message, position, status);
  } finally {
    await session.close();
  }
}
