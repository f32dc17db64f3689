/** node-postgres, postgres.js and psql against the real server: create a table, insert with parameters, and select. */
import assert from "node:assert/strict";
import pg from "pg";
import postgres from "postgres";
import { startServer, type TestServer } from "../server.ts";

const options = { sanitizeOps: false, sanitizeResources: false };
const urlOf = (server: TestServer) => `postgres://admin:quest@127.0.0.1:${server.pgPort}/qdb`;

Deno.test("clients of the PG wire", options, async (test) => {
  await using server = await startServer();

  await test.step("node-postgres", async () => {
    const client = new pg.Client(urlOf(server));
    await client.connect();
    await client.query(
      "create table np (ts timestamp, s symbol, d double, l long, i int, b boolean, v varchar, u uuid) timestamp(ts) partition by day",
    );
    const insert = "insert into np values ($1, $2, $3, $4, $5, $6, $7, $8)";
    const uuid = "11111111-2222-3333-4444-555555555555";
    await client.query(insert, [new Date(Date.UTC(2024, 0, 1)), "a", 1.5, "9007199254740993", 7, true, 'é "x"', uuid]);
    const result = await client.query(insert, [
      "2024-01-02T00:00:00.000001Z",
      null,
      null,
      null,
      null,
      false,
      null,
      null,
    ]);
    assert.deepEqual([result.command, result.rowCount], ["INSERT", 1]);
    const { rows } = await client.query("select s, d, l, i, b, v, u from np where ts >= $1", ["2024-01-01"]);
    assert.deepEqual(rows, [
      { s: "a", d: 1.5, l: "9007199254740993", i: 7, b: true, v: 'é "x"', u: uuid },
      { s: null, d: null, l: null, i: null, b: false, v: null, u: null },
    ]);
    const named = { name: "by-symbol", text: "select count() c from np where s = $1" };
    for (const [value, count] of [["a", "1"], ["b", "0"]]) {
      assert.deepEqual((await client.query({ ...named, values: [value] })).rows, [{ c: count }]);
    }
    await assert.rejects(client.query("select nope from np"), { position: "8" });
    await assert.rejects(client.query("selec 1"));
    assert.deepEqual((await client.query("select 1 x")).rows, [{ x: 1 }]);
    await client.query("create table na (a double[], aa double[][], d decimal(10, 2))");
    await client.query("insert into na values ($1, $2, $3)", [[1.5, null], [[1, 2], [3, 4]], "12.30"]);
    assert.deepEqual((await client.query("select * from na")).rows, [{
      a: [1.5, null],
      aa: [[1, 2], [3, 4]],
      d: "12.30",
    }]);
    await client.query("begin");
    await client.query("insert into np (ts, l) values ('2024-01-03', 1)");
    await client.query("rollback");
    assert.deepEqual((await client.query("select count() c from np")).rows, [{ c: "2" }]);
    await client.end();
  });

  await test.step("postgres.js", async () => {
    const sql = postgres(urlOf(server), { max: 2, onnotice() {} });
    await sql`create table pj (ts timestamp, s symbol, d double, l long) timestamp(ts) partition by day`;
    await sql`insert into pj values (${new Date(Date.UTC(2024, 0, 1))}, ${"x"}, ${2.5}, ${10})`;
    await sql`insert into pj values (${"2024-01-02T00:00:00Z"}, ${null}, ${null}, ${-1})`;
    assert.deepEqual([...await sql`select s, d, l from pj where l > ${-5} order by ts`], [
      { s: "x", d: 2.5, l: "10" },
      { s: null, d: null, l: "-1" },
    ]);
    const sizes: number[] = [];
    await sql`select x from long_sequence(25)`.cursor(10, (rows) => void sizes.push(rows.length));
    assert.deepEqual(sizes, [10, 10, 5]);
    await assert.rejects(sql`select * from nope`, { code: "42P01" });
    await sql.end();
  });

  await test.step({
    name: "psql",
    ignore: !await hasPsql(),
    async fn() {
      const psql = async (...statements: string[]) => {
        const { code, stdout, stderr } = await new Deno.Command("psql", {
          args: [
            urlOf(server),
            "-X",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            ...statements.flatMap((text) => ["-c", text]),
          ],
        }).output();
        return { code, out: new TextDecoder().decode(stdout), error: new TextDecoder().decode(stderr) };
      };
      const made = await psql(
        "create table ps (ts timestamp, v double) timestamp(ts) partition by day",
        "insert into ps values ('2024-01-01', 1.5), ('2024-01-02', null)",
        "select * from ps",
      );
      assert.equal(made.error, "");
      assert.equal(made.out, "OK\nINSERT 0 2\n2024-01-01 00:00:00.000000|1.5\n2024-01-02 00:00:00.000000|\n");
      const wrong = await psql("select nope from ps");
      assert.equal(wrong.code, 1);
      assert.match(wrong.error, /ERROR:.*\nLINE 1: select nope from ps\n {15}\^/);
      assert.equal(
        (await psql("select 1; select 2; insert into ps values ('2024-01-03', 3)")).out,
        "1\n2\nINSERT 0 1\n",
      );
    },
  });
});

async function hasPsql(): Promise<boolean> {
  try {
    return (await new Deno.Command("psql", { args: ["--version"] }).output()).success;
  } catch {
    console.log("psql is not installed: its test is skipped");
    return false;
  }
}
