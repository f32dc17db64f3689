import assert from "node:assert/strict";
import { createRegistry, functionId } from "../sql/functions/mod.ts";
import type { Expr } from "../sql/plan.ts";
import { SqlError } from "../errors.ts";
import type { Value } from "../types/mod.ts";
import { valueAt } from "./columns.ts";
import type { QueryContext } from "./contract.ts";
import { compileExpressions } from "./expressions.ts";
import { col, fn, lit, randomFrom, type Row, RowsInput, testContext } from "./testing.ts";

const functions = createRegistry();

const TYPES = ["BOOLEAN", "BYTE", "SHORT", "CHAR", "INT", "LONG", "FLOAT", "DOUBLE", "TIMESTAMP", "SYMBOL", "VARCHAR"];

function randomRows(rowCount: number, seed: number): Row[] {
  const random = randomFrom(seed);
  const texts = [
    "",
    "a",
    "ab",
    "zebra",
    "löwe",
    "a longer text of more than eight bytes",
    "a longer text of more than eight byteS",
  ];
  return Array.from({ length: rowCount }, () => {
    const n = (random() % 41) - 20;
    const value = (type: string): Value => {
      if (!["BOOLEAN", "BYTE", "SHORT"].includes(type) && random() % 7 === 0) return null;
      switch (type) {
        case "BOOLEAN":
          return random() % 2 === 0;
        case "CHAR":
          return String.fromCharCode(65 + random() % 26);
        case "LONG":
        case "TIMESTAMP":
          return BigInt(n) * 10_000_000_019n;
        case "FLOAT":
          return Math.fround(n / 3);
        case "DOUBLE":
          return n / 7;
        case "SYMBOL":
        case "VARCHAR":
          return texts[random() % texts.length];
        default:
          return n;
      }
    };
    return TYPES.map(value);
  });
}

/** Evaluates expressions over the rows, in batches of `batchRows`. */
function evaluateAll(rows: Row[], exprs: Expr[], predicate: Expr | undefined, batchRows: number): Value[][] {
  const context: QueryContext = testContext(1 << 26, { functions });
  const input = new RowsInput(TYPES.map((type, k) => ({ name: `c${k}`, type })), rows, context, batchRows);
  const compiled = compileExpressions(exprs, predicate, TYPES, context);
  const out: Value[][] = [];
  for (let batch = input.next(); batch !== undefined; batch = input.next()) {
    const result = compiled.run(batch);
    for (let row = 0; row < result.rowCount; row++) {
      out.push(result.columns.map((vector) => valueAt(context.heap, vector, row)));
    }
  }
  compiled.close();
  assert.equal(context.memory.usedBytes, 0);
  return out;
}

const at = (type: string) => TYPES.indexOf(type);
const c = (type: string) => col(at(type), type);

Deno.test("scalar and lane forms of one expression agree with plain TypeScript, with nulls at every lane", () => {
  const rows = randomRows(3_001, 1);
  const exprs = [
    fn("+", "DOUBLE", c("DOUBLE"), lit(1.5, "DOUBLE")),
    fn("*", "LONG", c("LONG"), lit(3n, "LONG")),
    fn("+", "INT", c("INT"), lit(7, "INT")),
    fn("<", "BOOLEAN", c("LONG"), lit(0n, "LONG")),
    fn("and", "BOOLEAN", c("BOOLEAN"), fn(">", "BOOLEAN", c("INT"), lit(-3, "INT"))),
    fn("is_null", "BOOLEAN", c("DOUBLE")),
    fn("=", "BOOLEAN", c("CHAR"), lit("C", "CHAR")),
    fn("neg", "SHORT", c("SHORT")),
  ];
  const expected = rows.map((row) => {
    const d = row[at("DOUBLE")] as number | null,
      l = row[at("LONG")] as bigint | null,
      i = row[at("INT")] as number | null;
    return [
      d === null ? null : d + 1.5,
      l === null ? null : l * 3n,
      i === null ? null : i + 7,
      l !== null && l < 0n,
      row[at("BOOLEAN")] === true && i !== null && i > -3,
      d === null,
      row[at("CHAR")] === "C",
      -(row[at("SHORT")] as number) + 0,
    ];
  });
  for (const batchRows of [1, 7, 64, 3_001]) assert.deepEqual(evaluateAll(rows, exprs, undefined, batchRows), expected);
  // With a text output lanes are not possible: scalar code must give the same.
  const scalar = evaluateAll(rows, [...exprs, fn("<", "BOOLEAN", c("VARCHAR"), lit("b", "VARCHAR"))], undefined, 999);
  assert.deepEqual(scalar.map((row) => row.slice(0, -1)), expected);
});

Deno.test("a filter keeps the rows that pass all parts, and compacts every column", () => {
  const rows = randomRows(2_777, 2);
  const columns = TYPES.map((type, k) => col(k, type));
  const laneable = fn(
    "and",
    "BOOLEAN",
    fn(">", "BOOLEAN", c("DOUBLE"), lit(0, "DOUBLE")),
    fn("<=", "BOOLEAN", c("INT"), lit(5, "INT")),
  );
  const keep = (row: Row) =>
    row[at("DOUBLE")] !== null && (row[at("DOUBLE")] as number) > 1e-10 && row[at("INT")] !== null &&
    (row[at("INT")] as number) <= 5;
  assert.deepEqual(evaluateAll(rows, columns, laneable, 501), rows.filter(keep));
  const withText = fn("and", "BOOLEAN", laneable, fn("=", "BOOLEAN", c("VARCHAR"), lit("zebra", "VARCHAR")));
  assert.deepEqual(
    evaluateAll(rows, columns, withText, 501),
    rows.filter((row) => keep(row) && row[at("VARCHAR")] === "zebra"),
  );
});

Deno.test("symbols: compared by codes, precomputed for each entry, or as text", () => {
  const rows = randomRows(1_500, 3);
  const one = fn("=", "BOOLEAN", c("SYMBOL"), lit("zebra", "STRING"));
  const text = functions.resolve(functionId("=", ["SYMBOL", "STRING"]));
  assert.ok(text);
  assert.deepEqual(
    evaluateAll(rows, [c("SYMBOL")], one, 400),
    rows.filter((row) => row[at("SYMBOL")] === "zebra").map((row) => [row[at("SYMBOL")]]),
  );
  const most = fn("!=", "BOOLEAN", c("SYMBOL"), lit("zebra", "STRING"));
  assert.deepEqual(
    evaluateAll(rows, [c("INT")], most, 400),
    rows.filter((row) => row[at("SYMBOL")] !== "zebra").map((row) => [row[at("INT")]]),
  );
  const both = fn("=", "BOOLEAN", c("SYMBOL"), c("VARCHAR"));
  assert.deepEqual(
    evaluateAll(rows, [both], undefined, 400),
    rows.map((row) => [row[at("SYMBOL")] === row[at("VARCHAR")]]),
  );
});

Deno.test("IN by comparisons, by search, and over symbols; nulls can be members", () => {
  const rows = randomRows(1_200, 4);
  const short: Value[] = [1, 2, null],
    long: Value[] = Array.from({ length: 30 }, (_, k) => BigInt(k - 20) * 10_000_000_019n);
  const texts: Value[] = ["zebra", null, "q", "r", "s", "t", "u", "v", "w", "ab"];
  const isIn = (type: string, values: Value[]): Expr => ({ kind: "in", operand: c(type), values, type: "BOOLEAN" });
  const exprs = [
    isIn("INT", short),
    isIn("LONG", long),
    isIn("VARCHAR", texts),
    isIn("SYMBOL", texts),
    isIn("DOUBLE", [...Array.from({ length: 12 }, (_, k) => k / 7), null]),
  ];
  const expected = rows.map((row) => [
    short.includes(row[at("INT")]),
    long.includes(row[at("LONG")]),
    texts.includes(row[at("VARCHAR")]),
    texts.includes(row[at("SYMBOL")]),
    row[at("DOUBLE")] === null || Array.from({ length: 12 }, (_, k) => k / 7).includes(row[at("DOUBLE")] as number),
  ]);
  assert.deepEqual(evaluateAll(rows, exprs, undefined, 333), expected);
});

Deno.test("CASE takes the first true branch; batch calls run between kernels", () => {
  const rows = randomRows(900, 5);
  const expr: Expr = {
    kind: "case",
    branches: [
      { when: fn(">", "BOOLEAN", c("INT"), lit(10, "INT")), then: lit(1n, "LONG") },
      { when: fn("is_null", "BOOLEAN", c("INT")), then: lit(null, "NULL") },
    ],
    otherwise: c("LONG"),
    type: "LONG",
  };
  const cast = fn("cast_STRING", "STRING", fn("+", "INT", c("INT"), lit(1, "INT")));
  const filter = fn("=", "BOOLEAN", cast, lit("5", "STRING"));
  const expected = rows.map((row) => {
    const i = row[at("INT")] as number | null;
    return [i !== null && i > 10 ? 1n : i === null ? null : row[at("LONG")], i === null ? null : String(i + 1)];
  });
  assert.deepEqual(evaluateAll(rows, [expr, cast], undefined, 128), expected);
  assert.deepEqual(
    evaluateAll(
      rows,
      [c("INT")],
      fn("and", "BOOLEAN", fn("<", "BOOLEAN", c("DOUBLE"), lit(0, "DOUBLE")), filter),
      128,
    ),
    rows.filter((row) => row[at("INT")] === 4 && row[at("DOUBLE")] !== null && (row[at("DOUBLE")] as number) < -1e-10)
      .map((row) => [row[at("INT")]]),
  );
});

Deno.test("a set cancel word stops a kernel", () => {
  const context = testContext(1 << 26, { functions, poll: () => {} });
  let polls = 0;
  const cancelled = {
    ...context,
    poll: () => {
      if (++polls > 0 && context.heap.i32[context.cancelWord >>> 2] !== 0) throw new SqlError("cancelled", 0, "57014");
    },
  };
  const input = new RowsInput([{ name: "x", type: "DOUBLE" }], [[1], [2]], context);
  const compiled = compileExpressions(
    [fn("+", "DOUBLE", col(0, "DOUBLE"), lit(1, "DOUBLE"))],
    undefined,
    ["DOUBLE"],
    cancelled,
  );
  const batch = input.next()!;
  assert.equal(compiled.run(batch).rowCount, 2);
  context.heap.i32[context.cancelWord >>> 2] = 1;
  assert.throws(() => compiled.run(batch), { name: "SqlError" });
});
