/** UPDATE and DELETE of more rows than go through the log. */
import assert from "node:assert/strict";
import { startServer, type TestServer } from "./server.ts";

const setUp = (server: TestServer) => async (sql: string) => {
  const reply = await server.exec(sql);
  assert.equal(reply.error, undefined, sql);
  return reply.dataset;
};

Deno.test("an UPDATE of many rows appears at once, while others read and insert, and survives SIGKILL", async () => {
  const root = Deno.makeTempDirSync({ prefix: "sundial-" });
  const rows = 500_000;
  const totals = "select count(), sum(x), count_distinct(s), sum(length(note)) from t";
  let left: unknown[];
  // 2 MiB are reached after a part of them.
  const update = "update t set note = 'a longer text of row ' || x, s = 'new' || x % 3, x = -x";
  {
    const server = await startServer({ root });
    const exec = setUp(server);
    await exec(
      `create table t as (select timestamp_sequence('2024-01-01', 1000000) ts, ('s' || x % 5)::symbol s, '' note, x` +
        ` from long_sequence(${rows})) timestamp(ts) partition by day wal`,
    );
    let over = false;
    const updated = exec(update).then(() => over = true);
    const inserted = exec("insert into t values ('2024-01-03T00:00:00.5Z', 'own', 'meanwhile', 0)");
    const seen = new Set<unknown>();
    while (!over) {
      seen.add((await exec("select sum(x) from t"))![0][0]);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await Promise.all([updated, inserted]);
    const sum = rows * (rows + 1) / 2;
    for (const value of seen) assert.equal(Math.abs(value as number), sum);
    const [[count, negative, symbols, length]] = (await exec(totals))!;
    assert.deepEqual([count, negative, symbols], [rows + 1, -sum, 4]);
    assert.ok(length as number > 20 * rows);

    // Rows in another order than that of the table, and only some of them.
    await exec(`create table other as (select -x y, x % 2 = 0 even from t where x < 0 order by y desc)`);
    await exec("update t set x = y, note = note || ' again and again' from other where t.x = -y and even");
    const even = rows / 2 * (rows / 2 + 1);
    assert.deepEqual((await exec("select sum(x), count() from t where note like '%again'"))![0], [even, rows / 2]);

    // While files are copied, changes go through the log.
    await exec("checkpoint create");
    await exec(update);
    await exec("checkpoint release");
    assert.equal((await exec("select sum(x) from t"))![0][0], sum - 2 * even);

    // A client that leaves gets all of its changes or none.
    for (const afterMs of [200, 600]) {
      const before = (await exec("select sum(x) from t"))![0][0] as number;
      const leaving = new AbortController();
      const query = new URLSearchParams({ query: update });
      const asked = fetch(`${server.http}/exec?${query}`, { signal: leaving.signal }).then((reply) => reply.text());
      setTimeout(() => leaving.abort(), afterMs);
      await asked.catch(() => {});
      // Waits for the lock of the table.
      await exec("delete from t where x is null");
      const after = (await exec("select sum(x) from t"))![0][0];
      assert.equal(Math.abs(after as number), Math.abs(before));
    }
    left = (await exec(totals))![0];
    server.process.kill("SIGKILL");
    await server.process.status;
  }
  await using server = await startServer({ root });
  const exec = setUp(server);
  assert.deepEqual((await exec(totals))![0], left!);
  await server.stop();
  Deno.removeSync(root, { recursive: true });
});

Deno.test("an UPDATE and a DELETE of many rows that sub-queries choose", async () => {
  await using server = await startServer();
  const exec = setUp(server), rows = 500_000;
  await exec(
    `create table t as (select timestamp_sequence('2024-01-01', 1000000) ts, '' note, x from long_sequence(${rows}))` +
      " timestamp(ts) partition by day wal",
  );
  await exec("create table other as (select -x y from t where x % 2 = 0 order by y desc)");
  await exec(
    "update t set note = 'a text of row ' || x, x = (select max(x) from t) + x where -x in (select y from other)",
  );
  const sum = (count: number) => count * (count + 1) / 2, even = 2 * sum(rows / 2);
  const totals = "select count(), sum(x), sum(length(note)) > 0 from t";
  assert.deepEqual((await exec(totals))![0], [rows, sum(rows) + rows * rows / 2, true]);
  assert.deepEqual((await exec("select sum(x), count() from t where note != ''"))![0], [
    even + rows * rows / 2,
    rows / 2,
  ]);
  await exec(`delete from t where x - ${rows} in (select -y from other)`);
  assert.deepEqual((await exec(totals))![0], [rows / 2, sum(rows) - even, false]);
});
