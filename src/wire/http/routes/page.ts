/** GET /: the page that people see. */
import type { Route } from "../contract.ts";
import { documentReply } from "../reply.ts";

export const page: Route = {
  name: "page",
  paths: ["/", "//", "/index.html"],
  methods: { GET: (call) => documentReply(call.options.consolePage, "text/html; charset=utf-8") },
  open: true,
};
