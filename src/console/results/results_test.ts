import assert from "node:assert/strict";
import { shownText } from "./cells.ts";
import { COPIES } from "./copies.ts";
import { sorted } from "./sorting.ts";

const TABLE = {
  columns: [{ name: "a,b", type: "VARCHAR" }, { name: "n", type: "LONG" }],
  dataset: [['say "x|y"', 10], ["two\nlines", null], ["", 9]] as unknown[][],
};
const copy = (name: string) => COPIES.find((one) => one.name === name)!.make(TABLE);

Deno.test("rows are copied as TSV, CSV, Markdown and JSON", () => {
  assert.equal(copy("TSV"), 'a,b\tn\nsay "x|y"\t10\ntwo lines\t\n\t9\n');
  assert.equal(copy("CSV"), '"a,b",n\n"say ""x|y""",10\n"two\nlines",\n"",9\n');
  assert.equal(copy("Markdown"), '| a,b | n |\n| --- | --- |\n| say "x\\|y" | 10 |\n| two lines | null |\n|  | 9 |\n');
  assert.deepEqual(JSON.parse(copy("JSON"))[1], { "a,b": "two\nlines", n: null });
});

Deno.test("rows are sorted by value, numbers as numbers, nulls last both ways", () => {
  const column = (order: "ascending" | "descending") => sorted(TABLE, { column: 1, order }).map((row) => row[1]);
  assert.deepEqual(column("ascending"), [9, 10, null]);
  assert.deepEqual(column("descending"), [10, 9, null]);
  // Numbers beyond 2^53 come as texts.
  const large = { columns: [{ name: "n", type: "LONG" }], dataset: [["9007199254740993"], ["9007199254740992"], [5]] };
  assert.deepEqual(sorted(large, { column: 0, order: "ascending" }).map(([n]) => n), [
    5,
    "9007199254740992",
    "9007199254740993",
  ]);
});

Deno.test("times keep all their digits in both zones", () => {
  const value = "2026-02-02T10:20:30.123456Z";
  assert.equal(shownText(value, "TIMESTAMP", "UTC"), value);
  assert.match(shownText(value, "TIMESTAMP", "local"), /^2026-02-0\d \d\d:\d\d:30\.123456 [+-]\d\d:\d\d$/);
  assert.equal(shownText(value, "VARCHAR", "local"), value);
  assert.equal(shownText(null, "TIMESTAMP", "local"), "null");
});
