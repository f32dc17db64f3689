/** Users, groups, service accounts, grants and tokens by their statements. */
import assert from "node:assert/strict";
import { startProtected, testSteps } from "./server.ts";

const ALICE = { name: "alice", password: "alice's" };

Deno.test("statements of access control: what they make shows, holds and survives a restart", async () => {
  const root = Deno.makeTempDirSync({ prefix: "sundial-access-" });
  {
    await using server = await startProtected({}, { root });
    await server.set(
      "create table trades (ts timestamp, symbol symbol, price double) timestamp(ts) partition by day",
      "insert into trades values ('2024-01-01', 'BTC', 1.5)",
      "create table secrets (a int)",
      "create user alice with password 'alice''s'",
      "create user if not exists alice with password 'other'",
      "create group readers with external alias 'CN=readers'",
      "create service account app with password app",
      "grant HTTP, PGWIRE to readers",
      "grant select on trades(symbol) to readers",
      "add user alice to readers",
      "grant assume service account app to alice with grant option",
      "grant select on all tables to app",
      "grant insert on trades to alice with grant option",
    );
    assert.deepEqual((await server.sql("show users")).dataset, [["alice"]]);
    assert.deepEqual((await server.sql("show groups")).dataset, [["readers"]]);
    assert.deepEqual((await server.sql("show groups alice")).dataset, [["readers"]]);
    assert.deepEqual((await server.sql("show service accounts")).dataset, [["app"]]);
    assert.deepEqual((await server.sql("show service accounts alice")).dataset, [["app", true]]);
    assert.deepEqual((await server.sql("show user alice")).dataset, [
      ["Password", true],
      ["JWK Token", false],
      ["REST Token", false],
    ]);
    assert.deepEqual(
      (await server.sql("select * from (show permissions alice) order by permission, column_name")).dataset,
      [
        ["HTTP", null, null, false, "G"],
        ["INSERT", "trades", null, true, "G"],
        ["PGWIRE", null, null, false, "G"],
        ["SELECT", "trades", "symbol", false, "G"],
        ["SELECT", "trades", "ts", false, "I"],
      ],
    );
    assert.equal((await server.sql("select count() from all_permissions()")).status, 200);
    assert.match((await server.sql("create user alice")).error!, /the name alice is already used by a user/);
    assert.match((await server.sql("create group admin")).error!, /already used by the built-in administrator/);
    await server.stop();
  }
  await using server = await startProtected({}, { root });
  assert.deepEqual((await server.sql("select symbol from trades", ALICE)).dataset, [["BTC"]]);
  const refused = await server.sql("select price from trades", ALICE);
  assert.equal(refused.error, (await server.sql("select volume from trades", ALICE)).error!.replace("volume", "price"));
  assert.match((await server.sql("select * from trades", ALICE)).error!, /there is no column price/);
  const denied = await server.sql("select * from secrets", ALICE);
  assert.deepEqual([denied.status, denied.error], [403, "Access denied for alice [SELECT on secrets]"]);
  assert.deepEqual((await server.sql("select table_name from tables()", ALICE)).dataset, [["trades"]]);
  assert.deepEqual((await server.sql("show columns from trades", ALICE)).dataset!.length, 2);
  assert.equal((await server.sql("show users", ALICE)).error, "Access denied for alice [LIST USERS]");
  await server.stop();
  Deno.removeSync(root, { recursive: true });
});

testSteps("rights", {
  "a REVOKE counts for the next execution of a prepared statement": async (server) => {
    await server.set(
      "create table t (a int)",
      "insert into t values (1)",
      "create user alice with password 'alice''s'",
      "grant PGWIRE to alice",
      "grant select on t to alice",
    );
    const client = await server.pg(ALICE);
    const ask = () => client.query({ name: "q", text: "select a from t" });
    assert.deepEqual((await ask()).rows, [{ a: 1 }]);
    await server.set("revoke select on t from alice");
    await assert.rejects(ask(), { code: "42501", message: "Access denied for alice [SELECT on t]" });
    await server.set("grant select on all tables to alice");
    assert.deepEqual((await ask()).rows, [{ a: 1 }]);
    await server.set("revoke PGWIRE from alice");
    await assert.rejects(ask(), { code: "42501", message: "Access denied for alice [PGWIRE]" });
    await assert.rejects(server.pg(ALICE), { code: "42501", message: "Access denied for alice [PGWIRE]" });
    await client.end();
  },
  "tokens: told once, good until they expire or are dropped, on every endpoint": async (server) => {
    await server.set(
      "create table t (a int)",
      "create service account app",
      "grant HTTP, CREATE TABLE to app",
      "grant select on t to app",
    );
    const made = await server.sql("alter service account app create token type rest with ttl '1h' refresh");
    assert.deepEqual(made.columns!.map(({ name }) => name), ["name", "token", "expires_at", "refresh"]);
    const [[name, token, , refresh]] = made.dataset as [string, string, string, boolean][];
    assert.deepEqual([name, refresh], ["app", true]);
    assert.match(token, /^qt1[A-Za-z0-9]{43}$/);
    const bearer = `Bearer ${token}`;
    assert.equal((await server.request("/exec?query=select+*+from+t", bearer)).status, 200);
    assert.equal((await server.request("/exp?query=select+*+from+t", bearer)).status, 200);
    const write = () => server.request("/write", bearer, { method: "POST", body: "lines x=1\n" });
    assert.equal((await write()).status, 204);
    assert.equal((await server.request("/exec?query=select+*+from+lines", bearer)).status, 200);
    await server.set(`alter service account app drop token type rest '${token}'`);
    assert.equal((await write()).status, 401);
    assert.match(
      (await server.sql("alter service account app create token type rest with ttl '59s'")).error!,
      /between a minute and 3650 days/,
    );
    assert.doesNotMatch(server.output(), new RegExp(token));
  },
  "service accounts are assumed for a session, whose rights they replace": async (server) => {
    await server.set(
      "create table a (x int)",
      "create table b (x int)",
      "create user alice with password 'alice''s'",
      "create service account app",
      "grant PGWIRE, HTTP to alice",
      "grant select on a to alice",
      "grant select on b to app",
      "grant assume service account app to alice",
    );
    const client = await server.pg(ALICE);
    await client.query("assume service account app");
    await client.query("select * from b");
    await assert.rejects(client.query("select * from a"), /Access denied for alice \[SELECT on a\]/);
    await client.query("exit service account");
    await client.query("select * from a");
    await assert.rejects(client.query("select * from b"), /Access denied for alice \[SELECT on b\]/);
    await client.query("assume service account app");
    await server.set("revoke assume service account app from alice");
    await assert.rejects(client.query("select * from b"), /Access denied/);
    await client.query("exit service account app");
    await assert.rejects(
      client.query("assume service account app"),
      /Access denied for alice \[ASSUME SERVICE ACCOUNT on app\]/,
    );
    assert.match((await server.sql("assume service account app", ALICE)).error!, /which HTTP requests do not have/);
    await client.end();
  },
  "the creator of a table has all rights on it, also through line protocol, and grants follow a rename": async (
    server,
  ) => {
    const BOB = { name: "bob", password: "b" };
    await server.set(
      "create user alice with password 'alice''s'",
      "create user bob with password b",
      "grant HTTP, CREATE TABLE to alice",
      "grant HTTP to bob",
    );
    assert.equal((await server.sql("create table own as (select 1 x)", ALICE)).error, undefined);
    assert.equal((await server.lines("lines x=1\nlines x=2,y=3\n", ALICE)).status, 204);
    assert.equal((await server.sql("grant select on own to bob", ALICE)).error, undefined);
    assert.deepEqual((await server.sql("select * from own", BOB)).dataset, [[1]]);
    assert.equal((await server.sql("grant select on own to bob", BOB)).status, 403);
    assert.equal((await server.sql("rename table own to mine", ALICE)).error, undefined);
    assert.deepEqual((await server.sql("select * from mine", BOB)).dataset, [[1]]);
    const lines = await server.lines("mine x=5\n", BOB);
    assert.equal(lines.status, 403);
    assert.match(lines.text, /Access denied for bob \[INSERT on mine\]/);
    assert.match((await server.lines("other x=5\n", BOB)).text, /Access denied for bob \[CREATE TABLE\]/);
    assert.equal((await server.sql("drop table mine", ALICE)).error, undefined);
  },
  "OWNED BY gives the rights on the created object to another principal": async (server) => {
    await server.set(
      "create user alice with password 'alice''s'",
      "create group team",
      "create service account app",
      "grant HTTP, CREATE TABLE, USER DETAILS to alice",
      "create table source (x int)",
    );
    const permissions = async (name: string, table: string) => {
      const sql = `select count() from (show permissions ${name}) where table_name = '${table}' and grant_option`;
      return (await server.sql(sql)).dataset![0][0];
    };
    const made = async (sql: string) => assert.equal((await server.sql(sql, ALICE)).error, undefined, sql);
    await made("create table a (x int) owned by team");
    await made("create table b as (select 1 x) OWNED BY 'app'");
    await made("create table c (x int)");
    const all = await permissions("alice", "c");
    assert.ok(Number(all) > 20);
    assert.deepEqual([await permissions("alice", "a"), await permissions("team", "a")], [0, all]);
    assert.deepEqual([await permissions("alice", "b"), await permissions("app", "b")], [0, all]);
    await server.set("grant SELECT on source to alice");
    await made("create table d (like source) owned by app");
    assert.equal(await permissions("app", "d"), all);
    await made("alter table c add column y int owned by app");
    assert.deepEqual(
      (await server.sql("select distinct table_name, column_name from (show permissions app) where table_name = 'c'"))
        .dataset,
      [["c", "y"]],
    );
    const unknown = await server.sql("create table e (x int) owned by nobody", ALICE);
    assert.deepEqual([unknown.error, unknown.position], ["there is no user, group or service account nobody", 32]);
    assert.match((await server.sql("select * from e")).error!, /there is no table e/);
  },
  "only an administrator may change an administrator, even before it is created": async (server) => {
    await server.set(
      "create user alice with password 'alice''s'",
      "grant HTTP, ADD USER, ADD PASSWORD, CREATE USER, DROP USER, CREATE GROUP, CREATE REST TOKEN, ADD EXTERNAL ALIAS to alice",
      "create user root2",
      "create group admins",
      "grant DATABASE ADMIN to root2",
      "grant DATABASE ADMIN to admins",
      "grant DATABASE ADMIN to later",
    );
    for (
      const sql of [
        "alter user root2 with password x",
        "alter user root2 create token type rest with ttl '1d'",
        "drop user root2",
        "add user alice to admins",
        "alter group admins with external alias 'x'",
        "create user later with password x",
        "create group later",
        "grant DATABASE ADMIN to alice",
      ]
    ) {
      const { status, error } = await server.sql(sql, ALICE);
      assert.equal(status, 403, sql);
      assert.match(error!, /^Access denied for alice \[(GRANT )?DATABASE ADMIN\]$/, sql);
    }
    await server.set("grant DATABASE ADMIN to alice", "create user later");
    assert.equal((await server.sql("alter user later with password x", ALICE)).error, undefined);
  },
});
