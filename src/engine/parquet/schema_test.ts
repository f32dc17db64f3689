import assert from "node:assert/strict";
import { dirname } from "node:path";
import type { SchemaElement } from "hyparquet";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import type { ParquetNode } from "../../sql/plan.ts";
import { createParquet } from "../operators/parquet.ts";
import { rowsOf, testContext } from "../testing.ts";
import { parquetSchema } from "./file.ts";
import { schemaOf } from "./schema.ts";

type Repetition = SchemaElement["repetition_type"];

const leaf = (name: string, repetition_type: Repetition, more: Partial<SchemaElement> = {}): SchemaElement[] => [
  { name, repetition_type, type: "DOUBLE", ...more },
];
const group = (
  name: string,
  repetition_type: Repetition,
  converted_type: SchemaElement["converted_type"],
  ...children: SchemaElement[][]
): SchemaElement[] => [{ name, repetition_type, converted_type, num_children: children.length }, ...children.flat()];
const root = (...children: SchemaElement[][]): SchemaElement[] => [
  { name: "schema", num_children: children.length },
  ...children.flat(),
];
const text = { type: "BYTE_ARRAY", converted_type: "UTF8" } as const;

/** A schema with one column: its type, the definition level of a value, and those of elements by dimension. */
const read: [what: string, column: SchemaElement[], found: [string, number, number[]]][] = [
  ["a value", leaf("x", "REQUIRED"), ["DOUBLE", 0, []]],
  ["a value or null", leaf("x", "OPTIONAL"), ["DOUBLE", 1, []]],
  ["values again and again", leaf("x", "REPEATED"), ["DOUBLE[]", 1, [1]]],
  [
    "a list of three levels",
    group("x", "OPTIONAL", "LIST", group("list", "REPEATED", undefined, leaf("element", "OPTIONAL"))),
    ["DOUBLE[]", 3, [2]],
  ],
  ["a list of two levels", group("x", "OPTIONAL", "LIST", leaf("element", "REPEATED")), ["DOUBLE[]", 2, [2]]],
  [
    "a list of lists of three levels",
    group(
      "x",
      "REQUIRED",
      "LIST",
      group(
        "list",
        "REPEATED",
        undefined,
        group("element", "OPTIONAL", "LIST", group("list", "REPEATED", undefined, leaf("element", "OPTIONAL"))),
      ),
    ),
    ["DOUBLE[][]", 4, [1, 3]],
  ],
  [
    "a list of lists of two levels",
    group("x", "OPTIONAL", "LIST", group("array", "REPEATED", "LIST", leaf("array", "REPEATED"))),
    ["DOUBLE[][]", 3, [2, 3]],
  ],
];
for (const [what, column, [type, definitionMax, dimensions]] of read) {
  Deno.test(`schemaOf() reads ${what}`, () => {
    const { columns, leftOut } = schemaOf(root(column), undefined);
    assert.deepEqual(leftOut, []);
    assert.deepEqual(columns.map((found) => [found.type, found.definitionMax, found.dimensions]), [[
      type,
      definitionMax,
      dimensions,
    ]]);
  });
}

const refused: [type: string, column: SchemaElement[]][] = [
  ["LIST of STRING", group("x", "OPTIONAL", "LIST", leaf("element", "REPEATED", text))],
  ["LIST of STRING", leaf("x", "REPEATED", text)],
  [
    "LIST of STRUCT",
    group("x", "OPTIONAL", "LIST", group("array", "REPEATED", undefined, leaf("only", "OPTIONAL"))),
  ],
  [
    "LIST of STRUCT",
    group("x", "OPTIONAL", "LIST", group("x_tuple", "REPEATED", undefined, leaf("only", "OPTIONAL"))),
  ],
  [
    "LIST of STRUCT",
    group("x", "OPTIONAL", "LIST", group("list", "REPEATED", undefined, leaf("a", "OPTIONAL"), leaf("b", "OPTIONAL"))),
  ],
  ["LIST of STRUCT", group("x", "REPEATED", undefined, leaf("a", "OPTIONAL"), leaf("b", "OPTIONAL"))],
  [
    "LIST of MAP",
    group(
      "x",
      "OPTIONAL",
      "LIST",
      group(
        "list",
        "REPEATED",
        undefined,
        group("element", "OPTIONAL", "MAP", group("key_value", "REPEATED", undefined, leaf("key", "REQUIRED"))),
      ),
    ),
  ],
  ["MAP", group("x", "OPTIONAL", "MAP", group("key_value", "REPEATED", undefined, leaf("key", "REQUIRED")))],
  ["DECIMAL(77,0)", leaf("x", "OPTIONAL", { type: "BYTE_ARRAY", converted_type: "DECIMAL", precision: 77 })],
  ["INTERVAL", leaf("x", "OPTIONAL", { type: "FIXED_LEN_BYTE_ARRAY", type_length: 12, converted_type: "INTERVAL" })],
  [
    "LIST of TIMESTAMP_MICROS",
    group("x", "OPTIONAL", "LIST", leaf("element", "REPEATED", { type: "INT64", converted_type: "TIMESTAMP_MICROS" })),
  ],
];
for (const [type, column] of refused) {
  Deno.test(`schemaOf() omits ${type}: ${JSON.stringify(column.map(({ name }) => name))}`, () => {
    const { columns, leftOut } = schemaOf(root(column, leaf("y", "OPTIONAL")), undefined);
    assert.deepEqual(leftOut, [{ name: "x", type }]);
    // The next column is identified by its ordinal among all leaves.
    const leafCount = column.filter((element) => element.type !== undefined).length;
    assert.deepEqual(columns.map(({ name, leaf }) => [name, leaf]), [["y", leafCount]]);
  });
}

Deno.test("schemaOf() names fields of structs by their path, and makes names unique", () => {
  const schema = root(
    group("s", "OPTIONAL", undefined, leaf("a", "REQUIRED"), group("t", "OPTIONAL", undefined, leaf("b", "OPTIONAL"))),
    leaf("s.a", "REQUIRED"),
    leaf("S.A", "REQUIRED"),
  );
  const { columns } = schemaOf(schema, undefined);
  assert.deepEqual(columns.map(({ name, definitionMax }) => [name, definitionMax]), [
    ["s.a", 1],
    ["s.t.b", 3],
    ["s.a1", 0],
    ["S.A2", 0],
  ]);
});

Deno.test("schemaOf() refuses elements that do not form a tree", () => {
  const cut = root(group("x", "OPTIONAL", "LIST", leaf("element", "REPEATED"))).slice(0, -1);
  const longer = [...root(leaf("x", "OPTIONAL")), ...leaf("y", "OPTIONAL")];
  for (const elements of [[], cut, longer, [{ name: "schema", num_children: 1e9 }]]) {
    assert.throws(() => schemaOf(elements, undefined), { name: "ParquetError" });
  }
});

Deno.test("two-level lists are read like three-level ones with required elements", () => {
  const three = group("x", "OPTIONAL", "LIST", group("list", "REPEATED", undefined, leaf("element", "REQUIRED")));
  const two = group("x", "OPTIONAL", "LIST", leaf("element", "REPEATED"));
  const lists = [[1, 2], null, [], [3.5]];
  const writer = new ByteWriter(), file = new ParquetWriter({ writer, schema: root(three), statistics: false });
  file.write({ columnData: [{ name: "x", data: lists }] });
  file.schema = root(two);
  file.finish();
  const path = Deno.makeTempFileSync();
  try {
    Deno.writeFileSync(path, writer.getBytes());
    const { columns } = parquetSchema(path, dirname(path)), context = testContext(1 << 26);
    assert.deepEqual(columns, [{ name: "x", type: "DOUBLE[]" }]);
    const plan: ParquetNode = {
      node: "parquet",
      columns,
      fileColumns: ["x"],
      path,
      root: dirname(path),
      at: 0,
      timestamp: -1,
      order: "none",
    };
    assert.deepEqual(rowsOf(createParquet(plan, context), context), [["[1.0,2.0]"], [null], ["[]"], ["[3.5]"]]);
  } finally {
    Deno.removeSync(path);
  }
});
