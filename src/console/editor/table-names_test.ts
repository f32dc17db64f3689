import assert from "node:assert/strict";
import { tablesIn } from "./table-names.ts";

const KNOWN = ["trades", "Quotes", "odd name"];

for (
  const [statement, expected] of [
    ["select  from trades", [["trades"]]],
    ["select t. from trades t where", [["trades", "t"]]],
    ["select * from trades as a asof join quotes b", [["trades", "a"], ["Quotes", "b"]]],
    ["select * from trades horizon join quotes range from 0s to 1s step 1s as h", [["trades"], ["Quotes"]]],
    ["select * from trades where price > ", [["trades"]]],
    ["update TRADES set ", [["trades"]]],
    ['insert into "odd name" (', [["odd name"]]],
    ["select * from trades, quotes q", [["trades"], ["Quotes", "q"]]],
    ["select trades from nothing", []],
  ] as const
) {
  Deno.test(`tables of ${statement}`, () => {
    const found = tablesIn(statement, KNOWN).map(({ name, alias }) => alias === undefined ? [name] : [name, alias]);
    assert.deepEqual(found, expected);
  });
}
