/** Clients of node-postgres for a test server. */
import pg from "pg";

/** The admin's client, not yet connected. */
export function pgClient({ pgPort }: { pgPort: number }, more: pg.ClientConfig = {}): pg.Client {
  const account = { user: "admin", password: "quest", database: "qdb" };
  return new pg.Client({ host: "127.0.0.1", port: pgPort, ...account, ...more });
}

export async function connectedPg(server: { pgPort: number }, more: pg.ClientConfig = {}): Promise<pg.Client> {
  const client = pgClient(server, more);
  await client.connect();
  return client;
}
