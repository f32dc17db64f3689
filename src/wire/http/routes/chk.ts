/** GET /chk?j=TABLE: tells whether a table exists. */
import type { Call, Route } from "../contract.ts";
import { type Reply, textReply } from "../../http1/mod.ts";
import { documentReply } from "../reply.ts";

export const chk: Route = { name: "chk", paths: ["/chk"], methods: { GET: check }, open: false };

function check(call: Call): Reply {
  const name = call.parameters.get("j");
  if (name === undefined || name === "") return textReply(200, "table name missing");
  const status = call.database.table(name) === undefined ? "Does not exist" : "Exists";
  return call.parameters.get("f") === "json"
    ? documentReply(JSON.stringify({ status }), "application/json")
    : textReply(200, status);
}
