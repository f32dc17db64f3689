import assert from "node:assert/strict";
import { importStatement } from "./mapping.ts";

const mapping = (source: string, found: string, name = source, type = found, isIncluded = true) => ({
  source,
  found,
  name,
  type,
  isIncluded,
});
const target = {
  file: "f.parquet",
  table: 'my "table"',
  mappings: [
    mapping("ts", "TIMESTAMP"),
    mapping("sym", "VARCHAR", "symbol", "SYMBOL"),
    mapping("no", "LONG", "no", "LONG", false),
  ],
  timestamp: "ts",
  partitionBy: "DAY",
};
const ROWS = `select "ts" as "ts", "sym"::symbol as "symbol" from read_parquet('f.parquet')`;

Deno.test("a new table has the included columns, in order of time", () => {
  assert.equal(
    importStatement({ ...target, isNew: true }),
    `create table "my ""table""" as (${ROWS} order by "ts") timestamp("ts") partition by DAY`,
  );
  assert.equal(
    importStatement({ ...target, isNew: true, timestamp: "no" }),
    `create table "my ""table""" as (${ROWS})`,
  );
});

Deno.test("rows are added to a table by its column names", () => {
  assert.equal(importStatement({ ...target, isNew: false }), `insert into "my ""table""" ("ts", "symbol") ${ROWS}`);
});
