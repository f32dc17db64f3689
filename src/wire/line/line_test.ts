import assert from "node:assert/strict";
import type { TableSchema } from "../../storage/contract.ts";
import { randomOf, SEED } from "../../testing.ts";
import {
  buffersOf,
  fitToTable,
  LineError,
  LinePieces,
  type LinePrecision,
  type LineTable,
  type LineTypes,
  missingColumns,
  newTable,
  offsetOfLine,
  parseLines,
  parseTexts,
  shownLine,
} from "./mod.ts";

const NOW = 1_700_000_000_000_000n;
const bytes = (text: string) => new TextEncoder().encode(text);
const parse = (text: string, precision: LinePrecision = "n") => parseBytes(bytes(text), precision);
const parseBytes = (body: Uint8Array, precision: LinePrecision = "n") =>
  parseLines(body, { precision, nowMicros: NOW });

function schemaOf(columns: [name: string, type: string][], timestamp = "timestamp"): TableSchema {
  return {
    id: 1,
    name: "t",
    columns: columns.map(([name, type], id) => ({
      id,
      name,
      type,
      indexed: false,
      symbolCapacity: 256,
      symbolCached: true,
    })),
    timestampId: columns.findIndex(([name]) => name === timestamp),
    partitionBy: "DAY",
    wal: true,
    dedupKeys: [],
    schemaVersion: 1,
  };
}

/** The rows that a new table gets, as plain values. */
function rowsOf(text: string, precision: LinePrecision = "n"): Record<string, unknown[]> {
  const { tables, fault } = parse(text, precision);
  assert.equal(fault, undefined, fault?.message);
  const made = newTable(tables[0], "DAY", TYPES);
  return readRows(tables[0], schemaOf(made.columns.map(({ name, type }) => [name, type])));
}

function readRows(lines: Parameters<typeof fitToTable>[0], schema: TableSchema): Record<string, unknown[]> {
  const batch = fitToTable(lines, schema);
  const rows: Record<string, unknown[]> = {};
  for (const column of batch.columns) {
    const { name, type } = schema.columns.find(({ id }) => id === column.columnId)!;
    const words = () => new Int32Array(column.values.slice().buffer);
    const text = (pair: number, pairs: Int32Array) =>
      pairs[2 * pair + 1] < 0
        ? null
        : new TextDecoder().decode(column.heap!.slice(pairs[2 * pair], pairs[2 * pair] + pairs[2 * pair + 1]));
    const values = type === "SYMBOL"
      ? [...words()].map((code) => code < 0 ? null : text(code, column.symbols!))
      : type === "VARCHAR" || type === "STRING" || type.endsWith("[]")
      ? Array.from({ length: batch.rowCount }, (_, row) => text(row, words()))
      : type === "DOUBLE"
      ? [...new Float64Array(column.values.slice().buffer)]
      : type === "BOOLEAN" || type === "BYTE"
      ? [...column.values]
      : type === "INT"
      ? [...words()]
      : [...new BigInt64Array(column.values.slice().buffer)];
    rows[name] = values;
  }
  return rows;
}

const NULL_LONG = -(2n ** 63n);

const TYPES: LineTypes = { float: "DOUBLE", integer: "LONG", decimal: "DECIMAL(38,18)" };

Deno.test("new columns for numbers have the types of the settings", () => {
  const { tables } = parse("t f=1.5,i=2i 1");
  const made = newTable(tables[0], "DAY", { ...TYPES, float: "FLOAT", integer: "SHORT" });
  assert.deepEqual(made.columns.map(({ name, type }) => [name, type]), [
    ["f", "FLOAT"],
    ["i", "SHORT"],
    ["timestamp", "TIMESTAMP"],
  ]);
  assert.deepEqual(
    missingColumns(tables[0], schemaOf([]), { ...TYPES, float: "FLOAT", integer: "INT" }).map(({ type }) => type),
    [
      "FLOAT",
      "INT",
    ],
  );
});

Deno.test("parseLines() ignores a comma after the last tag or field", () => {
  const plain = rowsOf("t,s=x a=1 1000\nt a=2 2000\nt,s=y 3000\nt,s=z a=3 4000\n");
  assert.deepEqual(rowsOf("t,s=x, a=1, 1000\nt, a=2, 2000\nt,s=y, 3000\r\nt,s=z a=3, 4000"), plain);
  assert.equal(parse("t a=1,\nt,s=x,\r\nt,s=y,").fault, undefined);
  for (const line of ["t,", "t, 1000", "t a=1,, 1000", "t a=1,  1000", "t,,s=x a=1", "t,s=x,,q=y a=1", "t ,a=1"]) {
    assert.ok(parse(line).fault, line);
  }
});

Deno.test("parseLines() detects the type of each literal, and rows without a value get null", () => {
  assert.deepEqual(
    rowsOf(
      't,site=north i=5i,f=1.5,s="text",b=t,w=1700000000000000t 1700000000000000000\nt f=-2e3 1700000000000001999\n',
    ),
    {
      site: ["north", null],
      i: [5n, NULL_LONG],
      f: [1.5, -2000],
      s: ["text", null],
      b: [1, 0],
      w: [1700000000000000n, NULL_LONG],
      timestamp: [1700000000000000n, 1700000000000001n],
    },
  );
});

Deno.test("parseLines() reads numbers exactly", () => {
  const texts = [
    "0",
    "-0",
    "1.",
    ".5",
    "+5",
    "1e3",
    "0.1",
    "123456789012345678",
    "1.7976931348623157e308",
    "5e-324",
    "3.0000000000000001",
    "2.2250738585072011e-308",
  ];
  const rows = rowsOf(texts.map((text, row) => `t v=${text} ${row}\n`).join(""));
  assert.deepEqual(rows.v, texts.map(Number));
  assert.deepEqual(
    rowsOf("t v=9223372036854775807i\nt v=-9223372036854775808i\nt v=-5i\nt v=1_000i\nt v=-1234567890123456i").v,
    [
      9223372036854775807n,
      NULL_LONG,
      -5n,
      1000n,
      -1234567890123456n,
    ],
  );
  assert.deepEqual(rowsOf("t v=NaN\nt v=-Infinity\n").v, [NaN, NaN]);
});

Deno.test("parseLines() accepts escapes in names, tags and strings", () => {
  const { tables } = parse('my\\ table,co\\ l=v\\ a\\,l\\=x s="a\\"b\\\\c, d=e\\\nf\\n" 1000\n');
  assert.equal(tables[0].name, "my table");
  assert.deepEqual(readRows(tables[0], schemaOf([["co l", "SYMBOL"], ["s", "VARCHAR"], ["timestamp", "TIMESTAMP"]])), {
    "co l": ["v a,l=x"],
    s: ['a"b\\c, d=e\nfn'],
    timestamp: [1n],
  });
  assert.deepEqual(rowsOf('t,a=,b="q",c=é s="漢" 1000\n'), {
    a: [""],
    b: ['"q"'],
    c: ["é"],
    s: ["漢"],
    timestamp: [1n],
  });
});

Deno.test("parseLines() accepts escaped line ends in tags, wherever the text is split", async () => {
  const text = "t,s=a\\\nb,q=\\\r\\\n x=1i 1000\nt,s=c\\\n\nt,s=d\\x\\\r\nt,s=e\\";
  const expected = {
    s: ["a\nb", "c\n", "d\\x\r", "e\\"],
    q: ["\r\n", null, null, null],
    x: [1n, NULL_LONG, NULL_LONG, NULL_LONG],
    timestamp: [1n, NOW, NOW, NOW],
  };
  assert.deepEqual(rowsOf(text), expected);
  const schema = schemaOf([["s", "SYMBOL"], ["q", "SYMBOL"], ["x", "LONG"], ["timestamp", "TIMESTAMP"]]);
  for (const pieceBytes of [1, 2, 3, 5, 8, 13, 21]) {
    assert.deepEqual((await rowsInPieces(bytes(text), 64, pieceBytes, schema)).rows.s, expected.s, `${pieceBytes}`);
  }
  for (const name of ["a\\\nb=1", "\\\n=1"]) {
    assert.match(parse(`t ${name}\n`).fault!.message, /column name/);
    assert.match(parse(`t,${name} x=1\n`).fault!.message, /column name/);
  }
});

Deno.test("parseLines() keeps tables, columns and repeated names apart", () => {
  const { tables } = parse("a x=1i 1000\nb y=2i 2000\nA X=3i,x=4i 3000\nb y=5i\r\n\na,s=k 4000");
  assert.deepEqual(tables.map((table) => [table.name, table.rowCount, table.line, [...table.lines]]), [
    ["a", 3, 1, [1, 3, 6]],
    ["b", 2, 2, [2, 4]],
  ]);
  assert.deepEqual(readRows(tables[0], schemaOf([["x", "LONG"], ["s", "SYMBOL"], ["timestamp", "TIMESTAMP"]])), {
    x: [1n, 3n, NULL_LONG],
    s: [null, null, "k"],
    timestamp: [1n, 3n, 4n],
  });
  assert.deepEqual(readRows(tables[1], schemaOf([["y", "LONG"], ["timestamp", "TIMESTAMP"]])).timestamp, [2n, NOW]);
});

Deno.test("parseLines() reads times in the given unit", () => {
  const times: [LinePrecision, string, bigint][] = [
    ["n", "1700000000000000123", 1700000000000000n],
    ["u", "1700000003000000", 1700000003000000n],
    ["ms", "1700000005000", 1700000005000000n],
    ["s", "1700000006", 1700000006000000n],
    ["m", "28333334", 1700000040000000n],
    ["h", "472223", 1700002800000000n],
    ["n", "1700000003000001t", 1700000003000001n],
    ["s", "1700000003001m", 1700000003001000n],
    ["s", "9999999999", 9999999999000000n],
    ["s", "253402300799", 253402300799000000n],
    ["ms", "253402300799999", 253402300799999000n],
    ["m", "1700000000", 102000000000000000n],
    ["n", "253402300799999999t", 253402300799999999n],
    ["n", "9223372036854775807", 9223372036854775n],
    ["n", "999", 0n],
  ];
  for (const [precision, text, micros] of times) {
    assert.deepEqual(rowsOf(`t v=1i ${text}`, precision).timestamp, [micros], text);
  }
  for (
    const text of ["253402300800000000t", "9223372036854775808t", "99999999999999999999999", `1${"0".repeat(99_999)}`]
  ) {
    assert.match(parse(`t v=1i ${text}`).fault!.message, /out of the range of timestamps/);
  }
  const { tables } = parse("t v=1i 1700000000000000123n");
  assert.equal(newTable(tables[0], "DAY", TYPES).columns[1].type, "TIMESTAMP_NS");
  assert.deepEqual(readRows(tables[0], schemaOf([["v", "LONG"], ["timestamp", "TIMESTAMP_NS"]])).timestamp, [
    1700000000000000123n,
  ]);
  assert.deepEqual(
    readRows(parse("t v=1i 9223372036854775806").tables[0], schemaOf([["v", "LONG"], ["timestamp", "TIMESTAMP_NS"]]))
      .timestamp,
    [9223372036854775806n],
  );
});

Deno.test("parseLines() accepts binary doubles", () => {
  const message = [
    ...bytes("t d=="),
    0x10,
    ...new Uint8Array(new Float64Array([1.25]).buffer),
    ...bytes(",e=1i 5000\nt d=="),
    0x10,
  ];
  message.push(...new Uint8Array(new Float64Array([-2]).buffer));
  const { tables } = parseBytes(new Uint8Array(message));
  assert.deepEqual(readRows(tables[0], schemaOf([["d", "DOUBLE"], ["e", "LONG"], ["timestamp", "TIMESTAMP"]])).d, [
    1.25,
    -2,
  ]);
  assert.equal(parseBytes(new Uint8Array(message.slice(0, -3))).fault?.line, 2);
});

Deno.test("parseLines() accepts arrays and decimals in binary, and the wide types as text", () => {
  const doubles = (...values: number[]) => [...new Uint8Array(new Float64Array(values).buffer)];
  const message = [
    ...bytes("t a=="),
    0x0e,
    0x0a,
    2,
    1,
    0,
    0,
    0,
    2,
    0,
    0,
    0,
    ...doubles(1.5, Infinity),
    ...bytes(",m=="),
    0x17,
    2,
    2,
    0xff,
    0x01,
  ];
  message.push(...bytes(',h=0xffi,g="u33d8",n=-2.5d 1000\nt h="0x1",g="x",m="1.5",n=3i 2000\nt m=1.25 3000\n'));
  const { tables, fault } = parseBytes(new Uint8Array(message));
  assert.equal(fault, undefined);
  assert.deepEqual(newTable(tables[0], "DAY", TYPES).columns.map(({ type }) => type), [
    "DOUBLE[][]",
    "DECIMAL(38,18)",
    "LONG256",
    "VARCHAR",
    "DECIMAL(38,18)",
    "TIMESTAMP",
  ]);
  const schema = schemaOf([["a", "DOUBLE[][]"], ["m", "DECIMAL(6,2)"], ["h", "LONG256"], ["g", "GEOHASH(3c)"], [
    "n",
    "DECIMAL(20,1)",
  ], ["timestamp", "TIMESTAMP"]]);
  const [a, m, h, g, n] = fitToTable(tables[0], schema).columns;
  const array = new DataView(a.heap!.slice(0, 28).buffer);
  assert.deepEqual([array.getUint32(0, true), array.getUint32(4, true), array.getUint32(8, true)], [2, 1, 2]);
  assert.deepEqual([array.getFloat64(12, true), array.getFloat64(20, true)], [1.5, NaN]);
  assert.deepEqual([...new Int32Array(a.values.slice().buffer)], [0, 28, 0, -1, 0, -1]);
  const longs = (values: Uint8Array) => [...new BigInt64Array(values.slice().buffer)];
  assert.deepEqual(longs(m.values), [-255n, 150n, 125n]);
  assert.deepEqual(longs(h.values).slice(0, 9), [0xffn, 0n, 0n, 0n, 1n, 0n, 0n, 0n, NULL_LONG]);
  assert.deepEqual(longs(g.values), [26723n, NULL_LONG, NULL_LONG]);
  assert.deepEqual(longs(n.values), [-25n, -1n, 30n, 0n, NULL_LONG, NULL_LONG]);
  assert.throws(
    () =>
      fitToTable(
        tables[0],
        schemaOf([["a", "DOUBLE[]"], ["m", "DECIMAL(6,2)"], ["h", "LONG256"], ["g", "GEOHASH(3c)"], [
          "n",
          "DECIMAL(6,1)",
        ], ["timestamp", "TIMESTAMP"]]),
      ),
    LineError,
  );
  for (let size = 0; size < message.length; size++) parseBytes(new Uint8Array(message.slice(0, size)));
});

Deno.test("parseLines() reads unsigned integers as Telegraf sends them", () => {
  assert.deepEqual(rowsOf("t v=765432u 1\nt v=0u 2\nt v=9223372036854775807u 3\nt v=5i 4\n").v, [
    765432n,
    0n,
    9223372036854775807n,
    5n,
  ]);
});

Deno.test("parseLines() returns all texts, whatever their total size", () => {
  const sizes = [0, 1, 3, 255, 1023, 4095, 65_535, 65_536, 65_537, 524_287, 524_288, 524_289, 1_048_575, 1_048_577];
  for (const size of sizes) {
    for (const more of [0, 1, 2, 7]) {
      const texts = ["x".repeat(size), ..."y".repeat(more)];
      const lines = texts.map((text, row) => `t,g=${row} a="${text}",b="${row}",c=${row}i,d=t ${row + 1}000\n`);
      const rows = rowsOf(lines.join(""));
      assert.deepEqual(rows.a, texts);
      assert.deepEqual(rows.b, texts.map((_, row) => String(row)));
      assert.deepEqual(rows.c, texts.map((_, row) => BigInt(row)));
      assert.deepEqual(rows.timestamp, texts.map((_, row) => BigInt(row + 1)));
    }
  }
  const many = Array.from({ length: 20_000 }, (_, row) => row === 7 ? "x" : "thirty characters are in here.");
  assert.deepEqual(rowsOf(many.map((text, row) => `t a="${text}" ${row + 1}000\n`).join("")).a, many);
});

const FAULTS: [title: string, text: string, line: number][] = [
  ["a word as value", "t v=1i 1\nt v=abc 2\n", 2],
  ["a name alone", "t\n", 1],
  ["a name and a time", "t 1000\n", 1],
  ["a broken time", "t v=1i 12x\n", 1],
  ["a time before 1970", "t v=1i -1\n", 1],
  ["a string without end", 't s="open\n', 1],
  ["two blanks", "t  v=1i\n", 1],
  ["two blanks before the time", "t v=1i  5\n", 1],
  ["a comment", "# t v=1i\n", 1],
  ["a forbidden column name", "t a.b=1i\n", 1],
  ["a forbidden table name", "t/x a=1i\n", 1],
  ["a suffix that is none", "t v=7z\n", 1],
  ["an unsigned integer with a sign", "t v=-7u\n", 1],
  ["an unsigned integer out of range", "t v=9223372036854775808u\n", 1],
  ["two suffixes", "t v=1ii\n", 1],
  ["an integer out of range", "t v=9223372036854775808i\n", 1],
  ["a double out of range", "t v=1e400\n", 1],
  ["a fraction of milliseconds", "t v=1.25m\n", 1],
  ["a small nan", "t v=nan\n", 1],
  ["broken UTF-8", "t,a=\xff v=1\n", 1],
];
for (const [title, text, line] of FAULTS) {
  Deno.test(`parseLines() refuses ${title}`, () => {
    const body = Uint8Array.from(text, (character) => character.charCodeAt(0));
    assert.equal(parseBytes(body).fault?.line, line);
  });
}

Deno.test("parseLines() allocates about as much memory as the rows take, however few they are", () => {
  for (const [count, textBytes] of [[1, 8], [2_000, 8], [3, 20_000]] as const) {
    const line = `t,s=a v="${"x".repeat(textBytes)}",w=2i 1000000\n`;
    const { tables } = parse(line.repeat(count));
    const sizeBytes = [...buffersOf(tables)].reduce((sum, { byteLength }) => sum + byteLength, 0);
    assert.equal(tables[0]!.rowCount, count);
    assert.ok(sizeBytes <= 1_000 + 10 * line.length * count, `${sizeBytes} bytes for ${count} lines`);
  }
});

Deno.test("parseLines() handles text that is truncated at any byte without an internal error", () => {
  const whole = bytes('t,site=no\\ rth i=5i,f=1.5e2,s="te\\"xt",b=true,w=17t,x=0xffi,y=1.5d 1700000000000000000\r\n');
  for (let size = 0; size <= whole.length; size++) parseBytes(whole.subarray(0, size));
});

Deno.test("fitToTable() converts to the table's types", () => {
  const { tables } = parse('t,g=x i=1i,d=2i,s=5i,v="a",k=1.5\nt i=t,d=1.5,s="q",v="b"\nt,v=tag i=3i,d=f,s=t\n');
  const schema = schemaOf([["g", "STRING"], ["i", "INT"], ["d", "DOUBLE"], ["s", "SYMBOL"], ["v", "VARCHAR"], [
    "k",
    "SYMBOL",
  ]]);
  assert.deepEqual(missingColumns(tables[0], schema, TYPES), []);
  assert.deepEqual(readRows(tables[0], schema), {
    g: ["x", null, null],
    i: [1, 1, 3],
    d: [2, 1.5, 0],
    s: ["5", "q", "t"],
    v: ["a", "b", "tag"],
    k: ["1.5", null, null],
  });
});

Deno.test("fitToTable() names the first line with a value that does not fit", () => {
  const { tables } = parse('t v=1i,w=1i 1000\nt v=1i,w="y" 2000\nt v="x" 3000\n');
  const schema = schemaOf([["v", "LONG"], ["w", "LONG"], ["timestamp", "TIMESTAMP"]]);
  assert.throws(() => fitToTable(tables[0], schema), (error) => error instanceof LineError && error.line === 2);
  assert.throws(() => fitToTable(parse("t v=300i").tables[0], schemaOf([["v", "BYTE"]])), LineError);
  assert.throws(() => missingColumns(parse("t v=").tables[0], schemaOf([]), TYPES), LineError);
});

Deno.test("fitToTable() refuses arrays for symbols", () => {
  const array = [0x0e, 0x0a, 1, 1, 0, 0, 0, ...new Uint8Array(new Float64Array([1.25]).buffer)];
  const { tables } = parseBytes(new Uint8Array([...bytes("t v=1i\nt v=="), ...array]));
  assert.throws(
    () => fitToTable(tables[0], schemaOf([["v", "SYMBOL"]])),
    (error) =>
      error instanceof LineError && error.line === 2 && /SYMBOL and does not accept an array/.test(error.message),
  );
});

Deno.test("fitToTable() takes the row's time from a field of the designated timestamp's name", () => {
  const { tables } = parse("t v=1i,ts=5000t\nt v=2i,ts=6000t 7000999\nt v=3i\nt v=4i,ts= 8000000\n");
  const rows = readRows(tables[0], schemaOf([["v", "LONG"], ["ts", "TIMESTAMP"]], "ts"));
  assert.deepEqual(rows.ts, [5000n, 6000n, NOW, 8000n]);
});

Deno.test("a byte order mark is skipped at the start, and refused in names elsewhere", () => {
  assert.deepEqual(rowsOf("\ufefft v=1i 1000\nt v=2i 2000\n").v, [1n, 2n]);
  assert.equal(parse("\ufeff").doneBytes, 3);
  const at = parseLines(bytes("\ufefft v=1i 1000\n"), { precision: "n", nowMicros: NOW, firstLine: 2 });
  assert.match(at.fault!.message, /table name '\ufefft' contains the character/);
  assert.match(parse("t v=1i 1000\n\ufefft v=2i 2000\n").fault!.message, /contains the character '\ufeff'/);
  assert.match(parse("t \ufeffv=2i 2000\n").fault!.message, /contains the character '\ufeff'/);
});

Deno.test("fitToTable() refuses a field or tag of the designated timestamp's name that is no time", () => {
  const schema = schemaOf([["v", "LONG"], ["ts", "TIMESTAMP"]], "ts");
  for (const line of ['t ts="x",v=1i', "t,ts=x v=1i", "t ts=1.5,v=1i", "t ts=t,v=1i"]) {
    for (const text of [line, `${line} 1000`, `t ts=1t 2000\n${line} 1000`]) {
      assert.throws(() => fitToTable(parse(text).tables[0], schema), LineError, text);
    }
  }
});

Deno.test("offsetOfLine() and shownLine() skip line feeds in binary values and count those in strings", () => {
  const double = "\u0010\n\n\n\n\n\n\n\n", array = `\u000e\n\u0001${"\u0001\0\0\0"}${"\n".repeat(8)}`;
  const decimal = "\u0017\u0002\u0003\n\n\n";
  const lines = [`a v==${double},w==${array} 1`, `b v==${decimal}`, 'c s="x\\\ny \\" =="', "d v=1i", ""];
  const text = new TextEncoder().encode(lines.join("\n"));
  let at = 0;
  // The third row has two lines, because its string contains a line feed.
  for (const [index, line] of [1, 2, 3, 5].entries()) {
    assert.equal(offsetOfLine(text, line), at, lines[index]);
    at += lines[index].length + 1;
  }
  assert.equal(offsetOfLine(text, 9), text.length);
  assert.equal(shownLine(text, 5), "d v=1i");
  assert.equal(shownLine(new TextEncoder().encode(`t\u0001 v=${"x".repeat(999)}\n`), 1).length, 501);
});

/** The rows of a text that arrives in chunks of the given size and is parsed in pieces. */
async function rowsInPieces(text: Uint8Array, chunkBytes: number, pieceBytes: number, schema: TableSchema) {
  async function* chunks() {
    for (let at = 0; at < text.length; at += chunkBytes) yield text.slice(at, at + chunkBytes);
  }
  const pieces = new LinePieces(chunks(), 4096, 1, pieceBytes);
  const rows: Record<string, unknown[]> = {};
  const lines: number[] = [];
  for (let firstLine = 1;;) {
    const piece = await pieces.next(firstLine);
    if (piece === undefined) return { rows, lines };
    const parsed = parseLines(piece.bytes, {
      precision: "n",
      nowMicros: NOW,
      firstLine,
      isContinued: piece.isContinued,
      lineSizeMax: 4096,
    });
    if (parsed.fault !== undefined) throw new LineError(parsed.fault.line, parsed.fault.message);
    for (const table of parsed.tables) {
      lines.push(...table.lines);
      const values = readRows(table, schema);
      for (const { name } of schema.columns) {
        const isNull = (value: unknown) => value === NULL_LONG || Number.isNaN(value);
        const found = values[name] ?? new Array(table.rowCount).fill(null);
        (rows[name] ??= []).push(...found.map((value) => isNull(value) ? null : value));
      }
    }
    firstLine = parsed.nextLine;
    pieces.done(parsed.body as Uint8Array<ArrayBuffer>, parsed.doneBytes, firstLine);
  }
}

Deno.test("LinePieces: a text gives the same rows wherever it is split, including at line feeds within values", async () => {
  const feeds = String.fromCharCode(0x10, ...new Array(8).fill(0x0a)),
    array = "\u000e\n\u0001\u0001\0\0\0" + "\n".repeat(8);
  const lines = [
    `t i=1i,d==${feeds},s="a\\\nb" 1000`,
    "",
    `t d==${feeds}`,
    `t i=3i,m==\u0017\u0000\u0001\n 3000\r`,
    `t m==\u0017\u0000\u0001\n`,
    `t s="${"long ".repeat(40)}",a==${array}`,
    `t a==${array},i=6i 6000`,
    "\r",
    "t i=7i 7000",
  ];
  const schema = schemaOf([
    ["i", "LONG"],
    ["d", "DOUBLE"],
    ["s", "VARCHAR"],
    ["m", "DECIMAL(18,0)"],
    ["a", "DOUBLE[]"],
    [
      "timestamp",
      "TIMESTAMP",
    ],
  ]);
  for (const end of ["", "\n"]) {
    const text = Uint8Array.from(lines.join("\n") + end, (character) => character.charCodeAt(0));
    const whole = await rowsInPieces(text, text.length, 1 << 20, schema);
    assert.deepEqual(whole.lines, [2, 4, 5, 6, 7, 8, 10]);
    for (let pieceBytes = 1; pieceBytes <= text.length; pieceBytes++) {
      assert.deepEqual(await rowsInPieces(text, 1 + pieceBytes % 7, pieceBytes, schema), whole, String(pieceBytes));
    }
  }
});

Deno.test("LinePieces: an error has the same line wherever the text is split", async () => {
  const schema = schemaOf([["a", "LONG"], ["timestamp", "TIMESTAMP"]]);
  const cases: [text: string, line: number][] = [
    ["t a=1i\n\nt a=2i\nt a=x\nt a=3i\n", 4],
    ['t a=1i\nt s="\\\nt a=2i', 3],
    [`t a=1i\nt s="${"x".repeat(5000)}"\nt a=2i\n`, 2],
    [`t a=1i\nt a=2i\nt s="${"x\\\n".repeat(3000)}`, 3],
    [`t a=1i\n\n${"x".repeat(50_000)}`, 3],
  ];
  for (const [text, line] of cases) {
    for (const pieceBytes of [1, 2, 3, 5, 8, 13, 21, 100, 5000, 60_000]) {
      await assert.rejects(
        rowsInPieces(bytes(text), 64, pieceBytes, schema),
        (error) => error instanceof LineError && (error.line === line || text.includes("x\\\n") && error.line >= line),
        `${text.slice(0, 40)} in pieces of ${pieceBytes}`,
      );
    }
  }
});

Deno.test("LinePieces: a line that is longer than a piece may have the maximum, and not much more", async () => {
  async function* chunksOf(size: number) {
    for (let at = 0; at < size; at += 64) yield new Uint8Array(64).fill(0x78);
    yield bytes("\nx\n");
  }
  for (const [size, isRefused] of [[4000, false], [4200, true], [5900, true]] as const) {
    const pieces = new LinePieces(chunksOf(size), 4096, 1, 1500);
    if (isRefused) await assert.rejects(() => pieces.next(1), LineError, `${size} bytes`);
    else assert.ok((await pieces.next(1))!.bytes.length > size);
    pieces.close();
  }
});

Deno.test("parseLines() stops before rows of many columns take much memory, and continues where it stopped", () => {
  const names = Array.from({ length: 5_000 }, (_, column) => `c${column}=1`).join(",");
  const body = bytes(`wide ${names}\n${"wide c1=2\n".repeat(20_000)}`);
  let rows = 0, parses = 0;
  for (let from = 0, firstLine = 1; from < body.length; parses++) {
    const { tables, doneBytes, nextLine, fault } = parseLines(body.slice(from), {
      precision: "n",
      nowMicros: NOW,
      firstLine,
    });
    assert.equal(fault, undefined);
    assert.ok(doneBytes > 0);
    const cells = tables.reduce((sum, table) => sum + table.columns.length * table.rowCount, 0);
    assert.ok(cells < 4_000_000, `${cells} cells`);
    rows += tables.reduce((sum, table) => sum + table.rowCount, 0);
    from += doneBytes;
    firstLine = nextLine;
  }
  assert.equal(rows, 20_001);
  assert.ok(parses > 1);
});

Deno.test("a new column without a value in its first line is refused, regardless of later lines", () => {
  for (const text of ["t a=,b=1i\nt a=1i\n", "t b=1i\nt a==\u000e!\nt a=5\n"]) {
    assert.throws(() => newTable(parse(text).tables[0], "DAY", TYPES), LineError);
  }
  const kept = schemaOf([["a", "DOUBLE[]"], ["b", "LONG"], ["timestamp", "TIMESTAMP"]]);
  assert.equal(fitToTable(parse("t a=,b=1i\n").tables[0], kept).columns[0].values.length, 8);
});

Deno.test("parseLines() reads decimals with exponents, and NaN", () => {
  const { tables, fault } = parse(
    "t a=1.25e2d 1\nt a=15e-1d 2\nt a=-0.5e0d 3\nt a=NaNd 4\nt a=-Infinityd 5\nt a=0e9999d 6\nt a=1e20d 7\nt a=1e-9d 8\n",
  );
  assert.equal(fault, undefined);
  const schema = schemaOf([["a", "DECIMAL(38,9)"], ["timestamp", "TIMESTAMP"]]);
  const [a] = fitToTable(tables[0], schema).columns;
  const words = new BigInt64Array(a.values.slice().buffer);
  const values = Array.from(
    { length: 8 },
    (_, row) => (words[2 * row + 1] << 64n) | BigInt.asUintN(64, words[2 * row]),
  );
  const unit = 10n ** 9n, none = (NULL_LONG << 64n) | BigInt.asUintN(64, NULL_LONG);
  assert.deepEqual(values, [125n * unit, 3n * unit / 2n, -unit / 2n, none, none, 0n, 10n ** 29n, 1n]);
  assert.equal(parse("t a=1e999999999d\n").fault?.line, 1);
});

Deno.test("parseTexts() gives the rows of each text, or an error if one of them has a fault", () => {
  const NULLS: Record<string, unknown> = { s: null, x: -(2n ** 63n), q: null };
  const random = randomOf(SEED),
    schema = schemaOf([
      ["s", "SYMBOL"],
      ["x", "LONG"],
      ["q", "VARCHAR"],
      ["timestamp", "TIMESTAMP"],
    ]);
  const pieces = [
    "t,s=a x=1i 1000\n",
    't x=2i,q="a\nb" 2000\n',
    "\ufefft x=3i 3000\r\n",
    'T,s=b\\ c q="x" 4000',
    't q="open',
    '" 5000\n',
    "t,s=d\\",
    "\n",
    "x=1i\n",
    "u x=1i 6000\n",
  ];
  let faults = 0;
  for (let run = 0; run < 2000; run++) {
    const texts = Array.from(
      { length: 1 + random(4) },
      () =>
        Array.from({ length: 1 + random(3) }, () => pieces[random(10) < 9 ? random(3) : random(pieces.length)]).join(
          "",
        ),
    );
    const alone = texts.map((text) => parse(text));
    const together = () => parseTexts(texts.map(bytes), { precision: "n", nowMicros: NOW });
    if (alone.some(({ fault }) => fault !== undefined)) {
      faults++;
      assert.throws(together, LineError, JSON.stringify(texts));
      continue;
    }
    const { tables, rows } = together();
    const rowCount = (lines: { rowCount: number }[]) => lines.reduce((sum, each) => sum + each.rowCount, 0);
    assert.deepEqual(rows, alone.map(({ tables }) => rowCount(tables)));
    const of = (lists: LineTable[][]) => {
      const all: Record<string, unknown[]> = { s: [], x: [], q: [], timestamp: [] };
      for (const lines of lists.flat().filter(({ name }) => name.toLowerCase() === "t")) {
        const read = readRows(lines, schema);
        for (const [name, values] of Object.entries(all)) {
          // Of a column that no line of the text names there are no values.
          for (let row = 0; row < lines.rowCount; row++) values.push(read[name]?.[row] ?? NULLS[name]);
        }
      }
      return all;
    };
    assert.deepEqual(of([tables]), of(alone.map(({ tables }) => tables)), JSON.stringify(texts));
  }
  assert.ok(faults > 200 && faults < 1800, `${faults}`);
});
