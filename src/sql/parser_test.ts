import assert from "node:assert/strict";
import type { Expression, Query, Select } from "./ast.ts";
import { NESTING_MAX, parse as parseAny } from "./parser.ts";
import type { CreateTable } from "./statements/create-table.ts";
import type { Explain } from "./statements/explain.ts";
import type { Insert } from "./statements/insert.ts";
import type { QueryStatement } from "./statements/query.ts";
import type { ShowOfTable } from "./statements/show.ts";

type Tree = QueryStatement | CreateTable | Insert | Explain | ShowOfTable & { kind: "showColumns" };
const parse = (text: string) => parseAny(text) as Tree;

function query(text: string): Query {
  const statement = parse(text);
  assert.equal(statement.kind, "query");
  return (statement as QueryStatement).query;
}
function select(text: string): Select {
  const tree = query(text);
  assert.equal(tree.kind, "select");
  return tree as Select;
}

/** Writes the expression with all brackets that precedence implies. */
function shown(e: Expression): string {
  switch (e.kind) {
    case "number":
      return e.text;
    case "string":
      return `'${e.value}'`;
    case "null":
      return "null";
    case "column":
      return e.path.map((part) => part.text).join(".");
    case "unary":
      return `(${e.operator} ${shown(e.operand)})`;
    case "binary":
      return `(${shown(e.left)} ${e.operator} ${shown(e.right)})`;
    case "isNull":
      return `(${shown(e.operand)} is${e.negated ? " not" : ""} null)`;
    case "between":
      return `(${shown(e.operand)} between ${shown(e.low)} ${shown(e.high)})`;
    case "in":
      return `(${shown(e.operand)}${e.negated ? " not" : ""} in${e.bare ? " " : ""}${e.items.map(shown).join(" ")})`;
    case "cast":
      return `${shown(e.operand)}::${e.type.name}`;
    case "index":
      return `${shown(e.operand)}[]`;
    case "call":
      return `${e.name}(${e.args.map(shown).join(" ")})`;
    default:
      return e.kind;
  }
}

const precedence = [
  ["a or b and not c = 1", "(a or (b and (not (c = 1))))"],
  ["5 & 4 = 4", "((5 & 4) = 4)"],
  ["1 | 2 ^ 3 & 4", "(1 | (2 ^ (3 & 4)))"],
  ["a || b + 1 * 2", "(a || (b + (1 * 2)))"],
  ["-a::int", "(- a::int)"],
  ["- -1 - 2 - 3", "(((- (- 1)) - 2) - 3)"],
  ["a between 1 and 2 + 1 and b", "((a between 1 (2 + 1)) and b)"],
  ["not a is null or b in ('x', 'y')", "((not (a is null)) or (b in'x' 'y'))"],
  ["a not in '2024' and b not like 'c%'", "((a not in '2024') and (b not like 'c%'))"],
  ["a[1] + b[2][3]::long", "(a[] + b[][]::long)"],
  ["a <> 1", "(a != 1)"],
  ["false = 3 > 4 = b", "((boolean = (3 > 4)) = b)"],
  ["a = b in (1) and c > 1 in (2)", "((a = (b in1)) and (c > (1 in2)))"],
  ["a = b between 1 and 2 is null", "((a = (b between 1 2)) is null)"],
  ["f(1, a + 1) * (1 + 2)", "(f(1 (a + 1)) * (1 + 2))"],
];
for (const [text, tree] of precedence) {
  Deno.test(`parse() reads ${text} as ${tree}`, () =>
    assert.equal(shown(select(`select ${text} from t`).items[0].expression), tree));
}

Deno.test("parse() accepts keywords as names where no clause can begin", () => {
  const tree = select("select group, key, timestamp, date, left, t.sample, count from window");
  assert.deepEqual(tree.items.map((item) => shown(item.expression)), [
    "group",
    "key",
    "timestamp",
    "date",
    "left",
    "t.sample",
    "count",
  ]);
  assert.deepEqual(tree.from, { kind: "table", at: 63, name: { text: "window", at: 63, quoted: false } });
});

Deno.test("parse() accepts a bare table and a query in parentheses", () => {
  const bare = select("trades where x > 1 limit 5");
  assert.equal(bare.bare, true);
  assert.equal(bare.where?.kind, "binary");
  assert.equal(select("(select 1)").bare, false);
  const wrapped = select("(select 1 limit 2) limit 1");
  assert.equal(wrapped.from?.kind, "subquery");
  assert.equal(shown(wrapped.limit!.low!), "1");
});

Deno.test("parse() applies a final ORDER BY and LIMIT to the whole set operation", () => {
  const tree = query("select a from t union all trades except select 1 order by 1 limit 3");
  assert.equal(tree.kind === "set" && tree.operator, "except");
  assert.equal(tree.kind === "set" && tree.left.kind === "set" && tree.left.operator, "union all");
  assert.equal(tree.orderBy.length, 1);
});

Deno.test("parse() reads the time-series clauses", () => {
  const tree = select(
    "select ts, sum(x) from t where ts in '2024' sample by 15m from '2024' to '2025' fill(prev, null, 0) align to calendar time zone 'UTC' with offset '00:10'",
  );
  assert.deepEqual(tree.sampleBy?.interval, { text: "15m", at: 54 });
  assert.deepEqual(tree.sampleBy?.fill?.items.map((item) => item.kind), ["prev", "null", "value"]);
  assert.equal(tree.sampleBy?.align?.to, "calendar");
  assert.equal(select("t latest by a, b where c").latestOn?.partitionBy.length, 2);
  const asof = select("select * from a asof join b on (x, y) tolerance 10s lt join c").from;
  assert.equal(asof?.kind === "join" && asof.type, "lt");
  assert.equal(asof?.kind === "join" && asof.left.kind === "join" && asof.left.tolerance?.text, "10s");
});

const limits: [string, low: string | undefined, high: string | undefined, offset?: string][] = [
  ["5", "5", undefined],
  ["-3", "(- 3)", undefined],
  ["1, 2", "1", "2"],
  ["4,", "4", undefined],
  [",4", "4", undefined],
  ["10 offset 20", "10", undefined, "20"],
  ["all offset a + 1", undefined, undefined, "(a + 1)"],
];
for (const [text, low, high, offset] of limits) {
  Deno.test(`parse() reads LIMIT ${text}`, () => {
    const { limit } = select(`t limit ${text}`);
    assert.equal(limit?.low && shown(limit.low), low);
    assert.equal(limit?.high && shown(limit.high), high);
    assert.equal(limit?.offset && shown(limit.offset), offset);
  });
}

Deno.test("parse() reads CREATE TABLE with all its options", () => {
  const tree = parse(
    "create table if not exists 'a b' (ts timestamp, s symbol capacity 128 nocache index capacity 64, g geohash(4c), d decimal(10, 2), " +
      "a double[][], p double precision, index(s)) timestamp(ts) partition by day ttl 2 weeks wal with maxUncommittedRows=10, o3MaxLag=1s dedup upsert keys(ts, s);",
  );
  assert(tree.kind === "createTable");
  assert.equal(tree.name.text, "a b");
  assert.deepEqual(tree.columns.map(({ type }) => [type.name, ...type.parameters, type.dimensions]), [
    ["timestamp", 0],
    ["symbol", 0],
    ["geohash", "4c", 0],
    ["decimal", "10", "2", 0],
    ["double", 2],
    ["double precision", 0],
  ]);
  assert.deepEqual([tree.columns[1].symbolCapacity, tree.columns[1].symbolCached, tree.columns[1].index?.capacity], [
    128,
    false,
    64,
  ]);
  assert.deepEqual([tree.partitionBy?.unit, tree.ttl?.text, tree.wal, tree.dedupKeys?.length], [
    "day",
    "2 weeks",
    true,
    2,
  ]);
});

Deno.test("parse() gives the same trees for rows by the fast path and by the grammar", () => {
  const items = [
    "1",
    "-1.5",
    "'a'",
    "null",
    "TRUE",
    "$2",
    "now()",
    "f('a', -1, g(2))",
    "'x'::timestamp",
    "1::long",
    "array[1, [2]]",
    "#u33d",
    "a + 1",
  ];
  const text = `insert into t values (${items.join(", ")})`;
  const tree = parse(text);
  assert(tree.kind === "insert" && tree.rows !== undefined);
  tree.rows[0].forEach((item, index) => {
    // Pad with blanks, so that offsets are equal.
    const at = text.indexOf(
      `${items[index]}${index === items.length - 1 ? ")" : ","}`,
      index === 0 ? 0 : tree.rows![0][index - 1].at + 1,
    );
    const byGrammar = select("select".padEnd(at) + `${items[index]} as x`);
    assert.deepEqual(item, byGrammar.items[0].expression, items[index]);
  });
});

Deno.test("parse() gives a statement its offset and omits empty ones", () => {
  const { kind, at } = parse(" ;; insert into t values (';') ;");
  assert.deepEqual([kind, at], ["insert", 4]);
  assert.deepEqual(parse(" -- nothing"), { kind: "empty", at: 0 });
});

const refused = [
  { title: "a missing select list", text: "select from t", position: 7 },
  { title: "a reserved word as a name", text: "create table t (a int, from int)", position: 23 },
  { title: "a second statement", text: "select 1; select 2", position: 10 },
  { title: "a missing operand at its operator", text: "select 5 *", position: 9 },
  { title: "a missing condition at WHERE", text: "select a from t where", position: 16 },
  { title: "an unclosed parenthesis", text: "select (1 + 2", position: 7 },
  { title: "an unclosed CASE", text: "select case when true then 1", position: 7 },
  { title: "an empty list at IN", text: "select a in ()", position: 9 },
  { title: "a mistake inside a list before a later one", text: "select a in (1, 2 3) from from", position: 18 },
  { title: "a mistake inside a row", text: "insert into t values (1, 2), (3, 4 5)", position: 35 },
  { title: "a comma after the rows", text: "insert into t values (1),", position: 25 },
  { title: "three bounds", text: "t limit 1, 2, 3", position: 12 },
  { title: "EXPLAIN without a statement", text: "EXPLAIN", position: 7 },
  { title: "EXPLAIN EXPLAIN", text: "explain explain select 1", position: 8 },
  { title: "digits with letters", text: "select 12abc", position: 7 },
  {
    title: "an unsupported statement",
    text: "prepare p as select 1",
    position: 0,
    sqlState: "0A000",
  },
  { title: "an unsupported clause", text: "select * from a natural join b", position: 16, sqlState: "0A000" },
];
for (const { title, text, ...error } of refused) {
  Deno.test(`parse() refuses ${title}`, () => assert.throws(() => parse(text), { name: "SqlError", ...error }));
}

Deno.test("parse() reads DESCRIBE as SHOW COLUMNS, except for tables of that name", () => {
  for (const text of ["describe t", "DESC public.t", 'describe table "t"', "describe t;"]) {
    const tree = parse(text);
    assert(tree.kind === "showColumns" && tree.table.text === "t", text);
  }
  for (const text of ["describe", "describe where a = 1", "desc order by a"]) assert.equal(parse(text).kind, "query");
});

Deno.test("parse() reads EXPLAIN ANALYZE, except for tables of that name", () => {
  const cases: [text: string, analyze: boolean, kind: string][] = [
    ["explain analyze select 1", true, "query"],
    ["explain (analyze) delete from t", true, "delete"],
    ["explain analyze t", true, "query"],
    ["explain analyze", false, "query"],
    ["explain analyze where a = 1", false, "query"],
    ["explain select 1", false, "query"],
  ];
  for (const [text, analyze, kind] of cases) {
    const tree = parse(text);
    assert(tree.kind === "explain");
    assert.deepEqual([tree.analyze, tree.statement.kind], [analyze, kind], text);
  }
});

const explained: [text: string, message: string, position: number][] = [
  ["selekt 1", "unknown statement selekt; did you mean SELECT?", 0],
  ["creat table t (a int)", "unknown statement creat; did you mean CREATE?", 0],
  ["delet from t", "unknown statement delet; did you mean DELETE?", 0],
  ["explain selec 1", "unknown statement selec; did you mean SELECT?", 8],
  ["explian select 1", "unknown statement explian; did you mean EXPLAIN?", 0],
  [
    "kill 5",
    "unknown statement kill: expected SELECT, INSERT, CREATE or another statement, or a table's name",
    0,
  ],
  ["drop tabel x", "Cannot read the statement: found tabel; did you mean TABLE?", 5],
  ["drop x", "Cannot read the statement: found x, expected for example ALL, GROUP, SERVICE or TABLE", 5],
  ["select * form t", "Cannot read the statement: found form; did you mean FROM?", 9],
  [
    "select true xor false",
    "Cannot read the statement: found false, expected a comma, FROM, another clause or the end of the statement",
    16,
  ],
  ["select 1 form t", "Cannot read the statement: found form; did you mean FROM?", 9],
  ["select a from t wehre price > 1", "Cannot read the statement: found wehre; did you mean WHERE?", 16],
  ["t gruop by a", "Cannot read the statement: found gruop; did you mean GROUP?", 2],
  ["select sum(a) over (partion by b) from t", "Cannot read the statement: found partion; did you mean PARTITION?", 20],
  ["alter table t ad column a int", "Cannot read the statement: found ad; did you mean ADD?", 14],
  [
    "select a b c from t",
    "Cannot read the statement: found c, expected a comma, FROM, another clause or the end of the statement",
    11,
  ],
  ["select sum(a from t", "Cannot read the statement: found from, expected ), a comma, ORDER BY or an operator", 13],
  ["select 1 2", "Cannot read the statement: found 2, expected for example a comma, FROM, an alias or an operator", 9],
  ["select a from t where a = order", "Cannot read the statement: found order, expected an expression", 26],
  ["select (1", "The parenthesis is not closed: ) is missing", 7],
  ["select case when a then 1 from t", "CASE is not closed: END is missing", 7],
  ["select 1 +", "expected an expression after +", 9],
  ["select cast(as int)", "CAST is written as cast(value as type)", 7],
  ["t where a between 1, 2", "BETWEEN is written as value BETWEEN low AND high", 10],
  ["select 1 limit 2 union select 3", "LIMIT before UNION: put the query in parentheses", 9],
  ["t where a > int '5'", "a text is cast to int by cast('…' as int)", 12],
  ["t where a > tiemstamp '2020'", "Cannot read the statement: found tiemstamp; did you mean TIMESTAMP?", 12],
  ["describe read_parquet('f.parquet')", "DESCRIBE takes the name of a table", 9],
  ["desc select 1", "DESCRIBE takes the name of a table", 5],
  ["t where a > lnog '5'", "unknown type lnog before a text; did you mean long?", 12],
];
for (const [text, message, position] of explained) {
  Deno.test(`parse() reports the error in ${text}`, () => assert.throws(() => parse(text), { message, position }));
}

const nestings: [string, string, string][] = [
  ["(", "1", ")"],
  ["f(", "1", ")"],
  ["- ", "1", ""],
  ["not ", "1", ""],
  ["case when 1 then ", "1", " end"],
  ["a[", "1", "]"],
  ["1 in (1, ", "1", ")"],
  ["1 in (select ", "1", ")"],
  ["sum(x) over (order by ", "1", ")"],
  ["(select ", "1", ")"],
];
for (const [open, middle, close] of nestings) {
  Deno.test(`parse() accepts deeply nested ${open.trim()}, and refuses deeper nesting`, () => {
    const nested = (depth: number) => `select ${open.repeat(depth)}${middle}${close.repeat(depth)}`;
    parse(nested(NESTING_MAX / 2));
    for (const depth of [NESTING_MAX + 1, 20_000]) {
      assert.throws(() => parse(nested(depth)), { name: "SqlError", sqlState: "54000" });
    }
  });
}

Deno.test("parse() keeps trees shallow: thousands of ORs are balanced, other chains are limited", () => {
  const depth = (e: Expression): number => e.kind === "binary" ? 1 + Math.max(depth(e.left), depth(e.right)) : 0;
  const ors = select(`select * from t where ${Array.from({ length: 5000 }, (_, i) => `a = ${i}`).join(" or ")}`);
  assert(depth(ors.where!) < 20);
  assert.throws(() => parse(`select 1${" + 1".repeat(2000)}`), { sqlState: "54000" });
  assert.throws(() => parse(`select 1${" union select 1".repeat(2000)}`), { sqlState: "54000" });
});

Deno.test("parse() reads long lists of values without the grammar", () => {
  const numbers = Array.from({ length: 50_000 }, (_, i) => i).join(",");
  const tree = select(`select * from t where x in (${numbers})`);
  assert(tree.where?.kind === "in" && tree.where.items.length === 50_000);
  const rows = parse(
    `insert into t values ${Array.from({ length: 10_000 }, (_, i) => `('2024', ${i}, -1.5, null)`).join(",")}`,
  );
  assert(rows.kind === "insert" && rows.rows?.length === 10_000 && rows.rowsAt.length === 10_000);
});

Deno.test("a statement gives the same tree if another one of the same form was read before", () => {
  const forms = [
    (name: string, value: string) => `select ${name}, sum(x) from t where ${name} > ${value} sample by 1h`,
    (name: string, value: string) => `select a, (select ${value}) from ${name} where b in (1, ${value}, 3)`,
    (name: string, value: string) => `update ${name} set a = ${value} where b = 'x'`,
  ];
  for (const form of forms) {
    const fresh = parse(form("n", "1"));
    assert.notDeepEqual(parse(form("another", "22.5")), fresh);
    assert.deepEqual(parse(form("n", "1")), fresh);
  }
  // More forms than the cache keeps.
  for (let k = 1; k < 100; k++) parse(`select ${Array.from({ length: k }, () => "a + 1").join()}`);
  assert.deepEqual(parse(forms[0]("n", "1")), parse(forms[0]("n", "1")));
});

Deno.test("parse() ends a nested list of values where the outer item ends", () => {
  const start = performance.now();
  const text = "insert into a values ('1', a values ('2', 1), ('3'm.2)";
  assert.throws(() => parse(text), { message: /found values/, position: text.indexOf("values ('2'") });
  // Without the shortcut this took 13 seconds and the whole stack.
  assert.ok(performance.now() - start < 2_000);
});

Deno.test("parse() refuses a list for a variable, closed or not", () => {
  for (const text of ["DECLARE @l := (1, 2) SELECT 1", "DECLARE @l := (1, ", "DECLARE @l :=( 1, 2SELECT k FROM t"]) {
    assert.throws(() => parse(text), { name: "SqlError" }, text);
  }
});
