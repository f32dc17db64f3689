/** GET /chk?j=TABLE: reports whether a table exists. */
import { list } from "../../../config/mod.ts";
import type { Call, Route } from "../contract.ts";
import { type Reply, textReply } from "../../http1/mod.ts";
import { documentReply } from "../reply.ts";

const settings = {
  paths: list("http.context.table.status", "/chk", "Paths of the endpoint that reports whether a table exists."),
};

export const chk: Route = {
  name: "chk",
  summary: "reports whether a table exists",
  usage: "GET /chk?j=TABLE",
  paths: settings.paths,
  settings,
  methods: { GET: check },
  open: false,
};

function check(call: Call): Reply {
  const name = call.parameters.get("j");
  if (name === undefined || name === "") return textReply(200, "table name missing");
  const table = call.database.table(name), { access } = call.database;
  const isSeen = table !== undefined && (access === undefined || access.sees(call.identity, table.schema));
  const status = isSeen ? "Exists" : "Does not exist";
  return call.parameters.isWord("f", "json")
    ? documentReply(JSON.stringify({ status }), "application/json")
    : textReply(200, status);
}
