/** SHOW CREATE DATABASE: users, groups, service accounts and grants as statements. */
import assert from "node:assert/strict";
import { ADMIN, type ProtectedServer, startProtected } from "./server.ts";
import { startServer } from "../server.ts";

const ALICE = { name: "alice", password: "alice's" };

async function texts(server: ProtectedServer, selection = "", as = ADMIN): Promise<string[] | string> {
  const { dataset, error } = await server.sql(`show create database ${selection}`, as);
  return error ?? dataset!.map(([text]) => String(text));
}

Deno.test("SHOW CREATE DATABASE makes the same users, groups and grants on an empty database, without secrets", async () => {
  await using server = await startProtected();
  await server.set(
    'create table t (ts timestamp, a int, "b c" int) timestamp(ts) partition by day',
    "create user alice with password 'alice''s'",
    'create user "Bob\'s"',
    'alter user "Bob\'s" disable',
    "create group readers with external alias 'CN=it''s'",
    "create service account app with password 'app''s'",
    "alter service account app create token type rest with ttl '1d'",
    "add user alice to readers",
    "grant assume service account app to alice with grant option",
    "grant HTTP, PGWIRE to readers",
    "grant SELECT, INSERT on all tables to app",
    'grant SELECT on t(a, "b c") to alice',
    "grant UPDATE on t to alice with grant option",
    "grant SELECT on later to alice",
  );
  const all = await texts(server) as string[];
  assert.deepEqual(all.slice(1), [
    "CREATE USER 'Bob''s';",
    "ALTER USER 'Bob''s' DISABLE;",
    "CREATE USER 'alice';",
    "CREATE GROUP 'readers' WITH EXTERNAL ALIAS 'CN=it''s';",
    "ADD USER 'alice' TO 'readers';",
    "CREATE SERVICE ACCOUNT 'app';",
    "GRANT ASSUME SERVICE ACCOUNT 'app' TO 'alice' WITH GRANT OPTION;",
    "GRANT SELECT ON 't'(\"a\") TO 'alice';",
    "GRANT SELECT ON 't'(\"b c\") TO 'alice';",
    "GRANT UPDATE ON 't' TO 'alice' WITH GRANT OPTION;",
    "GRANT SELECT ON 'later' TO 'alice';",
    "GRANT SELECT, INSERT ON ALL TABLES TO 'app';",
    "GRANT HTTP, PGWIRE TO 'readers';",
  ]);
  assert.match(all[0], /^CREATE TABLE 't'/);
  await using other = await startProtected();
  await other.set(...all.filter((text) => !text.startsWith("CREATE TABLE")));
  assert.deepEqual(await texts(other, "include (acl)"), all.slice(1));

  assert.deepEqual(await texts(server, "include (groups, TABLES)"), [all[0], ...all.slice(4, 6)]);
  assert.deepEqual(await texts(server, "exclude (schema, permissions)"), all.slice(1, 8));
  assert.deepEqual(await texts(server, "include all"), all);
  assert.deepEqual(await texts(server, "exclude all"), []);
  assert.deepEqual(await texts(server, "include (views, materialized_views)"), []);
  const wrong = await server.sql("show create database include (USERS, GROUP)");
  assert.match(wrong.error!, /^unknown category GROUP: expected TABLES, VIEWS, /);
  assert.equal(wrong.position, 37);

  // Users see only objects that they may see. Objects requested by name need their permission.
  await server.set("grant HTTP to alice");
  assert.deepEqual((await texts(server, "", ALICE)).length, 1);
  assert.equal(await texts(server, "include (users)", ALICE), "Access denied for alice [LIST USERS]");
  await server.set("grant LIST USERS to alice");
  assert.deepEqual(await texts(server, "exclude (schema)", ALICE), all.slice(1, 8));
  assert.equal(await texts(server, "include (permissions)", ALICE), "Access denied for alice [USER DETAILS]");
});

Deno.test("SHOW CREATE DATABASE without access control has no users", async () => {
  await using server = await startServer();
  await server.exec("create table t (a int)");
  assert.equal(
    (await server.exec("show create database")).dataset!.filter(([text]) => !/TABLE/.test(`${text}`)).length,
    0,
  );
  assert.match((await server.exec("show create database include (users)")).error!, /^access control is off/);
});
