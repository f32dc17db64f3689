/** GET /language: functions, keywords and types with their documentation, for the editor of the console. */
import { createHash } from "node:crypto";
import type { Reply } from "../../http1/mod.ts";
import type { Call, Route } from "../contract.ts";
import { documentReply } from "../reply.ts";

export const language: Route = {
  name: "language",
  summary: "functions, keywords and types with their documentation, as JSON; for editors",
  usage: "GET /language",
  paths: ["/language"],
  settings: {},
  methods: { GET: readLanguage },
  open: false,
};

function readLanguage({ database, request }: Call): Reply {
  const text = database.languageReference();
  const tag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 16)}"`;
  const headers: [string, string][] = [["ETag", tag], ["Cache-Control", "no-cache"]];
  if (request.headers.get("if-none-match") === tag) return { status: 304, headers };
  const reply = documentReply(text, "application/json; charset=utf-8");
  reply.headers.push(...headers);
  return reply;
}
