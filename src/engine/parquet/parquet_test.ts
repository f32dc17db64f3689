import assert from "node:assert/strict";
import { dirname } from "node:path";
import { parquetWriteBuffer } from "hyparquet-writer";
import { SqlError } from "../../errors.ts";
import type { ParquetNode } from "../../sql/plan.ts";
import { Workspace } from "../columns.ts";
import { workAt } from "../long-texts.ts";
import { createParquet } from "../operators/parquet.ts";
import { randomFrom, type Row, rowsOf, testContext } from "../testing.ts";
import { parquetSchema } from "./file.ts";
import { columnReader } from "./column.ts";
import { Deltas, ENCODING, joinStreams, PAGE, Runs } from "./page.ts";
import { ReadBuffer } from "./pages.ts";

const ROWS = 3_000;
const symbols = ["alpha", "größe", "", "日本"];

function write(path: string, codec: "SNAPPY" | "UNCOMPRESSED"): Row[] {
  const rows = Array.from({ length: ROWS }, (_, i): Row => [
    i % 7 === 0 ? null : i * 37 - 5_000,
    BigInt(i) * 1_000_000_007n,
    i % 5 === 0 ? null : i / 8,
    i % 11 === 0 ? null : symbols[i % 4],
    `unique ${i}`,
    i % 3 === 0,
    1_704_067_200_000_000n + BigInt(i),
  ]);
  const data = (c: number) => rows.map((row) => row[c]);
  const buffer = parquetWriteBuffer({
    codec,
    rowGroupSize: 1_000,
    pageSize: 2_000,
    columnData: [
      { name: "i", data: data(0), type: "INT32", nullable: true },
      { name: "l", data: data(1), type: "INT64", nullable: false },
      { name: "d", data: data(2), type: "DOUBLE", nullable: true },
      { name: "s", data: data(3), type: "STRING", nullable: true },
      { name: "u", data: data(4), type: "STRING", nullable: false },
      { name: "b", data: data(5), type: "BOOLEAN", nullable: false },
      { name: "ts", data: data(6), type: "INT64", nullable: false },
    ],
  });
  Deno.writeFileSync(path, new Uint8Array(buffer));
  return rows;
}

function read(path: string, lastRows?: number): Row[] {
  const context = testContext(1 << 26);
  const { columns } = parquetSchema(path, dirname(path), 27);
  const plan: ParquetNode = {
    node: "parquet",
    columns,
    fileColumns: columns.map((column) => column.name),
    path,
    root: dirname(path),
    at: 27,
    lastRows,
    timestamp: -1,
    order: "none",
  };
  try {
    return rowsOf(createParquet(plan, context), context);
  } finally {
    assert.equal(context.memory.usedBytes, 0);
  }
}

function withFile(work: (path: string) => void): void {
  const directory = Deno.makeTempDirSync();
  try {
    work(`${directory}/x.parquet`);
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
}

Deno.test("only the row groups of the last rows are read", () =>
  withFile((path) => {
    const rows = write(path, "SNAPPY");
    for (
      const [wanted, expected] of [[0, 0], [1, 1_000], [1_000, 1_000], [1_001, 2_000], [2_001, 3_000], [9_000, 3_000]]
    ) {
      assert.deepEqual(read(path, wanted), rows.slice(ROWS - expected), `${wanted}`);
    }
  }));

for (const codec of ["UNCOMPRESSED", "SNAPPY"] as const) {
  Deno.test(`a written file is read back: ${codec}`, () =>
    withFile((path) => {
      const rows = write(path, codec);
      const schema = parquetSchema(path, dirname(path));
      assert.equal(schema.rowCount, ROWS);
      assert.deepEqual(schema.columns.map((column) => column.type), [
        "INT",
        "LONG",
        "DOUBLE",
        "VARCHAR",
        "VARCHAR",
        "BOOLEAN",
        "LONG",
      ]);
      assert.deepEqual(read(path), rows);
    }));
}

Deno.test("columns are read by name, in any order; without columns only rows are counted", () =>
  withFile((path) => {
    const rows = write(path, "SNAPPY");
    const context = testContext(1 << 26);
    const plan: ParquetNode = {
      node: "parquet",
      columns: [{ name: "s", type: "VARCHAR" }, { name: "i", type: "INT" }],
      fileColumns: ["s", "i"],
      path,
      root: dirname(path),
      at: 0,
      timestamp: -1,
      order: "none",
    };
    assert.deepEqual(rowsOf(createParquet(plan, context), context), rows.map((row) => [row[3], row[0]]));
    assert.equal(rowsOf(createParquet({ ...plan, columns: [], fileColumns: [] }, context), context).length, ROWS);
  }));

Deno.test("truncated and damaged files are refused with the path, unless the damage is in values", () =>
  withFile((path) => {
    write(path, "SNAPPY");
    const whole = Deno.readFileSync(path);
    const random = randomFrom(21);
    const refused = (bytes: Uint8Array, mustFail: boolean) => {
      Deno.removeSync(path);
      Deno.writeFileSync(path, bytes);
      try {
        assert.equal(read(path).length >= 0 && mustFail, false);
      } catch (error) {
        assert.ok(error instanceof SqlError, String(error));
        assert.equal(error.position, 27);
      }
    };
    for (let k = 0; k < 40; k++) refused(whole.slice(0, random() % whole.length), true);
    for (let k = 0; k < 150; k++) {
      const bytes = whole.slice();
      bytes[random() % bytes.length] ^= 1 << (random() % 8);
      refused(bytes, false);
    }
    Deno.removeSync(path);
    assert.throws(() => parquetSchema(path, dirname(path), 5), { name: "SqlError", position: 5 });
  }));

/** As described in the format's specification. */
function encodeDelta(values: bigint[]): Uint8Array {
  const out: number[] = [];
  const varint = (value: bigint) => {
    for (value = BigInt.asUintN(64, value); value >= 0x80n; value >>= 7n) out.push(Number(value & 0x7fn) | 0x80);
    out.push(Number(value));
  };
  const zigzag = (value: bigint) => varint((value << 1n) ^ (value >> 63n));
  varint(128n);
  varint(4n);
  varint(BigInt(values.length));
  zigzag(values[0] ?? 0n);
  for (let from = 1; from < values.length; from += 128) {
    const deltas = values.slice(from, from + 128).map((value, k) => BigInt.asIntN(64, value - values[from + k - 1]));
    const min = deltas.reduce((a, b) => a < b ? a : b);
    zigzag(min);
    const minis = [0, 1, 2, 3].map((m) =>
      deltas.slice(m * 32, m * 32 + 32).map((delta) => BigInt.asUintN(64, delta - min))
    );
    const widths = minis.map((mini) =>
      Math.max(0, ...mini.map((value) => value.toString(2).length * (value > 0n ? 1 : 0)))
    );
    out.push(...widths);
    minis.forEach((mini, m) => {
      if (mini.length === 0) return;
      let bits = 0n;
      mini.forEach((value, k) => bits |= value << BigInt(k * widths[m]));
      for (let k = 0; k < 4 * widths[m]; k++) out.push(Number((bits >> BigInt(8 * k)) & 0xffn));
    });
  }
  return Uint8Array.from(out);
}

Deno.test("delta-coded numbers of all widths are decoded", () => {
  const random = randomFrom(22);
  for (let width = 0; width <= 64; width++) {
    const values = Array.from(
      { length: 1 + width * 5 },
      () => BigInt.asIntN(64, ((BigInt(random()) << 32n) | BigInt(random())) & ((1n << BigInt(width)) - 1n)),
    );
    const bytes = encodeDelta(values);
    const deltas = new Deltas(bytes, 0, values.length);
    assert.equal(deltas.end, bytes.length);
    const found: bigint[] = [];
    while (found.length < values.length) {
      const words = deltas.read(Math.min(values.length - found.length, random() % 70));
      found.push(...new BigInt64Array(words.buffer));
    }
    assert.deepEqual(found, values, `width ${width}`);
  }
  assert.throws(() => new Deltas(encodeDelta([1n, 2n, 300n]).slice(0, 7), 0, 3), { name: "ParquetError" });
});

Deno.test("runs and bit-packed groups", () => {
  const decodeRuns = (bytes: Uint8Array, width: number, count: number) => {
    const out = new Int32Array(count);
    new Runs(bytes, width, count).read(out, count);
    return out;
  };
  // A run of ten 5s, then eight 3-bit values 0 … 7 (the specification's example).
  assert.deepEqual([...decodeRuns(Uint8Array.of(20, 5, 3, 0x88, 0xc6, 0xfa), 3, 18)], [
    ...Array(10).fill(5),
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
  ]);
  assert.deepEqual([...decodeRuns(Uint8Array.of(20), 0, 10)], Array(10).fill(0));
  assert.throws(() => decodeRuns(Uint8Array.of(20, 5), 3, 11), { name: "ParquetError" });
  assert.deepEqual([...joinStreams(Uint8Array.of(1, 2, 3, 4, 5, 6), 2, 3)], [1, 4, 2, 5, 3, 6]);
});

Deno.test("runs are read in pieces of any size", () => {
  const random = randomFrom(11);
  for (let width = 0; width <= 20; width++) {
    const bytes: number[] = [], values: number[] = [];
    for (let run = 0; run < 30; run++) {
      if (random() % 2 === 0) {
        const count = 1 + random() % 40, value = random() % 2 ** width;
        bytes.push(...varint(count * 2));
        for (let k = 0; k < Math.ceil(width / 8); k++) bytes.push((value >>> (8 * k)) & 255);
        for (let k = 0; k < count; k++) values.push(value);
      } else {
        const packed = Array.from({ length: 8 * (1 + random() % 5) }, () => random() % 2 ** width);
        bytes.push(...varint(packed.length / 4 + 1));
        let bits = 0n;
        packed.forEach((value, k) => bits |= BigInt(value) << BigInt(k * width));
        for (let k = 0; k < packed.length * width / 8; k++) bytes.push(Number((bits >> BigInt(8 * k)) & 255n));
        values.push(...packed);
      }
    }
    const runs = new Runs(Uint8Array.from(bytes), width, values.length), found: number[] = [];
    while (found.length < values.length) {
      const piece = new Int32Array(Math.min(values.length - found.length, random() % 30));
      runs.read(piece, piece.length);
      found.push(...piece);
    }
    assert.deepEqual(found, values, `width ${width}`);
    const most = Math.max(...values);
    const all = new Runs(Uint8Array.from(bytes), width, values.length);
    assert.equal(all.countOf(most), values.filter((value) => value === most).length);
    assert.throws(() => new Runs(Uint8Array.from(bytes), width, values.length).countOf(most - 1), /impossible levels/);
  }
});

Deno.test("a small row group is charged for its rows", () =>
  withFile((path) => {
    const columns = Array.from({ length: 30 }, (_, k) => `c${k}`), data = Array.from({ length: 100 }, (_, i) => i / 8);
    const columnData = columns.map((name) => ({ name, data, type: "DOUBLE" as const, nullable: true }));
    Deno.writeFileSync(path, new Uint8Array(parquetWriteBuffer({ columnData })));
    const context = testContext(1 << 26), root = dirname(path), { columns: found } = parquetSchema(path, root, 0);
    const plan: ParquetNode = {
      node: "parquet",
      columns: found,
      fileColumns: columns,
      path,
      root,
      at: 0,
      timestamp: -1,
      order: "none",
    };
    const operator = createParquet(plan, context), before = context.memory.usedBytes;
    assert.equal(operator.next()?.rowCount, data.length);
    const taken = context.memory.usedBytes - before;
    operator.close();
    assert.ok(taken < columns.length * (16 << 10), `${taken} bytes`);
  }));

Deno.test("a small page that claims many values takes memory only for one piece of them", () => {
  const claimed = 200_000_000;
  // All values null, all values equal to a dictionary's only entry, and one block of differences of 0 from 7.
  const forms: Record<string, number[]> = {
    nulls: [],
    dictionary: [1, ...varint(claimed * 2), 0],
    deltas: [...varint(2 ** 28), 1, ...varint(claimed), 14, 0, 0],
  };
  for (const [form, values] of Object.entries(forms)) {
    const isNull = form === "nulls";
    const levels = [...varint(claimed * 2), isNull ? 0 : 1];
    const bytes = Uint8Array.from([
      ...(form === "dictionary" ? dictionaryPage(Uint8Array.of(7, 0, 0, 0, 0, 0, 0, 0)) : []),
      ...dataPage(claimed, levels, values, form === "deltas" ? ENCODING.delta : ENCODING.dictionary),
    ]);
    const path = Deno.makeTempFileSync();
    Deno.writeFileSync(path, bytes);
    const file = Deno.openSync(path);
    let polls = 0;
    const context = testContext(1 << 24, { poll: () => polls++ });
    workAt(context);
    const column = { name: "n", type: "LONG", conversion: CONVERSION, leaf: 0, definitionMax: 1, dimensions: [] };
    const extent = {
      codec: "UNCOMPRESSED",
      offset: 0,
      sizeBytes: bytes.length,
      plainSizeBytes: bytes.length,
      valueCount: claimed,
    };
    const space = Workspace.of(context, "read_parquet");
    const reader = columnReader(column, extent, file, space, new ReadBuffer());
    const rows = 50_000, address = space.allocate(rows * 8);
    for (let k = 0; k < 20; k++) reader.read(address, 0, rows);
    const longs = context.heap.i64.subarray(address / 8, address / 8 + rows);
    assert.ok(longs.every((long) => long === (isNull ? -(2n ** 63n) : 7n)));
    assert.ok(context.memory.usedBytes < 16 << 20, `${context.memory.usedBytes} bytes`);
    assert.ok(polls >= 10, `${polls} polls`);
    reader.close();
    file.close();
    Deno.removeSync(path);
  }
});

const CONVERSION = { stored: "fixed", sizeBytes: 8, isInteger: true, convert: longsOf } as const;

function longsOf(bytes: Uint8Array<ArrayBuffer>): Int32Array<ArrayBuffer> {
  return new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push(value % 128 + 128);
  return [...bytes, value];
}

/** Header fields in the compact protocol: consecutive i32 fields. */
const fields = (...values: number[]): number[] => values.flatMap((value) => [0x15, ...varint(2 * value)]);

function dictionaryPage(bytes: Uint8Array): number[] {
  return [...fields(PAGE.dictionary, bytes.length, bytes.length), 0x4c, ...fields(1, ENCODING.plain), 0, 0, ...bytes];
}

/** A page of version 2, uncompressed. */
function dataPage(count: number, levels: number[], values: number[], encoding: number): number[] {
  const size = levels.length + values.length;
  return [
    ...fields(PAGE.dataV2, size, size),
    0x5c,
    ...fields(count, values.length === 0 ? count : 0, count, encoding, levels.length, 0),
    0x12,
    0,
    0,
    ...levels,
    ...values,
  ];
}
