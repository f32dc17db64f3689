import assert from "node:assert/strict";
import { oidOfText } from "./object-ids.ts";

const catalogue = {
  table: (name: string) => name.toLowerCase() === "trades" ? { schema: { id: 7 } } as never : undefined,
  tables: () => [],
};

Deno.test("oidOfText() knows tables, types and numbers", () => {
  const cases: [type: string, text: string, oid: number][] = [
    ["regclass", "pg_class", 1259],
    ["regclass", "pg_catalog.pg_namespace", 2615],
    ["regclass", "trades", 16_391],
    ["regclass", 'public."Trades"', 16_391],
    ["regtype", "double precision", 701],
    ["regtype", "varchar", 1043],
    ["regproc", "array_in", 750],
    ["regprocedure", "array_in(cstring, oid, integer)", 750],
    ["oid", "23", 23],
  ];
  for (const [type, text, oid] of cases) assert.equal(oidOfText(type, text, { catalogue }, 0), oid, text);
});

for (
  const [type, text, sqlState] of [["regclass", "nothing", "42P01"], ["regtype", "hstore", "22P02"], [
    "oid",
    "x",
    "22P02",
  ]]
) {
  Deno.test(`oidOfText() refuses ${text} as ${type}`, () =>
    assert.throws(() => oidOfText(type, text, { catalogue }, 5), { sqlState, position: 5 }));
}
