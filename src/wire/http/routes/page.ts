/** GET /: the page of the web console. */
import { randomBytes } from "node:crypto";
import type { Database } from "../../../api.ts";
import type { Route } from "../contract.ts";
import { documentReply } from "../reply.ts";
import { pageSecurityHeaders } from "../../security-headers.ts";

/** URLs of the identity provider that the page requests when a user signs in. */
function urlsToSignIn({ access }: Database): string[] {
  const server = access?.provider?.endpoints;
  return server === undefined ? [] : [server.token_endpoint, server.jwks_uri, server.userinfo_endpoint];
}

export const page: Route = {
  name: "page",
  summary: "the web console",
  usage: "GET /",
  paths: ["/", "//", "/index.html"],
  settings: {},
  methods: {
    GET({ options, database }) {
      const nonce = randomBytes(18).toString("base64");
      const reply = documentReply(options.console.page.replaceAll("{NONCE}", nonce), "text/html; charset=utf-8");
      reply.headers.push(["Cache-Control", "no-cache"], ...pageSecurityHeaders(nonce, urlsToSignIn(database)));
      return reply;
    },
  },
  open: true,
  ownSecurity: true,
};
