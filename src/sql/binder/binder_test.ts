import assert from "node:assert/strict";
import { SqlError } from "../../errors.ts";
import { typeOf } from "../../types/mod.ts";
import { FUNCTIONS } from "../functions/mod.ts";
import { parse } from "../parser.ts";
import { optimize } from "../planner/mod.ts";
import { mapStatement } from "../planner/nodes.ts";
import { verifyPlan, verifyScanIds } from "../planner/verify.ts";
import type { BindContext } from "./context.ts";
import { FakeCatalogue } from "./fake-catalogue.ts";
import { bind, type Bound } from "../bind.ts";

const catalogue = new FakeCatalogue();

function run(text: string, more: Partial<BindContext> = {}): Bound {
  const bound = bind(parse(text), {
    catalogue,
    parameterTypes: [],
    importRoot: "/srv/import",
    nowMicros: 1_700_000_000_000_000n,
    user: "admin",
    parquetSchema: (path) => {
      if (path !== "/srv/import/f.parquet") throw new Error("no such file");
      return {
        columns: [{ name: "s", type: "VARCHAR" }, { name: "t", type: "TIMESTAMP" }, { name: "u.x", type: "INT" }],
        leftOut: [{ name: "m", type: "MAP" }, { name: "u.words", type: "LIST of STRING" }],
      };
    },
    ...more,
  });
  mapStatement(bound.statement, (plan) => {
    verifyPlan(plan);
    const optimized = optimize(plan);
    verifyPlan(optimized);
    verifyScanIds(optimized);
    return optimized;
  });
  return bound;
}

for (
  const text of [
    "create table trades (ts timestamp, sym symbol, side char, px double, qty int, note varchar, ok boolean) timestamp(ts) partition by day",
    "create table quotes (at timestamp, sym symbol, bid double, ask double) timestamp(at) partition by day",
    "create table plain (a int, b long, name string, at timestamp, id uuid)",
  ]
) catalogue.apply(run(text).statement);

const headers: [sql: string, columns: string][] = [
  ["trades", "ts TIMESTAMP, sym SYMBOL, side CHAR, px DOUBLE, qty INT, note VARCHAR, ok BOOLEAN"],
  ["select SYM, Px from trades", "SYM SYMBOL, Px DOUBLE"],
  [
    "select px*2, -qty, not ok, note||'x', qty::long, px is null from trades",
    "px * 2 DOUBLE, -(qty) INT, not(ok) BOOLEAN, concat(note, 'x') STRING, qty::long LONG, px = null BOOLEAN",
  ],
  ["select 1.5, 'x', 'xy', 3000000000, null", "\"1.5\" DOUBLE, 'x' CHAR, 'xy' STRING, 3000000000 LONG, null STRING"],
  ["select qty <> 1, qty != 1 from trades", "qty <> 1 BOOLEAN, qty != 1 BOOLEAN"],
  ["select qty, qty, qty from trades", "qty INT, qty_2 INT, qty_3 INT"],
  ["select a, * from plain", "a INT, a1 INT, b LONG, name STRING, at TIMESTAMP, id UUID"],
  [
    "select * from trades t join quotes q on (sym)",
    "ts TIMESTAMP, sym SYMBOL, side CHAR, px DOUBLE, qty INT, note VARCHAR, ok BOOLEAN, at TIMESTAMP, sym1 SYMBOL, bid DOUBLE, ask DOUBLE",
  ],
  ["select qty + 100 as b, b + 1 c from trades", "b INT, c INT"],
  ["select sym, sum(qty) s, sum(px) / count() m from trades", "sym SYMBOL, s LONG, m DOUBLE"],
  ["select count(*), count(distinct sym) from trades", "count() LONG, count_distinct(sym) LONG"],
  ["select ts, sum(qty) from trades sample by 1h fill(prev)", "ts TIMESTAMP, sum(qty) LONG"],
  ["select sum(qty) over (order by ts), lag(qty) over () from trades", "sum(qty) DOUBLE, lag(qty) LONG"],
  ["select a x from plain union all select b from plain", "x LONG"],
  ["with w as (select a n from plain) select n + 1 from w", "n + 1 INT"],
  ["declare @x := 2 select @x + a from plain", "2 + a INT"],
  ["select * from read_parquet('f.parquet')", "s VARCHAR, t TIMESTAMP, u.x INT"],
  ["select u.x from read_parquet('f.parquet')", "x INT"],
  ["select \"u.x\" from read_parquet('f.parquet')", "u.x INT"],
  ["select p.u.x from read_parquet('f.parquet') p", "x INT"],
  ["select case when qty > 1 then 1 else 2.5 end v from trades", "v DOUBLE"],
  ["select t.qty, m.bid from trades t asof join quotes m on t.sym = m.sym tolerance 1s", "qty INT, bid DOUBLE"],
];
for (const [sql, columns] of headers) {
  Deno.test(`bind() names and types: ${sql}`, () => {
    assert.equal(
      run(sql).statement.plan!.columns.map(({ name, type }) => `${name} ${typeOf(type).name}`).join(", "),
      columns,
    );
  });
}

const misspelled: [sql: string, message: string][] = [
  ["select * from tradse", "there is no table tradse; did you mean trades?"],
  ["with recent as (select 1) select * from recnet", "there is no table recnet; did you mean recent?"],
  ["select * from something", "there is no table something"],
  ["selct", "there is no table selct; did you mean SELECT?"],
  ["update tradse set px = 1", "there is no table tradse; did you mean trades?"],
  ["select smy from trades", "there is no column smy; did you mean sym?"],
  ["select nothing from trades", "there is no column nothing"],
  ["select q.bit from trades t join quotes q on (sym)", "there is no column q.bit; did you mean q.bid?"],
  ["select r.bid from trades t join quotes q on (sym)", "there is no column r.bid; did you mean q.bid?"],
  ["select qo.* from quotes qq", "there is no table qo in FROM; did you mean qq?"],
  ["insert into trades (ts, quty) values (1, 2)", "there is no column quty; did you mean qty?"],
  ["alter table trades drop column notte", "there is no column notte; did you mean note?"],
  ["select * from trades latest on ts partition by symm", "there is no column symm; did you mean sym?"],
  ["select coutn(*) from trades", "there is no function coutn; did you mean count?"],
  ["select * from long_sequnce(3)", "there is no function long_sequnce that gives rows; did you mean long_sequence?"],
  ["select px::doubel from trades", "there is no type doubel; did you mean double?"],
  ["create table t (a itn)", "there is no type itn; did you mean int?"],
  ["declare @low := 1 select @lwo", "the variable @lwo is not declared; did you mean @low?"],
  ["show tabels", "SHOW does not know tabels; did you mean tables?"],
];
for (const [sql, message] of misspelled) {
  Deno.test(`bind() suggests: ${sql}`, () => assert.throws(() => run(sql), { message }));
}

const foreign: [sql: string, position: number, message: RegExp][] = [
  ['select * from trades where sym = "BTC"', 33, /no column BTC; a text is written 'BTC'/],
  ["select time_bucket('1h', ts) from trades", 7, /no function time_bucket; here: SAMPLE BY/],
  ["select mean(px) from trades", 7, /no function mean; here: avg/],
  ["select ifnull(px, 0) from trades", 7, /here: coalesce/],
  ["select localtimestamp", 7, /no column localtimestamp; here: now\(\)/],
  ["select top 5 * from trades", 7, /TOP is not supported: .*LIMIT/],
  ["select * from trades limit 5, 10 offset 2", 33, /LIMIT already has two bounds/],
  ["select * from trades where sym == 'x'", 31, /a single =/],
  ["select avg(px) from trades sample by 1 hour", 39, /one word: SAMPLE BY 1h/],
  ["select avg(px) from trades sample 1h", 34, /BY is missing/],
  ["select ts - '1h' from trades", 12, /^'1h' is not a number: a duration is not a value: dateadd/],
  ["select now() + '1 day' from trades", 15, /a duration is not a value/],
  ["select '1h' + now()", 7, /a duration is not a value/],
  ["alter table plain add primary key (a)", 22, /^this kind of key is not supported: a table with DEDUP/],
  ["alter table plain add foreign key (a)", 22, /columns cannot have defaults or constraints/],
  ["alter table plain add unique (a)", 22, /this kind of key is not supported/],
  ["alter table plain add unique index i (a)", 22, /this kind of key is not supported/],
  ["alter table plain add check (a > 1)", 22, /columns cannot have defaults or constraints/],
  ["alter table plain add index (a)", 22, /indexes are declared with their column/],
  ["alter table plain add key k (a)", 22, /indexes are declared with their column/],
  ["create table z (a int, primary key (a))", 23, /this kind of key is not supported/],
  ["create table z (a int, unique key (a))", 23, /this kind of key is not supported/],
  ["create table z (a int, index i (a))", 23, /indexes are declared with their column/],
  ["create table z (a int, check (a > 1))", 23, /columns cannot have defaults or constraints/],
  ["select * from trades where ts > now() - 1h", 38, /a duration is not a value: dateadd/],
  ["select * from trades where ts > now() - interval '1 hour'", 40, /dateadd/],
  ["select * from trades sort by ts", 21, /ORDER BY/],
  ["insert into plain (a) values (1) on conflict do nothing", 33, /DEDUP UPSERT KEYS/],
  ["upsert into plain values (1)", 0, /DEDUP UPSERT KEYS/],
  ["create table x (id int primary key)", 23, /DEDUP UPSERT KEYS/],
  ["create table x (id int not null default 5)", 32, /cannot have defaults/],
  ["create index on trades (sym)", 7, /c SYMBOL INDEX/],
  ["create schema x", 7, /one database and one schema/],
  ["show databases", 14, /there is only one, qdb/],
  ["use qdb", 0, /USE is not needed/],
  ["help", 0, /docs\/sql.md/],
  ["\\d trades", 0, /psql/],
  ["select * from trades where ts > 2024-01-31", 32, /subtraction of numbers: write the date as '2024-01-31'/],
  ["select * from trades where ts > 2024-11-12T00:00:00", 32, /write the date as '2024-11-12'/],
  ["insert into plain values (2024-01-31, 1)", 26, /write the date as/],
  ["create table x (id serial)", 19, /no type serial; here: there are no generated keys/],
  ["create table x (id int8)", 19, /no type int8 for a column; here: LONG/],
  ["create table x (note nvarchar)", 21, /here: VARCHAR/],
  ["create table x (at datetime)", 19, /no type datetime; here: TIMESTAMP/],
  ["create table x (name varchar(20))", 28, /has no length or precision: write varchar/],
  ["alter table trades add constraint c primary key (sym)", 36, /DEDUP UPSERT KEYS/],
];
Deno.test("bind() accepts subtractions of numbers that could be read as dates", () => {
  for (const sql of ["select 2024 - 01 - 31", "select 2024-13-01", "select 12024-01-31", "select 2024-1-31"]) run(sql);
});

for (const [sql, position, message] of foreign) {
  Deno.test(`bind() tells users of other databases: ${sql}`, () =>
    assert.throws(() => run(sql), { message, position }));
}

const carets: [sql: string, message: string, position: number, caret: number][] = [
  [
    "create table z as (select sym, sum(px) from trades)",
    "invalid column name 'sum(px)': give the column a name with AS",
    13,
    31,
  ],
  ["insert into plain (a) values (1), ('x')", "'x' is not an INT (column a of row 2)", 0, 35],
  ["insert into plain (a) values (3000000000)", "3000000000 is out of the range of INT (column a of row 1)", 0, 30],
  [
    "insert into trades (ts, px) values ('2020-13-01', 1)",
    "'2020-13-01' is not a TIMESTAMP (column ts of row 1)",
    0,
    36,
  ],
  ["select 1 + 'abc'", "'abc' is not an INT", 0, 11],
  ["select * from plain where b > 'ten'", "'ten' is not a LONG", 0, 30],
  ["select * from trades where ts > '2020-13-01'", "'2020-13-01' is not a TIMESTAMP", 32, 32],
  ["insert into plain valeus (1, 2)", "Cannot read the statement: found valeus; did you mean VALUES?", 18, 18],
];
for (const [sql, message, position, caret] of carets) {
  Deno.test(`bind() points at the value: ${sql}`, () => assert.throws(() => run(sql), { message, position, caret }));
}

const refused: [sql: string, position: number][] = [
  ["select sum(px) from trades sample by 1h having /* having */ sum(px) > 1", 40],
  ["select 1 where /* where */ 1 = 1", 9],
  ["select 1 order /* order */ by 1", 9],
  ["select * from trades t join quotes q on t.sym = q.sym tolerance /* tolerance */ 1s", 54],
  ["create table w (a int) wal /* wal */", 23],
  ["create table w (ts timestamp) timestamp(ts) partition by day bypass wal dedup upsert /* upsert */ keys(ts)", 78],
  ["select 1 union with /* with */ a as (select 1) select 1, 2", 15],
  ["select nope from trades", 7],
  ["select * from nowhere", 14],
  ["select t.px from trades", 7],
  ["select px a, qty a from trades", 17],
  ["select sym, note, count() from trades group by sym", 12],
  ["select count() from trades order by qty", 36],
  ["select ts, count() from trades sample by 1h order by qty", 53],
  ["select sum(max(qty)) from trades", 11],
  ["select sym from trades where count() > 1", 29],
  ["select sym from trades where qty", 29],
  ["select sym from trades where ok = 1", 32],
  ["select sym from trades where ts > 'noon'", 34],
  ["select sym from trades where ts in '2023-13'", 35],
  ["select sym from trades order by 2", 32],
  ["select sym from trades limit -3, 2", 29],
  ["select sym from trades t join quotes q on t.sym = q.sym", 7],
  ["select t.px from trades t join quotes q on t.sym = q.bid", 51],
  ["select t.px from trades t asof join plain q on (sym)", 26],
  ["select a, sum(b) from plain sample by 1h", 0],
  ["select ts, count() from trades sample by 1q", 41],
  ["select * from trades latest on at partition by sym", 31],
  ["select row_number() from trades", 7],
  ["select sym, row_number() over (), count() from trades", 0],
  ["select * from read_parquet('../f.parquet')", 27],
  ["select * from read_parquet('/etc/passwd')", 27],
  ["insert into plain values (1, 2)", 30],
  ["insert into plain (a, a) values (1, 2)", 22],
  ["insert into plain (a) values ('many')", 0],
  ["insert into plain (a) values (true)", 30],
  ["insert into plain (a) values (b)", 30],
  ["insert into plain (name) values (5)", 33],
  ["insert into trades (sym) values ('x')", 0],
  ["insert into trades (ts) values (null)", 32],
  ["insert into trades (ts) values ('1969-01-01')", 32],
  ["insert into trades (ts, px) select at, true from plain", 24],
  ["update plain set a = true", 21],
  ["update trades set ts = 0", 18],
  ["create table plain (a int)", 13],
  ["create table x (a int, A long)", 23],
  ["create table x (a int) timestamp(a)", 33],
  ["create table x (t timestamp) partition by day", 42],
  ["explain explain select 1", 8],
];
for (const [sql, position] of refused) {
  Deno.test(`bind() refuses at the right position: ${sql}`, () => {
    assert.throws(() => run(sql), (error) => error instanceof SqlError && error.position === position);
  });
}

const unreadable = [
  ["select m from read_parquet('f.parquet')", 7, "column m of f.parquet cannot be read: its type MAP is not supported"],
  [
    "select u.words from read_parquet('f.parquet')",
    7,
    "column u.words of f.parquet cannot be read: its type LIST of STRING is not supported",
  ],
  [
    "select s from (select * from read_parquet('f.parquet')) where m is null",
    62,
    "column m of f.parquet cannot be read: its type MAP is not supported",
  ],
  [
    "select p.m from read_parquet('f.parquet') p",
    7,
    "column m of f.parquet cannot be read: its type MAP is not supported",
  ],
] as const;
for (const [sql, position, message] of unreadable) {
  Deno.test(`bind() names columns of a file that cannot be read: ${sql}`, () => {
    assert.throws(() => run(sql), { name: "SqlError", position, message, sqlState: "0A000" });
  });
}

Deno.test("bind() gives a notice when a star leaves out columns of a file", () => {
  const notices = ["f.parquet: * omits columns of unsupported types: m (MAP), u.words (LIST of STRING)"];
  const told = [
    "select * from read_parquet('f.parquet')",
    "read_parquet('f.parquet')",
    "select p.* from plain cross join read_parquet('f.parquet') p",
    "create table n as (select s, t from (select * from read_parquet('f.parquet')))",
    "select count() from (select * from read_parquet('f.parquet'))",
  ];
  for (const sql of told) assert.deepEqual(run(sql).notices, notices, sql);
  const untold = ["select s from read_parquet('f.parquet')", "select count() from read_parquet('f.parquet')"];
  for (const sql of [...untold, "select plain.* from plain cross join read_parquet('f.parquet') p"]) {
    assert.deepEqual(run(sql).notices, [], sql);
  }
});

Deno.test("bind() converts the literals of INSERT to the columns' values", () => {
  const { statement } = run(
    "insert into plain values (1.9, '12', 'n', '2024-01-01', '11111111-0000-0000-0000-000000000001'), (null, null, null, null, null)",
  );
  assert.equal(statement.kind, "insert");
  const { plan } = statement;
  assert.equal(plan?.node, "values");
  assert.deepEqual(plan?.node === "values" && plan.rows, [
    [1, 12n, "n", 1_704_067_200_000_000n, 0x11111111_0000_0000_0000_000000000001n],
    [null, null, null, null, null],
  ]);
});

Deno.test("bind() infers a parameter's type from its context", () => {
  assert.deepEqual(run("select * from plain where b = $1 and name = $2 limit $3").parameterTypes, [
    "LONG",
    "STRING",
    "LONG",
  ]);
  assert.deepEqual(run("insert into plain (a, at) values ($1, $2)").parameterTypes, ["INT", "TIMESTAMP"]);
  assert.deepEqual(run("select coalesce(a, $1), dateadd('d', $2, at), upper($3), at + $4 from plain").parameterTypes, [
    "INT",
    "INT",
    "STRING",
    "LONG",
  ]);
  assert.deepEqual(run("select $1 = 'a', abs($2), nullif(a, $3), length($4), $5 + $6 from plain").parameterTypes, [
    "STRING",
    "DOUBLE",
    "INT",
    "STRING",
    "DOUBLE",
    "DOUBLE",
  ]);
  assert.deepEqual(run("select $1").parameterTypes, ["STRING"]);
  const ofAny = run("select count() from plain where a = any($1) and name = any($2) and 1 <> all($3)");
  assert.deepEqual(ofAny.parameterTypes, ["DOUBLE[]", "STRING", "DOUBLE[]"]);
  assert.deepEqual([...ofAny.parameterArrays], [undefined, "varchar"]);
  assert.deepEqual(run("select $1 + 1", { parameterTypes: ["DOUBLE"] }).parameterTypes, ["DOUBLE"]);
});

Deno.test("bind() finds the designated timestamp, or the one that orders the rows", () => {
  const timestampOf = (sql: string): number => {
    const { kind, plan } = run(sql).statement;
    return kind === "query" ? plan!.timestamp : -2;
  };
  assert.equal(timestampOf("select px, ts from trades where qty > 1 limit 3"), 1);
  assert.equal(timestampOf("select px, ts from trades order by ts desc"), 1);
  assert.equal(timestampOf("select px, ts from trades order by px"), -1);
  assert.equal(timestampOf("select ts, count() from trades order by ts"), 0);
  assert.equal(timestampOf("select px, ts, count() from trades order by px, ts"), -1);
  assert.equal(
    timestampOf("select px, t from (select px, dateadd('d', 1, ts) t from trades order by 2 desc) limit 5"),
    1,
  );
  assert.equal(
    timestampOf("select px, t from (select px, dateadd('d', 1, ts) t from trades order by t) order by px"),
    -1,
  );
  assert.equal(timestampOf("select px from (select px, dateadd('d', 1, ts) t from trades order by t)"), -1);
  assert.equal(timestampOf("select ts from trades union select ts from trades order by ts"), 0);
  assert.equal(timestampOf("select px from trades"), -1);
  assert.equal(timestampOf("select ts, count() from trades sample by 1h"), 0);
  assert.equal(timestampOf("select ts, count() from trades"), -1);
});

Deno.test("bind() gives untyped parameters an existing type, or refuses them, in every function", () => {
  for (const { name, args } of FUNCTIONS) {
    if (!/^\w+$/.test(name)) continue;
    const given = args.map((_, i) => `$${i + 1}`).join(", ");
    for (const text of [`select ${name}(${given})`, `select ${name}(${given}) over () from quotes`]) {
      try {
        run(text).parameterTypes.forEach(typeOf);
      } catch (error) {
        if (!(error instanceof SqlError)) throw new Error(text, { cause: error });
      }
    }
  }
});

Deno.test("bind() gives an untyped parameter an existing type, or refuses it, at every position in a query", () => {
  for (
    const text of [
      "select px, rank() over (partition by $1 order by px) from trades",
      "select px, rank() over (order by $1) from trades",
      "select string_agg(sym, ',' order by $1) from trades",
      "select count() from trades group by $1",
      "select $1, count() from trades",
      "select distinct $1 from trades",
      "select px from trades order by $1",
      "select px from trades where $1",
      "select px from trades where $1 = $2",
      "select px from trades where px between $1 and $2",
      "select px from trades where px in ($1, $2)",
      "select a.px from trades a join trades b on a.px = $1",
      "select a.px from trades a join trades b on $1 = $2",
      "select * from (select $1 p from trades) a join (select $2 p from trades) b on a.p = b.p",
      "select * from trades latest on ts partition by $1",
      "select ts, count() from trades sample by 1h fill($1)",
      "select ts, $1, count() from trades sample by 1h",
      "select sum(px) over (order by ts rows between $1 preceding and current row) from trades",
      "select $1 union select $2",
      "select $1 union all select 1",
      "select case $1 when $2 then $3 else $4 end",
      "select array[$1, $2]",
      "select (select $1), exists (select $2), -$3, not $4, $5 is null, $6::int",
      "with a as (select $1 v) select v, count() from a group by v",
    ]
  ) {
    try {
      run(text).parameterTypes.forEach(typeOf);
    } catch (error) {
      if (!(error instanceof SqlError)) throw new Error(text, { cause: error });
    }
  }
});
