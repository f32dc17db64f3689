/** Users and grants in backups, in roots of earlier versions, and after tables are dropped. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { fromFileUrl } from "../paths.ts";
import { startProtected } from "./server.ts";

const ALICE = { name: "alice", password: "alice's" };

Deno.test("a start on a backup has the users, groups, grants and tokens of its time", async () => {
  const root = Deno.makeTempDirSync({ prefix: "sundial-access-" });
  let token: string;
  {
    await using server = await startProtected({}, { root });
    await server.set(
      "create table trades (ts timestamp, symbol symbol, price double) timestamp(ts) partition by day",
      "insert into trades values ('2024-01-01', 'BTC', 1.5)",
      "create user alice with password 'alice''s'",
      "create group readers",
      "add user alice to readers",
      "grant HTTP to readers",
      "grant SELECT on trades(symbol) to readers",
      "create service account ingest",
      "grant HTTP to ingest",
      "grant INSERT on trades to ingest",
    );
    const made = await server.sql("alter service account ingest create token type rest with ttl '1h'");
    token = `Bearer ${made.dataset![0][1]}`;
    await server.set(
      "backup database to 'nightly'",
      "drop user alice",
      "drop service account ingest",
      "create user later",
    );
    await server.stop();
  }
  await using server = await startProtected({}, { root: join(root, "backup", "nightly") });
  assert.deepEqual((await server.sql("show users")).dataset, [["alice"]]);
  assert.deepEqual((await server.sql("select symbol from trades", ALICE)).dataset, [["BTC"]]);
  assert.match((await server.sql("select price from trades", ALICE)).error!, /there is no column price/);
  assert.deepEqual(
    (await server.sql("select * from (show permissions alice) order by permission, column_name")).dataset,
    [
      ["HTTP", null, null, false, "G"],
      ["SELECT", "trades", "symbol", false, "G"],
      ["SELECT", "trades", "ts", false, "I"],
    ],
  );
  const write = (line: string) => server.request("/write", token, { method: "POST", body: line });
  assert.equal((await write("trades,symbol=ETH price=2.5\n")).status, 204);
  assert.match((await write("others x=1\n")).text, /Access denied for ingest \[CREATE TABLE\]/);
  await server.stop();
  Deno.removeSync(root, { recursive: true });
});

function copy(from: string, to: string): void {
  Deno.mkdirSync(to, { recursive: true });
  for (const { name, isDirectory } of Deno.readDirSync(from)) {
    if (isDirectory) copy(join(from, name), join(to, name));
    else Deno.copyFileSync(join(from, name), join(to, name));
  }
}

Deno.test("the users of a root of format 2, in its checkpoint and in its log", async () => {
  const root = Deno.makeTempDirSync({ prefix: "sundial-access-" });
  copy(fromFileUrl("roots/2"), root);
  for (const price of [1.5, 2.5]) {
    await using server = await startProtected({}, { root });
    assert.deepEqual((await server.sql("show users")).dataset, [["alice"], ["bob"]]);
    assert.deepEqual((await server.sql("show groups alice")).dataset, [["readers"]]);
    assert.deepEqual(
      (await server.sql("select * from (show permissions alice) order by permission")).dataset,
      [["HTTP", null, null, false, "G"], ["SELECT", "trades", null, false, "G"]],
    );
    await server.set("alter user alice with password 'alice''s'", "alter user bob with password 'bob''s'");
    const { dataset } = await server.sql(`select price from trades where price = ${price}`, ALICE);
    assert.deepEqual(dataset, [[price]]);
    assert.equal((await server.sql("select 1", { name: "bob", password: "bob's" })).status, 403);
    await server.stop();
  }
  Deno.removeSync(root, { recursive: true });
});

Deno.test("a dropped table keeps its grants for a later one of its name, unless it is dropped with CASCADE PERMISSIONS", async () => {
  const root = Deno.makeTempDirSync({ prefix: "sundial-access-" });
  const made = "create table t (a int)";
  const held = async (server: { sql(text: string): Promise<{ dataset?: unknown[][] }> }) =>
    (await server.sql("select permission, table_name from (show permissions alice) order by table_name")).dataset;
  const onOther = ["SELECT", "other"];
  {
    await using server = await startProtected({}, { root });
    await server.set(
      made,
      "create table other (a int)",
      "create user alice",
      "grant SELECT on t(a) to alice",
      "grant SELECT on other to alice",
    );
    await server.set("drop table t", made);
    assert.deepEqual(await held(server), [onOther, ["SELECT", "t"]]);
    await server.set("drop table if exists T cascade permissions", made);
    assert.deepEqual(await held(server), [onOther]);
    await server.set("grant INSERT on t to alice", "drop table t CASCADE PERMISSIONS");
    await server.set("drop table if exists t cascade permissions");
    for (
      const [sql, position] of [["drop table t cascade", 20], ["drop all tables cascade permissions", 16]] as const
    ) {
      assert.equal((await server.sql(sql)).position, position, sql);
    }
    await server.stop();
  }
  await using server = await startProtected({}, { root });
  await server.set(made);
  assert.deepEqual(await held(server), [onOther]);
  await server.stop();
  Deno.removeSync(root, { recursive: true });
});
