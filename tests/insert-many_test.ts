/** INSERT ... SELECT of more rows than go through the log. */
import assert from "node:assert/strict";
import { pgClient } from "./pg-client.ts";
import { startServer, type TestServer } from "./server.ts";

Deno.test("many rows of an INSERT appear at once, in order, with a table that is written meanwhile, and survive SIGKILL", async () => {
  const root = Deno.makeTempDirSync({ prefix: "sundial-" });
  const rows = 400_000;
  // 16 MiB are reached at about 370,000 rows.
  const select =
    `select timestamp_sequence('2024-01-01', 1000000) ts, ('s' || x % 5)::symbol s, 'text of row ' || x note, x` +
    ` from long_sequence(${rows})`;
  const totals = "select count(), sum(x), count_distinct(s), min(note), max(ts) from t";
  const late = "select count() from (select ts, lag(ts) over () before from t) where ts < before";
  {
    const server = await startServer({ root });
    const exec = async (sql: string) => {
      const reply = await server.exec(sql);
      assert.equal(reply.error, undefined, sql);
      return reply.dataset;
    };
    await exec("create table t (ts timestamp, s symbol, note varchar, x long) timestamp(ts) partition by day wal");
    await exec("insert into t values ('2024-01-02T00:00:00.500000Z', 'own', 'before', 1)");
    let over = false;
    const inserted = exec(`insert into t ${select}`).then(() => over = true);
    const seen = new Set<unknown>();
    for (let k = 0; !over; k++) {
      await exec(`insert into t values ('2024-03-01T00:00:00Z', 'own', 'meanwhile', 0)`);
      const [[count, own]] = (await exec("select count(), sum(case when s = 'own' then 1 else 0 end) from t"))!;
      seen.add(Number(count) - Number(own));
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await inserted;
    for (const count of seen) assert.ok(count === 0 || count === rows, `${count} rows were visible`);
    await exec("delete from t where note = 'meanwhile'");
    assert.deepEqual(await exec(late), [[0]]);
    // Late rows lie between stored ones.
    await exec(`insert into t ${select.replace("2024-01-01", "2024-01-01T00:00:00.300000Z")}`);
    assert.deepEqual(await exec(late), [[0]]);
    const { error } = await server.exec(`insert into t (x) select x from long_sequence(3000000)`);
    assert.match(error!, /timestamp/);
    const sum = rows * (rows + 1) + 1;
    assert.deepEqual((await exec(totals))![0].slice(0, 4), [2 * rows + 1, sum, 6, "before"]);
    server.process.kill("SIGKILL");
    await server.process.status;
  }
  await using server = await startServer({ root });
  const { dataset } = await server.exec(totals);
  assert.deepEqual(dataset![0].slice(0, 2), [2 * rows + 1, rows * (rows + 1) + 1]);
  assert.deepEqual((await server.exec(late)).dataset, [[0]]);
  await server.stop();
  Deno.removeSync(root, { recursive: true });
});

Deno.test("late rows of an INSERT are merged while others commit, and after SIGKILL all of them are there, or none", async () => {
  const root = Deno.makeTempDirSync({ prefix: "sundial-" });
  const rows = 600_000, step = 500_000;
  const select = (startMicros: number, count: number, note: string) =>
    `select timestamp_sequence(${startMicros}, ${step * rows / count}) ts, ('s' || x % 5)::symbol s,` +
    ` '${note} ' || x note, x from long_sequence(${count})`;
  const isInOrder = "select count() from (select ts, lag(ts) over () before from t) where ts < before";
  // Rows of a text each are in other segments each time.
  const perNote = "select substring(note, 1, 2), count(), sum(x), min(ts), max(ts) from t order by 1";
  const of = (server: TestServer) => async (sql: string) => {
    const reply = await server.exec(sql);
    assert.equal(reply.error, undefined, sql);
    return reply.dataset!;
  };
  let before: unknown[][], late: Promise<unknown>;
  {
    const server = await startServer({ root });
    const exec = of(server);
    await exec(`create table t as (${select(0, rows, "a")}) timestamp(ts) partition by day wal`);
    // Each of these is in the middle of a segment that is merged.
    let over = false;
    const commits = (async () => {
      for (let k = 1; !over; k++) {
        await exec(`insert into t values (${(k * 7_919_000_001) % (step * rows)}, 's9', 'b', 1)`);
      }
    })();
    await exec(`insert into t ${select(1, 400_000, "c")}`);
    over = true;
    await commits;
    assert.deepEqual(await exec(isInOrder), [[0]]);
    before = await exec(perNote);
    assert.deepEqual(before.map(([note]) => note), ["a ", "b", "c "]);
    assert.deepEqual([before[0][1], before[2][1]], [rows, 400_000]);
    late = exec(`insert into t ${select(2, 500_000, "d")}`).catch(() => {});
    // Some of them are in segments of their own, or merged.
    await new Promise((resolve) => setTimeout(resolve, 1500));
    server.process.kill("SIGKILL");
    await Promise.all([late, server.process.status]);
  }
  await using server = await startServer({ root });
  const exec = of(server);
  const after = await exec(perNote);
  assert.deepEqual(after.slice(0, 3), before);
  assert.ok(after.length === 3 || after[3][1] === 500_000);
  await exec(`insert into t ${select(3, 400_000, "e")}`);
  assert.deepEqual((await exec(perNote)).slice(0, -1), after);
  assert.deepEqual(await exec(isInOrder), [[0]]);
  await server.stop();
  Deno.removeSync(root, { recursive: true });
});

const older = { message: /^the row is older than the table's last row/ };
const day = (k: number) => `2024-01-0${k}T00:00:00.000000Z`;

async function clientWithTable(server: TestServer) {
  const client = pgClient(server);
  client.on("error", () => {});
  await client.connect();
  await client.query("create table n (ts timestamp, x long) timestamp(ts)");
  return client;
}

Deno.test("a table without partitions accepts rows in the order of time, whichever way INSERT gives them", async () => {
  await using server = await startServer();
  const client = await clientWithTable(server);
  await client.query("insert into n values ($1, 1)", [day(5)]);
  const refused: [sql: string, values: unknown[], position: number][] = [
    [`insert into n values ('${day(4)}', 2)`, [], 23],
    ["insert into n values ($1, $2)", [day(4), 2], 23],
    ["insert into n values ($1, 2), ($2, 3)", [day(6), day(5)], 32],
    [`insert into n (x, ts) values (2, '${day(7)}'), (3, $1)`, [day(6)], 70],
  ];
  for (const [text, values, position] of refused) {
    await assert.rejects(client.query(text, values), { ...older, position: `${position}` }, text);
  }
  // Bound before the table has later rows.
  const prepared = { name: "p", text: `insert into n values ('${day(6)}', 4)` };
  await client.query(prepared);
  await client.query("insert into n values ($1, 5), ($2, 6)", [day(6), day(7)]);
  await assert.rejects(client.query(prepared), older);
  await client.query("begin");
  await client.query("insert into n values ($1, 7)", [day(9)]);
  await assert.rejects(client.query("insert into n values ($1, 8)", [day(8)]), older);
  await client.query("rollback");
  await client.query("insert into n values ($1, 9)", [day(8)]);
  assert.deepEqual((await server.exec("select x from n")).dataset, [[1], [4], [5], [6], [9]]);
  await client.end();
});

Deno.test("a transaction knows the order of its own rows in a table without partitions, after savepoints and INSERT … SELECT, too", async () => {
  await using server = await startServer();
  const client = await clientWithTable(server);
  const insert = (k: number, columns = "(ts, x)") =>
    client.query(`insert into n ${columns} values (${columns === "(ts, x)" ? "$1, $2" : "$2, $1"})`, [day(k), k]);
  const refused = async (k: number, columns?: string) => {
    await client.query("savepoint refused");
    await assert.rejects(insert(k, columns), older);
    await client.query("rollback to savepoint refused");
  };
  await insert(2);
  await client.query("begin");
  await refused(1);
  await insert(3);
  await insert(4, "(x, ts)");
  await refused(3);
  await client.query("savepoint s");
  await insert(6);
  await client.query("rollback to savepoint s");
  await insert(5);
  await refused(4, "(x, ts)");
  await client.query(`insert into n select '${day(7)}'::timestamp, x + 6 from long_sequence(1)`);
  await refused(6);
  await insert(8);
  assert.deepEqual((await client.query("select x from n")).rows.map(({ x }: { x: string }) => Number(x)), [
    2,
    3,
    4,
    5,
    7,
    8,
  ]);
  await refused(7);
  await insert(9);
  await client.query("commit");
  assert.deepEqual((await server.exec("select x from n")).dataset, [[2], [3], [4], [5], [7], [8], [9]]);
  await client.end();
});
