/** postgres.js against the real server, with its default options: it reads pg_type at connect. */
import assert from "node:assert/strict";
import { postgresJs } from "./postgres-js.ts";
import { startServer } from "../server.ts";

Deno.test("postgres.js", async (t) => {
  await using server = await startServer();
  const sql = postgresJs(server, { max: 2, onnotice() {} });

  await t.step("creates, inserts by parameters and selects", async () => {
    await sql`create table trades (symbol symbol, price double, amount long, ok boolean, note varchar, ts timestamp) timestamp(ts) partition by day`;
    const ts = new Date("2024-03-01T10:00:00.123Z");
    const inserted =
      await sql`insert into trades values (${"BTC-USD"}, ${61_000.5}, ${"9007199254740993"}, ${true}, ${"ä😀"}, ${ts})`;
    assert.equal(inserted.count, 1);
    await sql`insert into trades (symbol, price, ts) values (${"ETH-USD"}, ${null}, ${new Date(
      "2024-03-02T00:00:00Z",
    )})`;
    const rows = await sql`select * from trades where symbol = ${"BTC-USD"} and price > ${60_000}`;
    assert.deepEqual({ ...rows[0], ts: undefined }, {
      symbol: "BTC-USD",
      price: 61_000.5,
      amount: "9007199254740993",
      ok: true,
      note: "ä😀",
      ts: undefined,
    });
    assert.equal((await sql`select * from trades where price < ${0}`).count, 0);
    const [{ price, note }] = await sql`select price, note from trades where ts >= ${"2024-03-02"}`;
    assert.deepEqual([price, note], [null, null]);
  });

  await t.step("inserts many rows by its helper", async () => {
    const rows = Array.from(
      { length: 500 },
      (_, index) => ({
        symbol: `S${index % 7}`,
        price: index + 0.5,
        ts: new Date(Date.UTC(2024, 3, 1) + index * 1000),
      }),
    );
    const inserted = await sql`insert into trades ${sql(rows, "symbol", "price", "ts")}`;
    assert.equal(inserted.count, 500);
    const [{ n, total }] = await sql`select count() n, sum(price) total from trades where ts in '2024-04'`;
    assert.deepEqual([n, total], ["500", 125_000]);
  });

  await t.step("commits and rolls back", async () => {
    await sql`create table held (x int)`;
    await sql.begin(async (tx) => {
      await tx`insert into held values (${1})`;
      await tx`insert into held values (${2})`;
    });
    await assert.rejects(
      sql.begin(async (tx) => {
        await tx`insert into held values (${3})`;
        await tx`select * from nobody`;
      }),
      { code: "42P01" },
    );
    assert.deepEqual([...await sql`select count() n from held`], [{ n: "2" }]);
  });

  await t.step("uses savepoints", async () => {
    await sql.begin(async (tx) => {
      await tx`insert into held values (${4})`;
      await tx.savepoint((inner) => inner`select * from nobody`).catch((error) => assert.equal(error.code, "42P01"));
      await tx`insert into held values (${5})`;
    });
    assert.deepEqual([...await sql`select count() n from held`], [{ n: "4" }]);
  });

  await t.step("reads by a cursor, completely and partly", async () => {
    const sizes: number[] = [];
    await sql`select x from long_sequence(1000)`.cursor(300, (rows) => void sizes.push(rows.length));
    assert.deepEqual(sizes, [300, 300, 300, 100]);
    let seen = 0;
    for await (const rows of sql`select x from long_sequence(1000)`.cursor(10)) {
      seen += rows.length;
      if (seen >= 50) break;
    }
    assert.equal(seen, 50);
    await sql`select x from long_sequence(3)`.forEach(({ x }) => void (seen += Number(x)));
    assert.equal(seen, 56);
  });

  await t.step("describes a statement, runs plain texts, and cancels", async () => {
    const { types, columns } = await sql`select symbol, price from trades where price > ${1}`.describe();
    assert.deepEqual([types, columns.map(({ name, type }) => [name, type])], [[701], [["symbol", 1043], [
      "price",
      701,
    ]]]);
    const results = await sql.unsafe("select 1 x; select 2 x") as unknown as { x: number }[][];
    assert.deepEqual(results.map(([row]) => row.x), [1, 2]);
    const slow = sql`select count() from long_sequence(10000000) a cross join long_sequence(10000000) b`;
    setTimeout(() => slow.cancel(), 200);
    await assert.rejects(slow, { code: "57014" });
  });

  await t.step("reports errors with their position", async () => {
    await assert.rejects(sql`select nothing from trades`, { code: "42703", position: "8", severity: "ERROR" });
  });

  await sql.end();
});
