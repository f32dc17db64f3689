/** GET /: the page of the web console. */
import { randomBytes } from "node:crypto";
import type { Route } from "../contract.ts";
import { documentReply } from "../reply.ts";
import { pageSecurityHeaders } from "../../security-headers.ts";

export const page: Route = {
  name: "page",
  summary: "the web console",
  usage: "GET /",
  paths: ["/", "//", "/index.html"],
  settings: {},
  methods: {
    GET({ options }) {
      const nonce = randomBytes(18).toString("base64");
      const reply = documentReply(options.console.page.replaceAll("{NONCE}", nonce), "text/html; charset=utf-8");
      reply.headers.push(["Cache-Control", "no-cache"], ...pageSecurityHeaders(nonce));
      return reply;
    },
  },
  open: true,
  ownSecurity: true,
};
