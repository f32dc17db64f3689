import assert from "node:assert/strict";
import type { Encoding } from "../../api.ts";
import type { Batch, Vector } from "../../engine/contract.ts";
import { randomFrom } from "../../engine/testing.ts";
import { upperHeap } from "../../engine/testing.ts";
import {
  formatDate,
  formatDouble,
  formatFloat,
  formatIPv4,
  formatNanos,
  formatTimestampMicros,
  formatUuid,
} from "../../types/format/mod.ts";
import { formatLong256 } from "../../types/wide.ts";
import { createEncoder } from "./mod.ts";
import { FULL, SEED } from "../../testing.ts";

const random = randomFrom(SEED);
const heap = upperHeap(1 << 30);
const TEXTS = ["plain", 'with "quotes"', "back\\slash", "line\nfeed", "", "żółć 🙂", "x".repeat(300), '"'.repeat(250)];

/** Text pairs, including null. */
function pairs(texts: readonly (string | undefined)[]): number {
  const address = heap.allocate(texts.length * 8, "other");
  texts.forEach((text, k) => {
    const bytes = new TextEncoder().encode(text ?? ""), at = heap.allocate(Math.max(1, bytes.length), "other");
    heap.u8.set(bytes, at);
    heap.u32[address / 4 + 2 * k] = at;
    heap.i32[address / 4 + 2 * k + 1] = text === undefined ? -1 : bytes.length;
  });
  return address;
}

type Put = (bytes: Uint8Array, at: number) => number;

function textOf(put: Put): string {
  const bytes = new Uint8Array(80);
  return new TextDecoder().decode(bytes.subarray(0, put(bytes, 0)));
}

type Instant = (low: number, high: number, bytes: Uint8Array, at: number) => number;

const instant = (format: Instant) => (value: bigint) =>
  textOf((bytes, at) => format(Number(BigInt.asIntN(32, value)), Number(value >> 32n), bytes, at));

/** 2024-03-01T10:20:30.123456789Z with a blank and at most six decimals. */
const postgres = (iso: string) => iso.replace("T", " ").replace("Z", "").replace(/(\.\d{6})\d+/, "$1");

interface Values {
  vector: Vector;
  /** As in CSV, without quotes; undefined for NULL. */
  texts: (string | undefined)[];
  /** As PostgreSQL's text, if it differs. */
  pg?: (string | undefined)[];
  /** PostgreSQL's binary form. */
  binary?: (Uint8Array | undefined)[];
}

const NULL_64 = -(2n ** 63n), NULL_32 = -(2 ** 31);
const word = () => BigInt(random()) << 32n | BigInt(random());

function binaryOf<T>(values: readonly (T | undefined)[], size: number, put: (view: DataView, value: T) => void) {
  return values.map((value) => {
    if (value === undefined) return undefined;
    const view = new DataView(new ArrayBuffer(size));
    put(view, value);
    return new Uint8Array(view.buffer);
  });
}

function vectorOf(type: string, width: number, count: number, put: (address: number, k: number) => void): Vector {
  const address = heap.allocate(Math.max(8, count * width), "other");
  for (let k = 0; k < count; k++) put(address + k * width, k);
  return { type, address };
}

function doubles(values: number[]): Values {
  const there = values.map((value) => Number.isFinite(value) ? value : undefined);
  return {
    vector: vectorOf("DOUBLE", 8, values.length, (at, k) => heap.f64[at / 8] = values[k]!),
    texts: there.map((value) =>
      value === undefined ? undefined : textOf((bytes, at) => formatDouble(value, bytes, at))
    ),
    binary: binaryOf(there, 8, (view, value) => view.setFloat64(0, value)),
  };
}

function floats(values: number[]): Values {
  const there = values.map((value) => Number.isFinite(value) ? value : undefined);
  return {
    vector: vectorOf("FLOAT", 4, values.length, (at, k) => heap.f32[at / 4] = values[k]!),
    texts: there.map((value) => value === undefined ? undefined : textOf((bytes, at) => formatFloat(value, bytes, at))),
    binary: binaryOf(there, 4, (view, value) => view.setFloat32(0, value)),
  };
}

function longs(type: string, values: bigint[], format: (value: bigint) => string): Values {
  const there = values.map((value) => value === NULL_64 ? undefined : value);
  const texts = there.map((value) => value === undefined ? undefined : format(value));
  const isInstant = type !== "LONG";
  return {
    vector: vectorOf(type, 8, values.length, (at, k) => heap.i64[at / 8] = values[k]!),
    texts,
    pg: isInstant ? texts.map((text) => text && postgres(text)) : undefined,
    binary: type === "LONG"
      ? binaryOf(there, 8, (view, value) => view.setBigInt64(0, value))
      : type === "TIMESTAMP"
      ? binaryOf(there, 8, (view, value) => view.setBigInt64(0, BigInt.asIntN(64, value - 946_684_800_000_000n)))
      : undefined,
  };
}

function ints(type: "INT" | "SHORT" | "BYTE", values: number[]): Values {
  const there = values.map((value) => type === "INT" && value === NULL_32 ? undefined : value);
  const [width, heapOf] = type === "INT"
    ? [4, heap.i32] as const
    : type === "SHORT"
    ? [2, heap.i16] as const
    : [1, heap.i8] as const;
  return {
    vector: vectorOf(type, width, values.length, (at, k) => heapOf[at / width] = values[k]!),
    texts: there.map((value) => value?.toString()),
    binary: type === "INT"
      ? binaryOf(there, 4, (view, value) => view.setInt32(0, value))
      : binaryOf(there, 2, (view, value) => view.setInt16(0, value)),
  };
}

const utf8 = (texts: readonly (string | undefined)[]) =>
  texts.map((text) => text === undefined ? undefined : new TextEncoder().encode(text));

function texts(type: string, values: (string | undefined)[]): Values {
  return { vector: { type, address: pairs(values) }, texts: values, binary: utf8(values) };
}

function symbols(dictionary: string[], codes: number[]): Values {
  const vector = vectorOf("SYMBOL", 4, codes.length, (at, k) => heap.i32[at / 4] = codes[k]!);
  const values = codes.map((code) => code < 0 ? undefined : dictionary[code]!);
  return {
    vector: {
      ...vector,
      dictionary: { tableId: 1, columnId: 0, entries: pairs(dictionary), count: dictionary.length },
    },
    texts: values,
    binary: utf8(values),
  };
}

function booleans(values: boolean[]): Values {
  return {
    vector: vectorOf("BOOLEAN", 1, values.length, (at, k) => heap.i8[at] = Number(values[k])),
    texts: values.map(String),
    pg: values.map((value) => value ? "t" : "f"),
    binary: values.map((value) => Uint8Array.of(Number(value))),
  };
}

function characters(values: (string | undefined)[]): Values {
  return {
    vector: vectorOf("CHAR", 2, values.length, (at, k) => heap.u16[at / 2] = values[k]?.charCodeAt(0) ?? 0),
    texts: values,
    binary: utf8(values),
  };
}

function uuids(count: number): Values {
  const vector = vectorOf("UUID", 16, count, (at, k) => {
    for (const half of [0, 1]) heap.i64[at / 8 + half] = k % 7 === 0 ? NULL_64 : BigInt.asIntN(64, word());
  });
  const texts = Array.from(
    { length: count },
    (_, k) =>
      k % 7 === 0 ? undefined : textOf((bytes, at) => formatUuid(heap.i32, vector.address / 4 + 4 * k, bytes, at)),
  );
  return {
    vector,
    texts,
    binary: texts.map((text) => text === undefined ? undefined : Uint8Array.fromHex(text.replaceAll("-", ""))),
  };
}

function addresses(values: number[]): Values {
  const texts = values.map((value) => value === 0 ? undefined : textOf((bytes, at) => formatIPv4(value, bytes, at)));
  return {
    vector: vectorOf("IPv4", 4, values.length, (at, k) => heap.u32[at / 4] = values[k]!),
    texts,
    binary: utf8(texts),
  };
}

const list = <T>(count: number, value: (k: number) => T) => Array.from({ length: count }, (_, k) => value(k));
const double = new DataView(new ArrayBuffer(8));

/** Of all exponents, and of the usual ones with some decimals. */
function anyDouble(k: number): number {
  const sign = random() % 2 === 0 ? 1 : -1, digits = random() % 17;
  switch (k % 6) {
    case 0:
      double.setBigUint64(0, word());
      return double.getFloat64(0);
    case 1:
      return sign * Math.round(random() * 10 ** (digits - 9)) / 10 ** digits;
    case 2:
      return sign * random() / 2 ** 32 * 10 ** (random() % 60 - 30);
    case 3:
      return sign * 2 ** (random() % 400 - 200);
    case 4:
      return sign * Number(`${random() % 1000}e${random() % 50 - 25}`);
    default:
      return sign * (random() * 1000 + random() % 1000);
  }
}

/** Row by row, in all forms. */
const TYPES: ((count: number) => Values)[] = [
  (count) => doubles(list(count, anyDouble)),
  (count) => booleans(list(count, () => random() % 2 === 0)),
  (count) => ints("BYTE", list(count, () => random() << 24 >> 24)),
  (count) => ints("SHORT", list(count, () => random() << 16 >> 16)),
  (count) => characters(list(count, (k) => [undefined, "a", '"', "\\", "ż", "€", "~", "\n"][k % 8])),
  (count) => ints("INT", list(count, (k) => k % 9 === 0 ? NULL_32 : (random() | 0) >> random() % 32)),
  (count) =>
    longs(
      "LONG",
      list(count, (k) => k % 9 === 0 ? NULL_64 : BigInt.asIntN(64, word()) >> BigInt(random() % 64)),
      String,
    ),
  (count) => floats(list(count, (k) => Math.fround(anyDouble(k)))),
  (count) => longs("DATE", list(count, anyInstant(86_400_000n)), instant(formatDate)),
  (count) => longs("TIMESTAMP", list(count, anyInstant(86_400_000_000n)), instant(formatTimestampMicros)),
  (count) => longs("TIMESTAMP_NS", list(count, anyInstant(86_400_000_000_000n)), instant(formatNanos)),
  (count) => symbols(TEXTS, list(count, (k) => k % 9 - 1)),
  (count) => texts("SYMBOL_TEXT", list(count, (k) => k % 9 === 8 ? undefined : TEXTS[k % 9])),
  (count) => texts("STRING", list(count, anyText)),
  (count) => texts("VARCHAR", list(count, (k) => k % 5 === 0 ? undefined : `${k}`.repeat(random() % 20))),
  uuids,
  (count) => addresses(list(count, (k) => k % 5 === 0 ? 0 : random())),
];

/** The first days of the years 0 and 10,000, between which years have four digits. */
const YEAR_0 = -719_528n, YEAR_10000 = 2_932_897n;

function anyInstant(unitsADay: bigint): (k: number) => bigint {
  let day = 0n;
  // The last nanosecond of all and then the first one: the distance between them wraps round.
  const edges = [0n, YEAR_0 * unitsADay, YEAR_10000 * unitsADay, 2n ** 63n - 2n, NULL_64 + 2n, 2n ** 32n];
  return (k) => {
    if (k < 18) return BigInt.asIntN(64, edges[Math.floor(k / 3)]! + BigInt(k % 3 - 1));
    if (k % 9 === 0) return NULL_64;
    if (k % 10 === 0) day = BigInt(random() % 4_000_000) - 800_000n;
    // Of any length, and instants of the same day one after the other.
    return BigInt.asIntN(
      64,
      k % 4 === 0 ? BigInt.asIntN(64, word()) >> BigInt(random() % 64) : day * unitsADay + word() % unitsADay,
    );
  };
}

/** Of any length up to 80, some with characters that are to be escaped. */
function anyText(): string {
  const share = [0, 1, 30][random() % 3]!, special = '\u0001\u001f "\\#\u007fé]!\n\t';
  return list(
    random() % 80,
    () => random() % 100 < share ? special[random() % special.length]! : String.fromCharCode(0x61 + random() % 26),
  ).join("");
}

const ESCAPED: Record<string, string> = {
  '"': '\\"',
  "\\": "\\\\",
  "\b": "\\b",
  "\t": "\\t",
  "\n": "\\n",
  "\f": "\\f",
  "\r": "\\r",
};
const UNQUOTED = ["DOUBLE", "BOOLEAN", "BYTE", "SHORT", "INT", "LONG", "FLOAT"];

function escapedText(text: string, quote: string): string {
  return [...text].map((character) => {
    if (character === '"') return quote;
    const hex = character.charCodeAt(0).toString(16).padStart(2, "0");
    return ESCAPED[character] ?? (character < " " ? `\\u00${hex}` : character);
  }).join("");
}

function jsonOf({ vector: { type }, texts }: Values, row: number, quotesLongs: boolean): string {
  const text = texts[row];
  if (text === undefined) return type === "CHAR" ? '""' : "null";
  return UNQUOTED.includes(type) && !(type === "LONG" && quotesLongs) ? text : `"${escapedText(text, '\\"')}"`;
}

function csvOf({ vector: { type }, texts }: Values, row: number): string {
  const text = texts[row];
  if (text === undefined) return "";
  const isPlain = UNQUOTED.includes(type) || ["CHAR", "UUID", "IPv4"].includes(type);
  return isPlain ? text : `"${escapedText(text, '""')}"`;
}

const latin1 = new TextDecoder("latin1");

/** A DataRow as a string of bytes. */
function pgRow(columns: readonly Values[], row: number, formats: readonly number[]): string {
  const parts = columns.map((values, k) => {
    const bytes = formats[k] === 1 ? values.binary![row] : utf8([(values.pg ?? values.texts)[row]])[0];
    return [int(bytes?.length ?? -1, 4), bytes === undefined ? "" : latin1.decode(bytes)].join("");
  });
  const content = int(columns.length, 2) + parts.join("");
  return `D${int(content.length + 4, 4)}${content}`;
}

function int(value: number, size: number): string {
  return list(size, (k) => String.fromCharCode(value >> 8 * (size - 1 - k) & 255)).map((byte) =>
    latin1.decode(Uint8Array.of(byte.charCodeAt(0)))
  ).join("");
}

/** All rows at once, and in parts by one encoder. */
function encoded(encoding: Encoding, columns: readonly Values[], from: number, to: number): [Uint8Array, Uint8Array] {
  const batch: Batch = { rowCount: to, columns: columns.map(({ vector }) => vector) };
  const described = columns.map(({ vector: { type } }, k) => ({ name: `c${k}`, type }));
  const whole = createEncoder(encoding, described, heap).encode(batch, from, to - from, true);
  const kept = createEncoder(encoding, described, heap), parts: number[][] = [];
  for (let row = from; row < to; row += 7) {
    parts.push([...kept.lend(batch, row, Math.min(7, to - row), row === from)]);
  }
  return [whole, Uint8Array.from(parts.flat())];
}

Deno.test(`rows are written as their values say, SEED=${SEED}`, () => {
  const count = 3_000, columns = TYPES.map((type) => type(count));
  const rows = list(count - 3, (k) => k + 3);
  const check = (encoding: Encoding, expected: string, decoder: TextDecoder, given = columns) => {
    for (const bytes of encoded(encoding, given, 3, count)) assert.equal(decoder.decode(bytes), expected);
  };
  const text = new TextDecoder();
  check(
    { name: "csv", delimiter: ";" },
    rows.map((row) => `${columns.map((values) => csvOf(values, row)).join(";")}\r\n`).join(""),
    text,
  );
  for (const quoteLargeNumbers of [false, true]) {
    for (const isLines of [false, true]) {
      const lines = rows.map((row) => `[${columns.map((values) => jsonOf(values, row, quoteLargeNumbers)).join()}]`);
      check({ name: "json", quoteLargeNumbers, isLines }, lines.join(isLines ? ",\n" : ","), text);
      for (const line of lines.slice(0, 50)) JSON.parse(line);
    }
  }
  check(
    { name: "json", quoteLargeNumbers: false, columns: [5, 11, 4] },
    rows.map((row) => `[${[5, 11, 4].map((k) => jsonOf(columns[k]!, row, false)).join()}]`).join(),
    text,
  );
  const binary = columns.map((values) => values.binary === undefined ? 0 : 1);
  for (const formats of [columns.map(() => 0), binary, binary.map((format, k) => k % 2 * format)]) {
    check({ name: "pg", formats }, rows.map((row) => pgRow(columns, row, formats)).join(""), latin1);
  }
});

for (const [k, type] of TYPES.entries()) {
  Deno.test(`values of one type at a time, ${k}, SEED=${SEED}`, () => {
    const count = FULL ? 30_000 : 8_000, values = type(count);
    const [bytes] = encoded({ name: "csv", delimiter: "," }, [values], 0, count);
    const expected = list(count, (row) => csvOf(values, row));
    assert.deepEqual(new TextDecoder().decode(bytes).split("\r\n"), [...expected, ""]);
    const [sized] = encoded({ name: "pg", formats: [0] }, [values], 0, count);
    assert.equal(latin1.decode(sized), list(count, (row) => pgRow([values], row, [0])).join(""));
  });
}

Deno.test("more columns than the kernel's memory holds, and types that it does not know", () => {
  const columns = list(
    900,
    (k) => k % 3 === 0 ? longs("LONG", [1n, NULL_64, BigInt(k)], String) : texts("STRING", ["a", undefined, `${k}`]),
  );
  const lines = list(3, (row) => `[${columns.map((values) => jsonOf(values, row, false)).join()}]`);
  for (const bytes of encoded({ name: "json", quoteLargeNumbers: false }, columns, 0, 3)) {
    assert.equal(new TextDecoder().decode(bytes), lines.join());
  }
  const wide = vectorOf("LONG256", 32, 20_000, (at, k) => {
    for (let part = 0; part < 4; part++) heap.i64[at / 8 + part] = part === 0 ? BigInt(k) : 0n;
  });
  const pairOf = { vector: wide, texts: list(20_000, (k) => formatLong256(BigInt(k))) };
  const mixed = [longs("LONG", list(20_000, BigInt), String), pairOf, texts("STRING", list(20_000, String))];
  const [bytes] = encoded({ name: "pg", formats: [0, 0, 0] }, mixed, 0, 20_000);
  assert.equal(latin1.decode(bytes), list(20_000, (row) => pgRow(mixed, row, [0, 0, 0])).join(""));
});
