import { type StartOptions, startServer as startTestServer } from "../tests/server.ts";

export type { TestServer } from "../tests/server.ts";

/** A server as users run it: without the costly assertions of tests. */
export function startServer(options: StartOptions = {}) {
  return startTestServer({ ...options, env: { SUNDIAL_VERIFY: "false", ...options.env } });
}
