/** Running queries are listed, and can be cancelled by their id. */
import assert from "node:assert/strict";
import pg from "pg";
import { until } from "./programs.ts";
import { startServer, type TestServer } from "./server.ts";
import { pgClient } from "./pg-client.ts";

/** Takes longer than any test waits. */
const ENDLESS = "select count() from long_sequence(3000000) a cross join long_sequence(3000000) b where a.x + b.x = -1";
const COLUMNS =
  "query_id worker_id worker_pool username query_start state_change state is_wal query wire client_address " +
  "application_name phase rows_read rows_to_read rows_written memory_bytes seconds full_name";

async function connected(server: TestServer, user = "admin", password = "quest"): Promise<pg.Client> {
  const client = pgClient(server, { user, password });
  await client.connect();
  return client;
}

type Row = Record<string, unknown>;

/** Running queries whose text begins with `start`. */
async function running(server: TestServer, start: string): Promise<Row[]> {
  const { columns, dataset, error } = await server.exec("select * from query_activity()");
  assert.equal(error, undefined);
  return dataset!
    .map((row) => Object.fromEntries(columns!.map(({ name }, k) => [name, row[k]])))
    .filter((row) => String(row.query).startsWith(start));
}

Deno.test("query_activity() and CANCEL QUERY", async (t) => {
  await using server = await startServer({ env: { SVC_PG_READONLY_USER_ENABLED: "true" } });
  const admin = await connected(server);
  const one = (start: string) =>
    until(`${start} reads`, async () => {
      const [row] = await running(server, start);
      return row !== undefined && Number(row.rows_read) > 0 ? row : undefined;
    });

  await t.step("shows statements with their users and progress", async () => {
    const columns = (await server.exec("select * from query_activity()")).columns!;
    assert.equal(columns.map(({ name }) => name).join(" "), COLUMNS);
    const made = admin.query(
      "create table big as (select x, rnd_str(10,20,0) s from long_sequence(5000000))",
    );
    const row = await one("create table big");
    assert.deepEqual(
      [row.username, row.wire, row.state, row.is_wal, row.worker_pool, row.rows_to_read],
      ["admin", "pg", "active", false, "query", 5_000_000],
    );
    assert.match(String(row.client_address), /^127\.0\.0\.1:\d+$/);
    assert.ok(Number(row.memory_bytes) > 0 && Number(row.rows_read) <= 5_000_000);
    await made;
    assert.deepEqual(await running(server, "create table big"), []);
  });

  await t.step("hides secrets", async () => {
    const { dataset } = await server.exec("select query from query_activity() where 'password=''x1''' <> ''");
    assert.match(String(dataset![0][0]), /\*\*\*\*/);
  });

  await t.step("counts rows of tables, of all threads", async () => {
    const table = admin.query("select count() from big a cross join big b where a.x + b.x = -1").catch((error: Error) =>
      error
    );
    const row = await one("select count() from big");
    assert.equal(row.rows_to_read, 10_000_000);
    assert.equal((await server.exec(`cancel query ${row.query_id}`)).error, undefined);
    assert.match(String(await table), new RegExp(`query ${row.query_id} was cancelled by admin with CANCEL QUERY`));
  });

  await t.step("cancels another's query over HTTP with a clear error", async () => {
    const ended = server.exec(ENDLESS);
    const row = await one(ENDLESS);
    assert.equal(row.wire, "http");
    const { rows } = await admin.query(
      "select query_id, client_addr, state from pg_stat_activity where query like $1",
      [
        "select count()%",
      ],
    );
    assert.deepEqual(rows, [{ query_id: String(row.query_id), client_addr: "127.0.0.1", state: "active" }]);
    await admin.query(`CANCEL QUERY ${row.query_id}`);
    assert.equal((await ended).error, `query ${row.query_id} was cancelled by admin with CANCEL QUERY`);
    await until("the query is gone", async () => (await running(server, ENDLESS)).length === 0);
  });

  await t.step("cancels by cancel_query()", async () => {
    const ended = server.exec(ENDLESS);
    const { query_id: id } = await one(ENDLESS);
    assert.deepEqual((await server.exec(`select cancel_query(${id})`)).dataset, [[true]]);
    assert.match((await ended).error!, new RegExp(`query ${id} was cancelled by admin`));
  });

  await t.step("cancels by cancel_query() of a column", async () => {
    const queries = [1, 2, 3].map((n) => ENDLESS.replace("count()", `count() c${n}`));
    const ended: ReturnType<typeof server.exec>[] = [], ids: unknown[] = [];
    for (const query of queries) {
      ended.push(server.exec(query));
      // The last one may wait for a thread.
      ids.push((await until("the query runs", async () => (await running(server, query))[0])).query_id);
    }
    const cancelled = async (sql: string) => (await server.exec(sql)).dataset;
    const rows = "from query_activity() where query like 'select count() c_ %' and query not like '%cancel_query%'";
    // The rows of the result only.
    assert.deepEqual(await cancelled(`select cancel_query(query_id) ${rows} order by query_id limit 1`), [[true]]);
    assert.match((await ended[0]).error!, new RegExp(`query ${ids[0]} was cancelled by admin`));
    await until("the first is gone", async () => (await running(server, queries[0])).length === 0);
    assert.equal((await running(server, queries[1])).length, 1);
    assert.deepEqual(await cancelled(`select query_id, cancel_query(query_id) c ${rows} order by 1 desc`), [
      [ids[2], true],
      [ids[1], true],
    ]);
    for (const query of ended) assert.match((await query).error!, /was cancelled by admin/);
    // The statement itself goes on.
    assert.deepEqual(await cancelled("select cancel_query(query_id) from query_activity()"), [[false]]);
    assert.deepEqual(await cancelled("select cancel_query(x) c, x from long_sequence(2)"), [[false, 1], [false, 2]]);
    for (
      const refused of [
        "select x from long_sequence(2) where cancel_query(x) limit 1",
        "select x from long_sequence(2) where x > 1 or cancel_query(x)",
        "select case when x > 1 then cancel_query(x) end from long_sequence(2)",
        "select cancel_query(x), cancel_query(1) from long_sequence(2)",
      ]
    ) {
      assert.match((await server.exec(refused)).error!, /under a condition or below LIMIT is not supported/);
    }
  });

  await t.step("cancels by cancel_query() of the rows that the other conditions let pass", async () => {
    const queries = [1, 2].map((n) => ENDLESS.replace("count()", `count() w${n}`));
    const ended: ReturnType<typeof server.exec>[] = [], ids: unknown[] = [];
    for (const query of queries) {
      ended.push(server.exec(query));
      ids.push((await until("the query runs", async () => (await running(server, query))[0])).query_id);
    }
    const rows = "from query_activity() where cancel_query(query_id) and query like";
    assert.deepEqual((await server.exec(`select query_id ${rows} 'select count() w1 %'`)).dataset, [[ids[0]]]);
    assert.match((await ended[0]).error!, /was cancelled by admin/);
    await until("the first is gone", async () => (await running(server, queries[0])).length === 0);
    assert.equal((await running(server, queries[1])).length, 1);
    assert.deepEqual((await server.exec(`select count() ${rows} 'select count() w2 %'`)).dataset, [[1]]);
    assert.match((await ended[1]).error!, /was cancelled by admin/);
  });

  await t.step("lets read-only users cancel their own queries", async () => {
    const reader = await connected(server, "user", "quest");
    const other = server.exec(ENDLESS);
    const { query_id: id } = await one(ENDLESS);
    await assert.rejects(reader.query(`cancel query ${id}`), { code: "42501" });
    await assert.rejects(reader.query(`select cancel_query(${id})`), { code: "42501" });
    await admin.query(`cancel query ${id}`);
    await other;
    const second = await connected(server, "user", "quest");
    const own = second.query(ENDLESS).catch((error: Error) => error);
    await reader.query(`cancel query ${(await one(ENDLESS)).query_id}`);
    assert.match(String(await own), /was cancelled by user/);
    await Promise.all([reader.end(), second.end()]);
  });

  const refused: [statement: string, error: RegExp, position: number][] = [
    ["cancel query 999999", /query 999999 does not exist or has ended/, 13],
    ["cancel query 'x'", /needs the number of a query/, 13],
    ["cancel query", /needs the number of a query/, 7],
    ["cancel query -1", /needs the number of a query/, 13],
    ["cancel query 1 2", /expected the end of the statement/, 15],
  ];
  for (const [statement, error, position] of refused) {
    await t.step(`refuses ${statement}`, async () => {
      const reply = await server.exec(statement);
      assert.match(reply.error!, error);
      assert.equal(reply.position, position);
    });
  }

  await t.step("reports the cancel to a client of the PostgreSQL wire", async () => {
    const notices: string[] = [];
    admin.on("notice", ({ message }: { message?: string }) => notices.push(message!));
    const options = "-c client_min_messages=info";
    const asked = new pg.Client({
      ...{ host: "127.0.0.1", port: server.pgPort, user: "admin", password: "quest", database: "qdb", options },
    });
    await asked.connect();
    const askedNotices: string[] = [];
    asked.on("notice", ({ message }: { message?: string }) => askedNotices.push(message!));
    await admin.query("set client_min_messages to info");
    await Promise.all([admin, asked].map(async (client) => {
      await client.query("set statement_timeout to '6s'");
      await assert.rejects(client.query(ENDLESS), /time-out/);
    }));
    await asked.end();
    assert.equal(askedNotices.length > 0, true);
    assert.match(notices[0], /^query \d+: running, [\d,]+ of 6,000,000 rows read \(\d+ %\), \d+ MiB of memory$/);
    assert.ok(notices.length <= 2);
  });

  await admin.end();
});
