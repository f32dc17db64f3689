/** GET /ping: for clients of the line protocol. */
import { list, text } from "../../../config/mod.ts";
import type { Route } from "../contract.ts";

const settings = {
  paths: list("http.context.ilp.ping", "/ping", "Paths of the line-protocol ping."),
  version: text("line.http.ping.version", "v2.7.4", "Version returned by /ping."),
};

export const ping: Route = {
  name: "ping",
  summary: "204 if the line protocol is accepted here",
  paths: settings.paths,
  hasNoPrefix: true,
  settings,
  methods: {
    GET: (call) => ({ status: 204, headers: [["X-Influxdb-Version", call.options.config.get(settings.version)]] }),
  },
  open: true,
};
