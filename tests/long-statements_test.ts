/** Long statements are planned on another thread, with the same results, and block nobody else. */
import assert from "node:assert/strict";
import { parquetWriteBuffer } from "hyparquet-writer";
import pg from "pg";
import { startServer, type TestServer } from "./server.ts";
import { pgClient } from "./pg-client.ts";

const list = (count: number, item: (k: number) => string, separator = ", ") =>
  Array.from({ length: count }, (_, k) => item(k)).join(separator);

async function connect(server: TestServer): Promise<pg.Client> {
  const client = pgClient(server);
  client.on("error", () => {});
  await client.connect();
  return client;
}

async function longStatements(server: TestServer): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${server.minPort}/metrics`)).text();
  return Number(/^service_long_statements_total (\S+)$/m.exec(text)![1]);
}

/** Statements with `count` parts. Short and long ones must give the same answers. */
const SHAPES: { title: string; sql: (count: number) => string; rows: (count: number) => unknown }[] = [
  {
    title: "columns",
    sql: (count) => `select ${list(count, (k) => `a + ${k}`)} from n where a = 1`,
    rows: (count) => [Array.from({ length: count }, (_, k) => `${k + 1}`)],
  },
  {
    title: "conditions",
    sql: (count) => `select a from n where ${list(count, (k) => `(a = ${k + 1} and s = 's${k + 1}')`, " or ")}`,
    rows: (count) => Array.from({ length: Math.min(count, 100) }, (_, k) => [`${k + 1}`]),
  },
  {
    title: "branches of CASE",
    sql: (count) => `select sum(case ${list(count, (k) => `when a = ${k} then ${k}`, " ")} else 0 end) from n`,
    rows: (count) => [[`${list(Math.min(count, 101), String, "+").split("+").reduce((sum, x) => sum + Number(x), 0)}`]],
  },
  {
    title: "branches of CASE with values that can fail",
    sql: (count) =>
      `select sum(v) from (select case ${
        list(count, (k) => `when a = ${k + 1} then cast(a as decimal(10,0)) / (a - ${k})::decimal(10,0)`, " ")
      } else 0m end v from n)`,
    rows: (
      count,
    ) => [[`${list(Math.min(count, 100), (k) => `${k + 1}`, "+").split("+").reduce((sum, x) => sum + Number(x), 0)}`]],
  },
  {
    title: "queries of UNION ALL",
    sql: (count) => list(count, (k) => `select a + ${k} from n where a = 1`, " union all "),
    rows: (count) => Array.from({ length: count }, (_, k) => [`${k + 1}`]),
  },
  {
    title: "aggregates by the clock and metadata",
    sql: (count) =>
      `select ${
        list(count, (k) => `count() + ${k}`)
      } from (select * from n where ts < now()) join tables() t on t.table_name = 'n'`,
    rows: (count) => [Array.from({ length: count }, (_, k) => `${100 + k}`)],
  },
];

Deno.test("long statements", async (t) => {
  await using server = await startServer({ env: { SVC_METRICS_ENABLED: "true", SVC_SHARED_WORKER_COUNT: "2" } });
  await server.exec(
    "create table n as (select x a, 's' || x s, timestamp_sequence(0, 1000000) ts from long_sequence(100)) timestamp(ts) partition by day",
  );
  const client = await connect(server);
  const rowsOf = async (query: string, values: unknown[] = []) =>
    (await client.query({ text: query, values, rowMode: "array" })).rows;

  for (const { title, sql, rows } of SHAPES) {
    await t.step(`give the same answers as short ones: ${title}`, async () => {
      const before = await longStatements(server);
      assert.deepEqual(await rowsOf(sql(3)), rows(3));
      assert.equal(await longStatements(server), before);
      assert.deepEqual(await rowsOf(sql(200)), rows(200));
      assert.equal(await longStatements(server), before + 1);
      const { rows: lines } = await client.query(`explain ${sql(200)}`);
      assert.match(JSON.stringify(lines), /Scan n/);
      const heads = (explained: pg.QueryResult) =>
        explained.rows.map((row: { "QUERY PLAN": string }) => row["QUERY PLAN"].replace(/ \[.*|\d{4}-\S+Z/s, ""));
      for (const count of [200, 390]) {
        const plain = await client.query(`explain ${sql(count)}`);
        const analyzed = await client.query(`explain analyze ${sql(count)}`);
        assert.deepEqual(heads(analyzed).slice(0, -1), heads(plain), `${count}`);
        assert.match(analyzed.rows[0]["QUERY PLAN"], new RegExp(`gave ${(rows(count) as unknown[]).length} rows`));
        assert.match(JSON.stringify(analyzed.rows), /read \d+ rows.*Execution time/);
      }
    });
  }

  await t.step("are not planned in quadratic time, if values of a CASE can fail", async () => {
    const { sql, rows } = SHAPES.find(({ title }) => title === "branches of CASE with values that can fail")!;
    // The time-out is a minute.
    assert.deepEqual(await rowsOf(sql(1_000)), rows(1_000));
  });

  await t.step("accept new parameters on each execution", async () => {
    const text = `select ${list(200, (k) => `a + $1::long + ${k}`)} from n where a = $2`;
    for (const [first, second] of [[10, 1], [20, 2]]) {
      const expected = Array.from({ length: 200 }, (_, k) => `${first + second + k}`);
      assert.deepEqual(await rowsOf(text, [first, second]), [expected]);
    }
  });

  await t.step("are analyzed with their parameters, and with their changes", async () => {
    const text = `explain analyze select ${list(3000, (k) => `a + $1::long + ${k}`)} from n where a <= $2`;
    for (const count of [1, 20]) {
      const { rows } = await client.query({ text, values: [count, count] });
      assert.match(rows[0]["QUERY PLAN"], new RegExp(`gave ${count} rows`));
      assert.match(rows[0]["QUERY PLAN"], new RegExp(`\\(a \\+ ${count}\\) \\+ 2999\\)|a \\+ ${2999 + count}`));
    }
    const made = await client.query(
      `explain analyze create table x as (select ${list(1500, (k) => `a + ${k} c${k}`)} from n)`,
    );
    assert.match(made.rows[0]["QUERY PLAN"], /^Create table x$/);
    assert.match(made.rows.at(-2)["QUERY PLAN"], /^Changed 100 rows/);
    assert.deepEqual(await rowsOf("select sum(c1499) from x"), [[`${5050 + 100 * 1499}`]]);
  });

  await t.step("change tables", async () => {
    const insert = await client.query(
      `create table m (a long, b double, c symbol, d varchar, e timestamp);
       insert into m values ${list(3000, (k) => `(${k}, null, 's${k % 7}', '${k};', ${k}::timestamp)`)};
       update m set b = ${list(300, (k) => `a + ${k}`, " + ")} where a < 2;`,
    );
    assert.deepEqual((insert as unknown as pg.QueryResult[]).map(({ command }) => command), [
      "OK",
      "INSERT",
      "UPDATE",
    ]);
    assert.deepEqual(
      await rowsOf("select count(), count(b), sum(b), count_distinct(c), max(length(d)), max(e)::long from m"),
      [["3000", "2", 2 * 300 * 299 / 2 + 300, "7", 5, "2999"]],
    );
    await client.query(`create table w as (select ${list(300, (k) => `a + ${k} c${k}`)} from n)`);
    assert.deepEqual(await rowsOf("select sum(c299) from w"), [[`${5050 + 100 * 299}`]]);
  });

  await t.step("and those of Parquet files with long footers", async () => {
    const name = (k: number) => `column_${k}_${"x".repeat(200)}`;
    const columnData = Array.from(
      { length: 1_000 },
      (_, k) => ({ name: name(k), data: [k, 2 * k], type: "INT32" as const }),
    );
    await Deno.mkdir(`${server.root}/import`, { recursive: true });
    await Deno.writeFile(`${server.root}/import/wide.parquet`, new Uint8Array(parquetWriteBuffer({ columnData })));
    const before = await longStatements(server);
    assert.deepEqual(await rowsOf(`select sum(${name(999)}), count() from read_parquet('wide.parquet')`), [[
      "2997",
      "2",
    ]]);
    assert.ok(await longStatements(server) > before);
    const missing = await refusal(client.query(`select nothing from read_parquet('wide.parquet')`));
    assert.match(`${missing.message} at ${missing.position}`, /nothing.* at 8$/);
  });

  await t.step("are refused at the same positions", async () => {
    const refused: ((count: number) => string)[] = [
      (count) => `select ${list(count, () => "a")}, nothing from n`,
      (count) => `select ${list(count, () => "a")} from n where where`,
      (count) => `select ${list(count, () => "a")} from n join nothing on a = a`,
      (count) => `select ${list(count, () => "a")} from n where a in (1, nothing)`,
      (count) => `select ${list(count, () => "a")} from n where s in ('a', 'b`,
    ];
    for (const sql of refused) {
      const [short, long] = [await refusal(client.query(sql(3))), await refusal(client.query(sql(600)))];
      assert.equal(long.message, short.message);
      assert.equal(long.code, short.code);
      assert.equal(Number(long.position), Number(short.position) + sql(600).length - sql(3).length, long.message);
    }
    const doubling = `with c0 as (select a from n), ${
      list(60, (k) => `c${k + 1} as (select x.a from c${k} x cross join c${k} y)`)
    } select * from c60`;
    assert.match((await server.exec(doubling)).error ?? "", /too complex: more than \d+ expressions/);
  });

  await t.step("are cancelled and timed out during planning, and waiting statements continue", async () => {
    // Takes a second. The first one is cancelled; the second times out before it starts.
    const long = `select ${list(12_000, (k) => `a + ${k}`)} from n`;
    const other = await connect(server);
    await other.query("set statement_timeout = 1");
    const timedOut = refusal(other.query(long));
    const cancelled = refusal(client.query(long));
    assert.equal((await timedOut).code, "57014");
    const { processID, secretKey } = client as unknown as { processID: number; secretKey: number };
    for (let isOver = false; !isOver;) {
      await cancel(server.pgPort, processID, secretKey);
      isOver = await Promise.race([cancelled.then(() => true), new Promise<false>((go) => setTimeout(go, 20, false))]);
    }
    assert.equal((await cancelled).code, "57014");
    assert.deepEqual((await server.exec("select 1")).dataset, [[1]]);
    assert.deepEqual(await rowsOf(SHAPES[0].sql(200)), SHAPES[0].rows(200));
    await other.end();
  });
  await client.end();
});

function refusal(statement: Promise<unknown>): Promise<pg.DatabaseError> {
  return statement.then(() => assert.fail("is refused"), (error) => error);
}

async function cancel(port: number, processId: number, secretKey: number): Promise<void> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const message = new DataView(new ArrayBuffer(16));
  [16, 80877102, processId, secretKey].forEach((value, k) => message.setInt32(4 * k, value));
  await connection.write(new Uint8Array(message.buffer));
  connection.close();
}
