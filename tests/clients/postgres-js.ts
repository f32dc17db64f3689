/** Clients of postgres.js for a test server. */
import postgres from "postgres";

/** The admin's client. It connects at its first query. */
export function postgresJs({ pgPort }: { pgPort: number }, more: postgres.Options<Record<string, never>> = {}) {
  const account = { user: "admin", password: "quest", database: "qdb" };
  return postgres({ host: "127.0.0.1", port: pgPort, ...account, ...more });
}
