import { batchEntry } from "./batch-entry.ts";
import type { FunctionEntry } from "./entry.ts";

/** pg_postmaster_start_time(), for PostgreSQL clients that show the server's uptime. */
export const pgPostmasterStartTime: FunctionEntry[] = [
  batchEntry("pg_postmaster_start_time", [], "TIMESTAMP", "The time at which the server was started.", undefined, [], {
    volatility: "stable",
    served: ({ startedMicros }) => startedMicros,
  }),
];
