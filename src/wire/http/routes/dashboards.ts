/** /api/v1/dashboards: the dashboards of the console. */
import type { DashboardHead, DashboardSave } from "../../../api.ts";
import { SqlError, SQLSTATE } from "../../../errors.ts";
import { type Reply, textReply } from "../../http1/mod.ts";
import type { Call, Route } from "../contract.ts";
import { foreignChange } from "../query.ts";
import { errorFields, jsonReply } from "../reply.ts";
import { isReadOnly } from "../settings.ts";

export const dashboards: Route = {
  name: "dashboards",
  summary: "the console's dashboards: owner and sharing are enforced here",
  usage: "GET, POST and DELETE /api/v1/dashboards",
  paths: ["/api/v1/dashboards"],
  settings: {},
  methods: { GET: read, POST: save, DELETE: remove },
  open: false,
};

/** Slightly more than the longest definition in JSON. */
const BODY_SIZE_MAX = 2 << 20;
const STATUS: Record<string, number> = {
  [SQLSTATE.serializationFailure]: 409,
  [SQLSTATE.undefinedObject]: 404,
};

/** With `id`, returns one dashboard, otherwise a list without definitions. */
function read(call: Call): Promise<Reply> {
  const { database, identity, parameters } = call;
  return answered(async () => {
    const id = parameters.get("id");
    if (id === undefined) {
      return { dashboards: (await database.dashboards.list(identity)).map((one) => shown(call, one)) };
    }
    const found = await database.dashboards.read(identity, id);
    if (found === undefined) {
      throw new SqlError(`dashboard ${id} does not exist, or is not shared with you`, -1, SQLSTATE.undefinedObject);
    }
    return shown(call, found);
  });
}

/**
 * The body is JSON: `{"name": …, "definition": …, "sharedWith": […]}`, with `id` and `version` to replace a dashboard.
 */
async function save(call: Call): Promise<Reply> {
  const refusal = foreignChange(call);
  if (refusal !== undefined) return textReply(403, refusal);
  const bytes = await call.request.bytes(BODY_SIZE_MAX);
  if (bytes === undefined) return textReply(413, `the body is longer than ${BODY_SIZE_MAX} bytes`);
  const fields = saveOf(bytes);
  if (typeof fields === "string") return jsonReply(JSON.stringify({ error: fields }), 400);
  return answered(async () => {
    refuseReadOnly(call);
    return shown(call, await call.database.dashboards.save(call.identity, fields));
  });
}

async function remove(call: Call): Promise<Reply> {
  const refusal = foreignChange(call);
  if (refusal !== undefined) return textReply(403, refusal);
  return await answered(async () => {
    refuseReadOnly(call);
    await call.database.dashboards.remove(call.identity, call.parameters.get("id") ?? "");
    return {};
  });
}

function refuseReadOnly({ options }: Call): void {
  if (isReadOnly(options.config)) throw new SqlError("the server is read-only", -1, SQLSTATE.readOnly);
}

const shown = <T extends DashboardHead>({ options }: Call, one: T): T => ({
  ...one,
  canEdit: one.canEdit && !isReadOnly(options.config),
});

/** Returns a text if the body is invalid. */
function saveOf(bytes: Uint8Array): DashboardSave | string {
  let body: Partial<Record<keyof DashboardSave, unknown>>;
  try {
    body = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    return `the body is not JSON: ${(error as Error).message}`;
  }
  const { id, version, name, definition, sharedWith = [] } = body ?? {};
  if (typeof name !== "string") return "name: expected a text";
  if (typeof definition !== "string") return "definition: expected a text";
  if (!Array.isArray(sharedWith) || sharedWith.some((one) => typeof one !== "string")) {
    return "sharedWith: expected an array of names";
  }
  if (id === undefined) return { name, definition, sharedWith };
  if (typeof id !== "string") return "id: expected a text";
  if (typeof version !== "number") return "version: expected a number";
  return { id, version, name, definition, sharedWith };
}

async function answered(make: () => Promise<unknown>): Promise<Reply> {
  try {
    return jsonReply(JSON.stringify(await make()));
  } catch (error) {
    if (!(error instanceof SqlError)) throw error;
    const { status, message } = errorFields(error);
    return jsonReply(JSON.stringify({ error: message }), STATUS[error.sqlState] ?? status);
  }
}
