import assert from "node:assert/strict";
import fc from "../../properties.ts";
import { LinePieces } from "../line/mod.ts";
import { analyse, type AnalysisOptions, type CsvTarget, endOfCsvLines, parseCsv, type ParseOptions } from "./mod.ts";
import { columnNameOf } from "./names.ts";
import { commonType, typeOfValue } from "./types.ts";

const RUNS = Number(Deno.env.get("SUNDIAL_RUNS") ?? 300);
const COMMA = 0x2c;
const encode = (text: string) => new TextEncoder().encode(text);
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

function target(type: string, field: number, more: Partial<CsvTarget> = {}): CsvTarget {
  return { columnId: field, name: `c${field}`, type, field, isDesignated: false, ...more };
}

function parse(text: string, types: (string | CsvTarget)[], more: Partial<ParseOptions> = {}) {
  const targets = types.map((type, field) => typeof type === "string" ? target(type, field) : type);
  const form = {
    delimiter: COMMA,
    fieldCount: types.length,
    firstLine: 1,
    isLast: true,
    atomicity: "skipCol",
    faultsMax: 0,
  } as const;
  return parseCsv(encode(text), { ...form, targets, ...more });
}

type Parsed = ReturnType<typeof parseCsv>;

/** The texts of a VARCHAR column. */
function textsOf({ columns, rowCount }: Parsed, column: number): (string | null)[] {
  const { values, heap } = columns[column];
  const pairs = new Int32Array(values.buffer, values.byteOffset, 2 * rowCount);
  return Array.from({ length: rowCount }, (_, row) => {
    const length = pairs[2 * row + 1];
    return length < 0 ? null : decode(heap!.subarray(pairs[2 * row], pairs[2 * row] + length));
  });
}

const longsOf = ({ columns }: Parsed, column: number) => [...new BigInt64Array(columns[column].values.buffer)];
const intsOf = ({ columns }: Parsed, column: number) => [...new Int32Array(columns[column].values.buffer)];
const NULL_LONG = -(2n ** 63n), NULL_INT = -(2 ** 31);

Deno.test("parseCsv() splits lines by LF and CRLF, and takes quoted values with quotes, delimiters and line ends", () => {
  const parsed = parse('a,b\r\n"x, ""y""","line 1\nline 2"\r\n\r\n,""\nlast,"q"', ["VARCHAR", "VARCHAR"]);
  assert.deepEqual(textsOf(parsed, 0), ["a", 'x, "y"', null, "last"]);
  assert.deepEqual(textsOf(parsed, 1), ["b", "line 1\nline 2", "", "q"]);
  assert.equal(parsed.nextLine, 6);
});

Deno.test("parseCsv() splits lines by CR, also among others, but not within quotes", () => {
  const parsed = parse('a,b\r1,"x\ry"\r\r\n2,"y"\r\n\r3,z\n4\r"5"\r"6",w\r', ["VARCHAR", "VARCHAR"]);
  assert.deepEqual(textsOf(parsed, 0), ["a", "1", "2", "3", "4", "5", "6"]);
  assert.deepEqual(textsOf(parsed, 1), ["b", "x\ry", "y", "z", null, null, "w"]);
  assert.equal(parsed.nextLine, 11);
  const { faults } = parse("1,2\r3,4,5\r\n6,7\r", ["INT", "INT"], { faultsMax: 1 });
  assert.deepEqual(faults, [{ line: 2, value: "3,4,5", reason: "found 3 values, expected 2" }]);
});

Deno.test("parseCsv() ignores blanks and tabs after a closing quote, unless they are the delimiter", () => {
  const parsed = parse('"a" ,"b"\t \n"c"  ,"d" \r\n"e",\t"f" ', ["VARCHAR", "VARCHAR"]);
  assert.deepEqual([textsOf(parsed, 0), textsOf(parsed, 1)], [["a", "c", "e"], ["b", "d", '\t"f" ']]);
  const tabs = parse('"a" \t"b"\t\n', ["VARCHAR", "VARCHAR", "VARCHAR"], { delimiter: 9 });
  assert.deepEqual([0, 1, 2].map((column) => textsOf(tabs, column)), [["a"], ["b"], [null]]);
  assert.equal(parse('"a" x,1\n', ["VARCHAR", "INT"]).rejected, 1);
});

Deno.test("parseCsv() gives NULL for missing values of a short line, and skips lines with too many", () => {
  const parsed = parse("1,2\n3\n4,5,6\n7,8\n", ["INT", "INT"]);
  assert.deepEqual([intsOf(parsed, 0), intsOf(parsed, 1)], [[1, 3, 7], [2, NULL_INT, 8]]);
  assert.equal(parsed.rejected, 1);
});

Deno.test("parseCsv() parses a part of many short lines for many columns, and the rest in the next call", () => {
  const fieldCount = 10_000, text = "1\n".repeat(1000);
  const parsed = parse(text, Array(fieldCount).fill("INT"));
  assert.equal(parsed.rowCount, 209);
  assert.deepEqual([parsed.doneBytes, parsed.nextLine], [418, 210]);
});

Deno.test("parseCsv() treats a value that does not fit according to atomicity", () => {
  const text = "1,2\nx,4\n5,y\n7,8\n";
  const column = parse(text, ["INT", "INT"]);
  assert.deepEqual([intsOf(column, 0), intsOf(column, 1)], [[1, NULL_INT, 5, 7], [2, 4, NULL_INT, 8]]);
  assert.deepEqual([column.errors, column.rejected], [[1, 1], 0]);
  const row = parse(text, ["INT", "INT"], { atomicity: "skipRow" });
  assert.deepEqual([intsOf(row, 0), intsOf(row, 1), row.rowCount], [[1, 7], [2, 8], 2]);
  assert.deepEqual([row.errors, row.rejected], [[1, 1], 2]);
  const none = parse(text, ["INT", "INT"], { atomicity: "abort", firstLine: 10, faultsMax: 1 });
  assert.deepEqual(none.faults, [{ line: 11, column: "c0", value: "x", reason: "expected INT" }]);
});

Deno.test("parseCsv() lists values and lines that do not fit in the order of the lines, with their line, value and reason", () => {
  const types = [target("TIMESTAMP", 0, { isDesignated: true }), target("INT", 1)];
  const text = '2024-01-01,x\n\n"2024-01-01\n",1\n2024-01-01,1,2\r\n,y\n2024-01-01,2\n';
  const faults = [
    { line: 1, column: "c1", value: "x", reason: "expected INT" },
    { line: 3, column: "c0", value: "2024-01-01\n", reason: "expected TIMESTAMP from 1970 on" },
    { line: 5, value: "2024-01-01,1,2", reason: "found 3 values, expected 2" },
    { line: 6, column: "c1", value: "y", reason: "expected INT" },
    { line: 6, column: "c0", value: undefined, reason: "expected TIMESTAMP from 1970 on" },
  ];
  for (const faultsMax of [0, 2, 10]) {
    assert.deepEqual(parse(text, types, { faultsMax }).faults, faults.slice(0, faultsMax));
  }
});

Deno.test("parseCsv() stops before it has more than 16,384 faults, and goes on with all of them", () => {
  const text = `1,2\n${"x,y\n".repeat(40_000)}`, lines: number[] = [], more = { faultsMax: 100_000 };
  let rowCount = 0;
  for (let at = 0, firstLine = 1; at < text.length;) {
    const parsed = parse(text.slice(at), ["INT", "INT"], { ...more, firstLine });
    assert.ok(parsed.faults.length <= 16_384 && parsed.doneBytes > 0);
    lines.push(...parsed.faults.map(({ line }) => line));
    rowCount += parsed.rowCount;
    [at, firstLine] = [at + parsed.doneBytes, parsed.nextLine];
  }
  assert.equal(rowCount, 40_001);
  assert.deepEqual(lines, Array.from({ length: 80_000 }, (_, index) => 2 + (index >> 1)));
});

Deno.test("parseCsv() skips rows without a valid designated timestamp", () => {
  const types = [target("TIMESTAMP", 0, { isDesignated: true }), target("INT", 1)];
  const parsed = parse("2024-01-01T00:00:00Z,1\n,2\nnever,3\n1969-12-31,4\n1970-01-01,5\n", types);
  assert.deepEqual([longsOf(parsed, 0), intsOf(parsed, 1)], [[1_704_067_200_000_000n, 0n], [1, 5]]);
  assert.deepEqual([parsed.rejected, parsed.errors], [3, [3, 0]]);
});

const fits: [type: string, text: string, value: bigint | undefined][] = [
  ["LONG", "-9223372036854775807", -9223372036854775807n],
  ["LONG", "9223372036854775808", undefined],
  ["LONG", "-1", -1n],
  ["LONG", " 1_000 ", 1000n],
  ["LONG", "4294967296", 4294967296n],
  ["LONG", "12L", 12n],
  ["LONG", "-9223372036854775807l", -9223372036854775807n],
  ["LONG", "L", undefined],
  ["LONG", "1Lx", undefined],
  ["LONG", "1LL", undefined],
  ["LONG", "1.5L", undefined],
  ["TIMESTAMP", "100L", 100n],
  ["TIMESTAMP", "2024-01-01", 1_704_067_200_000_000n],
  ["TIMESTAMP", "2024-01-01T00:00:00.123456+01:00", 1_704_063_600_123_456n],
  ["TIMESTAMP", "1704067200000000", 1_704_067_200_000_000n],
  ["TIMESTAMP", "2024-02-30", undefined],
  ["TIMESTAMP_NS", "2024-01-01T00:00:00.123456789Z", 1_704_067_200_123_456_789n],
  ["DATE", "2024-01-01 00:00:01", 1_704_067_201_000n],
];
for (const [type, text, value] of fits) {
  Deno.test(`parseCsv() reads '${text}' as ${type}: ${value ?? "it does not fit"}`, () => {
    const parsed = parse(`${text}\n`, [type]);
    assert.deepEqual([longsOf(parsed, 0), parsed.errors], [[value ?? NULL_LONG], [value === undefined ? 1 : 0]]);
  });
}

const doubles: [text: string, value: number | undefined][] = [
  ["1.5f", 1.5],
  ["-2.5D", -2.5],
  [".5d", 0.5],
  ["5.F", 5],
  ["1e5f", 1e5],
  ["1.5fd", undefined],
  ["f", undefined],
  [".d", undefined],
  ["NaNf", undefined],
  ["1L", undefined],
];
for (const [text, value = NaN] of doubles) {
  Deno.test(`parseCsv() reads '${text}' as DOUBLE: ${value}`, () => {
    const { columns: [double, float], errors } = parse(`${text},${text}\n`, ["DOUBLE", "FLOAT"]);
    const found = [new Float64Array(double.values.buffer)[0], new Float32Array(float.values.buffer)[0]];
    assert.deepEqual([found, errors], [[value, value], Number.isNaN(value) ? [1, 1] : [0, 0]]);
  });
}

Deno.test("parseCsv() reads times by a pattern, and symbols once each", () => {
  const types = [target("TIMESTAMP", 0, { pattern: "dd/MM/yyyy" }), target("SYMBOL", 1)];
  const parsed = parse("03/02/2024,a\n31/02/2024,b\n04/02/2024,a\n,\n", types);
  const day = 86_400_000_000n, first = 1_706_918_400_000_000n;
  assert.deepEqual(longsOf(parsed, 0), [first, NULL_LONG, first + day, NULL_LONG]);
  assert.deepEqual([intsOf(parsed, 1), decode(parsed.columns[1].heap!)], [[0, 1, 0, -1], "ab"]);
});

Deno.test("parseCsv() refuses texts that are not UTF-8, and characters of more than one", () => {
  const bytes = new Uint8Array([0x61, 0xff, 0x2c, 0x78, 0x0a, 0x62, 0x2c, 0x79, 0x7a, 0x0a]);
  const targets = [target("VARCHAR", 0), target("CHAR", 1)];
  const parsed = parseCsv(bytes, {
    delimiter: COMMA,
    fieldCount: 2,
    firstLine: 1,
    isLast: true,
    atomicity: "skipCol",
    faultsMax: 0,
    targets,
  });
  assert.deepEqual([textsOf(parsed, 0), parsed.errors], [[null, "b"], [1, 1]]);
});

const badLines: [text: string, line: number, reason: string][] = [
  ['1,2\n"3"x,4\n5,6\n', 2, "found text after a quoted value, expected a delimiter or a line end"],
  ['1,2\n3,"4\n5,6\n', 2, "a quoted value is not closed"],
  ["1,2\n3,4,5\n", 2, "found 3 values, expected 2"],
];
for (const [text, line, reason] of badLines) {
  Deno.test(`parseCsv() reports the line of the error in ${JSON.stringify(text)}`, () => {
    const { faults: [fault] } = parse(text, ["INT", "INT"], { faultsMax: 1 });
    assert.deepEqual([fault.line, fault.reason], [line, reason]);
    assert.equal(parse(text, ["INT", "INT"]).rejected, 1);
  });
}

/** A value, and whether it is quoted although that is not necessary. */
const cell = fc.tuple(
  fc.oneof(
    fc.string({ unit: fc.constantFrom('"', ",", "\n", "\r", "a", "ä", " ", "😀"), maxLength: 6 }),
    fc.string({ unit: "grapheme", maxLength: 30 }),
  ),
  fc.boolean(),
);

function written([text, isQuoted]: [string, boolean]): string {
  return isQuoted || /["\n\r,]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The bytes in pieces of these sizes, repeatedly. */
async function* inPieces(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length];
    yield bytes.slice(at, at + size);
    at += size;
  }
}

Deno.test("a file is read as it was written, however its bytes are split", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 20 }),
      fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
      fc.integer({ min: 1, max: 64 }),
      fc.constantFrom("\n", "\r\n", "\r"),
      fc.boolean(),
      async (rows, sizes, pieceBytes, lineEnd, hasLastEnd) => {
        const lines = rows.map((row) => row.map(written).join(","));
        const bytes = encode(lines.join(lineEnd) + (hasLastEnd ? lineEnd : ""));
        const pieces = new LinePieces(inPieces(bytes, sizes), 1 << 20, undefined, pieceBytes, endOfCsvLines);
        const found: (string | null)[][] = [];
        for (let line = 1;;) {
          const piece = await pieces.next(line);
          if (piece === undefined) break;
          const targets = [target("VARCHAR", 0), target("VARCHAR", 1)];
          const parsed = parseCsv(piece.bytes, {
            delimiter: COMMA,
            fieldCount: 2,
            firstLine: line,
            isLast: !piece.isContinued,
            atomicity: "abort",
            faultsMax: 1,
            targets,
          });
          assert.deepEqual(parsed.faults, []);
          const [a, b] = [textsOf(parsed, 0), textsOf(parsed, 1)];
          for (let row = 0; row < parsed.rowCount; row++) found.push([a[row], b[row]]);
          line = parsed.nextLine;
          pieces.done(piece.bytes, parsed.doneBytes, line);
        }
        const expected = rows.map((row) => row.map((value) => written(value) === "" ? null : value[0]));
        assert.deepEqual(found, expected);
      },
    ),
    { numRuns: RUNS },
  ));

Deno.test("parseCsv() takes the word null for no value, except in texts", () => {
  const types = ["INT", "LONG", "DOUBLE", "BOOLEAN", "CHAR", "TIMESTAMP", "IPv4", "LONG256", "DECIMAL(6,2)", "UUID"];
  const patterned = target("DATE", types.length, { pattern: "dd/MM/y" });
  for (const word of ["NULL", "null", " Null"]) {
    const parsed = parse(`${Array(types.length + 1).fill(word).join()}\n`, [...types, patterned]);
    assert.deepEqual(parsed.errors, Array(types.length + 1).fill(0));
    assert.deepEqual([intsOf(parsed, 0), longsOf(parsed, 1)], [[NULL_INT], [NULL_LONG]]);
  }
  assert.deepEqual(textsOf(parse("NULL\n", ["VARCHAR"]), 0), ["NULL"]);
});

Deno.test("parseCsv() accepts any bytes", () =>
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(0x22, 0x2c, 0x0a, 0x0d, 0x31, 0x61, 0xff), { maxLength: 60 }),
      fc.constantFrom("INT", "TIMESTAMP", "VARCHAR", "SYMBOL", "UUID", "DECIMAL(18,3)", "DOUBLE[]", "GEOHASH(4c)"),
      fc.boolean(),
      (bytes, type, isLast) => {
        const targets = [target(type === "GEOHASH(4c)" ? "GEOHASH(20b)" : type, 0), target("CHAR", 1)];
        const parsed = parseCsv(new Uint8Array(bytes), {
          delimiter: COMMA,
          fieldCount: 2,
          firstLine: 1,
          isLast,
          atomicity: "skipRow",
          faultsMax: 0,
          targets,
        });
        assert.ok(parsed.doneBytes <= bytes.length && (!isLast || parsed.doneBytes === bytes.length));
        const done = String.fromCharCode(...bytes.slice(0, parsed.doneBytes));
        assert.equal(parsed.nextLine, 1 + (done.match(/\r\n|\r|\n/g) ?? []).length);
      },
    ),
    { numRuns: 10 * RUNS },
  ));

const values: [text: string, type: string][] = [
  ["1", "INT"],
  ["-2147483648", "INT"],
  ["2147483648", "LONG"],
  ["9223372036854775808", "DOUBLE"],
  ["1.5", "DOUBLE"],
  ["1L", "LONG"],
  ["-1_000l", "LONG"],
  ["+1L", "LONG"],
  ["99999999999999999999L", "VARCHAR"],
  ["1f", "DOUBLE"],
  ["+1.5D", "DOUBLE"],
  ["1.5L", "VARCHAR"],
  ["NaN", "DOUBLE"],
  ["TRUE", "BOOLEAN"],
  ["2024-01-01", "DATE"],
  ["2024-01-01 00:00:00", "DATE"],
  ["2024-01-01T00:00:00.123Z", "DATE"],
  ["2024-01-01T00:00:00.123456Z", "TIMESTAMP"],
  ["2024-01-01T00:00:00.123456789Z", "TIMESTAMP_NS"],
  ["2024-01-01T00:00:00Z", "VARCHAR"],
  ["2024-13-01", "VARCHAR"],
  ["11111111-2222-3333-4444-555555555555", "UUID"],
  ["1.2.3.4", "IPv4"],
  ["null", "IPv4"],
  ["0x12", "LONG256"],
  ["x", "CHAR"],
  ["ä", "CHAR"],
  ["xy", "VARCHAR"],
];
for (const [text, type] of values) {
  Deno.test(`typeOfValue('${text}') is ${type}`, () => assert.equal(typeOfValue(text), type));
}

Deno.test("commonType() widens numbers, and other mixtures to VARCHAR", () => {
  assert.deepEqual([commonType(undefined, "DATE"), commonType("INT", "DOUBLE"), commonType("DOUBLE", "LONG")], [
    "DATE",
    "DOUBLE",
    "DOUBLE",
  ]);
  assert.deepEqual([commonType("INT", "DATE"), commonType("CHAR", "VARCHAR")], ["VARCHAR", "VARCHAR"]);
});

Deno.test("columnNameOf() removes characters that are not allowed in names", () => {
  const names = ["a b", "c.d", "a-c", 'q"h', "1x", "", " _x ", "ä", "..."].map(columnNameOf);
  assert.deepEqual(names, ["aB", "cD", "aC", "qH", "_1x", "f5", "_x", "ä", "f8"]);
});

function form(text: string, more: Partial<AnalysisOptions> = {}) {
  const found = analyse(encode(text), { forceHeader: false, linesMax: 1000, isWhole: true, ...more });
  if (typeof found === "string") return found;
  const columns = found.columns.map(({ name, type, pattern = "" }) => `${name} ${type} ${pattern}`.trim()).join(", ");
  return `${String.fromCharCode(found.delimiter)} ${found.hasHeader} ${columns}`;
}

const forms: [title: string, text: string, form: string, more?: Partial<AnalysisOptions>][] = [
  ["a header over numbers", "a,b\n1,2.5\n3,4\n", ", true a INT, b DOUBLE"],
  ["data that looks like data", "1,abc\n2,def\n", ", false f0 INT, f1 VARCHAR"],
  ["texts alone", "a,b\nc,d\n", ", false f0 CHAR, f1 CHAR"],
  ["texts alone with forceHeader", "ab,cd\nef,gh\n", ", true ab VARCHAR, cd VARCHAR", { forceHeader: true }],
  ["texts alone under the table's names", "x,y\nab,cd\n", ", true x VARCHAR, y VARCHAR", {
    knownNames: ["X", "y", "z"],
  }],
  ["another delimiter", "a;b\n1,5;2\n3,5;4\n", "; true a VARCHAR, b INT"],
  ["lines that end with CR", "a,b\r1,x\r\r2,y", ", true a INT, b CHAR"],
  ["lines of all ends", "a;b\r\n1;x\r2;y\n3;z\r\n", "; true a INT, b CHAR"],
  ["integers with L", "a,b\n1,2L\n2L,3\n", ", true a LONG, b LONG"],
  ["integers with L and fractions", "a,b,c\n1L,1.5,1\n2.5,2L,2\n", ", true a VARCHAR, b VARCHAR, c INT"],
  ["numbers with letters", "a,b\n1,1.5f\n2d,2\n", ", true a DOUBLE, b DOUBLE"],
  ["one column", "a\n1\n2\n", ", true a INT"],
  ["row numbers without a name", ",a\n0,xy\n1,z\n", ", true f0 INT, a VARCHAR"],
  [
    "a name above texts and nothing above numbers",
    "buy,,\nsell,1,2.5\nsell,,1.5\n",
    ", false f0 VARCHAR, f1 INT, f2 DOUBLE",
  ],
  ["a column without a name", "a,,b\n1,2,x\n", ", true a INT, f1 INT, b CHAR"],
  ["a byte order mark", "\ufeffa,b\n1,2\n", ", true a INT, b INT"],
  ["blanks around values", "a,b\n 1 ,x\n2, y\n", ", true a INT, b CHAR"],
  ["empty values", "a,b\n,\n1,\n", ", true a INT, b VARCHAR"],
  ["quoted delimiters and line ends", 'a,b\n"x,\ny",2\nz,3\n', ", true a VARCHAR, b INT"],
  [
    "lines of different lengths",
    "a,b\n1,2\n3\n",
    "cannot detect the delimiter: no character splits most lines into as many values as the first one; set the parameter delimiter",
  ],
  ["lines of which a few are ragged", "a;b\n1;2\n3;4;5,5\n6;7,1\n8\n9;1\n2;3\n4;5\n", "; true a INT, b VARCHAR"],
  ["a comma in a text and another delimiter", "a;b\n1;x,y\n2;z\n3;u,v\n", "; true a INT, b VARCHAR"],
  ["a given delimiter", "a,b\n1,2\n3\n", ", true a INT, b INT", { delimiter: COMMA }],
  ["days first", "d\n01/02/2024\n13/02/24\n", ", true d DATE dd/MM/y"],
  ["months first", "d,n\n01/02/2024,1\n,2\n02/13/2024,3\n", ", true d DATE MM/dd/y, n INT"],
  ["days without a header", "01/02/2024,1\n13/02/2024,2\n", ", false f0 DATE dd/MM/y, f1 INT"],
  ["days and months first", "d,n\n13/02/2024,1\n02/13/2024,2\n", ", true d VARCHAR, n INT"],
  ["days that do not exist", "d,n\n31/02/2024,1\n", ", true d VARCHAR, n INT"],
  ["days of two forms", "d,n\n01/02/2024,1\n2024-02-01,2\n", ", true d VARCHAR, n INT"],
  ["blanks between values", "a b\n1 2\n3 4\n", "  true a INT, b INT"],
  ["colons between values", "root:0:/root\nsync:4:/bin\n", ": false f0 VARCHAR, f1 INT, f2 VARCHAR"],
  ["carets between values", "a^b\nx,y^2\nz^3\n", "^ true a VARCHAR, b INT"],
  ["tildes between values", "a~b\n1~2\n", "~ true a INT, b INT"],
  ["blanks in some lines", "a\nx y\nz\n", ", false f0 VARCHAR"],
  ["times without a header", "2024-01-01 10:00:00\n2024-01-02 11:30:00\n", ", false f0 DATE"],
  ["a single line", "1,2\n", "cannot detect the delimiter from a single line: set the parameter delimiter"],
  ["nothing", "\n\n", "the file has no lines"],
];
for (const [title, text, expected, more] of forms) {
  Deno.test(`analyse() of ${title}`, () => assert.equal(form(text, more), expected));
}
