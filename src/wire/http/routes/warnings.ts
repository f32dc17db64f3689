/** GET /warnings: warnings about the machine's configuration. The list is always empty. */
import { list } from "../../../config/mod.ts";
import type { Route } from "../contract.ts";
import { jsonReply } from "../reply.ts";

const settings = { paths: list("http.context.warnings", "/warnings", "Paths of the warnings endpoint.") };

export const warnings: Route = {
  name: "warnings",
  summary: "warnings for QuestDB's console: always empty",
  paths: settings.paths,
  settings,
  methods: { GET: () => jsonReply("[]") },
  open: "unless access control is on",
};
