/** GET /warnings: what is wrong with the machine's set-up. Nothing that we look at could be. */
import type { Route } from "../contract.ts";
import { jsonReply } from "../reply.ts";

export const warnings: Route = {
  name: "warnings",
  paths: ["/warnings"],
  methods: { GET: () => jsonReply("[]") },
  open: true,
};
