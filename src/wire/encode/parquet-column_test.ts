/** Files of random columns, read by hyparquet in their physical form. */
import { parquetMetadata, parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import assert from "node:assert/strict";
import type { Batch, Vector } from "../../engine/contract.ts";
import { createHeap } from "../../storage/heap.ts";
import { randomOf, SEED } from "../../testing.ts";
import { createParquetEncoder, ParquetAssembler, type ParquetEncoding } from "./parquet.ts";

const heap = createHeap(256 << 20);
const random = randomOf(SEED);

/** A column and what the file should have. */
interface Column {
  vector: Vector;
  expected: unknown[];
}

type View = "i8" | "i16" | "u16" | "i32" | "i64" | "f32" | "f64";

function stored(type: string, view: View, values: readonly (number | bigint)[]): Vector {
  const width = heap[view].BYTES_PER_ELEMENT, address = heap.allocate(Math.max(1, values.length) * width, "other");
  heap[view].set(values as never, address / width);
  return { type, address };
}

const MIN_LONG = -(2n ** 63n), MIN_INT = -(2 ** 31);
const randomLong = () => BigInt(random(2 ** 31)) * BigInt(random(2 ** 31)) - 2n ** 61n;

/** `distinct`: number of different values. `hasValue`: whether a row has one. */
type Maker = (rowCount: number, distinct: number, hasValue: (row: number) => boolean) => Column;

/** A type of numbers: its null, and what the file has instead of a number. */
function numbers<Value extends number | bigint>(
  type: string,
  view: View,
  none: Value | undefined,
  make: () => Value,
  inFile: (value: Value) => unknown = (value) => value,
): [string, Maker] {
  return [type, (rowCount, distinct, hasValue) => {
    const choices = Array.from({ length: distinct }, make);
    const rows = Array.from(
      { length: rowCount },
      (_, row) => none === undefined || hasValue(row) ? choices[random(distinct)] : undefined,
    );
    return {
      vector: stored(type, view, rows.map((value) => value ?? none!)),
      expected: rows.map((value) => value === undefined ? null : inFile(value)),
    };
  }];
}

/** Numbers of several words. */
function words(type: string, count: number, isReversed: boolean): [string, Maker] {
  return [type, (rowCount, distinct, hasValue) => {
    const choices = Array.from({ length: distinct }, () => Array.from({ length: count }, randomLong));
    const rows = Array.from({ length: rowCount }, (_, row) => hasValue(row) ? choices[random(distinct)] : undefined);
    return {
      vector: stored(type, "i64", rows.flatMap((value) => value ?? new Array<bigint>(count).fill(MIN_LONG))),
      expected: rows.map((value) => {
        if (value === undefined) return null;
        const bytes = new Uint8Array(BigInt64Array.from(value).buffer);
        return isReversed ? bytes.reverse() : bytes;
      }),
    };
  }];
}

function pairs(values: (Uint8Array | undefined)[]): number {
  const address = heap.allocate(Math.max(1, values.length) * 8, "other");
  const size = values.reduce((sum, value) => sum + (value?.length ?? 0), 1);
  let to = heap.allocate(size, "other");
  values.forEach((value, row) => {
    heap.u32[address / 4 + 2 * row] = to;
    heap.i32[address / 4 + 2 * row + 1] = value === undefined ? -1 : value.length;
    heap.u8.set(value ?? [], to);
    to += value?.length ?? 0;
  });
  return address;
}

const TEXTS = ["", "a", "é", "😀", "x".repeat(40), "y".repeat(300), "b", "ab"];
const encoder = new TextEncoder();
const textOf = (k: number) => k < TEXTS.length ? TEXTS[k] : `${TEXTS[k % TEXTS.length]}${k}`;

const texts = (type: string): [string, Maker] => [type, (rowCount, distinct, hasValue) => {
  const rows = Array.from({ length: rowCount }, (_, row) => hasValue(row) ? textOf(random(distinct)) : undefined);
  const bytes = rows.map((text) => text === undefined ? undefined : encoder.encode(text));
  return {
    vector: { type, address: pairs(bytes) },
    expected: type === "BINARY" ? bytes.map((value) => value ?? null) : rows.map((text) => text ?? null),
  };
}];

const symbols: [string, Maker] = ["SYMBOL", (rowCount, distinct, hasValue) => {
  const rows = Array.from({ length: rowCount }, (_, row) => hasValue(row) ? random(distinct) : -1);
  const entries = pairs(Array.from({ length: distinct }, (_, k) => encoder.encode(textOf(k))));
  return {
    vector: { ...stored("SYMBOL", "i32", rows), dictionary: { tableId: 1, columnId: 1, entries, count: distinct } },
    expected: rows.map((code) => code < 0 ? null : textOf(code)),
  };
}];

const double = () => (random(2 ** 31) - 2 ** 30) / 1000;

const MAKERS: [string, Maker][] = [
  numbers("BOOLEAN", "i8", undefined, () => random(2), (value) => value !== 0),
  numbers("BYTE", "i8", undefined, () => random(256) - 128),
  numbers("SHORT", "i16", undefined, () => random(65536) - 32768),
  numbers("CHAR", "u16", 0, () => 1 + random(65535)),
  numbers("INT", "i32", MIN_INT, () => random(2 ** 32) - 2 ** 31 + 1),
  numbers("LONG", "i64", MIN_LONG, randomLong),
  numbers("FLOAT", "f32", NaN, () => Math.fround(double())),
  numbers("FLOAT", "f32", Infinity, () => -0),
  numbers("DOUBLE", "f64", -Infinity, double),
  numbers("DOUBLE", "f64", NaN, () => -0),
  numbers("DATE", "i64", MIN_LONG, randomLong),
  numbers("TIMESTAMP", "i64", MIN_LONG, randomLong),
  numbers("TIMESTAMP_NS", "i64", MIN_LONG, randomLong),
  numbers("IPv4", "i32", 0, () => random(2 ** 31) - 2 ** 30 || 1),
  numbers("GEOHASH(3b)", "i64", MIN_LONG, () => BigInt(random(8)), Number),
  numbers("GEOHASH(6c)", "i64", MIN_LONG, () => BigInt(random(2 ** 30)), Number),
  numbers("GEOHASH(12c)", "i64", MIN_LONG, () => BigInt(random(2 ** 30)) << 29n),
  numbers("DECIMAL(9,2)", "i64", MIN_LONG, () => BigInt(random(2e9) - 1e9), Number),
  numbers("DECIMAL(18,4)", "i64", MIN_LONG, randomLong),
  words("UUID", 2, true),
  words("LONG256", 4, false),
  words("DECIMAL(30,2)", 2, true),
  words("DECIMAL(60,2)", 4, true),
  texts("VARCHAR"),
  texts("STRING"),
  texts("SYMBOL_TEXT"),
  texts("BINARY"),
  symbols,
];

/** The file of columns in groups of `groupRows` rows. */
async function fileOf(columns: Column[], groupRows: number[], options: Partial<ParquetEncoding>): Promise<ArrayBuffer> {
  const named = columns.map(({ vector: { type } }, index) => ({ name: `c${index}`, type }));
  const encoder = createParquetEncoder({ name: "parquet", codec: "UNCOMPRESSED", ...options }, named, heap);
  const file = new ParquetAssembler(named, "test"), parts: Uint8Array[] = [file.head];
  const rowCount = groupRows.reduce((sum, rows) => sum + rows, 0);
  const batch: Batch = { rowCount, columns: columns.map(({ vector }) => vector) };
  let row = 0;
  for (const rows of groupRows) {
    parts.push(file.group(encoder.encode(batch, row, rows, row === 0)).slice());
    row += rows;
  }
  return await new Blob([...parts, file.footer()] as BlobPart[]).arrayBuffer();
}

/** Values in their physical form, by column. */
async function read(file: ArrayBuffer): Promise<unknown[][]> {
  const metadata = parquetMetadata(file);
  for (const element of metadata.schema) {
    delete element.logical_type;
    if (element.converted_type !== "UTF8") delete element.converted_type;
  }
  const rows = await parquetReadObjects({ file, metadata, compressors, utf8: false });
  return metadata.schema.slice(1).map(({ name }) => rows.map((row) => row[name!]));
}

const NULLS: [string, (row: number) => boolean][] = [
  ["no nulls", () => true],
  ["nulls only", () => false],
  ["nulls at random", () => random(3) > 0],
  ["runs of nulls", (row) => Math.floor(row / 50) % 2 === 0],
  ["a null at the end", (row) => row % 333 !== 332],
];

for (const [nulls, hasValue] of NULLS) {
  Deno.test(`createParquetEncoder() writes flat columns that come back: ${nulls}`, async () => {
    for (const groupRows of [[1], [9, 7], [500, 1, 333]]) {
      const rowCount = groupRows.reduce((sum, rows) => sum + rows, 0);
      for (const distinct of [1, 30, 10_000]) {
        const columns = MAKERS.map(([, make]) => make(rowCount, distinct, hasValue));
        for (const options of [{}, { pageSizeBytes: 64 }, { codec: "SNAPPY", pageSizeBytes: 1024 }] as const) {
          const found = await read(await fileOf(columns, groupRows, options));
          for (const [index, [type]] of MAKERS.entries()) {
            const title = `${type}, groups of ${groupRows} rows, ${distinct} values, ${JSON.stringify(options)}`;
            assert.deepEqual(found[index], columns[index].expected, title);
          }
        }
      }
    }
  });
}

Deno.test("createParquetEncoder() uses a dictionary if that halves the bytes", async () => {
  const encodings = async (type: string, distinct: number, hasValue = () => true) => {
    const make = MAKERS.find(([name]) => name === type)![1];
    const metadata = parquetMetadata(await fileOf([make(20_000, distinct, hasValue)], [20_000], {}));
    return metadata.row_groups[0].columns[0].meta_data!.encodings;
  };
  for (const type of ["INT", "LONG", "DOUBLE", "VARCHAR", "SYMBOL", "BINARY", "UUID", "LONG256"]) {
    assert.deepEqual(await encodings(type, 200), ["PLAIN", "RLE_DICTIONARY"], type);
    assert.deepEqual(await encodings(type, 30_000), ["PLAIN"], type);
    assert.deepEqual(await encodings(type, 200, () => false), ["PLAIN"], type);
  }
  // QuestDB does not read one.
  assert.deepEqual(await encodings("STRING", 200), ["PLAIN"]);
});

Deno.test("createParquetEncoder() tells sizes and places as they are", async () => {
  const columns = MAKERS.map(([, make]) => make(5_000, 100, () => random(3) > 0));
  const metadata = parquetMetadata(await fileOf(columns, [2_000, 3_000], { codec: "GZIP", pageSizeBytes: 2_000 }));
  let offset = 4;
  for (const group of metadata.row_groups) {
    let plain = 0;
    const first = offset;
    for (const column of group.columns) {
      const { meta_data: data } = column;
      assert.equal(Number(column.file_offset), offset);
      assert.equal(Number(data!.dictionary_page_offset ?? data!.data_page_offset), offset);
      assert.equal(data!.num_values, group.num_rows);
      offset += Number(data!.total_compressed_size);
      plain += Number(data!.total_uncompressed_size);
    }
    assert.equal(Number(group.total_byte_size), plain);
    assert.equal(Number(group.total_compressed_size), offset - first);
  }
});
