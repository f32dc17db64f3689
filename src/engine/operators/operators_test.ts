import assert from "node:assert/strict";
import type {
  Column,
  Expr,
  JoinNode,
  LatestNode,
  LimitNode,
  SequenceNode,
  SetNode,
  SortNode,
  TimeJoinNode,
  ValuesNode,
} from "../../sql/plan.ts";
import type { Value } from "../../types/mod.ts";
import { over, randomFrom, type Row, RowsInput, rowsOf, testContext } from "../testing.ts";

const column = (index: number, type: string): Expr => ({ kind: "column", index, type });
const long = (value: number): Expr => ({ kind: "constant", value: BigInt(value), type: "LONG" });
const base = { timestamp: -1, order: "none" as const };

/** Columns: a number with many ties and nulls, a text, a symbol, a double, and the row's number. */
const COLUMNS: Column[] = [
  { name: "k", type: "INT" },
  { name: "s", type: "VARCHAR" },
  { name: "y", type: "SYMBOL" },
  { name: "d", type: "DOUBLE" },
  { name: "n", type: "LONG" },
];

function randomRows(random: () => number, count: number, keys = 50): Row[] {
  return Array.from({ length: count }, (_, n): Row => [
    random() % 10 === 0 ? null : (random() % keys) - keys / 2,
    random() % 10 === 0 ? null : `text ${"x".repeat(random() % 40)}${random() % keys}`,
    random() % 10 === 0 ? null : `sym${random() % keys}`,
    random() % 10 === 0 ? null : (random() % keys) / 4 - 3,
    BigInt(n),
  ]);
}

/** Reports only the first difference, because a diff of thousands of rows takes minutes. */
function sameRows(made: Row[], expected: Row[], what = ""): void {
  const text = (row: Row | undefined) =>
    row?.map((value) => typeof value === "bigint" ? `${value}n` : JSON.stringify(value)).join(" ");
  for (let i = 0; i < Math.max(made.length, expected.length); i++) {
    const other = expected[i] ?? [];
    if (made[i]?.length === other.length && made[i].every((value, c) => Object.is(value, other[c]))) continue;
    const a = text(made[i]), b = text(expected[i]);
    if (a !== b) assert.equal(a, b, `${what} row ${i} of ${made.length}, expected ${expected.length}`);
  }
}

function compareValues(a: Value, b: Value, floats: boolean): number {
  if (a === null || b === null) {
    return floats ? Number(a === null) - Number(b === null) : Number(b === null) - Number(a === null);
  }
  return a < b ? -1 : a > b ? 1 : 0;
}

Deno.test("values are output unchanged", () => {
  const context = testContext();
  const columns = [
    ...COLUMNS,
    { name: "b", type: "BOOLEAN" },
    { name: "c", type: "CHAR" },
    { name: "u", type: "UUID" },
    { name: "i", type: "IPv4" },
  ];
  const rows: Row[] = [
    [1, "größe", "a", 1.5, 7n, true, "x", 0x11111111000000000000000000000001n, 0xffffffff],
    [null, null, null, null, null, false, null, null, null],
    [-5, "", "b", 0, -(2n ** 62n), true, "ß", 0xf1111111000000000000000000000001n, 1],
  ];
  const plan: ValuesNode = { node: "values", columns, rows, ...base };
  assert.deepEqual(rowsOf(plan, context), rows);
  assert.equal(context.memory.usedBytes, 0);
});

Deno.test("a sequence crosses 32 bits and batches", () => {
  const context = testContext();
  for (
    const [start, step, count] of [[1n, 1n, 70_000], [4294967290n, 3n, 10], [5n, -4294967297n, 5], [
      -3n,
      1n,
      6,
    ]] as const
  ) {
    const sequence: SequenceNode = {
      node: "sequence",
      columns: [{ name: "x", type: "LONG" }],
      start,
      step,
      count,
      ...base,
    };
    assert.deepEqual(
      rowsOf(sequence, context).map((row) => row[0]),
      Array.from({ length: count }, (_, i) => start + BigInt(i) * step),
    );
  }
});

Deno.test("limit equals slices of the whole", () => {
  const context = testContext();
  const rows = randomRows(randomFrom(1), 2_500);
  const cases: [number | undefined, number, Row[]][] = [
    [undefined, 7, rows.slice(0, 7)],
    [undefined, 0, []],
    [undefined, 1_500, rows.slice(0, 1_500)],
    [undefined, -3, rows.slice(-3)],
    [undefined, -99_999, rows],
    [990, 1_010, rows.slice(990, 1_010)],
    [1_010, 990, rows.slice(990, 1_010)],
    [4, 4, []],
    [-5, -3, rows.slice(-5, -3)],
    [-3, -5, rows.slice(-5, -3)],
    [-2, 0, rows.slice(-2)],
    [2, -1, rows.slice(2, -1)],
    [6, -2_499, []],
    [0, -1_200, rows.slice(0, -1_200)],
    [3_000, 4_000, []],
  ];
  for (const [low, high, expected] of cases) {
    const plan = {
      node: "limit",
      columns: COLUMNS,
      low: low === undefined ? undefined : long(low),
      high: long(high),
      ...base,
    } as unknown as LimitNode;
    sameRows(
      rowsOf(over(plan, new RowsInput(COLUMNS, rows, context, 300)), context),
      expected,
      `limit ${low}, ${high}`,
    );
  }
  assert.equal(context.memory.usedBytes, 0);
});

Deno.test("a limit from the end keeps no more rows than necessary", () => {
  const context = testContext();
  const rows = randomRows(randomFrom(2), 400_000);
  const plan = { node: "limit", columns: COLUMNS, high: long(-10), ...base } as unknown as LimitNode;
  sameRows(
    rowsOf(over(plan, new RowsInput(COLUMNS, rows, context, 20_000)), context),
    rows.slice(-10),
  );
  assert.ok(context.memory.peakBytes < 100_000);
});

Deno.test("sort is stable and puts nulls where the dialect has them, with and without limit", () => {
  const context = testContext(1 << 29);
  const random = randomFrom(3);
  for (let round = 0; round < 12; round++) {
    const rows = randomRows(random, round < 9 ? 1_700 : 140_000);
    const keyColumns = Array.from({ length: 1 + round % 3 }, () => random() % 4);
    const keys = keyColumns.map((c) => ({ expression: column(c, COLUMNS[c].type), descending: random() % 2 === 0 }));
    const expected = rows.toSorted((a, b) => {
      for (const [i, c] of keyColumns.entries()) {
        const order = compareValues(a[c], b[c], COLUMNS[c].type === "DOUBLE") * (keys[i].descending ? -1 : 1);
        if (order !== 0) return order;
      }
      return 0;
    });
    for (const limit of round < 9 ? [undefined, 13, 0] : [undefined, 13]) {
      const plan = { node: "sort", columns: COLUMNS, keys, limit, ...base } as unknown as SortNode;
      const sorted = rowsOf(
        over(plan, new RowsInput(COLUMNS, rows, context, round < 9 ? 200 : 8_000)),
        context,
      );
      sameRows(sorted, limit === undefined ? expected : expected.slice(0, limit));
    }
  }
  assert.equal(context.memory.usedBytes, 0);
});

Deno.test("NULLS FIRST and NULLS LAST", () => {
  const context = testContext();
  const rows = randomRows(randomFrom(4), 500);
  for (const c of [0, 1, 2, 3]) {
    for (const descending of [false, true]) {
      for (const nulls of ["first", "last"] as const) {
        const plan = {
          node: "sort",
          columns: COLUMNS,
          keys: [{ expression: column(c, COLUMNS[c].type), descending, nulls }],
          ...base,
        } as unknown as SortNode;
        const sorted = rowsOf(over(plan, new RowsInput(COLUMNS, rows, context)), context);
        const expected = rows.toSorted((a, b) => {
          if (a[c] === null || b[c] === null) {
            return (Number(b[c] === null) - Number(a[c] === null)) * (nulls === "first" ? 1 : -1);
          }
          return compareValues(a[c], b[c], false) * (descending ? -1 : 1);
        });
        sameRows(sorted, expected);
      }
    }
  }
});

Deno.test("set operations equal operations on lists", () => {
  const context = testContext();
  const random = randomFrom(5);
  const columns = COLUMNS.slice(0, 4);
  const few = (count: number) =>
    Array.from(
      { length: count },
      (): Row => [
        random() % 3,
        random() % 4 === 0 ? null : `t${random() % 3}`,
        random() % 3 === 0 ? null : `s${random() % 9}`,
        [null, 0, -0, 1.5][random() % 4],
      ],
    );
  const left = few(900), right = few(40);
  const key = (row: Row) => JSON.stringify(row.map((value) => value === 0 ? 0 : value));
  const distinct = (rows: Row[]) => rows.filter((row, i) => rows.findIndex((other) => key(other) === key(row)) === i);
  const onRight = new Set(right.map(key));
  const expected: Record<SetNode["operator"], Row[]> = {
    "union all": [...left, ...right],
    "union": distinct([...left, ...right]),
    "except all": left.filter((row) => !onRight.has(key(row))),
    "except": distinct(left.filter((row) => !onRight.has(key(row)))),
    "intersect all": left.filter((row) => onRight.has(key(row))),
    "intersect": distinct(left.filter((row) => onRight.has(key(row)))),
  };
  for (const operator of Object.keys(expected) as SetNode["operator"][]) {
    const plan = { node: "set", columns, operator, ...base } as unknown as SetNode;
    const made = rowsOf(
      over(plan, new RowsInput(columns, left, context, 130), new RowsInput(columns, right, context, 7)),
      context,
    );
    assert.deepEqual(made.map(key), expected[operator].map(key), operator);
  }
  assert.equal(context.memory.usedBytes, 0);
});

/** Pairs of all rows, filtered. */
function joined(
  type: JoinNode["type"],
  left: Row[],
  right: Row[],
  on: (l: Row, r: Row) => boolean,
  rightNulls: Row,
  leftNulls: Row,
): Row[] {
  const rows: Row[] = [], matched = new Set<Row>();
  for (const l of left) {
    const partners = right.filter((r) => on(l, r));
    for (const r of partners) {
      matched.add(r);
      rows.push([...l, ...r]);
    }
    if (partners.length === 0 && (type === "left" || type === "full")) rows.push([...l, ...rightNulls]);
  }
  if (type === "right" || type === "full") {
    for (const r of right) {
      if (!matched.has(r)) rows.push([...leftNulls, ...r]);
    }
  }
  return rows;
}

Deno.test("joins equal nested loops, by one key of each type and by two", () => {
  const context = testContext();
  const random = randomFrom(6);
  const nulls: Row = [null, null, null, null, null];
  for (const type of ["inner", "left", "right", "full"] as const) {
    for (const keys of [[0], [1], [2], [3], [0, 2], [4]]) {
      const left = randomRows(random, 400, 20), right = randomRows(random, 150, 26);
      const expressions = keys.map((c) => column(c, COLUMNS[c].type));
      const plan = {
        node: "join",
        type,
        columns: [...COLUMNS, ...COLUMNS],
        leftKeys: expressions,
        rightKeys: expressions,
        ...base,
      } as unknown as JoinNode;
      const made = rowsOf(
        over(
          plan,
          new RowsInput(COLUMNS, left, context, 90),
          new RowsInput(COLUMNS, right, context, 40),
        ),
        context,
      );
      sameRows(made, joined(type, left, right, (l, r) => keys.every((c) => l[c] === r[c]), nulls, nulls));
    }
  }
  assert.equal(context.memory.usedBytes, 0);
});

Deno.test("a symbol joins with a text, and a cross join is all pairs over many batches", () => {
  const context = testContext();
  const a: Column[] = [{ name: "y", type: "SYMBOL" }], b: Column[] = [{ name: "s", type: "STRING" }];
  const left: Row[] = [["p"], [null], ["q"]], right: Row[] = [["q"], ["p"], [null], ["z"]];
  const plan = {
    node: "join",
    type: "full",
    columns: [...a, ...b],
    leftKeys: [column(0, "SYMBOL")],
    rightKeys: [column(0, "STRING")],
    ...base,
  } as unknown as JoinNode;
  const made = rowsOf(
    over(plan, new RowsInput(a, left, context), new RowsInput(b, right, context)),
    context,
  );
  sameRows(made, [["p", "p"], [null, null], ["q", "q"], [null, "z"]]);
  const n: Column[] = [{ name: "n", type: "LONG" }];
  const numbers = Array.from({ length: 600 }, (_, i): Row => [BigInt(i)]);
  const cross = {
    node: "join",
    type: "cross",
    columns: [...n, ...n],
    leftKeys: [],
    rightKeys: [],
    ...base,
  } as unknown as JoinNode;
  const pairs = rowsOf(
    over(cross, new RowsInput(n, numbers, context, 100), new RowsInput(n, numbers, context, 100)),
    context,
  );
  assert.equal(pairs.length, 360_000);
  assert.deepEqual(pairs[359_999 - 601], [598n, 598n]);
  assert.equal(context.memory.usedBytes, 0);
});

const TIMED: Column[] = [{ name: "t", type: "TIMESTAMP" }, { name: "y", type: "SYMBOL" }, { name: "n", type: "LONG" }, {
  name: "s",
  type: "STRING",
}];

function timedRows(random: () => number, count: number, span: number, keys = 5): Row[] {
  const times = Array.from({ length: count }, () => BigInt(random() % span) + 1_700_000_000_000_000n).sort();
  return times.map((t, n): Row => [t, random() % 8 === 0 ? null : `k${random() % keys}`, BigInt(n), `text ${n}`]);
}

function timeJoinPlan(type: TimeJoinNode["type"], keyed: boolean, tolerance?: bigint): TimeJoinNode {
  const keys = keyed ? [column(1, "SYMBOL")] : [];
  return {
    node: "timeJoin",
    type,
    columns: [...TIMED, ...TIMED],
    leftTime: column(0, "TIMESTAMP"),
    rightTime: column(0, "TIMESTAMP"),
    leftKeys: keys,
    rightKeys: keys,
    tolerance,
    ...base,
  } as unknown as TimeJoinNode;
}

Deno.test("asof and lt joins find the last earlier row, by key and within a tolerance", () => {
  const context = testContext();
  const random = randomFrom(7);
  for (const type of ["asof", "lt"] as const) {
    for (const keyed of [false, true]) {
      for (const tolerance of [undefined, 3n]) {
        for (const [leftCount, rightCount] of [[300, 500], [0, 5], [5, 0], [700, 20]]) {
          const left = timedRows(random, leftCount, 400), right = timedRows(random, rightCount, 400);
          const made = rowsOf(
            over(
              timeJoinPlan(type, keyed, tolerance),
              new RowsInput(TIMED, left, context, 64),
              new RowsInput(TIMED, right, context, 50),
            ),
            context,
          );
          const expected = left.map((l) => {
            const found = right.findLast((r) =>
              (type === "asof" ? r[0]! <= l[0]! : r[0]! < l[0]!) && (!keyed || r[1] === l[1])
            );
            const near = found !== undefined &&
              (tolerance === undefined || (l[0] as bigint) - (found[0] as bigint) <= tolerance);
            return [...l, ...(near ? found : [null, null, null, null])];
          });
          sameRows(made, expected);
        }
      }
    }
  }
  assert.equal(context.memory.usedBytes, 0);
});

Deno.test("an asof join with a long right side drops rows that can no longer match", () => {
  const context = testContext(1 << 29);
  const right = timedRows(randomFrom(8), 500_000, 1_000_000), left = timedRows(randomFrom(9), 60, 1_000_000);
  const made = rowsOf(
    over(
      timeJoinPlan("asof", true),
      new RowsInput(TIMED, left, context, 20),
      new RowsInput(TIMED, right, context, 30_000),
    ),
    context,
  );
  sameRows(made, left.map((l) => [...l, ...right.findLast((r) => r[0]! <= l[0]! && r[1] === l[1])!]));
  assert.ok(context.memory.peakBytes < 50_000_000, `${context.memory.peakBytes}`);
});

Deno.test("splice join pairs equal times one by one", () => {
  const context = testContext();
  const t = (n: number) => BigInt(n);
  const left: Row[] = [[t(1), "p", 1n, ""], [t(2), "q", 2n, ""], [t(2), "p", 3n, ""], [t(5), null, 4n, ""], [
    t(9),
    "r",
    5n,
    "",
  ]];
  const right: Row[] = [[t(0), null, 100n, ""], [t(1), "p", 101n, ""], [t(2), "q", 102n, ""], [t(2), "p", 103n, ""], [
    t(6),
    "q",
    104n,
    "",
  ]];
  const run = (keyed: boolean) =>
    rowsOf(
      over(
        timeJoinPlan("splice", keyed),
        new RowsInput(TIMED, left, context),
        new RowsInput(TIMED, right, context),
      ),
      context,
    ).map((row) => [row[2], row[6]]);
  assert.deepEqual(run(false), [[null, 100n], [1n, 101n], [2n, 102n], [3n, 103n], [4n, 103n], [4n, 104n], [5n, 104n]]);
  assert.deepEqual(run(true), [[null, 100n], [1n, 101n], [2n, 102n], [3n, 103n], [4n, 100n], [2n, 104n], [5n, null]]);
});

Deno.test("latest over unsorted rows keeps the last of equal times and is output in time order", () => {
  const context = testContext(1 << 29);
  const random = randomFrom(10);
  for (const [count, batch] of [[3_000, 128], [700_000, 30_000]]) {
    const rows = Array.from(
      { length: count },
      (_, n): Row => [BigInt(random() % 500), random() % 9 === 0 ? null : `k${random() % 300}`, BigInt(n), `x${n}`],
    );
    const plan = {
      node: "latest",
      columns: TIMED,
      time: column(0, "TIMESTAMP"),
      keys: [column(1, "SYMBOL")],
      ...base,
    } as unknown as LatestNode;
    const made = rowsOf(
      over(plan, new RowsInput(TIMED, rows, context, batch)),
      context,
    );
    const best = new Map<Value, Row>();
    for (const row of rows) if (!best.has(row[1]) || row[0]! >= best.get(row[1])![0]!) best.set(row[1], row);
    const expected = [...best.values()].toSorted((a, b) =>
      compareValues(a[0], b[0], false) || compareValues(a[2], b[2], false)
    );
    sameRows(made, expected);
  }
  assert.equal(context.memory.usedBytes, 0);
});
