import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import type { Expr, Fill, Plan, Sampling, TimeJoinNode } from "../../sql/plan.ts";
import type { Value } from "../../types/mod.ts";
import { FULL } from "../../testing.ts";
import { createQueryMemory } from "../memory.ts";
import { physicalPlan } from "../physical/mod.ts";
import {
  agg,
  assertRows,
  col,
  endsClean,
  fn,
  joinColumns,
  keyValues,
  lit,
  onThreads,
  over,
  randomFrom,
  type Row,
  RowsInput,
  rowsOf,
  storedRows,
  testContext,
  withLittleMemory,
} from "../testing.ts";

const functions = createRegistry();

const COLUMNS = joinColumns("TIMESTAMP", "SYMBOL", "SHORT");
const WIDTH = COLUMNS.length, NUMBER = WIDTH - 1;
const c = (index: number, offset = 0) => col(offset + index, COLUMNS[index].type);

/** Column 2 is a key of a small range, column 3 one of a wide range, and the last column the row's number. */
function timedRows(count: number, seed: number, span: number, distinct: number): Row[] {
  const random = randomFrom(seed), start = 1_700_000_000_000_000n;
  const times = Array.from({ length: count }, () => start + BigInt(random() % span)).sort((a, b) => Number(a - b));
  return times.map((time, row): Row => {
    const n = random() % distinct, maybe = (value: Value): Value => (random() % 9 === 0 ? null : value);
    return [
      time,
      maybe(`s${n}`),
      ...keyValues(n, random, maybe),
      n,
      BigInt(row),
    ];
  });
}

interface Case {
  type: "asof" | "lt";
  keys: readonly number[];
  tolerance?: bigint;
}

/** The number of each left row, and that of its partner, by searching all rows before it. */
function partners({ type, keys, tolerance }: Case, left: readonly Row[], right: readonly Row[]): [Value, Value][] {
  const keyOf = (row: Row) => keys.map((k) => (row[k] === 0 ? "0" : String(row[k]))).join("|");
  const last = new Map<string, Row>();
  let next = 0;
  return left.map((l) => {
    const time = l[0] as bigint;
    const isIn = (r: Row | undefined) => {
      if (r === undefined) return false;
      const at = r[0] as bigint;
      return type === "asof" ? at <= time : at < time;
    };
    for (; isIn(right[next]); next++) last.set(keyOf(right[next]), right[next]);
    const found = last.get(keyOf(l)), age = found && time - (found[0] as bigint);
    return [l[NUMBER], age !== undefined && (tolerance === undefined || age <= tolerance) ? found![NUMBER] : null];
  });
}

function timeJoin(
  { type, keys, tolerance }: Case,
  left: Plan | RowsInput,
  right: Plan | RowsInput,
  leftKeys?: Expr[],
): Plan {
  const columns = [...left.columns, ...right.columns];
  const rightKeys = keys.map((k) => c(k));
  const times = { leftTime: c(0), rightTime: c(0) };
  return over(
    { node: "timeJoin", type, ...times, leftKeys: leftKeys ?? rightKeys, rightKeys, tolerance, columns } as Partial<
      TimeJoinNode
    >,
    left,
    right,
  );
}

function withTables(left: Row[], right: Row[], isParallel: boolean, limitBytes = 0) {
  const chosen: string[] = [];
  const alone = testContext(2 ** 31, { functions, chose: (choice) => chosen.push(choice) });
  alone.memory.limitBytes = limitBytes;
  const tables = [left, right].map((rows, id) => {
    const segmentRows = id === 0 ? 700 : 900, table = storedRows(COLUMNS, rows, alone, segmentRows, true);
    [...table.source.segments].forEach((segment, k) => {
      const part = rows.slice(k * segmentRows, (k + 1) * segmentRows);
      const [first, last] = [part[0], part.at(-1)!].map(([time]) => time ?? -(1n << 63n));
      Object.assign(segment, { timestampMin: first, timestampMax: last });
    });
    return table;
  });
  const context = onThreads({ ...alone, sources: tables.map((table) => table.source) }, isParallel);
  const [l, r] = tables.map(({ node }, id): Plan => ({ ...node, id, timestamp: 0, order: "asc" }));
  return { context, chosen, left: l, right: r };
}

/** One group for each left row: its number, and the sum of the right rows' numbers. They are read by morsels. */
function byMorsels(join: Plan): Plan {
  const keys = [c(NUMBER)], aggregates = [agg("sum", "LONG", c(NUMBER, WIDTH)), agg("count", "LONG")];
  const columns = [...keys, ...aggregates].map(({ type }, k) => ({ name: `g${k}`, type }));
  return over({ node: "aggregate", keys, aggregates, columns }, join);
}

const CASES: Case[] = [[], [1], [2], [3], [4], [5], [6], [7], [1, 2], [5, 6, 1]].flatMap((keys): Case[] => [
  { type: "asof", keys },
  { type: "lt", keys, tolerance: 20_000n },
]);

Deno.test("asof and lt joins of stored tables are the same by morsels on one thread and on three, merged, and in little memory", () => {
  const left = timedRows(5_000, 1, 1_000_000, 40), right = timedRows(20_000, 2, 900_000, 50);
  for (const [isParallel, limitBytes] of [[false, 0], [true, 0], [true, 1 << 20]] as const) {
    const tables = withTables(left, right, isParallel, limitBytes), { context, chosen } = tables;
    for (const each of CASES) {
      const expected = partners(each, left, right);
      const title = `${each.type} by ${each.keys}, limit ${limitBytes}`;
      chosen.length = 0;
      const groups = rowsOf(byMorsels(timeJoin(each, tables.left, tables.right)), context);
      assertRows(groups.map(([l, r]) => [l, r]), expected, title);
      assert.equal(chosen.includes("all right rows"), limitBytes === 0, title);
      assert.equal(chosen.includes("last right rows"), limitBytes > 0, title);
      const rows = rowsOf(timeJoin(each, tables.left, tables.right), context);
      assertRows(
        rows,
        expected.map(([l, r]) => [...left[Number(l)], ...r === null ? none : right[Number(r)]]),
        title,
      );
    }
    endsClean(context);
  }
});

/** Right columns without a row. */
const none: Row = COLUMNS.map(({ type }) => (type === "SHORT" ? 0 : null));

/** Few rows have a partner by most of the keys. In turns a join of each type, and at full length both by all keys. */
const MANY_KEYS: Case[] = [[1], [1], [3], [4], [5], [6], [2, 5], [1, 3]].flatMap((keys, k): Case[] => {
  const both: Case[] = [{ type: "asof", keys }, { type: "lt", keys, tolerance: 300_000n }];
  return FULL ? both : [both[k % 2]];
});

Deno.test("asof and lt joins with too many keys for their memory continue on disk, on one thread and on three", () => {
  // SHORT has no more values.
  const left = timedRows(50_000, 21, 1_000_000, 32_000), right = timedRows(60_000, 22, 900_000, 32_000);
  const partnersOf = new Map(MANY_KEYS.map((each) => [each, partners(each, left, right)]));
  for (const isParallel of [false, true]) {
    const { context: inMemory, chosen, left: l, right: r } = withTables(left, right, isParallel);
    const { context: alone, memory, partCount } = withLittleMemory(inMemory, 6 << 20);
    const context = onThreads(alone, isParallel);
    for (const each of isParallel ? MANY_KEYS.slice(0, 3) : MANY_KEYS) {
      const expected = partnersOf.get(each)!, title = `${each.type} by ${each.keys}`;
      chosen.length = 0;
      const groups = rowsOf(byMorsels(timeJoin(each, l, r)), context);
      assertRows(groups.map(([l, r]) => [l, r]), expected, title);
      assert.ok(chosen.includes("last right rows"), title);
      assert.equal(memory.usedBytes, 0, title);
      partCount();
      const rows = rowsOf(timeJoin(each, l, r), context);
      assertRows(
        rows,
        expected.map(([l, r]) => [...left[Number(l)], ...r === null ? none : right[Number(r)]]),
        title,
      );
      assert.ok(partCount() > 16, `${title} is divided on disk`);
      assert.equal(memory.usedBytes, 0, title);
    }
  }
});

Deno.test("an asof join that continues on disk compares symbols with texts, and reads sub-queries again", () => {
  const texts = (rows: Row[]) => rows.map((row): Row => [...row.slice(0, 5), row[1], ...row.slice(6)]);
  const left = timedRows(40_000, 23, 500_000, 50_000), right = texts(timedRows(60_000, 24, 500_000, 50_000));
  const { context: inMemory, left: l, right: r } = withTables(left, right, false);
  const { context, memory, partCount } = withLittleMemory(inMemory, 6 << 20);
  const byText = (row: Row): Row => [...row.slice(0, 5), row[1], ...row.slice(6)];
  const expected = partners({ type: "asof", keys: [5] }, left.map(byText), right);
  const time = [{ expression: c(0), descending: false }, { expression: c(NUMBER), descending: false }];
  const sorted = (input: Plan): Plan => over({ node: "sort", keys: time, columns: input.columns }, input);
  for (
    const plan of [
      timeJoin({ type: "asof", keys: [5] }, l, r, [c(1)]),
      timeJoin({ type: "asof", keys: [5] }, sorted(l), sorted(r), [c(1)]),
    ]
  ) {
    const rows = rowsOf(plan, context);
    assertRows(rows.map((row) => [row[NUMBER], row[WIDTH + NUMBER]]), expected, "by texts");
    assert.ok(partCount() > 16);
    assert.equal(memory.usedBytes, 0);
  }
});

Deno.test("asof and lt joins that merge long texts need memory for the last rows only", () => {
  const left = timedRows(6_000, 25, 500_000, 40), right = timedRows(9_000, 26, 500_000, 40);
  const padded = right.map((row): Row => [...row.slice(0, 5), "y".repeat(2_000) + row[NUMBER], ...row.slice(6)]);
  const { context: inMemory, left: l, right: r } = withTables(left, padded, false);
  // Texts of 40 keys take 80 KB.
  const memory = createQueryMemory(inMemory.heap, 3 << 20), context = { ...inMemory, memory };
  for (const keys of [[], [2]]) {
    for (const type of ["asof", "lt"] as const) {
      const expected = partners({ type, keys }, left, padded).map((
        [l, r],
      ) => [l, r === null ? null : padded[Number(r)][5]]);
      const rows = rowsOf(timeJoin({ type, keys }, l, r), context);
      assertRows(rows.map((row) => [row[NUMBER], row[WIDTH + 5]]), expected, `${type} by ${keys}`);
      assert.equal(memory.usedBytes, 0);
    }
  }
});

Deno.test("conditions and computed keys of the left side of an asof join, and joins over it", () => {
  const left = timedRows(4_000, 3, 500_000, 30), right = timedRows(9_000, 4, 700_000, 30);
  for (const isParallel of [false, true]) {
    const tables = withTables(left, right, isParallel), { context } = tables;
    const predicate = fn(">", "BOOLEAN", c(2), lit(0, "INT"));
    const passing = left.filter((row) => row[2] !== null && Number(row[2]) > 0);
    const scan: Plan = { ...tables.left, predicate } as Plan;
    const byText: Case = { type: "asof", keys: [5] };
    const computed = [fn("lower", "VARCHAR", c(5))];
    const made = rowsOf(byMorsels(timeJoin(byText, scan, tables.right, computed)), context);
    assertRows(made.map(([l, r]) => [l, r]), partners(byText, passing, right));

    const first = timeJoin({ type: "asof", keys: [1] }, scan, tables.right);
    const second = timeJoin({ type: "lt", keys: [2] }, first, new RowsInput(COLUMNS, right, context, 500));
    const a = partners({ type: "asof", keys: [1] }, passing, right);
    const b = partners({ type: "lt", keys: [2] }, passing, right);
    const keys = [c(NUMBER)];
    const aggregates = [agg("sum", "LONG", c(NUMBER, WIDTH)), agg("sum", "LONG", c(NUMBER, 2 * WIDTH))];
    const columns = [...keys, ...aggregates].map(({ type }, k) => ({ name: `g${k}`, type }));
    const both = rowsOf(over({ node: "aggregate", keys, aggregates, columns }, second), context);
    assertRows(both, a.map(([l, r], k) => [l, r, b[k][1]]));

    const few = timedRows(40, 5, 10, 30);
    const joined = over(
      {
        node: "join",
        type: "inner",
        leftKeys: [c(7)],
        rightKeys: [c(7)],
        columns: [...first.columns, ...COLUMNS],
      },
      timeJoin({ type: "asof", keys: [1] }, scan, tables.right),
      new RowsInput(COLUMNS, few, context),
    );
    const pairs = a.flatMap(([l, r]) =>
      few.filter((row) => row[7] === left[Number(l)][7]).map((row) => [l, r, row[NUMBER]])
    );
    const numbers = [c(NUMBER), c(NUMBER, WIDTH), c(NUMBER, 2 * WIDTH)];
    const project = {
      node: "project",
      expressions: numbers,
      columns: numbers.map(({ type }, k) => ({ name: `${k}`, type })),
    };
    assertRows(rowsOf(over(project, joined), context), pairs);
    endsClean(context);
  }
});

Deno.test("more groups than rows between snapshots, and gaps of the left side in time", () => {
  const right = timedRows(60_000, 6, 2_000_000, 20_000);
  const left = timedRows(30_000, 7, 2_000_000, 20_000).filter((row) => {
    const place = Number(row[0]) % 1_000_000;
    return place < 100_000 || place > 700_000;
  }).map((row, n): Row => [...row.slice(0, NUMBER), BigInt(n)]);
  for (const isParallel of [false, true]) {
    const tables = withTables(left, right, isParallel);
    for (const keys of [[], [3], [5]]) {
      const each: Case = { type: "asof", keys };
      const made = rowsOf(byMorsels(timeJoin(each, tables.left, tables.right)), tables.context);
      assertRows(made.map(([l, r]) => [l, r]), partners(each, left, right), `by ${keys}`);
    }
    endsClean(tables.context);
  }
});

Deno.test("rows without a time come first and have no partner", () => {
  const withoutTimes = (rows: Row[], count: number) =>
    rows.map((row, n): Row => n < count ? [null, ...row.slice(1)] : row);
  const left = timedRows(3_000, 10, 300_000, 10), right = timedRows(4_000, 11, 300_000, 10);
  for (const [ofLeft, ofRight] of [[40, 950], [0, 1_000], [3_000, 4_000]]) {
    const lefts = withoutTimes(left, ofLeft), rights = withoutTimes(right, ofRight);
    const tables = withTables(lefts, rights, false);
    for (const keys of [[], [1], [2]]) {
      const each: Case = { type: "asof", keys };
      const expected = lefts.slice(0, ofLeft).map((row): [Value, Value] => [row[NUMBER], null])
        .concat(partners(each, left.slice(ofLeft), right.slice(ofRight)));
      const join = timeJoin(each, tables.left, tables.right);
      assertRows(rowsOf(byMorsels(join), tables.context).map(([l, r]) => [l, r]), expected, `by ${keys}`);
      const merged = rowsOf(timeJoin(each, tables.left, tables.right), tables.context);
      assertRows(merged.map((row) => [row[NUMBER], row[WIDTH + NUMBER]]), expected, `by ${keys}, merged`);
    }
    endsClean(tables.context);
  }
});

Deno.test("right rows after the last left row are not read, and an empty side has no partners", () => {
  const left = timedRows(500, 8, 1_000, 5), right = timedRows(50_000, 9, 1_000_000, 5);
  const { context, left: l, right: r } = withTables(left, right, false);
  const read: number[] = [];
  [...context.sources[1].segments].forEach((segment, s) =>
    segment.chunks.forEach((chunk) => {
      const { address } = chunk!;
      Object.defineProperty(chunk, "address", { get: () => (read.push(s), address) });
    })
  );
  const each: Case = { type: "asof", keys: [1] };
  const made = rowsOf(byMorsels(timeJoin(each, l, r)), context);
  assertRows(made.map(([l, r]) => [l, r]), partners(each, left, right));
  assert.ok(Math.max(...read) <= 1, `${Math.max(...read)}`);
  const nobody = rowsOf(byMorsels(timeJoin(each, l, new RowsInput(COLUMNS, [], context))), context);
  assertRows(nobody.map(([l, r]) => [l, r]), partners(each, left, []));
  endsClean(context);
});

Deno.test("SAMPLE BY over an asof join computes buckets in its kernels, on one thread and on three, with and without FILL", () => {
  const left = timedRows(6_000, 12, 3_000_000, 12), right = timedRows(9_000, 13, 3_000_000, 12);
  const each: Case = { type: "asof", keys: [1] }, pairs = partners(each, left, right);
  const STEP = 7_000n, ORIGIN = 3_000n;
  const groups = new Map<string, [bigint, Value, bigint, bigint]>();
  for (const [row, [, r]] of pairs.entries()) {
    const time = left[row][0] as bigint, bucket = time - (time - ORIGIN) % STEP, key = `${bucket}|${left[row][2]}`;
    const group = groups.get(key) ?? [bucket, left[row][2], 0n, 0n];
    groups.set(key, [bucket, left[row][2], group[2] + 1n, group[3] + (r === null ? 0n : 1n)]);
  }
  // Groups are in the order of their first rows.
  const expected = [...groups.values()].map((group): Row => [...group]);
  for (const isParallel of [false, true]) {
    const tables = withTables(left, right, isParallel), { context } = tables;
    const aggregates = [agg("count", "LONG"), agg("count", "LONG", c(NUMBER, WIDTH))];
    const columns = ["TIMESTAMP", "INT", "LONG", "LONG"].map((type, k) => ({ name: `g${k}`, type }));
    const sampling: Sampling = { count: 7, unit: "T", align: "calendar", timeZone: "", offset: ORIGIN };
    const sample = (fills: Fill[], keys: Expr[]) =>
      over(
        {
          node: "sample",
          time: c(0),
          sampling,
          keys,
          aggregates,
          fills,
          columns: columns.filter((_, k) => k !== 1 || keys.length > 0),
        },
        timeJoin(each, tables.left, tables.right),
      );
    const physical = physicalPlan(sample([], [c(2)]), context);
    assert.ok(physical.operator === "sample" && physical.way.kind === "computed");
    assertRows(rowsOf(sample([], [c(2)]), context), expected);
    const filled = rowsOf(sample([{ kind: "null" }, { kind: "null" }], []), context);
    const counts = new Map<Value, bigint>();
    for (const [bucket, , count] of expected) counts.set(bucket, (counts.get(bucket) ?? 0n) + (count as bigint));
    const [low, high] = [expected[0][0] as bigint, expected.at(-1)![0] as bigint];
    assert.equal(filled.length, Number((high - low) / STEP) + 1);
    filled.forEach(([bucket, count], k) => {
      assert.equal(bucket, low + BigInt(k) * STEP);
      assert.equal(count, counts.get(bucket) ?? null);
    });
    endsClean(context);
  }
});
