/** /api/v1/sql/uploads: stores a Parquet file, so that a statement can read it with read_parquet(). */
import { DiskFullError } from "../../../errors.ts";
import { type Reply, textReply } from "../../http1/mod.ts";
import type { Call, Route } from "../contract.ts";
import { foreignChange } from "../query.ts";
import { DISK_FULL_STATUS, jsonReply } from "../reply.ts";
import { isReadOnly } from "../settings.ts";
import { uploadSettings, UploadTooLargeError } from "../uploads.ts";
import { ReceivedBody } from "./write-body.ts";

export const uploads: Route = {
  name: "uploads",
  summary: "stores a Parquet file and returns its name for `read_parquet()`; for the console",
  usage: "POST and DELETE /api/v1/sql/uploads",
  paths: ["/api/v1/sql/uploads"],
  settings: uploadSettings,
  methods: { POST: store, DELETE: remove },
  open: false,
};

async function store(call: Call): Promise<Reply> {
  const refusal = refusalOf(call);
  if (refusal !== undefined) return refusal;
  const body = new ReceivedBody(call.request, Infinity);
  try {
    const { name, sizeBytes } = await call.uploads.store(body, call.identity);
    return jsonReply(JSON.stringify({ file: name, sizeBytes }));
  } catch (error) {
    const status = error instanceof DiskFullError
      ? DISK_FULL_STATUS
      : error instanceof UploadTooLargeError
      ? 413
      : undefined;
    if (status === undefined) throw error;
    // A client that is still sending would not see the reply.
    await body.drain();
    return jsonReply(JSON.stringify({ error: (error as Error).message }), status);
  }
}

async function remove(call: Call): Promise<Reply> {
  const refusal = refusalOf(call);
  if (refusal !== undefined) return refusal;
  const isRemoved = await call.uploads.remove(call.parameters.get("file") ?? "", call.identity);
  return isRemoved
    ? { status: 204, headers: [] }
    : jsonReply(JSON.stringify({ error: "the file does not exist" }), 404);
}

function refusalOf(call: Call): Reply | undefined {
  const reason = isReadOnly(call.options.config) ? "the server is read-only" : foreignChange(call);
  return reason === undefined ? undefined : textReply(403, reason);
}
