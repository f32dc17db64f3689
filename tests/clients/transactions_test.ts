/** Transactions over PG through the drivers' own APIs: rollback, isolation and conflicts. */
import assert from "node:assert/strict";
import pg from "pg";
import { postgresJs } from "./postgres-js.ts";
import { startServer, type TestServer } from "../server.ts";
import { pgClient } from "../pg-client.ts";

type Client = pg.Client;

async function connected(server: TestServer): Promise<Client & AsyncDisposable> {
  const client = pgClient(server);
  await client.connect();
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() });
}

/** Rows as texts: columns separated by blanks. */
async function rows(client: Client, sql: string): Promise<string[]> {
  const result = await client.query({ text: sql, rowMode: "array" });
  return result.rows.map((row: unknown[]) => row.map((value) => String(value)).join(" "));
}

async function run(client: Client, ...statements: string[]): Promise<string[]> {
  const tags: string[] = [];
  for (const statement of statements) {
    const result = await client.query(statement).catch((error: { code: string }) => ({
      command: error.code,
      rowCount: null,
    }));
    tags.push(result.rowCount === null ? result.command : `${result.command} ${result.rowCount}`);
  }
  return tags;
}

const SENSORS =
  "create table NAME (name symbol, celsius double, note varchar, ts timestamp) timestamp(ts) partition by day";

async function makeSensors(client: Client, name: string): Promise<void> {
  await run(
    client,
    SENSORS.replace("NAME", name),
    `insert into ${name} values ('a', 1, 'x', '2024-01-01'), ('b', 2, 'y', '2024-01-02'), ('c', 3, null, '2024-01-03')`,
  );
}

const CONTENT = (name: string) => `select name, celsius, note from ${name}`;

Deno.test("transactions with pg", async (t) => {
  await using server = await startServer();
  await using client = await connected(server);
  await using other = await connected(server);

  await t.step("cursors give their rows in parts, forward, up to the end of the transaction", async () => {
    const declare = "declare c cursor for select x from long_sequence(7)";
    assert.deepEqual(await run(client, "begin", declare), ["BEGIN", "DECLARE"]);
    assert.deepEqual(await rows(client, "fetch 2 from c"), ["1", "2"]);
    assert.deepEqual(await run(client, "move 2 in c", "fetch 0 from c"), ["MOVE 2", "FETCH 0"]);
    assert.deepEqual(await rows(client, "fetch c"), ["5"]);
    assert.deepEqual(await rows(client, "fetch forward all in c"), ["6", "7"]);
    assert.deepEqual(await rows(client, "fetch next from c"), []);
    assert.deepEqual(await run(client, declare, "fetch c", "commit", "fetch c"), [
      "42P03",
      "25P02",
      "ROLLBACK",
      "34000",
    ]);

    const held = "declare h cursor with hold for select x from long_sequence(300000)";
    assert.deepEqual(await run(client, "begin", held, "fetch 10 from h", "commit"), [
      "BEGIN",
      "DECLARE",
      "FETCH 10",
      "COMMIT",
    ]);
    assert.deepEqual(await run(client, "fetch 200000 from h", "fetch all from h", "close h", "fetch h"), [
      "FETCH 200000",
      "FETCH 99990",
      "SET",
      "34000",
    ]);
  });

  await t.step("cursors take parameters, and refuse other statements and directions", async () => {
    await client.query("begin");
    await client.query({ text: "declare p cursor for select x from long_sequence(9) where x > $1::long", values: [6] });
    const { rows } = await client.query({ text: "fetch all from p", values: [], rowMode: "array", name: "f" });
    assert.deepEqual(rows.map(String), ["7", "8", "9"]);
    assert.deepEqual(await run(client, "fetch prior from p", "rollback", "fetch p"), ["0A000", "ROLLBACK", "34000"]);
    const refused = await client.query("declare d cursor for drop table if exists x").catch((
      error: { code: string; position: string },
    ) => error);
    assert.deepEqual([refused.code, refused.position], ["42601", "22"]);
    const unknown = await client.query("declare d cursor for select nosuch").catch((
      error: { code: string; position: string },
    ) => error);
    assert.deepEqual([unknown.code, unknown.position], ["42703", "29"]);
  });

  await t.step("ROLLBACK undoes inserts, updates, deletes and TRUNCATE, which others never see", async () => {
    await makeSensors(client, "t1");
    const before = await rows(client, CONTENT("t1"));
    const changes = [
      "update t1 set celsius = 99",
      "insert into t1 values ('d', 4, 'new', '2024-01-01T12:00:00')",
      "update t1 set note = 'seen' where name = 'd'",
      "delete from t1 where name = 'b'",
    ];
    assert.deepEqual(await run(client, "begin", ...changes), ["BEGIN", "UPDATE 3", "INSERT 1", "UPDATE 1", "DELETE 1"]);
    assert.deepEqual(await rows(client, CONTENT("t1")), ["a 99 x", "d 4 seen", "c 99 null"]);
    assert.deepEqual(await rows(other, CONTENT("t1")), before);
    assert.deepEqual(await run(client, "rollback"), ["ROLLBACK"]);
    assert.deepEqual(await rows(client, CONTENT("t1")), before);
    await run(client, "begin", "truncate table t1", "insert into t1 values ('z', 0, null, '2025-01-01')");
    assert.deepEqual(await rows(client, CONTENT("t1")), ["z 0 null"]);
    assert.deepEqual(await rows(other, CONTENT("t1")), before);
    await run(client, "rollback");
    assert.deepEqual(await rows(client, CONTENT("t1")), before);
    await run(client, "begin", ...changes, "commit");
    assert.deepEqual(await rows(other, CONTENT("t1")), ["a 99 x", "d 4 seen", "c 99 null"]);
  });

  await t.step("definitions are undone, and committed together with rows", async () => {
    await makeSensors(client, "t2");
    const changes = [
      SENSORS.replace("NAME", "t3"),
      "insert into t3 select * from t2",
      "alter table t2 add column extra symbol",
      "update t2 set extra = name || '!'",
      "create table t4 as (select name, celsius * 2 as twice from t3)",
      "rename table t3 to t5",
      "alter table t2 rename column note to remark",
    ];
    await run(client, "begin", ...changes, "drop table t1");
    assert.deepEqual(await rows(client, "select name, remark, extra from t2"), ["a x a!", "b y b!", "c null c!"]);
    assert.deepEqual(await rows(client, "select * from t4"), ["a 2", "b 4", "c 6"]);
    assert.deepEqual(await rows(client, "select count() from t5"), ["3"]);
    const names = "select table_name from tables() where table_name ~ '^t[1-5]$' order by 1";
    assert.deepEqual(await rows(client, names), ["t2", "t4", "t5"]);
    assert.deepEqual(await rows(other, names), ["t1", "t2"]);
    assert.deepEqual(await rows(other, "select name, note from t2"), ["a x", "b y", "c null"]);
    await run(client, "rollback");
    assert.deepEqual(await rows(client, names), ["t1", "t2"]);
    assert.deepEqual(await rows(client, "select * from t2 limit 1"), await rows(other, "select * from t2 limit 1"));
    await run(client, "begin", ...changes, "drop table t1", SENSORS.replace("NAME", "t1"), "commit");
    assert.deepEqual(await rows(other, names), ["t1", "t2", "t4", "t5"]);
    assert.deepEqual(await rows(other, "select name, remark, extra from t2"), ["a x a!", "b y b!", "c null c!"]);
    assert.deepEqual(await rows(other, "select count() from t1"), ["0"]);
  });

  await t.step("savepoints: nested, with the same name, released", async () => {
    await makeSensors(client, "t6");
    const set = (value: number) => `update t6 set celsius = ${value} where name = 'a'`;
    const tags = await run(
      client,
      "begin",
      set(10),
      "savepoint s",
      set(20),
      "insert into t6 values ('n', 7, null, '2024-01-04')",
      "savepoint s",
      set(30),
      "select * from nobody",
      "select 1",
      "rollback to s",
    );
    assert.deepEqual(tags.slice(-3), ["42P01", "25P02", "ROLLBACK"]);
    const a = "select celsius from t6 where name in ('a', 'n')";
    assert.deepEqual(await rows(client, a), ["20", "7"]);
    await run(client, set(40), "rollback to savepoint s");
    assert.deepEqual(await rows(client, a), ["20", "7"]);
    assert.deepEqual(await run(client, "release s", set(50), "rollback to s"), ["RELEASE", "UPDATE 1", "ROLLBACK"]);
    assert.deepEqual(await rows(client, a), ["10"]);
    assert.deepEqual(await run(client, "release savepoint s", "savepoint u", "rollback to s", "rollback to u"), [
      "RELEASE",
      "SAVEPOINT",
      "3B001",
      "ROLLBACK",
    ]);
    await run(client, "rollback");
    assert.deepEqual(await rows(client, a), ["1"]);
    // Rows that no statement has read yet, and a table created after the savepoint.
    await run(
      client,
      "begin",
      "insert into t6 values ('n', 1, null, '2024-01-04')",
      "savepoint s",
      "insert into t6 values ('n', 2, null, '2024-01-04')",
      SENSORS.replace("NAME", "t7"),
      "rollback to s",
      "commit",
    );
    assert.deepEqual(await rows(other, a), ["1", "1"]);
    assert.deepEqual(await run(other, "select * from t7"), ["42P01"]);
  });

  await t.step("a failed transaction answers 25P02, and ROLLBACK to COMMIT", async () => {
    await makeSensors(client, "t8");
    assert.deepEqual(
      await run(
        client,
        "begin",
        "delete from t8",
        "select * from nobody",
        "select 1",
        "savepoint x",
        "set a = 1",
        "insert into t8 (name) values ('q')",
        "commit",
      ),
      ["BEGIN", "DELETE 3", "42P01", "25P02", "25P02", "25P02", "25P02", "ROLLBACK"],
    );
    assert.deepEqual(await rows(client, "select count() from t8"), ["3"]);
    assert.deepEqual(await run(client, "savepoint x", "release x", "rollback to x"), ["25P01", "25P01", "25P01"]);
  });

  await t.step("the end of a connection rolls back its transaction", async () => {
    await makeSensors(client, "t9");
    const third = await connected(server);
    await run(third, "begin", "delete from t9");
    await third.end();
    const fourth = await connected(server);
    fourth.on("error", () => {}); // its socket is about to be destroyed
    await run(fourth, "begin", "update t9 set celsius = 0");
    // deno-lint-ignore no-explicit-any
    (fourth as any).connection.stream.destroy();
    assert.deepEqual(await rows(client, CONTENT("t9")), ["a 1 x", "b 2 y", "c 3 null"]);
  });

  await t.step("if two transactions change the same rows, the second one fails with 40001", async () => {
    await makeSensors(client, "t10");
    await run(client, "begin", "update t10 set celsius = 10 where name = 'a'");
    await run(other, "begin", "update t10 set celsius = 20 where name = 'a'");
    assert.deepEqual(await run(client, "commit"), ["COMMIT"]);
    assert.deepEqual(await run(other, "commit"), ["40001"]);
    assert.deepEqual(await run(other, "select 1"), ["SELECT 1"]);
    assert.deepEqual(await rows(other, CONTENT("t10")), ["a 10 x", "b 2 y", "c 3 null"]);
    // A waiting transaction blocks no other session.
    await run(client, "begin", "update t10 set celsius = 11 where name = 'a'");
    assert.deepEqual(await run(other, "update t10 set celsius = 12 where name = 'a'"), ["UPDATE 1"]);
    assert.deepEqual(await run(client, "commit"), ["40001"]);
    // Rows that others add cause no conflict.
    await run(client, "begin", "update t10 set celsius = 13 where name = 'a'", "delete from t10 where name = 'b'");
    await run(other, "insert into t10 values ('e', 5, null, '2024-01-03T01:00:00'), ('f', 6, null, '2024-01-09')");
    await run(client, "insert into t10 values ('g', 7, null, '2024-01-10')");
    assert.deepEqual(await run(client, "commit"), ["COMMIT"]);
    assert.deepEqual(await rows(other, CONTENT("t10")), ["a 13 x", "c 3 null", "e 5 null", "f 6 null", "g 7 null"]);
    // Changes of other rows and late rows cause no conflict either.
    await run(
      client,
      "begin",
      "update t10 set celsius = 14 where name = 'a'",
      "insert into t10 values ('h', 8, null, '2024-01-02')",
    );
    await run(client, "update t10 set note = 'own' where name = 'h'");
    await run(other, "update t10 set celsius = 15 where name = 'c'", "delete from t10 where name = 'f'");
    await run(other, "insert into t10 values ('i', 9, null, '2023-12-31')");
    assert.deepEqual(await run(client, "commit"), ["COMMIT"]);
    assert.deepEqual(await rows(other, CONTENT("t10")), [
      "i 9 null",
      "a 14 x",
      "h 8 own",
      "c 15 null",
      "e 5 null",
      "g 7 null",
    ]);
    // A dropped table cannot be changed.
    await run(client, "begin", "update t10 set celsius = 14 where name = 'a'");
    await run(other, "drop table t10");
    assert.deepEqual(await run(client, "select * from t10", "rollback"), ["40001", "ROLLBACK"]);
  });

  await t.step("several statements in one query are one transaction", async () => {
    await makeSensors(client, "t11");
    await assert.rejects(
      client.query("update t11 set celsius = 0; delete from t11 where name = 'a'; select * from nobody"),
      {
        code: "42P01",
      },
    );
    assert.deepEqual(await rows(client, CONTENT("t11")), ["a 1 x", "b 2 y", "c 3 null"]);
    await assert.rejects(
      client.query("delete from t11 where name = 'a'; commit; delete from t11 where name = 'b'; select * from nobody"),
      { code: "42P01" },
    );
    assert.deepEqual(await rows(client, CONTENT("t11")), ["b 2 y", "c 3 null"]);
    await client.query("create table t12 (x int); insert into t12 values (1), (2); update t12 set x = x + 10");
    assert.deepEqual(await rows(other, "select x from t12"), ["11", "12"]);
    await assert.rejects(client.query("begin; insert into t12 values (3); select * from nobody"), { code: "42P01" });
    assert.deepEqual(await run(client, "select 1", "rollback"), ["25P02", "ROLLBACK"]);
  });

  await t.step("refuses statements that cannot run in a transaction", async () => {
    assert.deepEqual(await run(client, "begin", "backup database", "rollback"), ["BEGIN", "25001", "ROLLBACK"]);
    assert.deepEqual(await run(client, "begin", "checkpoint create", "rollback"), ["BEGIN", "25001", "ROLLBACK"]);
  });
});

Deno.test("rows of a large INSERT … SELECT go to the writer while it runs, and belong to the transaction", async () => {
  await using server = await startServer();
  await using client = await connected(server);
  await using other = await connected(server);
  const source = `select 'S' || x % 10 s, x v, '${
    "x".repeat(200)
  }' note, timestamp_sequence(0, 1000) ts from long_sequence(200000)`;
  const counted = (name: string) => `select count(), sum(v), count_distinct(s) from ${name}`;
  const all = "200000 20000100000 10";
  await run(client, "create table large (s symbol, v long, note varchar, ts timestamp) timestamp(ts) partition by day");
  await run(
    client,
    "begin",
    "insert into large values ('a', 1, '', 0)",
    "savepoint one",
    `insert into large ${source}`,
  );
  assert.deepEqual(await rows(client, counted("large")), ["200001 20000100001 11"]);
  assert.deepEqual(await rows(other, counted("large")), ["0 null 0"]);
  assert.deepEqual(await run(client, "rollback to one"), ["ROLLBACK"]);
  assert.deepEqual(await rows(client, counted("large")), ["1 1 1"]);
  await run(client, `insert into large ${source}`, "rollback");
  assert.deepEqual(await rows(client, counted("large")), ["0 null 0"]);
  await run(client, "begin", `insert into large ${source}`);
  await run(other, "insert into large values ('b', 2, '', 0)");
  assert.deepEqual(await run(client, `create table filled as (${source}) timestamp(ts)`, "commit"), [
    "OK 200000",
    "COMMIT",
  ]);
  assert.deepEqual(await rows(other, counted("large")), ["200001 20000100002 11"]);
  assert.deepEqual(await rows(other, counted("filled")), [all]);
  // The rows of a statement that fails in the middle go with its transaction.
  await run(client, "begin", "savepoint one");
  const late = source.replace("timestamp_sequence(0, 1000)", "(case when x > 190000 then -1 else x end)::timestamp");
  assert.match((await run(client, `insert into large ${late}`))[0], /^[0-9A-Z]{5}$/);
  await run(client, "rollback to one", "commit");
  assert.deepEqual(await rows(client, counted("large")), ["200001 20000100002 11"]);
});

Deno.test("a transaction above its memory limit fails with 53200, and can be rolled back to a savepoint", async () => {
  await using server = await startServer({ env: { SVC_CAIRO_QUERY_MEMORY_LIMIT: "16m" } });
  await using client = await connected(server);
  const many = "insert into big select x, 'some text', (x * 1000000)::timestamp from long_sequence(1000000)";
  await run(client, "create table big (n long, v varchar, ts timestamp) timestamp(ts) partition by day", many);
  assert.deepEqual(
    await run(client, "begin", many, "rollback", "begin", "update big set v = 'another text'", "rollback"),
    ["BEGIN", "53200", "ROLLBACK", "BEGIN", "53200", "ROLLBACK"],
  );
  assert.deepEqual(
    await run(
      client,
      "begin",
      "update big set n = -1 where n = 1",
      "savepoint s",
      "delete from big where n % 2 = 0",
      "rollback to s",
      "update big set n = -2 where n = 2",
      "commit",
    ),
    ["BEGIN", "UPDATE 1", "SAVEPOINT", "53200", "ROLLBACK", "UPDATE 1", "COMMIT"],
  );
  assert.deepEqual(await rows(client, "select count(), min(n), count_distinct(v) from big"), ["1000000 -2 1"]);
});

Deno.test("rows that a transaction adds one by one, with parameters", async () => {
  await using server = await startServer();
  await using client = await connected(server);
  await run(
    client,
    "create table ones (s symbol, v varchar, d double, n long, ts timestamp) timestamp(ts) partition by day",
    "create table others (n int, ts timestamp) timestamp(ts) partition by day",
  );
  const add = async (from: number, to: number) => {
    for (let k = from; k < to; k++) {
      const time = new Date(1.7e12 + k * 1000);
      const values = [k % 3 === 0 ? null : `s${k % 3}`, k % 5 === 0 ? null : `täxt ${k}`, k / 2, k, time];
      await client.query("insert into ones values ($1, $2, $3, $4, $5)", values);
      if (k % 100 === 0) await client.query("insert into others values ($1, $2), ($1 + 1, $2)", [k, time]);
    }
  };
  await run(client, "begin");
  await add(0, 300);
  await run(client, "savepoint s");
  await add(300, 400);
  assert.deepEqual(await rows(client, "select count(), count_distinct(s) from ones"), ["400 2"]);
  await run(client, "rollback to s");
  assert.deepEqual(await rows(client, "select count(), max(n) from ones"), ["300 299"]);
  await add(300, 700);
  await run(client, "savepoint t");
  await add(700, 720);
  assert.deepEqual(await run(client, "insert into ones (s, ts) values ('x', null::timestamp)", "rollback to t"), [
    "22023",
    "ROLLBACK",
  ]);
  // Columns in another order.
  await client.query("insert into ones (ts, n) values ($1, $2)", [new Date(1.8e12), 1_000]);
  assert.deepEqual(await run(client, "commit"), ["COMMIT"]);
  assert.deepEqual(
    await rows(client, "select count(), sum(n), sum(d), count(s), count(v), count_distinct(v) from ones"),
    [
      `701 ${699 * 350 + 1_000} ${699 * 175} 466 560 560`,
    ],
  );
  assert.deepEqual(await rows(client, "select n, s, v, d from ones where n in (0, 1, 299, 699, 1000) order by n"), [
    "0 null null 0",
    "1 s1 täxt 1 0.5",
    "299 s2 täxt 299 149.5",
    "699 null täxt 699 349.5",
    "1000 null null null",
  ]);
  assert.deepEqual(await rows(client, "select count(), sum(n) from others"), ["14 4207"]);
});

Deno.test("transactions with postgres", async () => {
  await using server = await startServer();
  const sql = postgresJs(server, { max: 3 });
  try {
    await sql.unsafe("create table t (x int, ts timestamp) timestamp(ts) partition by day");
    await sql.begin(async (tx) => {
      await tx`insert into t values (${1}, ${new Date(1e12)})`;
      await tx`update t set x = x + 1`;
      await tx.savepoint(async (inner) => {
        await inner`delete from t`;
        throw new Error("undo");
      }).catch(() => {});
      assert.deepEqual((await tx`select x from t`).map(({ x }) => x), [2]);
      assert.deepEqual((await sql`select x from t`).length, 0);
    });
    assert.deepEqual((await sql`select x from t`).map(({ x }) => x), [2]);
    await assert.rejects(sql.begin(async (tx) => {
      await tx`update t set x = 77`;
      await tx`insert into t values (5, '2024-01-01')`;
      throw new Error("never mind");
    }));
    assert.deepEqual((await sql`select x from t`).map(({ x }) => x), [2]);
  } finally {
    await sql.end();
  }
});
