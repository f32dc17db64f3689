import assert from "node:assert/strict";
import { parquetMetadata, type SchemaElement } from "hyparquet";
import { parquetWriteBuffer } from "hyparquet-writer";
import { type ParquetNode } from "../../sql/plan.ts";
import { createParquet } from "../operators/parquet.ts";
import { testContext } from "../testing.ts";
import { parquetSchema } from "./file.ts";
import { readFooter } from "./footer.ts";

const DATA = new URL("../../../tests/conformance/data/", import.meta.url);
const MAGIC = [0x50, 0x41, 0x52, 0x31];

const varint = (value: number): number[] =>
  value < 128 ? [value] : [value % 128 + 128, ...varint(Math.floor(value / 128))];
/** The schema: a root with `count` columns of type INT64, all with the same name, below structs with long names. */
const schemaFields = (count: number, name: string, structs: string[] = []): number[] => [
  ...[0x19, 0xfc, ...varint(count + 1 + structs.length)],
  ...["schema", ...structs].flatMap((struct, depth) => [
    ...[0x48, ...varint(struct.length), ...new TextEncoder().encode(struct)],
    ...[0x15, ...varint(2 * (depth < structs.length ? 1 : count)), 0],
  ]),
  ...Array.from({ length: count }, () => [0x15, 4, 0x38, ...varint(name.length), ...new TextEncoder().encode(name), 0])
    .flat(),
];
/** No rows, and no row groups. */
const NO_ROWS = [0x16, 0, 0x19, 0x0c, 0];

const COLUMN_OF_NO_VALUES = [0x3c, 0x45, 0, 0x16, 0, 0x16, 0, 0x16, 0, 0x26, 8, 0, 0];
/** This many row groups without rows, of as many columns. */
const rowGroups = (count: number, columnCount: number): number[] => {
  const group = [
    0x19,
    0xfc,
    ...varint(columnCount),
    ...Array(columnCount).fill(COLUMN_OF_NO_VALUES).flat(),
    0x26,
    0,
    0,
  ];
  return [0x16, 0, 0x19, 0xfc, ...varint(count), ...Array(count).fill(group).flat(), 0];
};
/** A row group of 2^52 rows: a column of this many values in 28 bytes. */
const MANY_ROWS = [0x16, ...varint(2 ** 53), 0x19, 0x1c]
  .concat([0x19, 0x1c, 0x3c, 0x45, 0, 0x16, ...varint(2 ** 53), 0x16, 0, 0x16, 56, 0x26, 8, 0, 0])
  .concat([0x26, ...varint(2 ** 53), 0, 0]);

function withFile<T>(bytes: Uint8Array, use: (path: string, root: string) => T): T {
  const root = Deno.makeTempDirSync(), path = `${root}/x.parquet`;
  Deno.writeFileSync(path, bytes);
  try {
    return use(path, root);
  } finally {
    Deno.removeSync(root, { recursive: true });
  }
}

function fileOf(footer: number[]): Uint8Array {
  const size = new Uint8Array(Uint32Array.of(footer.length).buffer);
  return Uint8Array.from([...MAGIC, ...footer, ...size, ...MAGIC]);
}

const refused: [what: string, footer: number[], error: RegExp][] = [
  // Each of these lists claims 30 million elements.
  [
    "lists in lists",
    [0x19, ...Array.from({ length: 9 }, () => [0xf9, ...varint(30e6)]).flat()],
    /its footer ends too early/,
  ],
  ["a list longer than the footer", [0x19, 0xfc, ...varint(2 ** 31)], /its footer ends too early/],
  ["a long number", [0x16, ...Array(100_000).fill(0xff), 1, 0], /a number in its footer is too long/],
  ["many lists in lists to be skipped", [0x99, ...Array(1_000).fill(0x19), 0], /nested too deeply/],
  ["numbers of eight bytes in a longer list", [0x99, 0xf7, ...varint(2 ** 60)], /its footer ends too early/],
  ["elements without names", [0x29, 0x1c, 0, 0], /has no name/],
  ["too many columns", [0x15, 2, ...schemaFields(70_000, "a"), ...NO_ROWS], /more than 65536 elements/],
  ["too many row groups", [0x15, 2, ...schemaFields(1, "a"), ...rowGroups(65_537, 1)], /more than 65536 row groups/],
  [
    "too many columns of row groups",
    [0x15, 2, ...schemaFields(1_024, "a"), ...rowGroups(1_025, 1_024)],
    /more than 1048576 columns in all row groups/,
  ],
  [
    "more rows than its bytes can have",
    [0x15, 2, ...schemaFields(1, "a"), ...MANY_ROWS],
    /column a has 4503599627370496 values in 28 bytes, which is impossible/,
  ],
  ["long names", [0x15, 2, ...schemaFields(3, "a", ["x".repeat(2_000)]), ...NO_ROWS], /has 2002 characters/],
];
for (const [what, footer, error] of refused) {
  Deno.test(`a footer is refused: ${what}`, () =>
    withFile(fileOf(footer), (path, root) => assert.throws(() => parquetSchema(path, root), error)));
}

Deno.test("a long footer is left to another thread", () =>
  withFile(fileOf([0x15, 2, ...schemaFields(1_000, "a"), ...NO_ROWS]), (path, root) => {
    const long = { bytesMax: 1_000, beyond: () => new Error("for another thread") };
    assert.throws(() => parquetSchema(path, root, 0, long), /for another thread/);
    assert.equal(parquetSchema(path, root, 0, { ...long, bytesMax: 10_000 }).columns.length, 1_000);
  }));

Deno.test("many columns of one name get names of their own", () =>
  withFile(fileOf([0x15, 2, ...schemaFields(60_000, "a"), ...NO_ROWS]), (path, root) => {
    const { columns } = parquetSchema(path, root);
    assert.equal(new Set(columns.map(({ name }) => name)).size, 60_000);
    assert.deepEqual(columns.slice(0, 3).map(({ name }) => name), ["a", "a1", "a2"]);
  }));

Deno.test("a page header with a longer list than the file is refused", () => {
  const bytes = new Uint8Array(parquetWriteBuffer({
    columnData: [{ name: "a", data: [1n, 2n, 3n], type: "INT64" }],
    codec: "UNCOMPRESSED",
    statistics: false,
  }));
  // Instead of the first page's header: a list of doubles as field 9.
  bytes.set([0x99, 0xf7, ...varint(2 ** 60)], 4);
  withFile(bytes, (path, root) => {
    const { columns } = parquetSchema(path, root);
    const plan = {
      node: "parquet",
      columns,
      fileColumns: ["a"],
      path,
      root,
      at: 3,
      timestamp: -1,
      order: "none",
    } as const;
    const operator = createParquet(plan as unknown as ParquetNode, testContext(1 << 28));
    assert.throws(() => operator.next(), /a page header ends too early/);
    operator.close();
  });
});

for (const { name } of Deno.readDirSync(DATA)) {
  if (!/^(types|zoo|sample).*\.parquet$/.test(name)) continue;
  Deno.test(`readFooter() reads what hyparquet reads: ${name}`, () => {
    const bytes = Deno.readFileSync(new URL(name, DATA)), { length } = bytes;
    const size = new DataView(bytes.buffer).getUint32(length - 8, true);
    const { schema, rowCount, rowGroups } = readFooter(bytes.subarray(length - 8 - size, length - 8));
    const expected = parquetMetadata(bytes.buffer, { geoparquet: false });
    const known = ({ field_id: _, ...element }: SchemaElement) => element;
    assert.deepEqual(schema.map(known), JSON.parse(JSON.stringify(expected.schema.map(known))));
    assert.equal(rowCount, Number(expected.num_rows));
    const extents = rowGroups.map((group) => Array.from({ length: group.columnCount }, (_, k) => group.extent(k)));
    const extentsExpected = expected.row_groups.map(({ columns }) =>
      columns.map(({ meta_data: data }) => ({
        codec: data!.codec,
        offset: Number(data!.dictionary_page_offset ?? data!.data_page_offset),
        sizeBytes: Number(data!.total_compressed_size),
        plainSizeBytes: Number(data!.total_uncompressed_size),
        valueCount: Number(data!.num_values),
      }))
    );
    assert.deepEqual(extents, extentsExpected);
  });
}
