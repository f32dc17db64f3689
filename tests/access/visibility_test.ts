/** Tables and columns that a user may not read: what statements, lists, plans and errors reveal, in short and in long statements. */
import assert from "node:assert/strict";
import { startProtected } from "./server.ts";

const ALICE = { name: "alice", password: "alice's" };
const SETUP = [
  "create table trades (ts timestamp, symbol symbol, price double) timestamp(ts) partition by day",
  "insert into trades values ('2024-01-01', 'BTC', 1.5)",
  "create table secrets (a int)",
  "create user alice with password 'alice''s'",
  "grant HTTP, PGWIRE to alice",
  "grant SELECT on trades(symbol) to alice",
];

/** More words than main takes: another thread plans the statement. */
const MANY = Array.from({ length: 120 }, (_, k) => `'${k}' <> 'x'`).join(" and ");

for (const [title, condition] of [["short", "1 = 1"], ["long", MANY]]) {
  Deno.test(`what ${title} statements tell of tables and columns without permission`, async () => {
    await using server = await startProtected();
    await server.set(...SETUP);
    const ask = (sql: string) => server.sql(sql, ALICE);
    const where = `where ${condition}`;
    const rows = async (sql: string) => {
      const { dataset, error } = await ask(sql);
      return error ?? dataset;
    };

    assert.deepEqual(await rows(`select symbol, ts from trades ${where}`), [["BTC", "2024-01-01T00:00:00.000000Z"]]);
    // A hidden column is unknown, wherever it is named.
    for (
      const sql of [
        "select price from trades where #",
        "select symbol from trades where price > 1 and #",
        "select s from (select price as s from trades where #)",
        "select symbol, max(price) from trades where # group by symbol",
        "select symbol from trades where # order by price",
        "explain select price from trades where #",
      ]
    ) {
      const hidden = await ask(sql.replace("#", condition));
      const unknown = await ask(sql.replace("#", condition).replaceAll("price", "prico"));
      assert.deepEqual(
        [hidden.status, hidden.error, hidden.position],
        [unknown.status, unknown.error?.replaceAll("prico", "price"), unknown.position],
        sql,
      );
      assert.doesNotMatch(unknown.error!, /price/, "no hint to a hidden column");
    }
    assert.match((await ask(`select * from trades ${where}`)).error!, /there is no column price/);
    const denied = await ask(`select a from secrets ${where}`);
    assert.deepEqual([denied.status, denied.error], [403, "Access denied for alice [SELECT on secrets]"]);
    assert.doesNotMatch((await ask(`select a from secret ${where}`)).error!, /secrets/);

    assert.deepEqual(await rows(`select table_name from tables() ${where}`), [["trades"]]);
    const names = "table_name, column_name from information_schema.columns";
    assert.deepEqual(
      await rows(`select ${names} where table_name in ('trades', 'secrets') and ${condition} order by column_name`),
      [["trades", "symbol"], ["trades", "ts"]],
    );
    assert.deepEqual(
      await rows(`select relname from pg_class where relname in ('trades', 'secrets') and ${condition}`),
      [["trades"]],
    );
    assert.deepEqual(await rows(`select "column" from (show columns from trades) ${where} order by 1`), [
      ["symbol"],
      ["ts"],
    ]);
    const plan = await rows(`explain select symbol from trades ${where}`);
    assert.match(JSON.stringify(plan), /symbol/);
    assert.doesNotMatch(JSON.stringify(plan), /price/);

    // The administrator's statement of the same text was planned for all; the permission is checked at each execution.
    const text = `select price from trades ${where}`;
    assert.deepEqual((await server.sql(text)).dataset, [[1.5]]);
    assert.equal((await ask(text)).error, (await ask(text.replace("price", "prico"))).error!.replace("prico", "price"));
    const client = await server.pg(ALICE);
    const prepared = () => client.query({ name: "q", text: `select symbol from trades ${where}` });
    assert.equal((await prepared()).rows.length, 1);
    await server.set("revoke SELECT on trades(symbol) from alice");
    await assert.rejects(prepared(), { code: "42501", message: "Access denied for alice [SELECT on trades]" });
    await client.end();
  });
}
