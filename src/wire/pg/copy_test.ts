import assert from "node:assert/strict";
import { type CopyOptions, copyOut, CopyRows, mayBeCopyOut } from "./copy.ts";
import type { Output } from "./output.ts";

const TEXT: CopyOptions = {
  format: "text",
  hasHeader: false,
  delimiter: "\t",
  nulls: "\\N",
  quote: '"',
  escape: '"',
};
const CSV: CopyOptions = { ...TEXT, format: "csv", delimiter: ",", nulls: "" };

const commands: [text: string, query: string, options: CopyOptions][] = [
  ["copy t to stdout", "select * from t", TEXT],
  ['COPY "public" . "t" (a, "b c") TO STDOUT;', 'select a, "b c" from "public" . "t"', TEXT],
  ["COPY (select 1 x, ')' to) TO STDOUT (FORMAT binary)", "select 1 x, ')' to", { ...TEXT, format: "binary" }],
  ["copy t to stdout with binary", "select * from t", { ...TEXT, format: "binary" }],
  ["copy t to stdout with (format csv, header)", "select * from t", { ...CSV, hasHeader: true }],
  ["copy t to stdout csv header null as 'x' delimiter ';'", "select * from t", {
    ...CSV,
    hasHeader: true,
    nulls: "x",
    delimiter: ";",
  }],
  ["copy t to stdout (format csv, header false, quote '''', escape '\\')", "select * from t", {
    ...CSV,
    quote: "'",
    escape: "\\",
  }],
  ["COPY p TO STDIN WITH DELIMITER E'\\t' NULL AS E'\\\\N'", "select * from p", TEXT],
];
for (const [text, query, options] of commands) {
  Deno.test(`copyOut() reads ${text}`, () => {
    const copy = copyOut(text)!;
    assert.ok(mayBeCopyOut(text));
    assert.deepEqual([copy.query, copy.options], [query, options]);
    const source = copy.query.slice(copy.queryAt);
    assert.equal(text.slice(copy.sourceAt, copy.sourceAt + source.length), source);
  });
}

const refused: [text: string, position: number][] = [
  ["copy t to stdout (format xml)", 25],
  ["copy t to stdout (delimiter 'ab')", 28],
  ["copy t to stdout (force_quote *)", 18],
  ["copy t to stdout (null 5)", 23],
];
for (const [text, position] of refused) {
  Deno.test(`copyOut() refuses ${text}`, () => assert.throws(() => copyOut(text), { position }));
}

for (const text of ["copy t to 'file'", "copy 'id' cancel", "copy t from 'x.csv'", "select 1"]) {
  Deno.test(`copyOut() leaves ${text} to the database`, () => assert.equal(copyOut(text), undefined));
}

Deno.test("copyOut() reads very many spaces", () => {
  // With two ways to match a space, each of these would take minutes.
  const spaces = " ".repeat(1_000_000);
  for (const text of [`copy (${spaces}'to stdout`, `copy a${spaces}x to stdout`]) {
    assert.equal(copyOut(text), undefined);
  }
});

/** A DataRow. */
function row(...values: (string | null)[]): Uint8Array {
  const fields = values.flatMap((value) => {
    if (value === null) return [255, 255, 255, 255];
    const bytes = new TextEncoder().encode(value);
    return [0, 0, 0, bytes.length, ...bytes];
  });
  return new Uint8Array([0x44, 0, 0, 0, fields.length + 6, 0, values.length, ...fields]);
}

/** What the rows become: texts of the messages. */
function copied(options: CopyOptions, rows: Uint8Array[], types = ["VARCHAR", "VARCHAR"]): string[] {
  const told: string[] = [];
  const text = (bytes: Uint8Array) => new TextDecoder("latin1").decode(bytes);
  const output = {
    copyOutResponse: (count: number, format: number) => told.push(`H ${count} ${format}`),
    copyData: (bytes: Uint8Array) => told.push(text(bytes)),
    copyDone: () => told.push("c"),
    rows(bytes: Uint8Array) {
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      for (let at = 0; at < bytes.length; at += 1 + view.getInt32(at + 1)) {
        assert.equal(bytes[at], 0x64);
        told.push(text(bytes.subarray(at + 5, at + 1 + view.getInt32(at + 1))));
      }
    },
  };
  const copy = new CopyRows(output as unknown as Output, types.map((type, k) => ({ name: `c${k}`, type })), options);
  for (const bytes of rows) copy.rows(bytes);
  copy.end();
  return told;
}

Deno.test("CopyRows escapes texts, quotes CSV, and writes the binary format", () => {
  const rows = [row("a\tb\\", null), row('q"', "x,y\n")];
  assert.deepEqual(copied(TEXT, rows), ["H 2 0", "a\\tb\\\\\t\\N\n", 'q"\tx,y\\n\n', "c"]);
  assert.deepEqual(copied({ ...CSV, hasHeader: true }, [...rows, row("", "é".slice(1))]), [
    "H 2 0",
    "c0,c1\n",
    "a\tb\\,\n",
    '"q""","x,y\n"\n',
    '"",""\n',
    "c",
  ]);
  assert.deepEqual(copied(TEXT, [row("\0\x01", "x")], ["BINARY", "VARCHAR"]), ["H 2 0", "\\\\x0001\tx\n", "c"]);
  const header = "PGCOPY\n\xff\r\n\0" + "\0".repeat(8);
  assert.deepEqual(copied({ ...TEXT, format: "binary" }, [row("a", null)]), [
    "H 2 1",
    `${header}\0\x02\0\0\0\x01a\xff\xff\xff\xff`,
    "\xff\xff",
    "c",
  ]);
  assert.deepEqual(copied({ ...TEXT, format: "binary" }, []), ["H 2 1", `${header}\xff\xff`, "c"]);
});
