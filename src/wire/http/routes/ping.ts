/** GET /ping: for clients of the line protocol. */
import type { Route } from "../contract.ts";

export const ping: Route = {
  name: "ping",
  paths: ["/ping"],
  methods: {
    GET: (call) => ({ status: 204, headers: [["X-Influxdb-Version", call.options.config.pingVersion]] }),
  },
  open: true,
};
