/** User files: replaced between two queries, and with columns of unsupported types. */
import { DuckDBInstance } from "@duckdb/node-api";
import assert from "node:assert/strict";
import { startServer } from "../server.ts";

Deno.test("read_parquet() reads a replaced file anew, and names the columns that it leaves out", async () => {
  await using server = await startServer();
  const directory = `${server.root}/import`;
  await Deno.mkdir(directory, { recursive: true });
  const duck = await (await DuckDBInstance.create(":memory:")).connect();
  const write = (columns: string) => duck.run(`copy (select ${columns}) to '${directory}/f.parquet' (format parquet)`);
  const sql = "select * from read_parquet('f.parquet')";

  await write("1 as a");
  const before = await server.exec(sql);
  assert.deepEqual([before.columns, before.dataset], [[{ name: "a", type: "INT" }], [[1]]]);
  await write("'x' as b, 2.5::double as a, map {'k': 1} as m");
  const after = await server.exec(sql);
  assert.deepEqual(after.columns, [{ name: "b", type: "VARCHAR" }, { name: "a", type: "DOUBLE" }]);
  assert.deepEqual(after.dataset, [["x", 2.5]]);
  const notices = (after as { notices?: string[] }).notices;
  assert.deepEqual(notices, ["f.parquet: * omits columns of unsupported types: m (MAP)"]);
  const refused = await server.exec("select m from read_parquet('f.parquet')");
  assert.equal(refused.error, "column m of f.parquet cannot be read: its type MAP is not supported");
  assert.equal(refused.position, 7);
});
