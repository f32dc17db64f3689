/** POST /api/v1/sql/csv: finds the form of a CSV file from its first lines, as an import does. Nothing is stored. */
import { type Reply, textReply } from "../../http1/mod.ts";
import { analyse } from "../../csv/mod.ts";
import { csvSettings } from "../../csv/settings.ts";
import type { Call, Route } from "../contract.ts";
import { jsonReply } from "../reply.ts";

export const csvForm: Route = {
  name: "csv",
  summary: "finds delimiter, header and types in the first bytes of a CSV file; for the console",
  usage: "POST /api/v1/sql/csv",
  paths: ["/api/v1/sql/csv"],
  settings: {},
  methods: { POST: tellForm },
  open: false,
};

/** The main thread analyses all of it. */
const BODY_SIZE_MAX = 256 << 10;

async function tellForm({ request, parameters, options: { config } }: Call): Promise<Reply> {
  const bytes = await request.bytes(BODY_SIZE_MAX);
  if (bytes === undefined) return textReply(413, `the body is longer than ${BODY_SIZE_MAX} bytes`);
  const form = analyse(bytes, {
    forceHeader: parameters.isTrue("forceHeader"),
    linesMax: config.get(csvSettings.linesMax),
    isWhole: parameters.isTrue("isWhole"),
  });
  if (typeof form === "string") return jsonReply(JSON.stringify({ error: form }), 400);
  const { delimiter, hasHeader, headBytes, columns } = form;
  return jsonReply(JSON.stringify({ delimiter: String.fromCharCode(delimiter), hasHeader, headBytes, columns }));
}
