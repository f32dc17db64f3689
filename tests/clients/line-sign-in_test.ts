/** The official clients of the line protocol sign in by REST token and by password. */
import assert from "node:assert/strict";
import { type ProtectedServer, startProtected } from "../access/server.ts";
import { type LineClient, lineClients } from "./lines.ts";

async function rowCount(server: ProtectedServer): Promise<unknown> {
  return (await server.sql("select count() from ticks")).dataset![0][0];
}

async function signIn(client: LineClient, server: ProtectedServer): Promise<void> {
  const before = Number(await rowCount(server));
  const send = (credentials: string) =>
    client.send(`http::addr=127.0.0.1:${server.httpPort};protocol_version=1;${credentials}`);
  const made = await server.sql("alter service account ingest create token type rest with ttl '1h'");
  const token = String(made.dataset![0][1]), byToken = `token=${token};`;
  const byPassword = "username=ingest;password=ingest's;";

  assert.match(await send(""), /401|Unauthorized/);
  for (const credentials of [byToken, byPassword]) {
    assert.match(await send(credentials), /Access denied for ingest \[INSERT on ticks\]|403/);
  }
  await server.set("grant INSERT on ticks to ingest");
  for (const wrong of [`token=${token.slice(0, -1)}_;`, "username=ingest;password=wrong;"]) {
    assert.match(await send(wrong), /401|Unauthorized/);
  }
  assert.deepEqual([await send(byToken), await send(byPassword)], ["ok", "ok"]);
  assert.equal(await rowCount(server), before + 2);
  await server.set(
    `alter service account ingest drop token type rest '${token}'`,
    "revoke INSERT on ticks from ingest",
  );
  assert.match(await send(byToken), /401|Unauthorized/);
  assert.equal(await rowCount(server), before + 2);
}

Deno.test("clients of the line protocol sign in", { sanitizeOps: false, sanitizeResources: false }, async (test) => {
  await using server = await startProtected();
  await server.set(
    "create table ticks (price double, timestamp timestamp) timestamp(timestamp) partition by day",
    "create service account ingest with password 'ingest''s'",
    "grant HTTP to ingest",
  );
  for (const client of await lineClients()) {
    await test.step(client.name, () => signIn(client, server).finally(() => client.close()));
  }
});
