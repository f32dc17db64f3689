import assert from "node:assert/strict";
import type { Encoding } from "../../api.ts";
import type { Batch, Vector } from "../../engine/contract.ts";
import { workAt } from "../../engine/mod.ts";
import { upperHeap } from "../../engine/testing.ts";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { createEncoder } from "./mod.ts";
import { ParquetAssembler } from "./parquet.ts";

const heap = upperHeap(64 << 20);

function longs(type: string, ...values: bigint[]): Vector {
  const address = heap.allocate(values.length * 8, "other");
  values.forEach((value, row) => heap.i64[address / 8 + row] = value);
  return { type, address };
}

function words(type: string, ...values: number[]): Vector {
  const address = heap.allocate(values.length * 4, "other");
  values.forEach((value, row) => heap.i32[address / 4 + row] = value);
  return { type, address };
}

function shorts(type: string, ...values: number[]): Vector {
  const address = heap.allocate(values.length * 2, "other");
  values.forEach((value, row) => heap.i16[address / 2 + row] = value);
  return { type, address };
}

function bytes(type: string, ...values: number[]): Vector {
  const address = heap.allocate(values.length, "other");
  values.forEach((value, row) => heap.i8[address + row] = value);
  return { type, address };
}

function doubles(...values: number[]): Vector {
  const address = heap.allocate(values.length * 8, "other");
  values.forEach((value, row) => heap.f64[address / 8 + row] = value);
  return { type: "DOUBLE", address };
}

function floats(...values: number[]): Vector {
  const address = heap.allocate(values.length * 4, "other");
  values.forEach((value, row) => heap.f32[address / 4 + row] = value);
  return { type: "FLOAT", address };
}

function textPairs(values: (string | null)[]): number {
  const address = heap.allocate(Math.max(1, values.length) * 8, "other");
  values.forEach((value, row) => {
    const utf8 = new TextEncoder().encode(value ?? "");
    const to = heap.allocate(Math.max(1, utf8.length), "other");
    heap.u8.set(utf8, to);
    heap.u32[address / 4 + row * 2] = to;
    heap.i32[address / 4 + row * 2 + 1] = value === null ? -1 : utf8.length;
  });
  return address;
}

const texts = (type: string, ...values: (string | null)[]): Vector => ({ type, address: textPairs(values) });

function symbols(entries: string[], ...codes: number[]): Vector {
  return {
    ...words("SYMBOL", ...codes),
    dictionary: { tableId: 1, columnId: 1, entries: textPairs(entries), count: entries.length },
  };
}

function encode(encoding: Encoding, rowCount: number, ...columns: Vector[]): Uint8Array {
  const batch: Batch = { rowCount, columns };
  const named = columns.map((column, index) => ({ name: `c${index}`, type: column.type }));
  return createEncoder(encoding, named, heap).encode(batch, 0, rowCount, true);
}

const JSON_PLAIN: Encoding = { name: "json", quoteLargeNumbers: false };
const CSV: Encoding = { name: "csv", delimiter: "," };
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const nullLong = -(2n ** 63n);
const second = 1_000_000n;

/** The second row is the null. */
const CASES: { vector: Vector; json: string; csv: string; pg: (string | null)[] }[] = [
  { vector: bytes("BOOLEAN", 1, 0), json: "[true],[false]", csv: "true\r\nfalse\r\n", pg: ["t", "f"] },
  { vector: bytes("BYTE", -128, 0), json: "[-128],[0]", csv: "-128\r\n0\r\n", pg: ["-128", "0"] },
  { vector: shorts("SHORT", -32768, 0), json: "[-32768],[0]", csv: "-32768\r\n0\r\n", pg: ["-32768", "0"] },
  { vector: shorts("CHAR", 0x22, 0), json: '["\\""],[""]', csv: '"\r\n\r\n', pg: ['"', null] },
  { vector: shorts("CHAR", 0x6f22, 0), json: '["漢"],[""]', csv: "漢\r\n\r\n", pg: ["漢", null] },
  {
    vector: words("INT", -2147483647, -2147483648),
    json: "[-2147483647],[null]",
    csv: "-2147483647\r\n\r\n",
    pg: ["-2147483647", null],
  },
  {
    vector: longs("LONG", 9223372036854775807n, nullLong),
    json: "[9223372036854775807],[null]",
    csv: "9223372036854775807\r\n\r\n",
    pg: ["9223372036854775807", null],
  },
  { vector: floats(1234567.125, NaN), json: "[1234567.1],[null]", csv: "1234567.1\r\n\r\n", pg: ["1234567.1", null] },
  { vector: doubles(-0.0001, Infinity), json: "[-1.0E-4],[null]", csv: "-1.0E-4\r\n\r\n", pg: ["-1.0E-4", null] },
  {
    vector: longs("DATE", 1704067200123n, nullLong),
    json: '["2024-01-01T00:00:00.123Z"],[null]',
    csv: '"2024-01-01T00:00:00.123Z"\r\n\r\n',
    pg: ["2024-01-01 00:00:00.123", null],
  },
  {
    vector: longs("TIMESTAMP", -1n, nullLong),
    json: '["1969-12-31T23:59:59.999999Z"],[null]',
    csv: '"1969-12-31T23:59:59.999999Z"\r\n\r\n',
    pg: ["1969-12-31 23:59:59.999999", null],
  },
  {
    vector: longs("TIMESTAMP", 253402300800n * second, nullLong),
    json: '["10000-01-01T00:00:00.000000Z"],[null]',
    csv: '"10000-01-01T00:00:00.000000Z"\r\n\r\n',
    pg: ["10000-01-01 00:00:00.000000", null],
  },
  {
    vector: longs("TIMESTAMP_NS", 1704067200123456789n, nullLong),
    json: '["2024-01-01T00:00:00.123456789Z"],[null]',
    csv: '"2024-01-01T00:00:00.123456789Z"\r\n\r\n',
    pg: ["2024-01-01 00:00:00.123456", null],
  },
  {
    vector: texts("VARCHAR", 'a"\\\n\u0001/é😀', null),
    json: '["a\\"\\\\\\n\\u0001/é😀"],[null]',
    csv: '"a""\\\\\\n\\u0001/é😀"\r\n\r\n',
    pg: ['a"\\\n\u0001/é😀', null],
  },
  { vector: texts("STRING", "", null), json: '[""],[null]', csv: '""\r\n\r\n', pg: ["", null] },
  { vector: symbols(["BTC", 'E"H'], 1, -1), json: '["E\\"H"],[null]', csv: '"E""H"\r\n\r\n', pg: ['E"H', null] },
  {
    vector: longs("UUID", 0x9380a11_00000000n, 1n, nullLong, nullLong),
    json: '["00000000-0000-0001-0938-0a1100000000"],[null]',
    csv: "00000000-0000-0001-0938-0a1100000000\r\n\r\n",
    pg: ["00000000-0000-0001-0938-0a1100000000", null],
  },
  {
    vector: words("IPv4", 0xff020304 | 0, 0),
    json: '["255.2.3.4"],[null]',
    csv: "255.2.3.4\r\n\r\n",
    pg: ["255.2.3.4", null],
  },
  {
    vector: longs("INTERVAL", 1704067200n * second, 1704153600n * second, nullLong, nullLong),
    json: "[\"('2024-01-01T00:00:00.000Z', '2024-01-02T00:00:00.000Z')\"],[null]",
    csv: "\"('2024-01-01T00:00:00.000Z', '2024-01-02T00:00:00.000Z')\"\r\n\r\n",
    pg: ["('2024-01-01T00:00:00.000Z', '2024-01-02T00:00:00.000Z')", null],
  },
];

/** Values of the first column of DataRow messages. */
function dataRows(messages: Uint8Array): (Uint8Array | null)[] {
  const view = new DataView(messages.buffer, messages.byteOffset, messages.byteLength);
  const values = [];
  for (let at = 0; at < messages.length; at += 1 + view.getInt32(at + 1)) {
    assert.equal(messages[at], 0x44);
    assert.equal(view.getInt16(at + 5), 1);
    const size = view.getInt32(at + 7);
    assert.equal(view.getInt32(at + 1), 10 + Math.max(0, size));
    values.push(size < 0 ? null : messages.slice(at + 11, at + 11 + size));
  }
  return values;
}

Deno.test("createEncoder() writes each type and its null", () => {
  for (const { vector, json, csv, pg } of CASES) {
    assert.equal(text(encode(JSON_PLAIN, 2, vector)), json, vector.type);
    assert.equal(text(encode(CSV, 2, vector)), csv, vector.type);
    const values = dataRows(encode({ name: "pg", formats: [0] }, 2, vector));
    assert.deepEqual(values.map((value) => value && text(value)), pg, vector.type);
  }
});

Deno.test("createEncoder() writes PostgreSQL's binary format", () => {
  const hex = (vector: Vector) =>
    dataRows(encode({ name: "pg", formats: [1] }, 2, vector)).map((value) => value && value.toHex());
  assert.deepEqual(hex(bytes("BOOLEAN", 1, 0)), ["01", "00"]);
  assert.deepEqual(hex(bytes("BYTE", -2, 0)), ["fffe", "0000"]);
  assert.deepEqual(hex(words("INT", 258, -2147483648)), ["00000102", null]);
  assert.deepEqual(hex(longs("LONG", -2n, nullLong)), ["fffffffffffffffe", null]);
  assert.deepEqual(hex(doubles(1.5, NaN)), ["3ff8000000000000", null]);
  assert.deepEqual(hex(longs("TIMESTAMP", 946684800000001n, nullLong)), ["0000000000000001", null]);
  assert.deepEqual(hex(longs("TIMESTAMP", 0n, nullLong)), [hexOf(-946684800000000n), null]);
  assert.deepEqual(hex(longs("TIMESTAMP_NS", 946684800000001999n, nullLong)), ["0000000000000001", null]);
  assert.deepEqual(hex(longs("DATE", 946684799999n, nullLong)), [hexOf(-1000n), null]);
  assert.deepEqual(hex(longs("UUID", 2n, 1n, nullLong, nullLong)), ["00000000000000010000000000000002", null]);
  assert.deepEqual(hex(texts("VARCHAR", "é", null)), ["c3a9", null]);
});

function hexOf(value: bigint): string {
  return BigInt.asUintN(64, value).toString(16).padStart(16, "0");
}

Deno.test("createEncoder() selects columns, quotes LONG and continues after earlier rows", () => {
  const columns = [longs("LONG", 1n, 2n, 3n), words("INT", 4, 5, 6)];
  const named = columns.map((column, index) => ({ name: `c${index}`, type: column.type }));
  const encoder = createEncoder({ name: "json", quoteLargeNumbers: true, columns: [1, 0] }, named, heap);
  assert.equal(text(encoder.encode({ rowCount: 3, columns }, 1, 2, false)), ',[5,"2"],[6,"3"]');
  assert.equal(text(encoder.encode({ rowCount: 3, columns }, 0, 0, true)), "");
});

Deno.test("createEncoder() grows for long texts that must all be escaped", () => {
  const long = "\u0001".repeat(100_000);
  assert.equal(text(encode(JSON_PLAIN, 1, texts("STRING", long))), `[${JSON.stringify(long)}]`);
  const wide = "x".repeat(70_000) + '"' + "y".repeat(70_000);
  assert.equal(
    text(encode(JSON_PLAIN, 2, texts("STRING", wide, wide))),
    `[${JSON.stringify(wide)}],[${JSON.stringify(wide)}]`,
  );
});

Deno.test("createEncoder() polls the query inside of long values", () => {
  const long = "\u0001".repeat(1 << 20);
  const array = heap.allocate(8 + (1 << 20), "other");
  heap.u32[array / 4] = 1;
  heap.u32[array / 4 + 1] = 1 << 17;
  const pair = heap.allocate(8, "other");
  heap.u32[pair / 4] = array;
  heap.i32[pair / 4 + 1] = 8 + (1 << 20);
  const encodings: Encoding[] = [
    JSON_PLAIN,
    { name: "csv", delimiter: "," },
    { name: "pg", formats: [0] },
    { name: "pg", formats: [1] },
  ];
  for (const vector of [texts("STRING", long), texts("BINARY", long), { type: "DOUBLE[]", address: pair }]) {
    for (const encoding of encodings) {
      if (vector.type === "BINARY" && (encoding.name !== "pg" || encoding.formats[0] === 1)) continue;
      let polls = 0;
      workAt({ poll: () => polls++ });
      encode(encoding, 1, vector);
      workAt(undefined);
      assert.ok(polls > 1, `${vector.type} as ${JSON.stringify(encoding)}: ${polls} polls`);
    }
  }
});

for (const codec of ["UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4_RAW"] as const) {
  Deno.test(`createEncoder() and ParquetAssembler make a file of groups, ${codec}`, async () => {
    const columns = [
      longs("TIMESTAMP", 1n, nullLong, 3n),
      doubles(1.5, NaN, -2),
      symbols(["a", "5n"], 1, -1, 0),
      texts("VARCHAR", "é", null, ""),
      bytes("BOOLEAN", 1, 0, 1),
      words("IPv4", 0x01020304, 0, 0),
    ];
    const named = columns.map((column, index) => ({ name: `${index}n`, type: column.type }));
    const encoder = createEncoder({ name: "parquet", codec }, named, heap);
    const file = new ParquetAssembler(named, "test");
    const parts: Uint8Array[] = [file.head];
    for (const [first, count] of [[0, 2], [2, 1]]) {
      parts.push(file.group(encoder.encode({ rowCount: 3, columns }, first, count, first === 0)).slice());
    }
    parts.push(file.footer());
    const whole = await new Blob(parts as BlobPart[]).arrayBuffer();
    const rows = await parquetReadObjects({ file: whole, compressors });
    assert.deepEqual(rows, [
      { "0n": new Date(0), "1n": 1.5, "2n": "5n", "3n": "é", "4n": true, "5n": 0x01020304 },
      { "0n": null, "1n": null, "2n": null, "3n": null, "4n": false, "5n": null },
      { "0n": new Date(0), "1n": -2, "2n": "a", "3n": "", "4n": true, "5n": null },
    ]);
  });
}

Deno.test("ParquetAssembler: a file of many groups", async () => {
  const values = Array.from({ length: 200 }, (_, row) => BigInt(row)), columns = [longs("LONG", ...values)];
  const named = [{ name: "x", type: "LONG" }];
  const encoder = createEncoder({ name: "parquet", codec: "UNCOMPRESSED" }, named, heap);
  for (const count of [1, 14, 15, 16, 127, 128, 200]) {
    const file = new ParquetAssembler(named, "test"), parts = [file.head];
    for (let row = 0; row < count; row++) {
      parts.push(file.group(encoder.encode({ rowCount: 200, columns }, row, 1, row === 0)).slice());
    }
    parts.push(file.footer());
    const rows = await parquetReadObjects({ file: await new Blob(parts as BlobPart[]).arrayBuffer() });
    assert.deepEqual(rows, values.slice(0, count).map((x) => ({ x })));
  }
});

Deno.test("a Parquet file without rows has its schema", async () => {
  const file = new ParquetAssembler([{ name: "x", type: "LONG" }], "test");
  const whole = await new Blob([file.head, file.footer()]).arrayBuffer();
  assert.deepEqual(await parquetReadObjects({ file: whole }), []);
});
