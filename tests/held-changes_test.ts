/** Changes that are held in memory end at the memory limit: those of a transaction, and those made while files are being copied. */
import assert from "node:assert/strict";
import { connectedPg } from "./pg-client.ts";
import { startServer } from "./server.ts";

const ROWS = 1_000_000;

Deno.test("changes that are held in memory are refused above cairo.query.memory.limit, which the error names", async (t) => {
  await using server = await startServer({ env: { SVC_CAIRO_QUERY_MEMORY_LIMIT: `${6 << 20}` } });
  const client = await connectedPg(server);
  const made = `select x, timestamp_sequence(0, 1000000) ts from long_sequence(${ROWS})`;
  await client.query(`create table t as (${made}) timestamp(ts) partition by day`);
  const state = async () => (await client.query("select count() n, sum(x) s from t")).rows[0];
  const before = await state();
  const refused = { code: "53200", message: /more than 6291456 bytes \(cairo\.query\.memory\.limit\)/ };
  const changes = [
    `insert into t ${made}`,
    `create table made as (${made}) timestamp(ts) partition by day`,
    "update t set x = x + 1",
    "delete from t where x > 0",
  ];
  try {
    for (const sql of changes) {
      await t.step(`in a transaction: ${sql}`, async () => {
        await client.query("begin");
        await assert.rejects(client.query(sql), refused);
        await client.query("rollback");
        assert.deepEqual(await state(), before);
      });
    }
    await t.step("while files are copied", async () => {
      await client.query("checkpoint create");
      try {
        for (const sql of changes.slice(2)) await assert.rejects(client.query(sql), refused, sql);
        await client.query("update t set x = x where x < 10");
      } finally {
        await client.query("checkpoint release");
      }
      assert.deepEqual(await state(), before);
    });
    await t.step("but not otherwise", async () => {
      await client.query("update t set x = x + 1");
      assert.equal(Number((await state()).s), Number(before.s) + ROWS);
    });
  } finally {
    await client.end();
  }
});
