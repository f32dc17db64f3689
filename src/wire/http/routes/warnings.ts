/** GET /warnings: warnings about the machine's configuration. The list is always empty. */
import type { Route } from "../contract.ts";
import { jsonReply } from "../reply.ts";

export const warnings: Route = {
  name: "warnings",
  paths: ["/warnings"],
  methods: { GET: () => jsonReply("[]") },
  open: true,
};
