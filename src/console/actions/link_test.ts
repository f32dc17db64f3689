import assert from "node:assert/strict";
import { linkedText } from "./link.ts";

const runs = (text: string) => linkedText(String(new URLSearchParams({ query: text, executeQuery: "true" })))?.runs;

Deno.test("a link runs a statement that only reads", () => {
  for (
    const text of ["select 1", "-- drop\nSELECT 'drop table t'", "with a as (select 1) select * from a", "show tables"]
  ) {
    assert.equal(runs(text), true, text);
  }
});

Deno.test("a link does not run a statement that may change something", () => {
  const texts = [
    "drop table t",
    "select 1; drop table t",
    "with a as (select 1) insert into t select * from a",
    "trades",
  ];
  for (const text of [...texts, "explain analyze update t set a = 1", "/* select */ truncate table t"]) {
    assert.equal(runs(text), false, text);
  }
});

Deno.test("a link without executeQuery only shows its text", () => {
  assert.deepEqual(linkedText("?query=select%201"), { text: "select 1", runs: false });
  assert.equal(linkedText(""), undefined);
});
