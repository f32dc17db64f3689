import assert from "node:assert/strict";
import { bind } from "./bind.ts";
import type { BindContext } from "./binder/context.ts";
import { FakeCatalogue } from "./binder/fake-catalogue.ts";
import { type Effort, FULL_EFFORT, LongStatement, QUICK_EFFORT } from "./effort.ts";
import { parse } from "./parser.ts";
import { sizeOf } from "./binder/plans.ts";
import type { Plan } from "./plan.ts";
import { nodeExpressions, visitPlan } from "./planner/nodes.ts";
import { optimize } from "./planner/mod.ts";

const catalogue = new FakeCatalogue();

function bound(text: string, effort: Effort): Plan {
  const context: BindContext = {
    catalogue,
    parameterTypes: [],
    importRoot: "/",
    nowMicros: 0n,
    user: "admin",
    parquetSchema: () => ({ columns: [], leftOut: [] }),
    effort,
  };
  const { statement } = bind(parse(text, effort), context);
  if (statement.kind === "createTable") catalogue.apply(statement);
  return statement.kind === "query" ? statement.plan! : { node: "values" } as Plan;
}

bound("create table t (a long, b long)", FULL_EFFORT);
bound("create table s (ts timestamp) timestamp(ts)", FULL_EFFORT);

const list = (count: number, item: (k: number) => string, separator = ", ") =>
  Array.from({ length: count }, (_, k) => item(k)).join(separator);

/** Each CTE uses the previous one twice. */
const doubling = (levels: number) =>
  `with c0 as (select a from t), ${
    list(levels, (k) => `c${k + 1} as (select x.a from c${k} x cross join c${k} y)`)
  } select * from c${levels}`;

const LONG: { title: string; text: string; refusedAt?: number }[] = [
  { title: "many words", text: `select ${list(500, (k) => `a + ${k} x${k}`)} from t` },
  {
    title: "many words in items of lists",
    text: `select a in (${list(1000, (k) => `a${" + a".repeat(k % 90)}`)}) from t`,
  },
  { title: "names that double", text: doubling(10) },
  { title: "names that double without end", text: doubling(60), refusedAt: doubling(60).indexOf("a from t") },
  {
    title: "variables that double",
    text: `declare @x0 := 1, ${list(60, (k) => `@x${k + 1} := @x${k} + @x${k}`)} select @x60`,
    refusedAt: 0,
  },
  { title: "a text with many intervals", text: "select * from s where ts in '2020-01-01;1s;1d;5000'" },
  {
    title: "operands that CASE repeats",
    text: `select ${"case ".repeat(40)}a${" when 1 then 2 when 3 then 4 else 5 end".repeat(40)} from t`,
    refusedAt: 0,
  },
  {
    title: "operands that IN repeats",
    text: `select ${"case when ".repeat(40)}a${" in (a + 1, b + 2) then a else 3 end".repeat(40)} from t`,
    refusedAt: 0,
  },
  {
    title: "aliases that double",
    text: `select a + a a0, ${list(60, (k) => `a${k} + a${k} a${k + 1}`)} from t`,
    refusedAt: 0,
  },
];

for (const { title, text, refusedAt } of LONG) {
  Deno.test(`a statement is long because of ${title}`, () => {
    assert.throws(() => bound(text, QUICK_EFFORT), LongStatement);
    if (refusedAt === undefined) bound(text, FULL_EFFORT);
    else assert.throws(() => bound(text, FULL_EFFORT), { name: "SqlError", sqlState: "54000" });
  });
}

Deno.test("lists of values and columns do not make a statement long", () => {
  bound(`select a from t where a in (${list(10_000, String)}) or b in (${list(10_000, (k) => `-${k}`)})`, QUICK_EFFORT);
  bound(`select ${list(100, () => "a")} from t`, QUICK_EFFORT);
});

Deno.test("intervals are counted before they are created", () => {
  for (
    const text of ["2020-[01..12]-[01..28]T[00..23];1s;1d;100000", "[1000..9000]-[01..12]-[01..28]T[00..23]:[00..59]"]
  ) {
    assert.throws(() => bound(`select * from s where ts in '${text}'`, FULL_EFFORT), { message: /too many intervals/ });
  }
});

Deno.test("too many words are reported at the first word beyond the limit", () => {
  const text = `select ${list(30_000, () => "a", " + ")} from t`;
  assert.throws(() => parse(text), {
    message: "The statement is too complex: 60002 words and marks excluding lists of values, at most 50000 are allowed",
    position: text.indexOf("a") + 4 * ((50_000 - 1) / 2 | 0) + 2,
  });
});

Deno.test("too many tokens of lists are reported at the first one beyond the limit", () => {
  const effort = { ...FULL_EFFORT, tokens: 50 };
  const text = (count: number) => `select a from t where a in (${list(count, () => "1", ",")})`;
  parse(text(21), effort); // 9 words and marks, and 21 values with 20 commas
  assert.throws(() => parse(text(22), effort), {
    message: "The statement is too complex: its lists of values have too many words and marks, at most 50 are allowed",
    position: text(22).length - 2,
  });
});

Deno.test("filters are pushed down as long as the plan stays within its limit", () => {
  const nested = (levels: number) => `${"select a + a a from (".repeat(levels)}select a from t${")".repeat(levels)}`;
  const union = list(40, (k) => `select a + b + ${k} a from t`, " union all ");
  for (
    const text of [
      `select * from (${nested(40)}) where a > 5`,
      `select * from (${union}) where ${list(300, (k) => `a != ${k}`, " and ")}`,
    ]
  ) {
    let size = 0;
    visitPlan(optimize(bound(text, FULL_EFFORT)), (node) => {
      for (const e of nodeExpressions(node)) size += sizeOf(e);
    });
    assert.ok(size < 20_000, `${size} expressions`);
  }
});
