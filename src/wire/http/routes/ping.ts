/** GET /ping: for clients of the line protocol. */
import type { Route } from "../contract.ts";

export const ping: Route = {
  name: "ping",
  paths: ["/ping"],
  methods: {
    GET: (call) =>
      new Response(null, { status: 204, headers: [["x-influxdb-version", call.options.config.pingVersion]] }),
  },
  open: true,
};
