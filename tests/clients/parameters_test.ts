/** Parameters that determine the shape of a statement: intervals, SAMPLE BY, LIMIT and OFFSET, constant arguments. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import pg from "pg";
import { postgresJs } from "./postgres-js.ts";
import { startServer } from "../server.ts";

const options = { sanitizeOps: false, sanitizeResources: false };

const DAY = "2024-01-01", NEXT = "2024-01-02";

const answers: [sql: string, values: unknown[], rows: unknown[][]][] = [
  ["select count() from p where ts in $1", [DAY], [["24"]]],
  ["select count() from p where ts in $1", [`${DAY}T03`], [["1"]]],
  ["select count() from p where ts in ($1)", [`${DAY}T03;2h`], [["2"]]],
  ["select count() from p where ts not in $1", [DAY], [["24"]]],
  ["select count() from p where ts in $1", [null], [["0"]]],
  ["select count() from p where ts in $1", [new Date(`${DAY}T03:00:00Z`)], [["1"]]],
  ["select count() from p where ts in $1 and x > $2", [DAY, 20], [["4"]]],
  ["select count() from p where ts in $1", [`${DAY};1h;1d;2`], [["2"]]],
  ["select count() from p where ts in $1", [`${DAY};30m;30m;100`], [["48"]]],
  ["select count() from p where ts in $1", ["$now;1h"], [["0"]]],
  ["select count() from p where ts not in $1", ["$today"], [["48"]]],
  ["select count() from p where ts not in $1", [null], [["48"]]],
  // Of other columns: null is in null.
  ["select x from (select x, dateadd('d', 1, ts) other from p) where other in $1", [`${NEXT}T03`], [[4]]],
  [
    "select x from (select x, case when x > 2 then ts end other from p) where other in $1",
    [`${DAY}T01;1h;1h;70`],
    Array.from({ length: 46 }, (_, k) => [k + 3]),
  ],
  ["select x from (select x, case when x > 2 then ts end other from p) where other in $1", [null], [[1], [2]]],
  ["select x from (select x, ts::date other from p) where other in $1", [`${NEXT}T03`], [[28]]],
  ["select x from (select x, ts::timestamp_ns other from p) where other in $1", [`${NEXT}T03`], [[28]]],
  ["select count() from p where case when x > 30 then ts in $1 else ts in $2 end", [NEXT, `${DAY}T02`], [["19"]]],
  ["select x from p limit $1 offset $2", [2, 4], [[5], [6]]],
  ["select x from p limit 2 offset $1", [46], [[47], [48]]],
  ["select x from p limit $1 offset $2", [null, 47], [[48]]],
  ["select x from p limit all offset $1", [47], [[48]]],
  ["select x from p offset $1", [47], [[48]]],
  ["select x from p offset $1 limit $2", [1, 1], [[2]]],
  ["select count() from p sample by $1", ["1d"], [["24"], ["24"]]],
  [
    "select count() from p where ts in $1 sample by $2 from $3 to $4 fill($5)",
    [DAY, "12h", "2023-12-31T12:00:00Z", NEXT, 7],
    [["7"], ["12"], ["12"]],
  ],
  ["select count() from p sample by 1d align to calendar time zone $1", ["Asia/Tokyo"], [["15"], ["24"], ["9"]]],
  ["select count() from p sample by 1d align to calendar with offset $1", ["12:00"], [["12"], ["24"], ["12"]]],
  ["select hour(dateadd($1, $2, ts)) from p limit 1", ["h", 2], [[2]]],
  ["select * from long_sequence($1)", [2], [["1"], ["2"]]],
  ["select * from generate_series($1, $2)", [2, 4], [["2"], ["3"], ["4"]]],
  ["select * from generate_series(2, $1, $2)", [6, 3], [["2"], ["5"]]],
  ["select sum(generate_series) from generate_series($1::double, 2, 0.5)", [1], [[4.5]]],
  ["select count(), max(hour(generate_series)) from generate_series($1, $2, '1h')", [DAY, NEXT], [["25", 23]]],
  ["select count() from generate_series('2024-01-01', $1, $2)", ["2024-01-03", "1d"], [["3"]]],
  ["select cast($1 as regclass) = 1259", ["pg_catalog.pg_class"], [[true]]],
  ["select max($1) from p", [3], [[3]]],
  // A literal of one character does not make a parameter a CHAR, which would keep the first character of a text.
  ["select $1 || 'a', 'a' || $2", ["hello", "there"], [["helloa", "athere"]]],
  ["select $1 = 'h', 'h' = $2, $3 != 'h', $4 < 'i'", ["hello", "hello", "hello", "in"], [[false, false, true, false]]],
  ["select $1 like 'h', $2 ~ '^h$', $3 in ('h'), $4 in ('h', 'hello')", Array(4).fill("hello"), [[
    false,
    false,
    false,
    true,
  ]]],
  ["select 'h' in ($1, $2)", ["hello", "h"], [[true]]],
  ["select count() from p where $1 = '*' or x < $2", ["*x", 2], [["1"]]],
  ["select coalesce($1, 'a'), nullif($2, 'a'), nullif($3, 'a')", ["hello", "ab", "a"], [["hello", "ab", null]]],
  [
    "select case $1 when 'h' then 1 else 2 end, case when x > 0 then $2 else 'b' end from p limit 1",
    ["hello", "hello"],
    [
      [2, "hello"],
    ],
  ],
  ["select length($1), length_bytes($2)", ["h\u00e9llo", "h\u00e9llo"], [[5, 6]]],
  // Functions that accept many types.
  ["select abs($1), sign($2), floor($3), ceil($4)", ["-1.5", "-1.5", "16777217.5", "16777217.5"], [[
    1.5,
    -1,
    16777217,
    16777218,
  ]]],
  ["select sum($1), avg($2), min($3) from p", ["1.5", "1.5", "1.5"], [[72, 1.5, 1.5]]],
  ["select $1 + $2, $3 - $4, $5 * $6, $7 / $8", ["1.5", "2", "1.5", "2", "1.5", "2", "3", "2"], [[3.5, -0.5, 3, 1.5]]],
  ["select $1 & $2, $1 | $2", ["6", "3000000001"], [["0", "3000000007"]]],
  ["select array_sum($1), dim_length($2, 1)", ["{1,2.5}", "{1,2,3}"], [[3.5, 3]]],
  ["select approx_percentile($1, 0.5) from p", ["1.5"], [[1.5]]],
  ["select count()::int from (select x from p limit $1)", [null], [[48]]],
  ["select x from p order by x offset $1 rows fetch next $2 rows only", [3, 2], [[4], [5]]],
  ["select 'b c' = any($1), 'd' = any($1), 'd' <> all($1)", [["a", "b c"]], [[true, false, true]]],
];

const refused: [sql: string, values: unknown[], code: string, position: number][] = [
  ["select count() from p where ts in $1", ["junk"], "22P02", 35],
  ["select x from (select x, dateadd('d', 1, ts) other from p) where other in $1", ["junk"], "22P02", 75],
  ["select x from p limit 1 offset $1", [-1], "22023", 32],
  ["select count() from p sample by $1", ["no"], "22023", 33],
];

Deno.test("parameters that determine the shape of a statement", options, async (t) => {
  await using server = await startServer();
  const client = new pg.Client(`postgres://admin:quest@127.0.0.1:${server.pgPort}/qdb`);
  await client.connect();
  await client.query("create table p (ts timestamp, x int) timestamp(ts) partition by day");
  await client.query(
    `insert into p select timestamp_sequence('${DAY}', 3600000000L), x::int from long_sequence(48)`,
  );
  for (const [text, values, rows] of answers) {
    await t.step(`${text} [${values}]`, async () => {
      assert.deepEqual((await client.query({ text, values, rowMode: "array" })).rows, rows);
    });
  }
  for (const [text, values, code, position] of refused) {
    await t.step(`${text} [${values}]`, async () => {
      await assert.rejects(client.query(text, values), { code, position: String(position) });
    });
  }
  await t.step("a prepared statement takes other values", async () => {
    const named = {
      name: "by-day",
      text: "select count() from p where ts in $1 sample by $2",
      rowMode: "array",
    } as const;
    assert.deepEqual((await client.query({ ...named, values: [DAY, "12h"] })).rows, [["12"], ["12"]]);
    assert.deepEqual((await client.query({ ...named, values: [NEXT, "1d"] })).rows, [["24"]]);
  });
  await t.step("in long statements", async () => {
    const terms = Array.from({ length: 300 }, (_, i) => `x != ${1000 + i}`).join(" and ");
    const text = `select count() from p where ${terms} and ts in $1 sample by $2`;
    assert.deepEqual((await client.query({ text, values: [DAY, "1d"], rowMode: "array" })).rows, [["24"]]);
    assert.deepEqual((await client.query({ text, values: [NEXT, "12h"], rowMode: "array" })).rows, [["12"], ["12"]]);
  });
  await t.step("bytes and arrays", async () => {
    const bytes = Buffer.from([0, 255, 0x5c, 0x27]);
    await client.query("create table b (b binary, i int)");
    await client.query("insert into b values ($1, 1), ('\\x0102'::bytea, 2), ($2, 3)", [bytes, null]);
    const { rows } = await client.query({ text: "select * from b", rowMode: "array" });
    assert.deepEqual(rows, [[bytes, 1], [Buffer.from([1, 2]), 2], [null, 3]]);
    assert.deepEqual((await client.query("select i from b where b = $1", [bytes])).rows, [{ i: 1 }]);
    const asTexts = { types: { getTypeParser: () => String } } as unknown as pg.QueryConfig;
    const arrays = await client.query({
      ...asTexts,
      text: "select $1::double[] a, $2::double[][] b, '\\x0aff'::bytea c",
      values: ["{1,NULL}", "{{1,2},{3,4}}"],
    });
    assert.deepEqual(arrays.rows, [{ a: "{1.0,NULL}", b: "{{1.0,2.0},{3.0,4.0}}", c: "\\x0aff" }]);
    for (const type of ["bytea", "binary"]) {
      assert.deepEqual((await client.query(`select $1::${type} b`, [bytes])).rows, [{ b: bytes }]);
    }
    await client.query("create table d (d decimal(10, 2), c char, u uuid)");
    await client.query("insert into d values ($1, $2, $3), ($4, $5, $6)", ["1E+3", "\u00e9", "", "NaN", "", null]);
    assert.deepEqual((await client.query({ text: "select * from d", rowMode: "array" })).rows, [
      ["1000.00", "\u00e9", null],
      [null, null, null],
    ]);
    for (const text of ["ab", "\u{1f600}"]) {
      await assert.rejects(client.query("insert into d (c) values ($1)", [text]), { code: "22P02" });
    }
    await assert.rejects(client.query("select '\\x0'::bytea"), { code: "22P02", position: "8" });
  });
  await t.step("numbers with more digits than the DECIMAL beside them", async () => {
    await client.query("create table dd (d decimal(6, 2))");
    await client.query("insert into dd values (1.17m), (1.18m), (-5m)");
    const asked: [sql: string, value: string, rows: unknown[][]][] = [
      ["select d from dd where d < $1", "1.175", [["1.17"], ["-5.00"]]],
      ["select d from dd where d = $1", "1.175", []],
      ["select d from dd where d = $1", "1.1800", [["1.18"]]],
      ["select d from dd where d <= $1", "123456789012345678901234567890.5", [["1.17"], ["1.18"], ["-5.00"]]],
      ["select d + $1 s from dd limit 1", "0.0001", [["1.1701"]]],
      ["select d * $1 s from dd limit 1", "1e-3", [["0.00117"]]],
      ["select coalesce(d, $1) s from dd limit 1", "0.125", [["1.170"]]],
      ["select greatest(d, $1) s from dd limit 1", "2.125", [["2.125"]]],
      ["select nullif(d, $1) s from dd limit 1", "1.17", [[null]]],
    ];
    for (const [text, value, rows] of asked) {
      assert.deepEqual((await client.query({ text, values: [value], rowMode: "array" })).rows, rows, text);
    }
    await assert.rejects(client.query("insert into dd values ($1)", ["1.175"]), /1\.175.* does not fit DECIMAL\(6,2\)/);
    await assert.rejects(client.query("select d from dd where d = $1", ["1.x"]), { code: "22P02" });
    const named = { name: "sums", text: "select d + $1 s from dd limit 1" };
    for (const [value, s] of [["0.0001", "1.1701"], ["1", "2.17"], ["0.00001", "1.17001"]]) {
      assert.deepEqual((await client.query({ ...named, values: [value] })).rows, [{ s }]);
    }
  });
  await client.end();
});

Deno.test("parameters that a client declares as numeric are any number", options, async (t) => {
  await using server = await startServer();
  const sql = postgresJs(server, { onnotice() {} });
  const asked = async (text: string, ...values: string[]) =>
    (await sql.unsafe(text, values.map((value) => sql.typed(value, 1700) as never)).values()).flat().map(String);
  await asked("create table dn (l long, i int, d double, m decimal(30, 5), s string)");
  const long = "9007199254740993", digits = "123456789012345678.12345";
  await t.step("columns take their digits", async () => {
    await asked("insert into dn values ($1, $2, $3, $4, $5)", long, "7.00", "2.5", digits, "1.50");
    assert.deepEqual(await asked("select * from dn"), [long, "7", "2.5", digits, "1.50"]);
    await asked("update dn set l = $1, m = $2", "-5.", "1e-2");
    assert.deepEqual(await asked("select l, m from dn"), ["-5", "0.01000"]);
    await assert.rejects(asked("insert into dn (l) values ($1)", "2.5"), { code: "22P02" });
  });
  const answers: [sql: string, values: string[], row: string[]][] = [
    ["select $1", ["1.50"], ["1.5"]],
    ["select $1 + 1, i * $2 from dn", ["1.5", "0.5"], ["2.5", "3.5"]],
    ["select count() from dn where i > $1", ["6.5"], ["1"]],
    ["select count() from dn where m < $1", ["0.010001"], ["1"]],
    ["select $1::numeric(30, 5), cast($2 as decimal(20, 0))", [digits, long], [digits, long]],
    ["select $1::long, $2::double", ["2.25", "2.25"], ["2", "2.25"]],
    ["select m + $1 from dn", ["0.00000001"], ["0.01000001"]],
    ["select x from long_sequence(5) limit $1", ["1"], ["1"]],
    ["select case when i > $1 then $2 else m end from dn", ["1", "2.5"], ["2.50000"]],
  ];
  for (const [text, values, row] of answers) {
    await t.step(text, async () => assert.deepEqual(await asked(text, ...values), row));
  }
  await sql.end();
});
