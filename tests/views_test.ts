/** Views: what reads them, what becomes of them when tables change, and that they outlive the process. */
import assert from "node:assert/strict";
import { ADMIN, startProtected } from "./access/server.ts";
import { connectedPg } from "./pg-client.ts";
import { startServer, type TestServer } from "./server.ts";

const TABLE = [
  "create table t (ts timestamp, sym symbol, px double) timestamp(ts) partition by day",
  "insert into t values (0, 'a', 1), (1000000, 'b', 2), (2000000, 'a', 3)",
];

async function run(server: TestServer, ...statements: string[]): Promise<void> {
  for (const sql of statements) assert.equal((await server.exec(sql)).error, undefined, sql);
}

const rowsOf = async (server: TestServer, sql: string) => {
  const { dataset, error } = await server.exec(sql);
  assert.equal(error, undefined, sql);
  return dataset;
};

Deno.test("views", async (t) => {
  await using server = await startServer();
  const rows = (sql: string) => rowsOf(server, sql);
  const refused = async (sql: string, position: number, message: RegExp) => {
    const reply = await server.exec(sql);
    assert.match(reply.error ?? "", message, sql);
    assert.equal(reply.position, position, sql);
  };
  await run(server, ...TABLE, "create view v as (select ts, sym, px * 10 p from t where px > 1)");

  await t.step("are read by all parts of queries", async () => {
    const expected: [string, unknown[][]][] = [
      ["v", [["1970-01-01T00:00:01.000000Z", "b", 20], ["1970-01-01T00:00:02.000000Z", "a", 30]]],
      ["select V.p from V order by p desc", [[30], [20]]],
      ["select x.p from public.v x where x.sym = 'a'", [[30]]],
      ["select sym, p from v latest on ts partition by sym", [["b", 20], ["a", 30]]],
      ["select sum(p) from v sample by 1h", [[50]]],
      ["select t.px, v.p from t asof join v on (sym)", [[1, null], [2, 20], [3, 30]]],
      ["select sum(p) from (select p from v union all select p from v)", [[100]]],
      ["select px from t where px * 10 in (select p from v)", [[2], [3]]],
      ["with v as (select 7 p) select p from v", [[7]]],
      ["select t.px, (select max(p) from v where v.sym = t.sym) from t", [[1, 30], [2, 20], [3, 30]]],
      ["select p from v where ts in '1970-01-01T00:00:02'", [[30]]],
    ];
    for (const [sql, dataset] of expected) assert.deepEqual(await rows(sql), dataset, sql);
    await run(server, "create table c as (select * from v)", "insert into c select * from v", "drop table c");
  });

  await t.step("give their errors at their names", async () => {
    await refused("select nope from v", 7, /no column nope/);
    await run(
      server,
      "create table u (a int, b int)",
      "create view w as (select b from u)",
      "alter table u drop column b",
    );
    await refused("select 1, b from w", 17, /view w cannot be read: there is no column b/);
    assert.deepEqual(await rows("select view_status, invalidation_reason from views() where view_name = 'w'"), [
      ["invalid", "view w cannot be read: there is no column b"],
    ]);
    await refused("compile view w", 13, /no column b/);
    await run(server, "alter table u add column b int", "compile view w");
    assert.deepEqual(await rows("select view_status from views() where view_name = 'w'"), [["valid"]]);
    await run(server, "drop table u");
    await refused("w", 0, /view w cannot be read: there is no table u/);
    await run(server, "drop view w");
    await refused("w", 0, /there is no table w/);
  });

  await t.step("do not read themselves", async () => {
    await run(server, "create view a as (select 1 x)", "create view b as (select x from a)");
    await refused("create or replace view a as (select x from b)", 43, /view b cannot be read: view a reads itself/);
    await refused("alter view a as (select x from A)", 31, /view A reads itself/i);
    await refused("create view z as (select x from z)", 32, /view z reads itself|no table z/);
    await run(server, "drop view a", "drop view b");
  });

  await t.step("see the variables of the statement and of views that read them", async () => {
    await run(
      server,
      "create view inner_fixed as (declare @n := 1 select @n n)",
      "create view inner_open as (declare overridable @n := 1 select @n n)",
      "create view outside as (declare overridable @n := 2 select @n a, n b from inner_open)",
    );
    assert.deepEqual(await rows("outside"), [[2, 2]]);
    assert.deepEqual(await rows("declare @n := 3 select * from outside"), [[3, 3]]);
    const fixed = "declare overridable @n := 2 select @n a, n b from inner_fixed";
    await refused(`alter view outside as (${fixed})`, 46, /@n of view inner_fixed/);
    await run(server, "drop view outside", "drop view inner_fixed", "drop view inner_open");
  });

  await t.step("share their names with tables", async () => {
    await refused("create table V (x int)", 13, /view V exists already/);
    await refused("create table v as (select 1 x)", 13, /exists already/);
    await refused("rename table t to v", 0, /view v exists already/);
    await refused("create view T as (select 1 x)", 12, /table called T exists/);
    await refused("delete from v", 12, /v is a view/);
    await refused("insert into v select * from t", 12, /v is a view/);
    await refused("alter table v drop column p", 12, /v is a view/);
    await refused("drop table if exists v", 21, /v is a view/);
    const lines = await fetch(`${server.http}/write`, { method: "POST", body: "v x=1\n" });
    assert.equal(lines.status, 400);
    assert.match(await lines.text(), /v is a view/);
    const own: [string, number][] = [
      ["drop table _views", 11],
      ["insert into _views (name) values ('x')", 12],
      ["update _views set name = 'x'", 7],
      ["delete from _VIEWS", 12],
      ["truncate table _views", 15],
      ["alter table _views drop column text", 12],
      ["rename table _views to other", 13],
      ["create table _views (x int)", 13],
      ["rename table t to _views", 0],
    ];
    for (const [sql, position] of own) await refused(sql, position, /_views is .*table of the server/i);
    const ownLines = await fetch(`${server.http}/write`, { method: "POST", body: "_views x=1\n" });
    assert.match(await ownLines.text(), /table of the server/);
    const body = new FormData();
    body.append("data", new Blob(["x\n1\n"]), "v");
    const imported = await fetch(`${server.http}/imp?name=v&overwrite=true`, { method: "POST", body });
    assert.match(await imported.text(), /v is a view/);
  });

  await t.step("are bound anew by prepared statements", async () => {
    const client = await connectedPg(server);
    const text = "select p from v where p > $1 order by p";
    const ask = async () =>
      (await client.query({ name: "s", text, values: [5] })).rows.map((row: { p: number }) => row.p);
    assert.deepEqual(await ask(), [20, 30]);
    await run(server, "alter view v as (select ts, sym, px * 100 p from t)");
    assert.deepEqual(await ask(), [100, 200, 300]);
    await client.query("begin");
    assert.deepEqual((await client.query("select count() c from v")).rows, [{ c: "3" }]);
    await client.query("commit");
    await assert.rejects(client.query("begin; create view x as (select 1 a)"), /CREATE VIEW/);
    await client.query("rollback");
    await client.end();
  });

  await t.step("are read by long statements, which another thread compiles", async () => {
    const long = `select count() from v where ${Array.from({ length: 3_000 }, (_, k) => `p != ${k}.5`).join(" and ")}`;
    assert.deepEqual(await rows(long), [[3]]);
  });

  await t.step("are listed with the tables", async () => {
    assert.deepEqual(await rows("select table_name, table_type from tables() where table_type = 'V'"), [["v", "V"]]);
    assert.ok((await rows("show tables"))!.flat().includes("v"));
    assert.ok((await rows("all_tables()"))!.flat().includes("v"));
    const changed = "select view_status, view_status_update_time > dateadd('h', -1, now()) from views()";
    assert.deepEqual(await rows(`${changed} where view_name = 'v'`), [["valid", true]]);
    // The server's own table is not among those of users.
    const lists = [
      "tables()",
      "all_tables()",
      "show tables",
      "table_storage()",
      "information_schema.tables()",
      "pg_class()",
    ];
    for (const list of lists) assert.doesNotMatch(String(await rows(list)), /_views/, list);
    const texts = String(await rows("show create database"));
    assert.match(texts, /CREATE VIEW 'v' AS/);
    // The server makes this table itself: a statement that does is refused.
    assert.doesNotMatch(texts, /_views/);
    assert.match(String(await rows("show create database include (views)")), /^CREATE VIEW 'v' AS/);
    assert.doesNotMatch(String(await rows("show create database include (tables)")), /VIEW/);
    for (const sql of ["show columns from v", "table_columns('V')"]) {
      assert.deepEqual((await rows(sql))!.map(([name, type]) => [name, type]), [
        ["ts", "TIMESTAMP"],
        ["sym", "SYMBOL"],
        ["p", "DOUBLE"],
      ]);
    }
    await refused("table_partitions('v')", 17, /v is a view/);
    const columns = [["ts", 1, 1114], ["sym", 2, 1043], ["p", 3, 701]];
    assert.deepEqual(
      await rows("select attname, attnum, atttypid from pg_attribute where attrelid = '\"V\"'::regclass"),
      columns,
    );
    assert.deepEqual(
      await rows(
        "select a.attname, c.relkind, c.relnatts from pg_class c join pg_attribute a on a.attrelid = c.oid where relname = 'v'",
      ),
      columns.map(([name]) => [name, "r", 3]),
    );
    assert.deepEqual(
      await rows(
        "select column_name, data_type from information_schema.columns where table_name = 'v' and ordinal_position = 2",
      ),
      [["p", "double precision"]],
    );
    assert.deepEqual(await rows("select table_type from information_schema.tables where table_name = 'v'"), [[
      "BASE TABLE",
    ]]);
    assert.deepEqual(await rows("select tablename from pg_tables where tablename = 'v'"), []);
  });
});

Deno.test("views outlive a process that is killed, and many changes of them", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  {
    await using server = await startServer({ root });
    await run(server, ...TABLE, "create view gone as (select 1 x)", "create view v as (select max(px) m from t)");
    for (let k = 0; k < 450; k++) await run(server, `create or replace view r as (select ${k} k)`);
    await run(server, "create view after as (select k + 1 k from r)", "drop view gone");
    server.process.kill("SIGKILL");
    await server.stop();
  }
  for (let start = 0; start < 2; start++) {
    await using server = await startServer({ root });
    assert.deepEqual(await rowsOf(server, "select view_name from views()"), [["v"], ["r"], ["after"]]);
    assert.deepEqual(await rowsOf(server, "select m, k from v cross join after"), [[3, 450]]);
    assert.deepEqual(await rowsOf(server, "select count() < 10 from _views"), [[true]]);
    await run(server, `create or replace view v as (select max(px) m from t)`);
    server.process.kill("SIGKILL");
    await server.stop();
  }
});

Deno.test("views share a limit of characters, and do not count as tables", async () => {
  await using server = await startServer({ env: { SVC_CAIRO_MAX_TABLES: "100" } });
  const make = async (name: string, length: number) =>
    (await server.exec(`create or replace view ${name} as select '${"x".repeat(length)}' s`)).error ?? "";
  // 25,600 characters.
  for (let k = 0; k < 10; k++) assert.equal(await make(`v${k}`, 1_000), "");
  assert.match(
    await make("w", 10_000),
    /^Cannot create view w: with it, the views take \d+ characters, and at most 25600/,
  );
  assert.equal(await make("v0", 100), "");
  assert.match(await make("v0", 10_000), /^Cannot create view v0: with it/);
  await run(server, ...Array.from({ length: 6 }, (_, k) => `drop view v${k}`));
  assert.equal(await make("w", 10_000), "");
  // With the table of the views.
  for (let k = 1; k < 100; k++) await run(server, `create table t${k} (x long)`);
  assert.match((await server.exec("create table more (x long)")).error ?? "", /at most 100 are allowed/);
  assert.equal(await make("x", 100), "");
});

Deno.test("views and their table outlive DROP ALL TABLES, and another table of that name stays as it is", async () => {
  const root = await Deno.makeTempDir({ prefix: "sundial-" });
  {
    await using server = await startServer({ root });
    await run(
      server,
      ...TABLE,
      "create view v as (select 1 x)",
      "create view w as (select px from t)",
      "drop all tables",
    );
    assert.deepEqual(await rowsOf(server, "select view_name, view_status from views()"), [["v", "valid"], [
      "w",
      "invalid",
    ]]);
    await server.stop();
  }
  {
    await using server = await startServer({ root });
    assert.deepEqual(await rowsOf(server, "select x from v"), [[1]]);
    await run(server, ...TABLE);
    assert.deepEqual(await rowsOf(server, "w"), [[1], [2], [3]]);
  }
});

Deno.test("of a table and a view that are made at the same time under one name, one is left", async () => {
  await using server = await startServer();
  for (let round = 0; round < 40; round++) {
    const name = `n${round}`;
    const replies = await Promise.all([
      server.exec(`create view ${name} as (select 1 x)`),
      server.exec(`create table ${name} (x int)`),
      server.exec(`create view ${name} as (select 2 x)`),
    ]);
    assert.equal(replies.filter(({ error }) => error === undefined).length, 1, JSON.stringify(replies));
    const kinds = await rowsOf(server, `select count() from tables() where table_name = '${name}'`);
    assert.deepEqual(kinds, [[1]]);
  }
});

Deno.test("users see the views that they may read", async () => {
  await using server = await startProtected();
  const sql = async (text: string, by = ADMIN) => {
    const { dataset, error } = await server.sql(text, by);
    assert.equal(error, undefined, text);
    return dataset;
  };
  const alice = { name: "alice", password: "alice's" };
  for (
    const text of [
      ...TABLE,
      "create table u (x int)",
      "create view v as (select px from t)",
      "create view w as (select x from u)",
    ]
  ) {
    await sql(text);
  }
  await sql("create user alice with password 'alice''s'");
  await sql("grant HTTP to alice");
  await sql("grant SELECT on t to alice");
  assert.deepEqual(await sql("select view_name from views()", alice), [["v"]]);
  assert.deepEqual(await sql("select table_name from tables() where table_type = 'V'", alice), [["v"]]);
  assert.deepEqual(await sql("select relname from pg_class where relname in ('v', 'w')", alice), [["v"]]);
  assert.deepEqual(await sql("v", alice), [[1], [2], [3]]);
  for (const text of ["w", "show create view w"]) {
    assert.notEqual((await server.sql(text, alice)).error, undefined, text);
  }
  assert.deepEqual(await sql("select view_name from views()"), [["v"], ["w"]]);
});
