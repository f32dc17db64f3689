/** Statements about the session over both wires: they are recognised like all others, also with comments between their words. */
import assert from "node:assert/strict";
import pg from "pg";
import { startServer, type TestServer } from "./server.ts";
import { pgClient } from "./pg-client.ts";

async function connected(server: TestServer): Promise<pg.Client> {
  const client = pgClient(server);
  await client.connect();
  return client;
}

/** The command tag, or the SQLSTATE with the position. */
async function told(client: pg.Client, sql: string | pg.QueryConfig): Promise<string> {
  try {
    const { command } = await client.query(sql);
    return command;
  } catch (error) {
    const { code, position } = error as pg.DatabaseError;
    return position === undefined ? `${code}` : `${code}@${position}`;
  }
}

Deno.test("statements about the session", async (t) => {
  await using server = await startServer();
  const client = await connected(server);
  const value = async (sql: string) => (await client.query({ text: sql, rowMode: "array" })).rows[0]?.[0];

  await t.step("savepoints, with comments between the words", async () => {
    await server.exec("create table t (x int)");
    const tags: string[] = [];
    const texts = [
      "begin",
      "insert into t values (1)",
      'savepoint/* here */"A"-- end',
      "savepoint a",
      "insert into t values (2)",
      "select nothing",
      "savepoint b",
      'rollback/**/work to/**/savepoint "A"',
      "rollback to a",
      'release savepoint "A"',
      "commit",
    ];
    for (const sql of texts) tags.push(await told(client, sql));
    assert.deepEqual(tags, [
      "BEGIN",
      "INSERT",
      "SAVEPOINT",
      "SAVEPOINT",
      "INSERT",
      "42703@8",
      "25P02",
      "ROLLBACK",
      "3B001",
      "25P02",
      "ROLLBACK",
    ]);
    assert.equal(await value("select count() from t"), "0");
    for (const sql of ["begin", "insert into t values (1)", "savepoint s", "insert into t values (2)"]) {
      await client.query(sql);
    }
    for (const sql of ["rollback -- back\n to s", "RELEASE s", "commit"]) await client.query(sql);
    assert.equal(await value("select sum(x) from t"), "1");
    for (const sql of ["savepoint s", "release s", "rollback to s"]) assert.equal(await told(client, sql), "25P01");
  });

  await t.step("SET in all its forms", async () => {
    const forms: [sql: string, shown: string][] = [
      ["set my.x = 1", "1"],
      ["SET/**/my.x/**/TO/**/-1.5", "-1.5"],
      [`set session "my"."x" to 'it''s; mine'`, "it's; mine"],
      ["set my.x to on", "on"],
      ["set my.x = a, 'b', 3", "a, 'b', 3"],
      ["set my.x = 5min;", "5min"],
      ["set my.x = E'a\\'b'", "a'b"],
    ];
    for (const [sql, shown] of forms) {
      assert.equal(await told(client, sql), "SET", sql);
      assert.equal(await value("show my.x"), shown, sql);
    }
    for (
      const ignored of [
        "set names 'utf8'",
        "set time zone 'UTC'",
        "set session characteristics as transaction read only",
      ]
    ) {
      assert.equal(await told(client, ignored), "SET", ignored);
    }
    assert.equal(await told(client, "set statement_timeout = 'soon'"), "22023@25");
    assert.equal(await told(client, "set my.x 5"), "42601@10");
    assert.equal(await told(client, "set my.x = 1 +"), "42601@14");
    assert.equal(await told(client, { text: "set my.x = $1", values: [1] }), "42601@12");
    assert.equal(await told(client, "reset/**/my.x"), "SET");
    assert.equal(await told(client, "show my.x"), "42601@10");
  });

  await t.step("prepared statements and portals", async () => {
    const prepare = () => told(client, { name: "Mine", text: "select 1" });
    assert.equal(await prepare(), "SELECT");
    assert.equal(await told(client, "deallocate mine"), "26000");
    assert.equal(await told(client, 'deallocate /* it */ prepare "Mine"'), "DEALLOCATE");
    assert.equal(await told(client, 'deallocate "Mine"'), "26000");
    for (const sql of ["close/**/c", "fetch 10 from c", "move c"]) {
      assert.equal((await told(client, sql)).slice(0, 5), "34000", sql);
    }
    for (const sql of ["close all", "discard all", "discard plans", "unlisten *", "unlisten c", "reset all"]) {
      assert.equal(await told(client, sql), "SET", sql);
    }
    assert.equal(await told(client, "deallocate all"), "DEALLOCATE");
    assert.equal(await told(client, "explain select 1"), "EXPLAIN");
  });

  await t.step("unsupported features", async () => {
    const texts = [
      "prepare p as select 1",
      "execute p",
      "listen c",
      "notify c, 'x'",
      "copy t from stdin",
    ];
    for (const sql of texts) assert.equal(await told(client, sql), "0A000@1", sql);
  });

  await t.step("tables that are called like them", async () => {
    for (const name of ["savepoint", "release", "close", "discard", "fetch", "move"]) {
      assert.equal((await server.exec(`create table ${name} (x int)`)).ddl, "OK");
      for (const clause of ["", "where x = 1", "limit 5", "order by x"]) {
        assert.equal(await told(client, `${name} ${clause}`), "SELECT", `${name} ${clause}`);
      }
      assert.equal(await told(client, `select ${name}.x ${name} from ${name}`), "SELECT");
    }
  });

  await t.step("over HTTP", async () => {
    for (
      const sql of [
        "set x = 1",
        "reset all",
        "discard all",
        "close all",
        "deallocate all",
        "unlisten *",
        "set transaction isolation level serializable",
      ]
    ) {
      assert.equal((await server.exec(sql)).ddl, "OK", sql);
    }
    const refused: [sql: string, position: number, error: RegExp][] = [
      ["savepoint s", -1, /SAVEPOINT can only be used in a transaction/],
      ["rollback to s", -1, /ROLLBACK TO can only be used in a transaction/],
      ["deallocate s", 11, /prepared statement "s" does not exist/],
      ["close c", 6, /portal "c" does not exist/],
      ["set x 5", 6, /found 5/],
    ];
    for (const [sql, position, error] of refused) {
      const answer = await server.exec(sql);
      assert.match(answer.error ?? "none", error);
      assert.equal(answer.position, position, sql);
    }
  });
  await client.end();
});
