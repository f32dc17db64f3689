import assert from "node:assert/strict";
import { mappedCsv } from "./mapped-csv.ts";
import { previewOf, tableNameOf } from "./preview.ts";

Deno.test("the first lines of a file are split as CSV", () => {
  const lines = previewOf('ts,name\r\n2026-01-01,"a, ""b"""\r\n,\r\n', ",");
  assert.deepEqual(lines, [["ts", "name"], ["2026-01-01", 'a, "b"'], ["", ""]]);
  assert.deepEqual(previewOf("a|b\n1|2", "|"), [["a", "b"], ["1", "2"]]);
  assert.deepEqual(previewOf("a,b\r1,2\r", ","), [["a", "b"], ["1", "2"]]);
  assert.equal(previewOf("x\n".repeat(100), ",").length, 6);
  assert.deepEqual(previewOf("", ","), []);
});

Deno.test("a table gets the name of its file", () => {
  assert.equal(tableNameOf("My trades (2026).csv"), "My_trades_2026");
  assert.equal(tableNameOf("…"), "imported");
});

Deno.test("a CSV file gets a header of the names in the table, if they are not its own", async () => {
  const file = new Blob(["ts,price\n2026-01-01,1.5\n"]);
  const form = { delimiter: ",", hasHeader: true, headBytes: 9, columns: [] };
  const column = (source: string, name: string, type = "INT") => ({
    source,
    found: "INT",
    name,
    type,
    isIncluded: true,
  });
  const same = mappedCsv(file, form, [column("ts", "ts"), column("price", "price", "DOUBLE")]);
  assert.equal(same.file, file);
  assert.deepEqual([same.schema, same.parameters], [[{ name: "price", type: "DOUBLE" }], {}]);
  const other = mappedCsv(file, form, [column("ts", "at"), column("price", 'the "price", paid')]);
  assert.equal(await other.file.text(), 'at,"the ""price"", paid"\n2026-01-01,1.5\n');
  assert.deepEqual(other.parameters, { forceHeader: "true", delimiter: "," });
  const fewer = mappedCsv(file, form, [{ ...column("ts", "ts"), isIncluded: false }, column("price", "price")]);
  assert.deepEqual([fewer.file, fewer.parameters], [file, { omit: "0" }]);
  const bare = mappedCsv(new Blob(["1,2\n"]), { ...form, hasHeader: false, headBytes: 0 }, [
    column("f0", "a"),
    column("f1", "f1"),
  ]);
  assert.equal(await bare.file.text(), "a,f1\n1,2\n");
});
