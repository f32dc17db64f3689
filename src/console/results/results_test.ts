import assert from "node:assert/strict";
import { shownText } from "./cells.ts";
import type { Rows } from "../server/client.ts";
import { COPIES, CSV_FILE, written } from "./copies.ts";
import { sorted } from "./sorting.ts";
import { ColumnStatistics } from "./statistics.ts";

const TABLE = {
  columns: [{ name: "a,b", type: "VARCHAR" }, { name: "n", type: "LONG" }],
  dataset: [['say "x|y"', 10], ["two\nlines", null], ["", 9]] as unknown[][],
};
const ROWS: Rows = { ...TABLE, count: TABLE.dataset.length };
const form = (name: string) => COPIES.find((one) => one.name === name)!;
const copy = async (name: string) => (await written(ROWS, form(name))).parts.join("");

Deno.test("rows are copied as TSV, CSV, Markdown and JSON", async () => {
  assert.equal(await copy("TSV"), 'a,b\tn\nsay "x|y"\t10\ntwo lines\t\n\t9\n');
  assert.equal(await copy("CSV"), '"a,b",n\n"say ""x|y""",10\n"two\nlines",\n"",9\n');
  assert.equal(
    await copy("Markdown"),
    '| a,b | n |\n| --- | --- |\n| say "x\\|y" | 10 |\n| two lines | null |\n|  | 9 |\n',
  );
  assert.deepEqual(JSON.parse(await copy("JSON"))[1], { "a,b": "two\nlines", n: null });
});

Deno.test("a copy of limited length ends with a whole row, and is still in its format", async () => {
  for (const { name } of COPIES) {
    const all = await copy(name);
    const { parts, rowCount } = await written(ROWS, form(name), all.length - 1);
    assert.ok(rowCount < 3 && parts.join("").length < all.length, name);
    assert.equal((await written(ROWS, form(name), all.length + 4)).rowCount, 3, name);
  }
  const { parts } = await written(ROWS, form("JSON"), 40);
  assert.deepEqual(JSON.parse(parts.join("")), [{ "a,b": 'say "x|y"', n: 10 }]);
});

Deno.test("doubles without a fraction stay doubles in CSV", async () => {
  const columns = [{ name: "d", type: "DOUBLE" }, { name: "n", type: "LONG" }];
  const { parts } = await written({ columns, dataset: [[1, 1], [1.5, 2], [1e21, 3]], count: 3 }, CSV_FILE);
  assert.equal(parts.join(""), "d,n\r\n1.0,1\r\n1.5,2\r\n1e+21,3\r\n");
});

Deno.test("statistics of a column ignore nulls and compare by type", () => {
  const of = (type: string, values: unknown[]) => {
    const statistics = new ColumnStatistics(type);
    for (const value of values) statistics.add(value);
    return Object.fromEntries(statistics.lines());
  };
  assert.deepEqual(of("LONG", [10, null, 9, 14, 10, 7]), {
    ...{ rows: "6", "not null": "5", distinct: "4", smallest: "7", largest: "14" },
    ...{ average: "10", "standard deviation": String(Math.sqrt(26 / 4)) },
  });
  const large = of("LONG", ["9007199254740993", "9007199254740992", 5]);
  assert.deepEqual([large.smallest, large.largest], ["5", "9007199254740993"]);
  assert.deepEqual(of("VARCHAR", ["b", "a", null]), {
    ...{ rows: "3", "not null": "2", distinct: "2", smallest: "a", largest: "b" },
  });
  assert.deepEqual(of("DOUBLE", [null]), { rows: "1", "not null": "0", distinct: "0" });
});

Deno.test("rows stay in their order if the column by which they are sorted is gone", () => {
  assert.deepEqual(sorted(TABLE, { column: 9, order: "ascending" }), TABLE.dataset);
});

Deno.test("rows are sorted by value, numbers as numbers, nulls last in both orders", () => {
  const column = (order: "ascending" | "descending") => sorted(TABLE, { column: 1, order }).map((row) => row[1]);
  assert.deepEqual(column("ascending"), [9, 10, null]);
  assert.deepEqual(column("descending"), [10, 9, null]);
  // Numbers beyond 2^53 arrive as texts.
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
