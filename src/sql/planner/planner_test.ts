import assert from "node:assert/strict";
import { FakeCatalogue } from "../binder/fake-catalogue.ts";
import { bind } from "../bind.ts";
import { explain } from "../explain.ts";
import { substituteParameters } from "../parameters.ts";
import { parse } from "../parser.ts";
import { inputsOf, type Plan } from "../plan.ts";
import type { ScanSource } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";
import { completePlan } from "./complete.ts";
import { evaluate } from "./evaluate.ts";
import { complement, intersect, normalize } from "./intervals.ts";
import { optimize } from "./mod.ts";
import { numberScans } from "./number-scans.ts";
import { verifyPlan, verifyScanIds } from "./verify.ts";

const catalogue = new FakeCatalogue();
for (
  const [name, columns] of [
    ["trades", "ts TIMESTAMP, sym SYMBOL, px DOUBLE, qty INT"],
    ["quotes", "ts TIMESTAMP, sym SYMBOL, bid DOUBLE"],
    ["narrow", "ts TIMESTAMP, b BYTE, sh SHORT, i INT, l LONG"],
  ]
) {
  catalogue.add({
    name,
    columns: columns.split(", ").map((pair) => ({
      name: pair.split(" ")[0],
      type: pair.split(" ")[1],
      indexed: false,
      symbolCapacity: 256,
      symbolCached: true,
    })),
    timestamp: 0,
    partitionBy: "DAY",
    wal: true,
    dedupKeys: [],
  });
}

function bound(text: string): Plan {
  const { statement } = bind(parse(text), {
    catalogue,
    parameterTypes: [],
    importRoot: "/",
    nowMicros: 0n,
    user: "",
    parquetSchema: () => ({ columns: [], leftOut: [] }),
  });
  assert(statement.plan !== undefined);
  return statement.plan;
}

function planned(text: string, values: Value[] = [], nowMicros?: bigint): string[] {
  const plan = optimize(substituteParameters(bound(text), values), { nowMicros });
  verifyPlan(plan);
  // Physical choices are tested elsewhere.
  return explained(plan).map((line) => line.replace(/ \[.*\]$/, ""));
}

/** Explains the plan over tables without rows. */
function explained(plan: Plan, spills = false): string[] {
  const ids = (node: Plan): number[] => node.node === "scan" ? [node.id] : inputsOf(node).flatMap(ids);
  const sources: ScanSource[] = [];
  for (const id of ids(plan)) {
    sources[id] = {
      tableId: 1,
      version: 1,
      rowCount: 0,
      sorted: true,
      directory: "/t1",
      segments: [],
      dictionaries: [],
    };
  }
  return explain(plan, { sources, spills }).map((line) => line.replace("segments 0; rows 0; ", ""));
}

const cases: [title: string, sql: string, plan: string[]][] = [
  [
    "time becomes intervals and the rest a predicate of the scan",
    "select px from trades where ts in '2024-01-02' and qty > 1",
    [
      "Project px",
      "  Scan trades: ts, px, qty",
      "      time: 2024-01-02T00:00:00.000000Z … 2024-01-02T23:59:59.999999Z",
      "      where (qty > 1)",
    ],
  ],
  ["filters go through sub-queries", "select p from (select px * 2 p, sym from trades) where sym = 'a'", [
    "Project (px * 2.0) as p",
    "  Scan trades: sym, px",
    "      where (sym = 'a')",
  ]],
  [
    "a filter of a group's key leaves out rows",
    "select * from (select sym, sum(px) s from trades) where sym = 'a' and s > 1",
    [
      "Project key 1 as sym, sum(DOUBLE) as s",
      "  Filter (sum(DOUBLE) > 1.0)",
      "    Aggregate sum(px)",
      "        by sym",
      "      Scan trades: sym, px",
      "          where (sym = 'a')",
    ],
  ],
  [
    "sums of a short integer and constants are one sum",
    "select sum(sh), sum(sh + 1) + sum(1 + sh), sum(sh - 2l), max(sh + 1) from narrow",
    [
      "Project sum(SHORT) as sum(sh), ((sum(SHORT) + (1 * count(SHORT))) + (sum(SHORT) + (1 * count(SHORT)))) as sum(sh + 1) + sum(1 + sh), (sum(SHORT) + (-2 * count(SHORT))) as sum(sh - 2l), max(INT) as max(sh + 1)",
      "  Aggregate sum(sh), count(sh), max((sh::INT + 1))",
      "    Scan narrow: sh",
    ],
  ],
  [
    "sums of an integer of 32 bits and a constant of 64 are sums with its number of values",
    "select b, sum(i + 1l) s from narrow",
    [
      "Project key 1 as b, (sum(INT) + (1 * count(INT))) as s",
      "  Aggregate sum(i), count(i)",
      "      by b",
      "    Scan narrow: b, i",
    ],
  ],
  [
    "sums that may overflow for a row stay",
    "select sum(i + 1), sum(l + 1), sum(sh + 2147483647), sum(b + 3000000000l), sum(2 - sh) from narrow",
    [
      "Project sum(INT) as sum(i + 1), sum(LONG) as sum(l + 1), sum(INT) as sum(sh + 2147483647), sum(LONG) as sum(b + 3000000000l), sum(INT) as sum(2 - sh)",
      "  Aggregate sum((i + 1)), sum((l + 1)), sum((sh::INT + 2147483647)), sum((b::LONG + 3000000000)), sum((2 - sh::INT))",
      "    Scan narrow: b, sh, i, l",
    ],
  ],
  [
    "conditions on the buckets and keys of SAMPLE BY leave out rows",
    "select * from (select ts, sym, sum(px) s from trades sample by 1h) where ts >= '2024-01-02T00:30' and ts < '2024-01-02T03:30' and sym = 'a'",
    [
      "Project ts, key 1 as sym, sum(DOUBLE) as s",
      "  Filter ((ts >= 2024-01-02T00:30:00.000000Z) and (ts < 2024-01-02T03:30:00.000000Z))",
      "    Sample by 1h, align to calendar: sum(px)",
      "        by sym",
      "      Scan trades: ts, sym, px",
      "          time: 2024-01-02T00:30:00.000000Z … 2024-01-02T03:59:59.999999Z",
      "          where (sym = 'a')",
    ],
  ],
  [
    "local time may return to a bucket",
    "select * from (select ts, sum(px) s from trades sample by 1d align to calendar time zone 'Europe/Paris') where ts in '2024-01-02'",
    [
      "Project ts, sum(DOUBLE) as s",
      "  Filter (ts between 2024-01-02T00:00:00.000000Z and 2024-01-02T23:59:59.999999Z)",
      "    Sample by 1d, align to calendar in Europe/Paris: sum(px)",
      "      Scan trades: ts, px",
      "          time: 2024-01-02T00:00:00.000000Z … 2024-01-05T22:59:59.999999Z",
    ],
  ],
  [
    "rows that fill depend on all rows",
    "select * from (select ts, sym, sum(px) s from trades sample by 1h fill(prev)) where ts > '2024-01-02' and sym = 'a'",
    [
      "Project ts, key 1 as sym, sum(DOUBLE) as s",
      "  Filter ((ts > 2024-01-02T00:00:00.000000Z) and (key 1 = 'a'))",
      "    Sample by 1h, align to calendar, fill(prev): sum(px)",
      "        by sym",
      "      Scan trades: ts, sym, px",
    ],
  ],
  [
    "an equation over a cross join is its key",
    "select t.px from trades t, quotes q where t.sym = q.sym and q.bid > 1",
    [
      "Project px",
      "  Inner join on sym = sym",
      "    Scan trades: sym, px",
      "    Scan quotes: sym, bid",
      "        where (bid > 1.0)",
    ],
  ],
  [
    "conditions on the right of a left join stay above it",
    "select t.px from trades t left join quotes q on t.sym = q.sym where q.bid > 1 and t.qty = 2",
    [
      "Project px",
      "  Filter (bid > 1.0)",
      "    Left join on sym = sym",
      "      Scan trades: sym, px, qty",
      "          where (qty = 2)",
      "      Scan quotes: sym, bid",
    ],
  ],
  ["newest first is a scan from the end", "select px from trades order by ts desc limit 5", [
    "Limit 5",
    "  Scan trades, newest first: px",
  ]],
  ["an order that is there already is not made again", "select * from trades order by ts", [
    "Scan trades: ts, sym, px, qty",
  ]],
  ["a count does not sort", "select count(), sum(px) from (select sym, px + 1 px from trades order by sym, px)", [
    "Project count(), sum(DOUBLE) as sum(px)",
    "  Aggregate count(), sum(px)",
    "    Project (px + 1.0) as px",
    "      Scan trades: px",
  ]],
  ["the first row depends on the order", "select first(px) from (select px from trades order by sym)", [
    "Project first(DOUBLE) as first(px)",
    "  Aggregate first(px)",
    "    Project px",
    "      Sort order key 1",
    "        Project px, sym as order key 1",
    "          Scan trades: sym, px",
  ]],
  ["a limit tells the sort how many rows it needs", "select * from trades order by px desc limit 2, 5", [
    "Limit 2, 5",
    "  Sort px desc, first 5",
    "    Scan trades: ts, sym, px, qty",
  ]],
  ["what nobody reads is not worked out", "select s from (select sym s, sum(px), max(qty) from trades)", [
    "Project key 1 as s",
    "  Aggregate keys only",
    "      by sym",
    "    Scan trades: sym",
  ]],
  ["a sub-query as a list is a join", "select px from trades where sym in (select sym from quotes)", [
    "Project px",
    "  Inner join on sym = value",
    "    Scan trades: sym, px",
    "    Distinct",
    "      Project sym as value",
    "        Scan quotes: sym",
  ]],
];
for (const [title, sql, plan] of cases) {
  Deno.test(`optimize(): ${title}`, () => {
    assert.deepEqual(planned(sql), plan);
  });
}

Deno.test("explain() shows what runs in one kernel and what between kernels", () => {
  const text = "select sym, sum(px) s from trades where upper(sym) = 'A' and px::string > 'b' order by s";
  assert.deepEqual(explained(optimize(bound(text))), [
    "Sort s [keeps all rows; in row format if the memory allows]",
    "  Project key 1 as sym, sum(DOUBLE) as s [pipeline 1: fused]",
    "    Aggregate sum(px) [pipeline 2: between kernels cast_STRING; once for each symbol upper; dense table; keys and arguments as columns]",
    "        by sym",
    "      Scan trades: sym, px [in pipeline 2]",
    "          where ((upper(sym) = 'A') and (px::STRING > 'b'))",
  ]);
});

Deno.test("explain() shows the choices of the physical pass", () => {
  const lines = (sql: string) => explained(optimize(bound(sql)));
  assert.deepEqual(lines("select px from trades limit -3"), [
    "Limit -3 [read from the end]",
    "  Scan trades, newest first: px [pipeline 1: fused]",
  ]);
  assert.deepEqual(lines("select t.px, q.bid from trades t join quotes q on t.sym = q.sym where t.qty > 1"), [
    "Project px, bid [pipeline 1: fused]",
    "  Inner join on sym = sym [pipeline 2: fused; keys by symbols; dense or hash index, by the range of the right keys]",
    "    Scan trades: sym, px, qty [in pipeline 2]",
    "        where (qty > 1)",
    "    Scan quotes: sym, bid [pipeline 3: fused]",
  ]);
  const windows =
    "window join quotes q on t.sym = q.sym and q.bid > 1 range between 5 seconds preceding and current row";
  assert.deepEqual(lines(`select t.sym, sum(q.bid) s from trades t ${windows} where t.qty > 2`), [
    "Project sym, sum(DOUBLE) as s [pipeline 1: fused]",
    "  WINDOW join on sym = sym: sum(bid) [keeps the right rows of the windows of some left rows]",
    "      range between 5000000 preceding and current row, include prevailing",
    "    Scan trades: ts, sym, qty [pipeline 2: fused]",
    "        where (qty > 2)",
    "    Scan quotes: ts, sym, bid [pipeline 3: fused]",
    "        where (bid > 1.0)",
  ]);
  const horizons = "horizon join quotes q on (sym) range from 0s to 4s step 2s as h";
  assert.deepEqual(lines(`select h.offset, avg(q.bid) a from trades t ${horizons} where t.qty > 2`), [
    "Project key 1 as offset, avg(DOUBLE) as a [pipeline 1: fused]",
    "  Aggregate avg(bid) [hash table]",
    "      by offset",
    "    HORIZON join on sym = sym [keeps the right rows between the least and the greatest time of some left rows]",
    "        3 offsets from 0 to 4000000",
    "      Scan trades: ts, sym, qty [pipeline 2: fused]",
    "          where (qty > 2)",
    "      Scan quotes: ts, sym, bid [pipeline 3: fused]",
  ]);
  const ways: [sql: string, way: RegExp][] = [
    ["select px from trades order by px limit -3", /^Limit -3 \[keeps 3 rows\]/],
    [
      "select px from trades order by px limit 3",
      /Sort px, first 3 \[keeps the best 3 rows; a kernel skips the others\]/,
    ],
    ["select row_number() over () n from trades", /Window \[streaming\]/],
    ["select rank() over (order by px) n from trades", /Window \[over kept rows\]/],
    [
      "select sym, max(px) from trades",
      /Aggregate max\(px\) \[pipeline \d: fused; dense table; adds up packed codes by segments\]/,
    ],
    ["select qty, max(px) from trades", /Aggregate max\(px\) \[pipeline \d: fused; hash table\]/],
    ["select qty, max(px) from trades where px > 1 and sym = 'x'", /hash table; marks rows by packed codes\]/],
    ["select sum(px + qty) from trades where px > 1", /fused; marks rows by packed codes\]/],
    ["select sum(px + qty) from trades where px > qty", /Aggregate sum.* \[pipeline \d: fused\]/],
    ["select distinct qty from trades", /Distinct \[pipeline \d: fused; hash table\]/],
    ["select count(distinct sym) from trades", /\[pipeline \d: fused; a bit for each value\]/],
    ["select ts, max(px) from trades sample by 1h", /Sample by 1h.*: max\(px\) \[pipeline \d: fused; runs of rows/],
    ["select qty, max(px) from trades sample by 1h", /buckets computed in the kernel; hash table\]/],
    ["select * from trades latest on ts partition by sym", /Latest on ts \[pipeline 1: fused; newest segments first/],
    ["select sym from trades union select sym from quotes", /Union \[hash table of the rows seen\]/],
    [
      "select * from trades asof join quotes on sym",
      /ASOF join on .* index.*; keeps all right rows if read by morsels, or/,
    ],
    [
      "select * from (trades order by ts limit 9) t asof join quotes on sym",
      /ASOF join on .* \[keeps the last right row of each key\]/,
    ],
  ];
  for (const [sql, way] of ways) assert.match(lines(sql).join("\n"), way);
});

Deno.test("explain() shows how operators can continue on disk", () => {
  const ways: [sql: string, way: RegExp][] = [
    ["select px from trades order by px", /^Sort px \[keeps all rows; spill: sorted runs\]/],
    ["select qty, max(px) from trades", /Aggregate max\(px\) \[.*hash table; spill: hash partitions\]/],
    [
      "select qty, max(px) from trades sample by 1h",
      /buckets computed in the kernel; hash table; spill: hash partitions\]/,
    ],
    ["select t.px from trades t join quotes q on t.sym = q.sym", /Inner join .*; spill: hash partitions\]/],
    ["select sym from trades union select sym from quotes", /Union \[.*; spill: hash partitions\]/],
    [
      "select rank() over (partition by sym order by px) n from trades",
      /Window \[over kept rows; spill: hash partitions\]/,
    ],
    ["select rank() over (order by px) n from trades", /Window \[over kept rows; spill: sorted runs\]/],
    ["select lead(px) over () n from trades", /Window \[over kept rows; spill: rows in order\]/],
    [
      "select rank() over (partition by sym order by px) n, sum(px) over (order by px) s from trades",
      /Window \[over kept rows; spill: hash partitions and sorted runs\]/,
    ],
    ["select percent_rank() over (order by px) n from trades", /Window \[over kept rows\]/],
    ["select row_number() over () n from trades", /Window \[streaming\]/],
    ["select max(px) from trades", /Aggregate max\(px\) \[pipeline \d: fused\]/],
    [
      "select px from trades order by px limit 3",
      /Sort px, first 3 \[keeps the best 3 rows; a kernel skips the others; spill: sorted runs\]/,
    ],
  ];
  for (const [sql, way] of ways) assert.match(explained(optimize(bound(sql)), true).join("\n"), way);
});

Deno.test("optimize() prunes by parameters, and by the clock if given", () => {
  assert.match(planned("select px from trades where ts >= $1", [0n]).join(), /time: 1970-01-01T00:00:00.000000Z …/);
  const text = "select px from trades where ts > dateadd('h', -1, now())";
  assert.match(planned(text, [], 7_200_000_000n).join(), /time: 1970-01-01T01:00:00.000001Z …/);
  assert.doesNotMatch(planned(text).join(), /time:/);
});

Deno.test("optimize() does not move generators to another node", () => {
  const lines = planned("select r from (select rnd_int() r, x from long_sequence(9)) where r > 5").join("\n");
  assert.match(lines, /Filter \(r > 5\)[^]*rnd_int/);
});

Deno.test("optimize() gives each scan its own id, even if one node occurs twice", () => {
  const scan = bound("trades");
  const both: Plan = {
    node: "set",
    operator: "union all",
    left: scan,
    right: scan,
    columns: scan.columns,
    ...UNORDERED,
  };
  const optimized = optimize(both);
  assert(optimized.node === "set" && optimized.left.node === "scan" && optimized.right.node === "scan");
  assert.deepEqual([optimized.left.id, optimized.right.id], [0, 1]);
  assert.throws(() => verifyScanIds(both), /id -1/);
  assert.equal(numberScans(optimized), optimized);
});

const UNORDERED = { timestamp: -1, order: "none" } as const;

Deno.test("verifyPlan() refuses a remaining placeholder of the binder", () => {
  const plan = bound("select 1 v");
  assert(plan.node === "project");
  for (const kind of ["aggregate", "window", "bucket", "item"] as const) {
    const left: Plan = {
      ...plan,
      expressions: [{ kind: "placeholder", of: kind, index: 0, type: plan.columns[0].type }],
    };
    assert.throws(() => verifyPlan(left), /placeholder/);
  }
});

Deno.test("intervals are normalized to sorted and disjoint ones", () => {
  assert.deepEqual(normalize([[5n, 9n], [1n, 2n], [3n, 4n], [20n, 30n]]), [[1n, 9n], [20n, 30n]]);
  assert.deepEqual(intersect([[1n, 10n], [20n, 30n]], [[5n, 25n]]), [[5n, 10n], [20n, 25n]]);
  assert.deepEqual(complement(complement([[5n, 9n], [20n, 30n]])), [[5n, 9n], [20n, 30n]]);
});

Deno.test("evaluate() gives the same values for constants as kernels", () => {
  const value = (sql: string): unknown => {
    const plan = bound(`select ${sql} v`);
    assert(plan.node === "project");
    return evaluate(plan.expressions[0])?.value;
  };
  assert.equal(value("1 + 2 * 3"), 7);
  assert.equal(value("2147483647 + 1"), null);
  assert.equal(value("7 / 2"), 3);
  assert.equal(value("1.0 / 0"), null);
  assert.equal(value("'a' || 'bc'"), "abc");
  assert.equal(value("cast('12' as long)"), 12n);
  assert.equal(value("'2024-01-01'::timestamp"), 1_704_067_200_000_000n);
  assert.equal(value("case when 1 > 2 then 'x' else 'yy' end"), "yy");
});

const COMPLETED: [text: string, ...values: Value[][]][] = [
  ["select ts, px from trades where ts >= $1 and ts < $2", [1000n, 2000n], [5000n, 4000n]],
  ["select ts from trades where ts in $1", ["2024-01-01"], ["2024"], ["2024-01-01;1h;1d;3"], [null]],
  ["select ts from trades where ts not in $1 and px > 1", ["2024-01-01"], ["2024-01-01;1h;1d;3"]],
  ["select ts from trades where ts between $1 and '2024-01-02'", [7n], [1n << 60n]],
  ["select avg(px) from trades where sym = $1 and ts in $2", ["S1", "2024-01"], [null, "2024-02"]],
  ["select ts, sum(qty + $1::int) s from trades sample by 1h", [1], [2]],
  ["select * from trades latest on ts partition by sym limit $1", [5n], [-5n]],
  ["select * from (select ts, px from trades order by px) limit $1, $2", [0n, 10n], [3n, 4n]],
  ["select t.px, q.bid from trades t asof join quotes q on sym where t.ts > $1 and q.bid > $2::double", [1n, 0.5]],
  ["select sym, count() from trades where px > $1::double * 2 group by sym having count() > $2::long", [1.5, 3n]],
  ["select x, x y from (select $1::int x from trades)", [1], [null]],
  ["select case when $1::boolean then px else qty end from trades", [true], [false]],
  [
    "select * from (select ts, sum(qty) s from trades sample by 1h) where ts >= $1 and ts < $2 and s > $3",
    [0n, 9n, 1n],
    [5n, 7n, 2n],
  ],
  // A condition that always or never holds.
  ["select ts from trades where $1::boolean or sym = 'a'", [true], [false]],
  ["select ts from trades where $1::boolean and sym = 'a'", [true], [false]],
  ["select t.ts from trades t left join quotes q on t.sym = q.sym and $1::boolean", [true], [false]],
  ["select ts from trades where ts > dateadd('m', -1, now()) and sym = $1", ["a"], ["b"]],
];

Deno.test("completePlan() makes the plans that the rules make with the values", () => {
  for (const [text, ...runs] of COMPLETED) {
    const plan = bound(text);
    for (const [k, values] of [...runs, ...runs].entries()) {
      const context = { nowMicros: BigInt(k) << 40n };
      const expected = optimize(substituteParameters(plan, values), context),
        made = completePlan(plan, values, context);
      assert.deepEqual(explained(made), explained(expected), `${text} with ${values}`);
      verifyPlan(made);
      verifyScanIds(made);
    }
  }
});

Deno.test("completePlan() keeps the nodes that depend on no values", () => {
  const plan = bound("select t.px, q.bid from trades t join quotes q on t.sym = q.sym where t.ts > $1");
  const scansOf = (given: Plan): Plan[] => given.node === "scan" ? [given] : inputsOf(given).flatMap(scansOf);
  const [one, other] = [1n, 2n].map((value) => scansOf(completePlan(plan, [value], {})));
  assert.deepEqual(one.map((scan, k) => scan === other[k]), [false, true]);
});
