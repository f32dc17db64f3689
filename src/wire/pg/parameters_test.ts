import assert from "node:assert/strict";
import { arrayOfText, numericText, readArray, readTextArray } from "./composites.ts";
import { announcedOid, arrayTagOf, decimalTagOf, decodeParameter, tagOfOid } from "./parameters.ts";

const text = (value: string) => new TextEncoder().encode(value);
const hex = (value: string) => Uint8Array.from(value.match(/../g)!, (pair) => parseInt(pair, 16));
/** 2024-01-01, in microseconds since 1970 and, as eight bytes, since 2000. */
const MICROS = 1_704_067_200_000_000n, SINCE_2000 = hex("0002b0d5d4e94000");

const binary: [oid: number, bytes: Uint8Array, tag: string, value: unknown][] = [
  [16, hex("01"), "BOOLEAN", true],
  [21, hex("ff85"), "SHORT", -123],
  [21, hex("007f"), "BYTE", 127],
  [23, hex("fffffffe"), "INT", -2],
  [23, hex("80000000"), "INT", null],
  [23, hex("00000007"), "LONG", 7n],
  [20, hex("0000000100000000"), "LONG", 4294967296n],
  [20, hex("8000000000000000"), "LONG", null],
  [20, hex("0000000000000005"), "DOUBLE", 5],
  [26, hex("ffffffff"), "LONG", 4294967295n],
  [700, hex("3fc00000"), "FLOAT", 1.5],
  [701, hex("3ff8000000000000"), "DOUBLE", 1.5],
  [701, hex("7ff8000000000000"), "DOUBLE", null],
  [1114, SINCE_2000, "TIMESTAMP", MICROS],
  [1184, SINCE_2000, "TIMESTAMP_NS", MICROS * 1000n],
  [1114, SINCE_2000, "DATE", MICROS / 1000n],
  [1082, hex("0000223e"), "TIMESTAMP", MICROS],
  [2950, hex("11111111222233334444555555555555"), "UUID", 0x11111111222233334444555555555555n],
  [1043, text("äö"), "VARCHAR", "äö"],
  [1043, text("10.1.2.3"), "IPv4", 0x0a010203],
  [25, text("12"), "INT", 12],
  [23, hex("0000000c"), "VARCHAR", "12"],
  [17, hex("00ff5c27"), "BINARY", "\\x00ff5c27"],
  [17, new Uint8Array(0), "BINARY", "\\x"],
];
Deno.test("decodeParameter() reads binary arguments by the OID and converts them to the statement's type", () => {
  for (const [oid, bytes, tag, value] of binary) {
    assert.deepEqual(decodeParameter(bytes, 1, oid, tag, 1), value, `${oid} → ${tag}`);
  }
});

const texts: [oid: number, text: string, tag: string, value: unknown][] = [
  [16, "t", "BOOLEAN", true],
  [16, "on", "BOOLEAN", true],
  [16, "FALSE", "BOOLEAN", false],
  [20, "-5", "LONG", -5n],
  [701, "NaN", "DOUBLE", null],
  [1700, "1.25", "DOUBLE", 1.25],
  [1114, "2024-01-01 00:00:00", "TIMESTAMP", MICROS],
  [1114, "2024-01-01T02:00:00+02:00", "TIMESTAMP", MICROS],
  [1114, "2024-01-01", "TIMESTAMP", MICROS],
  [1114, "2024", "TIMESTAMP", 2024n],
  [1043, "2024-01-01T00:00:00.000000001Z", "TIMESTAMP_NS", MICROS * 1000n + 1n],
  [1042, "x", "CHAR", "x"],
  [1043, "", "VARCHAR", ""],
  [2950, "11111111-2222-3333-4444-555555555555", "UUID", 0x11111111222233334444555555555555n],
  [17, "\\x00FF", "BINARY", "\\x00ff"],
  [17, "a\\000\\\\", "BINARY", "\\x61005c"],
];
Deno.test("decodeParameter() reads text arguments", () => {
  for (const [oid, value, tag, expected] of texts) {
    assert.deepEqual(decodeParameter(text(value), 0, oid, tag, 1), expected, `'${value}' → ${tag}`);
  }
  assert.equal(decodeParameter(null, 1, 20, "LONG", 1), null);
});

const refused = [
  { title: "letters for an INT", oid: 23, format: 0, bytes: text("abc"), tag: "INT", sqlState: "22P02" },
  { title: "'maybe' for a BOOLEAN", oid: 16, format: 0, bytes: text("maybe"), tag: "BOOLEAN", sqlState: "22P02" },
  { title: "half a byte", oid: 17, format: 0, bytes: text("\\x0"), tag: "BINARY", sqlState: "22P02" },
  { title: "a broken escape", oid: 17, format: 0, bytes: text("a\\9"), tag: "BINARY", sqlState: "22P02" },
  { title: "a day 32", oid: 1114, format: 0, bytes: text("2024-01-32"), tag: "TIMESTAMP", sqlState: "22P02" },
  {
    title: "eight bytes for an int4",
    oid: 23,
    format: 1,
    bytes: hex("0000000000000001"),
    tag: "INT",
    sqlState: "22P03",
  },
  { title: "a SHORT beyond BYTE", oid: 21, format: 1, bytes: hex("0100"), tag: "BYTE", sqlState: "22003" },
  { title: "a UUID for a LONG", oid: 2950, format: 1, bytes: new Uint8Array(16), tag: "LONG", sqlState: "42804" },
  {
    title: "the binary form of an unknown type",
    oid: 869,
    format: 1,
    bytes: hex("02200004"),
    tag: "IPv4",
    sqlState: "0A000",
  },
] as const;
for (const { title, oid, format, bytes, tag, sqlState } of refused) {
  Deno.test(`decodeParameter() refuses ${title}`, () => {
    assert.throws(() => decodeParameter(bytes, format, oid, tag, 1), { sqlState });
  });
}

Deno.test("tagOfOid() leaves texts and unknown types to the statement, and refuses types without a counterpart", () => {
  assert.deepEqual([23, 1114, 1043, 25, 0, 99999].map(tagOfOid), ["INT", "TIMESTAMP", ...new Array(4).fill(undefined)]);
  assert.throws(() => tagOfOid(2951), { sqlState: "0A000" });
  assert.deepEqual([announcedOid(undefined, "LONG"), announcedOid(0, "DATE"), announcedOid(25, "LONG")], [
    20,
    1114,
    25,
  ]);
});

const view = (...bytes: number[]) => new DataView(new Uint8Array(bytes).buffer);

Deno.test("numericText() writes all digits", () => {
  const cases: [DataView, string | null][] = [
    [view(0, 0, 0, 0, 0, 0, 0, 0), "0"],
    [view(0, 2, 0, 0, 0, 0, 0, 2, 0, 12, 0x0d, 0x48), "12.34"],
    [view(0, 1, 0, 1, 0x40, 0, 0, 0, 0, 5), "-50000"],
    [view(0, 1, 0xff, 0xfe, 0, 0, 0, 8, 0, 7), "0.00000007"],
    [view(0, 0, 0, 0, 0xc0, 0, 0, 0), null],
  ];
  for (const [bytes, text] of cases) assert.equal(numericText(bytes), text);
  assert.throws(() => numericText(view(0, 1, 0, 0, 0, 0, 0, 0)), { sqlState: "22P03" });
});

Deno.test("readArray() and arrayOfText() write arrays as SQL does, and refuse incomplete ones", () => {
  const bytes = new Uint8Array(12 + 16 + 3 * 12 + 4);
  const data = new DataView(bytes.buffer);
  [2, 1, 701, 2, 1, 2, 1].forEach((word, index) => data.setInt32(4 * index, word));
  let at = 28;
  for (const value of [1, 2.5, null, -3]) {
    data.setInt32(at, value === null ? -1 : 8);
    at += 4;
    if (value === null) continue;
    data.setFloat64(at, value);
    at += 8;
  }
  assert.equal(readArray(data), "[[1,2.5],[null,-3]]");
  for (let size = 0; size < bytes.length; size++) {
    assert.throws(() => readArray(new DataView(bytes.buffer, 0, size)), { sqlState: "22P03" });
  }
  assert.equal(arrayOfText("{{1,2.5},{NULL,-3}}"), "[[1,2.5],[null,-3]]");
  assert.equal(arrayOfText("[1]"), "[1]");
});

Deno.test("decodeParameter() reads UUIDs without groups, days with an offset, decimals and arrays as the statement's type", () => {
  const uuid = 0x11111111222233334444555555555555n;
  for (const written of ["11111111222233334444555555555555", "{11111111-2222-3333-4444-555555555555}"]) {
    assert.equal(decodeParameter(text(written), 0, 2950, "UUID", 1), uuid);
  }
  for (const [day, micros] of [["2024-01-01 +00", 0n], ["2024-01-01+02:00", -7_200_000_000n]] as const) {
    assert.equal(decodeParameter(text(day), 0, 0, "TIMESTAMP", 1), MICROS + micros);
  }
  assert.equal(decodeParameter(text("12.3"), 0, 1700, "DECIMAL(10,2)", 1), 1230n);
  assert.equal(decodeParameter(text("{1,NULL}"), 0, 1022, "DOUBLE[]", 1), "[1,null]");
  assert.equal(decodeParameter(text("{1,nan,-inf,Infinity}"), 0, 1022, "DOUBLE[]", 1), "[1,null,null,null]");
  assert.throws(() => decodeParameter(text("{1,information}"), 0, 1022, "DOUBLE[]", 1), { sqlState: "22P02" });
});

Deno.test("arrayTagOf() counts the dimensions of an argument", () => {
  const twoDimensions = hex("00000002" + "00000000" + "000002bd");
  assert.equal(arrayTagOf(twoDimensions, 1, 1022), "DOUBLE[][]");
  assert.equal(arrayTagOf(text("{{1,2},{3,4}}"), 0, 1022), "DOUBLE[][]");
  assert.equal(arrayTagOf(text(" { 1, 2 }"), 0, 1007), "DOUBLE[]");
  for (const empty of [text("{}"), text("{{}}"), null]) assert.equal(arrayTagOf(empty, 0, 1022), undefined);
  assert.equal(arrayTagOf(text("{1}"), 0, 1043), undefined);
});

Deno.test("text[] and oid[] become texts of arrays, and incomplete ones are refused", () => {
  // one dimension, with nulls, of text: ["a", "b c", null]
  const bytes = hex("0000000100000001000000190000000300000001" + "0000000161" + "00000003622063" + "ffffffff");
  assert.equal(decodeParameter(bytes, 1, 1009, "STRING", 1), '{a,"b c",NULL}');
  for (let size = 0; size < bytes.length; size++) {
    const cut = new DataView(bytes.buffer, 0, size);
    assert.throws(() => readTextArray(cut, (element) => String(element)), { sqlState: "22P03" }, `${size} bytes`);
  }
  const oids = hex("00000001000000000000001a0000000200000001" + "0000000400000413" + "00000004ffffffff");
  assert.equal(decodeParameter(oids, 1, 1028, "STRING", 1), "{1043,4294967295}");
  const short = hex("00000001000000000000001a0000000100000001" + "000000020413");
  assert.throws(() => decodeParameter(short, 1, 1028, "STRING", 1), { sqlState: "22P03" });
  assert.equal(decodeParameter(hex("000000000000000000000019"), 1, 1015, "STRING", 1), "{}");
  assert.equal(decodeParameter(text("{a,b}"), 0, 1009, "STRING", 1), "{a,b}");
  const two = hex("000000020000000000000019" + "0000000100000001" + "0000000100000001" + "0000000161");
  assert.throws(() => decodeParameter(two, 1, 1009, "STRING", 1), { sqlState: "0A000" });
});

Deno.test("decimalTagOf() is the type of a number with more digits than the statement's", () => {
  const cases: [text: string, tag: string, own: string | undefined][] = [
    ["1.175", "DECIMAL(6,2)", "DECIMAL(4,3)"],
    ["-12345", "DECIMAL(6,2)", "DECIMAL(5,0)"],
    ["1e-3", "DECIMAL(6,2)", "DECIMAL(3,3)"],
    ["1.1700", "DECIMAL(6,2)", undefined],
    ["1234", "DECIMAL(6,2)", undefined],
    ["0", "DECIMAL(1,1)", undefined],
    ["NaN", "DECIMAL(6,2)", undefined],
    ["1.175", "DOUBLE", undefined],
    [`${"9".repeat(77)}`, "DECIMAL(6,2)", undefined],
  ];
  for (const [value, tag, own] of cases) assert.equal(decimalTagOf(text(value), 0, 1700, tag), own, value);
  assert.equal(decimalTagOf(null, 0, 1700, "DECIMAL(6,2)"), undefined);
  // 1.175 in binary: two groups, 1 and 1750.
  const binary = new Uint8Array([0, 2, 0, 0, 0, 0, 0, 3, 0, 1, 6, 214]);
  assert.equal(decimalTagOf(binary, 1, 1700, "DECIMAL(6,2)"), "DECIMAL(4,3)");
  assert.equal(decimalTagOf(binary, 1, 20, "DECIMAL(6,2)"), undefined);
});
