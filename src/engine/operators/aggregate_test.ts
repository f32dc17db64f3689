import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { createRegistry } from "../../sql/functions/mod.ts";
import type { AggregateCall, Column, Expr, Plan, ScanNode } from "../../sql/plan.ts";
import type { ScanSource } from "../../storage/contract.ts";
import type { Value } from "../../types/mod.ts";
import { setValue, TextArena, valueAt } from "../columns.ts";
import type { Operator, QueryContext } from "../contract.ts";
import {
  agg,
  assertRows,
  chunkAt,
  col,
  fn,
  lit,
  onThreads,
  over,
  randomFrom,
  type Row,
  RowsInput,
  rowsOf,
  scanOf,
  segmentOf,
  sourceOf,
  spaceOfRows,
  storedRows,
  testContext,
} from "../testing.ts";

const functions = createRegistry();

const COLUMNS: Column[] = ["SYMBOL", "BOOLEAN", "INT", "LONG", "DOUBLE", "VARCHAR", "UUID", "FLOAT"].map((type, k) => ({
  name: `c${k}`,
  type,
}));
const at = (type: string) => COLUMNS.findIndex((column) => column.type === type);
const c = (type: string) => col(at(type), type);

function makeRows(rowCount: number, seed: number, distinct = 50): Row[] {
  const random = randomFrom(seed);
  return Array.from({ length: rowCount }, (): Row => {
    const n = random() % distinct;
    const maybe = (value: Value): Value => (random() % 9 === 0 ? null : value);
    return [
      maybe(`s${n % 13}`),
      random() % 2 === 0,
      maybe(n - 20),
      maybe(BigInt(n) * 1_000_003n),
      maybe((random() % 1000) / 8 - 30),
      maybe(`text ${"x".repeat(n % 11)}${n}`),
      maybe(BigInt(n) << 64n | 5n),
      maybe(Math.fround(n / 4)),
    ];
  });
}

function storedTable(rows: Row[], context: QueryContext, segmentRows: number): { node: ScanNode; source: ScanSource } {
  return storedRows(COLUMNS, rows, context, segmentRows);
}

/** Groups in order of first appearance, by a simple implementation. */
function reference(rows: Row[], keys: number[], compute: (group: Row[]) => Value[]): Row[] {
  const groups = new Map<string, { key: Row; rows: Row[] }>();
  if (keys.length === 0) groups.set("", { key: [], rows: [] });
  for (const row of rows) {
    const key = keys.map((k) => row[k]);
    const text = key.map((v) => `${typeof v}:${v}`).join("|");
    if (!groups.has(text)) groups.set(text, { key, rows: [] });
    groups.get(text)!.rows.push(row);
  }
  return [...groups.values()].map((group) => [...group.key, ...compute(group.rows)]);
}

const AGGREGATES: AggregateCall[] = [
  agg("count", "LONG"),
  agg("count", "LONG", c("DOUBLE")),
  agg("sum", "DOUBLE", c("DOUBLE")),
  agg("sum", "LONG", c("LONG")),
  agg("min", "INT", c("INT")),
  agg("max", "LONG", c("LONG")),
  agg("first", "LONG", c("LONG")),
  agg("last", "SYMBOL", c("SYMBOL")),
  agg("avg", "DOUBLE", fn("+", "DOUBLE", c("DOUBLE"), lit(1, "DOUBLE"))),
  agg("min", "VARCHAR", c("VARCHAR")),
  agg("max", "STRING", c("SYMBOL")),
  agg("first", "VARCHAR", c("VARCHAR")),
  agg("last", "VARCHAR", c("VARCHAR")),
  agg("first_not_null", "VARCHAR", c("VARCHAR")),
  agg("last_not_null", "VARCHAR", c("VARCHAR")),
];
const present = <T extends Value>(rows: Row[], type: string) =>
  rows.map((row) => row[at(type)]).filter((v) => v !== null) as T[];
function computed(rows: Row[]): Value[] {
  const doubles = present<number>(rows, "DOUBLE"),
    longs = present<bigint>(rows, "LONG"),
    ints = present<number>(rows, "INT"),
    texts = present<string>(rows, "VARCHAR");
  const sum = doubles.reduce((a, b) => a + b, 0);
  return [
    BigInt(rows.length),
    BigInt(doubles.length),
    doubles.length ? sum : null,
    longs.length ? longs.reduce((a, b) => a + b) : null,
    ints.length ? Math.min(...ints) : null,
    longs.length ? longs.reduce((a, b) => (a > b ? a : b)) : null,
    rows.length ? rows[0][at("LONG")] : null,
    rows.length ? rows.at(-1)![at("SYMBOL")] : null,
    doubles.length ? (sum + doubles.length) / doubles.length : null,
    texts.toSorted()[0] ?? null,
    present<string>(rows, "SYMBOL").toSorted().at(-1) ?? null,
    rows[0]?.[at("VARCHAR")] ?? null,
    rows.at(-1)?.[at("VARCHAR")] ?? null,
    texts[0] ?? null,
    texts.at(-1) ?? null,
  ];
}

function aggregateOf(
  input: Operator | Plan,
  keys: Expr[],
  aggregates: AggregateCall[],
  context: QueryContext,
  distinctRowsMin?: number,
): Row[] {
  const columns = [...keys, ...aggregates].map((part, k) => ({ name: `o${k}`, type: part.type }));
  const thresholds = { distinctRowsMin };
  return rowsOf(over({ node: "aggregate", keys, aggregates, columns }, input), { ...context, thresholds });
}

const KEY_SETS: string[][] = [[], ["SYMBOL"], ["SYMBOL", "BOOLEAN"], ["INT"], ["DOUBLE"], ["VARCHAR"], ["UUID"], [
  "FLOAT",
  "SYMBOL",
  "VARCHAR",
]];

// Sums of eighths are exact, so their order does not matter.
Deno.test("every kind of key over a stored table, with and without a filter", () => {
  const rows = makeRows(7_013, 1);
  for (const keys of KEY_SETS) {
    const context = testContext(1 << 27, { functions });
    const { node } = storedTable(rows, context, 300); // 24 segments
    const exprs = keys.map(c);
    const indices = keys.map(at);
    assert.deepEqual(
      aggregateOf(node, exprs, AGGREGATES, context),
      reference(rows, indices, computed),
      `by ${keys}`,
    );
    const predicate = fn(">", "BOOLEAN", c("DOUBLE"), lit(10, "DOUBLE"));
    const filtered = { ...node, predicate };
    const kept = rows.filter((row) => row[at("DOUBLE")] !== null && (row[at("DOUBLE")] as number) > 10 + 1e-10);
    assert.deepEqual(
      aggregateOf(filtered, exprs, AGGREGATES, context),
      reference(kept, indices, computed),
      `by ${keys}, filtered`,
    );
    assert.equal((context.memory as { usedBytes: number }).usedBytes, 0);
  }
});

Deno.test("over another operator, through filters and projections", () => {
  const rows = makeRows(3_000, 2);
  for (const keys of KEY_SETS) {
    const context = testContext(1 << 27, { functions });
    const input = new RowsInput([...COLUMNS], rows, context, 700);
    const predicate = fn("=", "BOOLEAN", c("SYMBOL"), lit("s3", "STRING"));
    const kept = rows.filter((row) => row[at("SYMBOL")] !== "s3");
    const filter = over({ node: "filter", predicate: fn("not", "BOOLEAN", predicate), columns: COLUMNS }, input);
    const project = over({
      node: "project",
      expressions: COLUMNS.map((_, k) => col(k, COLUMNS[k].type)),
      columns: COLUMNS,
    }, filter);
    assert.deepEqual(
      aggregateOf(project, keys.map(c), AGGREGATES, context),
      reference(kept, keys.map(at), computed),
      `by ${keys}`,
    );
    assert.equal((context.memory as { usedBytes: number }).usedBytes, 0);
  }
});

Deno.test("sums of floats do not depend on the sizes of an operator's batches", () => {
  const random = randomFrom(7), columns = [{ name: "d", type: "DOUBLE" }];
  const rows = Array.from({ length: 3_000 }, (): Row => [(random() % 1_000_003) / 7]);
  const aggregates = ["sum", "avg", "stddev_samp"].map((name) => agg(name, "DOUBLE", col(0, "DOUBLE")));
  const answers = [3_000, 1_000, 701, 1].map((batchRows) => {
    const context = testContext(1 << 27, { functions });
    return aggregateOf(new RowsInput(columns, rows, context, batchRows), [], aggregates, context);
  });
  for (const answer of answers) assert.deepEqual(answer, answers[0]);
});

Deno.test("many groups: tables and text arenas grow", () => {
  const rows = makeRows(30_000, 3, 20_000);
  for (const keys of [["INT"], ["VARCHAR"], ["LONG", "VARCHAR"]]) {
    const context = testContext(1 << 27, { functions });
    const { node } = storedTable(rows, context, 1_000);
    assert.deepEqual(
      aggregateOf(node, keys.map(c), AGGREGATES, context),
      reference(rows, keys.map(at), computed),
      `by ${keys}`,
    );
    assert.equal((context.memory as { usedBytes: number }).usedBytes, 0);
  }
});

Deno.test("groups of batches that exceed the caches", () => {
  const random = randomFrom(12), types = ["BOOLEAN", "INT", "LONG", "DOUBLE", "VARCHAR"];
  const columns = types.map((type) => ({ name: type, type })),
    [isKept, int, long] = types.map((type, k) => col(k, type));
  const rows = Array.from({ length: 150_000 }, (_, row): Row => {
    const n = random() % 120_000;
    return [random() % 9 > 0, n % 7 === 0 ? null : n, BigInt(row), n / 4, n % 1000 === 0 ? null : `text ${n}`];
  });
  const kept = rows.filter(([isTrue]) => isTrue);
  const calls = [agg("count", "LONG"), agg("max", "LONG", long), agg("min", "INT", int)];
  const compute = (group: Row[]): Value[] => {
    const ints = group.map((row) => row[1] as number | null).filter((value) => value !== null);
    return [BigInt(group.length), group.at(-1)![2]!, ints.length > 0 ? Math.min(...ints) : null];
  };
  for (
    const keys of [["VARCHAR"], ["INT", "VARCHAR"], ["DOUBLE"]].map((names) => names.map((name) => types.indexOf(name)))
  ) {
    for (const isFiltered of [false, true]) {
      const context = testContext(1 << 28, { functions }), input = new RowsInput(columns, rows, context, 5_000);
      const below = isFiltered ? over({ node: "filter", predicate: isKept!, columns }, input) : input;
      const found = aggregateOf(below, keys.map((k) => col(k, types[k]!)), calls, context);
      assert.deepEqual(found, reference(isFiltered ? kept : rows, keys, compute));
      assert.equal((context.memory as { usedBytes: number }).usedBytes, 0);
    }
  }
});

Deno.test("DISTINCT aggregates and aggregates over batches, grouped and not", () => {
  const rows = makeRows(4_000, 4);
  const calls = [
    { ...agg("count", "LONG", c("INT")), distinct: true },
    { ...agg("sum", "LONG", c("LONG")), distinct: true },
    { ...agg("count", "LONG", c("VARCHAR")), distinct: true },
    { ...agg("count", "LONG", c("SYMBOL")), distinct: true },
    agg("sum", "DOUBLE", c("DOUBLE")),
  ];
  const compute = (group: Row[]): Value[] => {
    const doubles = present<number>(group, "DOUBLE");
    const longs = [...new Set(present<bigint>(group, "LONG"))];
    return [
      BigInt(new Set(present(group, "INT")).size),
      longs.length ? longs.reduce((a, b) => a + b) : null,
      BigInt(new Set(present(group, "VARCHAR")).size),
      BigInt(new Set(present(group, "SYMBOL")).size),
      doubles.length ? doubles.reduce((a, b) => a + b) : null,
    ];
  };
  for (const keys of [[], ["SYMBOL"], ["INT"], ["VARCHAR"]]) {
    const context = testContext(1 << 27, { functions });
    const { node } = storedTable(rows, context, 500);
    assert.deepEqual(
      aggregateOf(node, keys.map(c), calls, context),
      reference(rows, keys.map(at), compute),
      `by ${keys}`,
    );
    assert.equal((context.memory as { usedBytes: number }).usedBytes, 0);
  }
});

Deno.test("counts of distinct values by keys, several of them and with other aggregates", () => {
  const rows = makeRows(6_000, 14, 300), filtered = rows.filter((row) => row[at("LONG")] !== null);
  const distinct = (type: string) => agg("count_distinct", "LONG", c(type));
  const size = (group: Row[], type: string) => BigInt(new Set(present(group, type)).size);
  const types = ["INT", "VARCHAR", "SYMBOL", "DOUBLE"];
  for (const keys of [[], ["SYMBOL"], ["INT"], ["VARCHAR", "BOOLEAN"], ["UUID"]]) {
    for (const isParallel of [false, true]) {
      const alone = testContext(1 << 28, { functions });
      const { node, source } = storedTable(rows, alone, 200);
      const context = onThreads({ ...alone, sources: [source] }, isParallel);
      const predicate = fn("!=", "BOOLEAN", c("LONG"), lit(null, "LONG"));
      const scan = () => ({ ...node, predicate });
      const calls = [
        distinct("INT"),
        agg("count", "LONG"),
        { ...agg("count", "LONG", c("VARCHAR")), distinct: true },
        distinct("SYMBOL"),
        agg("max", "INT", c("INT")),
        distinct("DOUBLE"),
      ];
      const made = aggregateOf(scan(), keys.map(c), calls, context, 0);
      assert.deepEqual(
        made,
        reference(filtered, keys.map(at), (group) => {
          const ints = present<number>(group, "INT");
          const [i, v, s, d] = types.map((type) => size(group, type));
          return [i, BigInt(group.length), v, s, ints.length ? Math.max(...ints) : null, d];
        }),
        `by ${keys}`,
      );
      const alonePart = aggregateOf(scan(), keys.map(c), [distinct("INT")], context, 0);
      assert.deepEqual(alonePart, made.map((row) => row.slice(0, keys.length + 1)));
      assert.equal((context.memory as { usedBytes: number }).usedBytes, 0);
    }
  }
});

Deno.test("segments excluded by their statistics are not read", () => {
  const rows = makeRows(1_000, 8).map((row, k): Row =>
    row.map((value, column) => (column === at("LONG") ? BigInt(k) : column === at("DOUBLE") ? k / 2 : value))
  );
  const context = testContext(1 << 26, { functions });
  const { node, source } = storedTable(rows, context, 100);
  [...source.segments].forEach((segment, s) => {
    segment.chunks[at("LONG")]!.stats = { nullCount: 0, min: BigInt(s * 100), max: BigInt(s * 100 + 99) };
    segment.chunks[at("DOUBLE")]!.stats = { nullCount: 0, min: s * 50, max: s * 50 + 49.5 };
  });
  // Unneeded segments have wrong contents, so that reading one changes the count.
  const countOf = (predicate: Expr, unread: number[]) => {
    const broken = {
      ...source,
      segments: [...source.segments].map((segment, s) => (unread.includes(s) ? { ...segment, chunks: [] } : segment)),
    };
    const kept = {
      ...broken,
      segments: broken.segments.map((segment, s) => ({
        ...segment,
        chunks: source.segments.at(s)!.chunks.map((chunk) => (unread.includes(s) ? { ...chunk!, address: 8 } : chunk)),
      })),
    };
    const within = { ...context, sources: [kept] };
    return aggregateOf({ ...node, predicate }, [], [agg("count", "LONG")], within)[0][0];
  };
  const others = (...read: number[]) => [...source.segments].map((_, s) => s).filter((s) => !read.includes(s));
  assert.equal(countOf(fn("=", "BOOLEAN", c("LONG"), lit(342n, "LONG")), others(3)), 1n);
  assert.equal(countOf(fn("<", "BOOLEAN", c("LONG"), lit(150n, "LONG")), others(0, 1)), 150n);
  assert.equal(countOf(fn("<=", "BOOLEAN", lit(950n, "LONG"), c("LONG")), others(9)), 50n);
  assert.equal(
    countOf(fn("between", "BOOLEAN", c("DOUBLE"), lit(120, "DOUBLE"), lit(99.5, "DOUBLE")), others(1, 2)),
    42n,
  );
  assert.equal(
    countOf(fn(">", "BOOLEAN", c("DOUBLE"), lit(49.5, "DOUBLE")), others(0, 1, 2, 3, 4, 5, 6, 7, 8, 9)),
    900n,
  );
});

Deno.test("rows are counted without reading them", () => {
  for (const rowCount of [1, 2, 777, 4_096]) {
    const context = testContext(1 << 26, { functions });
    const { node } = storedTable(makeRows(rowCount, 6), context, 100);
    assert.deepEqual(aggregateOf(node, [], [agg("count", "LONG")], context), [[
      BigInt(rowCount),
    ]]);
    assert.equal((context.memory as { usedBytes: number }).usedBytes, 0);
  }
});

Deno.test("empty input: one row without keys, none with keys", () => {
  const context = testContext(1 << 26, { functions });
  const { node } = storedTable([], context, 10);
  assert.deepEqual(aggregateOf(node, [], AGGREGATES, context), [computed([])]);
  assert.deepEqual(aggregateOf(node, [c("INT")], AGGREGATES, context), []);
  assert.deepEqual(aggregateOf(new RowsInput([...COLUMNS], [], context), [], AGGREGATES, context), [computed([])]);
});

Deno.test("any number of workers gives the same answer, also with partitions and counts of distinct values", () => {
  const rows = makeRows(6_000, 7, 400);
  for (const keys of KEY_SETS) {
    const alone = testContext(1 << 27, { functions });
    const table = storedTable(rows, alone, 100);
    const shared = onThreads({ ...alone, sources: [table.source] }, true);
    assert.deepEqual(
      aggregateOf(table.node, keys.map(c), AGGREGATES, shared),
      reference(rows, keys.map(at), computed),
      `by ${keys}`,
    );
    assert.equal((alone.memory as { usedBytes: number }).usedBytes, 0);
  }
});

Deno.test("many rows of many groups are partitioned: groups stay in the order of first rows", () => {
  const rowCount = 700_000, segmentRows = 30_000;
  const columns: Column[] = [{ name: "k", type: "LONG" }, { name: "v", type: "DOUBLE" }, { name: "i", type: "INT" }];
  // With a small limit, rows are written in many rounds.
  for (const [parallel, limitBytes] of [[false, 0], [true, 4 << 20]] as const) {
    const alone = testContext(1 << 29, { functions });
    alone.memory.limitBytes = limitBytes;
    const { heap } = alone, random = randomFrom(9);
    const widths = [8, 8, 4];
    const addresses = widths.map((width) => heap.allocate(rowCount * width, "other"));
    const expected = new Map<bigint | null, [sum: number, count: number, last: number]>();
    const distinct = new Set<number>();
    for (let row = 0; row < rowCount; row++) {
      const key = random() % 50 === 0 ? null : BigInt(random() % 200_000) - 100_000n,
        value = (random() % 1000) / 8,
        small = (random() % 3_000) - 1_500;
      heap.i64[addresses[0] / 8 + row] = key ?? -9223372036854775808n;
      heap.f64[addresses[1] / 8 + row] = value;
      heap.i32[addresses[2] / 4 + row] = small === 7 ? -2147483648 : small;
      if (small !== 7) distinct.add(small);
      const group = expected.get(key) ?? [0, 0, 0];
      expected.set(key, [group[0] + value, group[1] + 1, value]);
    }
    const segments = Array.from({ length: Math.ceil(rowCount / segmentRows) }, (_, ordinal) => {
      const firstRow = ordinal * segmentRows;
      const stats = [{ nullCount: 0, min: -100_000n, max: 100_000n }, { nullCount: 0 }, {
        nullCount: 0,
        min: -1_500,
        max: 1_500,
      }];
      const chunks = addresses.map((address, k) => chunkAt(address + firstRow * widths[k], stats[k]));
      return segmentOf(ordinal, Math.min(segmentRows, rowCount - firstRow), chunks);
    });
    const source = sourceOf(segments), node = scanOf(columns);
    const context = onThreads({ ...alone, sources: [source] }, parallel);
    const calls = [
      agg("sum", "DOUBLE", col(1, "DOUBLE")),
      agg("count", "LONG"),
      agg("last", "DOUBLE", col(1, "DOUBLE")),
    ];
    const found = aggregateOf(node, [col(0, "LONG")], calls, context);
    assertRows(found, [...expected].map(([key, [sum, count, last]]) => [key, sum, BigInt(count), last]));
    assert.deepEqual(
      aggregateOf(node, [], [agg("count_distinct", "LONG", col(2, "INT"))], context),
      [[BigInt(distinct.size)]],
    );
    assert.deepEqual(
      aggregateOf(node, [], [agg("count_distinct", "LONG", col(1, "DOUBLE"))], context),
      [[1_000n]],
    );
    // Over a join in which some rows have no match and some have two.
    const right: Row[] = [];
    for (let i = -1_400; i < 1_400; i++) right.push([i, BigInt(i)], ...(i % 3 === 0 ? [[i, 7n]] : []));
    const weights = [{ name: "i", type: "INT" }, { name: "w", type: "LONG" }];
    const partners = Map.groupBy(right, ([i]) => i as number);
    const joined = new Map<bigint | null, [weight: bigint, count: bigint, last: number]>();
    for (let row = 0; row < rowCount; row++) {
      const key = heap.i64[addresses[0] / 8 + row], value = heap.f64[addresses[1] / 8 + row];
      for (const [, weight] of partners.get(heap.i32[addresses[2] / 4 + row]) ?? []) {
        const group = joined.get(key) ?? [0n, 0n, 0];
        joined.set(key, [group[0] + (weight as bigint), group[1] + 1n, value]);
      }
    }
    const join = over(
      {
        node: "join",
        type: "inner",
        leftKeys: [col(2, "INT")],
        rightKeys: [col(0, "INT")],
        columns: [...columns, ...weights],
      },
      node,
      new RowsInput(weights, right, context),
    );
    const ofJoin = [agg("sum", "LONG", col(4, "LONG")), agg("count", "LONG"), agg("last", "DOUBLE", col(1, "DOUBLE"))];
    const groups = aggregateOf(join, [col(0, "LONG")], ofJoin, context);
    assert.equal(groups.length, joined.size);
    let k = 0;
    for (const [key, values] of joined) {
      assert.deepEqual(groups[k++], [key === -9223372036854775808n ? null : key, ...values]);
    }
    assert.equal((alone.memory as { usedBytes: number }).usedBytes, 0);
  }
});

const compareBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

Deno.test("many groups of texts are merged by partitions: groups stay in the order of first rows", () => {
  const rowCount = 600_000, segmentRows = 30_000;
  const columns: Column[] = [{ name: "t", type: "VARCHAR" }, { name: "k", type: "INT" }, { name: "v", type: "DOUBLE" }];
  let first: Row[] | undefined;
  // With a small limit, ranges are grouped in many rounds.
  for (const [parallel, limitBytes] of [[false, 0], [true, 0], [true, 160 << 20]] as const) {
    const alone = testContext(1 << 29, { functions });
    alone.memory.limitBytes = limitBytes;
    const { heap } = alone, random = randomFrom(11);
    const space = spaceOfRows(heap), arena = new TextArena(space);
    const [textColumn, numbers, values] = [8, 4, 8].map((width) => heap.allocate(rowCount * width, "other"));
    const expected = new Map<string, [text: string | null, number: number, sum: number, count: number, last: number]>();
    for (let row = 0; row < rowCount; row++) {
      const n = random() % 150_000, number = n % 3, value = random() / 7;
      const text = n % 1_000 === 0 ? null : n % 1_001 === 0 ? "" : `${"é".repeat(n % 30)}${n}`;
      setValue(heap, "VARCHAR", textColumn, row, text, arena);
      heap.i32[numbers / 4 + row] = number;
      heap.f64[values / 8 + row] = value;
      const group = expected.get(`${text} ${number}`) ?? [text, number, 0, 0, 0];
      expected.set(`${text} ${number}`, [text, number, group[2] + value, group[3] + 1, value]);
    }
    const segments = Array.from({ length: rowCount / segmentRows }, (_, ordinal) => {
      const chunks = [[textColumn, 8], [numbers, 4], [values, 8]].map(([address, width]) =>
        chunkAt(address + ordinal * segmentRows * width, { nullCount: 0 })
      );
      return segmentOf(ordinal, segmentRows, chunks);
    });
    const source = sourceOf(segments), node = scanOf(columns);
    const context = onThreads({ ...alone, sources: [source] }, parallel);
    const chosen: string[] = [];
    const calls = [
      agg("sum", "DOUBLE", col(2, "DOUBLE")),
      agg("count", "LONG"),
      agg("last", "DOUBLE", col(2, "DOUBLE")),
      agg("max", "VARCHAR", col(0, "VARCHAR")),
      agg("first", "VARCHAR", col(0, "VARCHAR")),
    ];
    const keys = [col(0, "VARCHAR"), col(1, "INT")];
    const found = aggregateOf(node, keys, calls, { ...context, chose: (choice) => chosen.push(choice) });
    assert.ok(chosen.includes("partitions of the groups"), `${chosen}`);
    assert.equal(found.length, expected.size);
    let k = 0;
    for (const [text, number, sum, count, last] of expected.values()) {
      const [t, n, s, c, l, most, first] = found[k++];
      assert.deepEqual([t, n, c, l, most, first], [text, number, BigInt(count), last, text, text]);
      assert.ok(Math.abs(s as number - sum) <= 1e-9 * sum);
    }
    // Sums are the same bits, whatever the number of threads and rounds.
    first ??= found;
    assert.deepEqual(found, first);
    // Texts of groups that change often.
    const texts = new Map<number, [min: string, max: string, last: string | null]>();
    for (let row = 0; row < rowCount; row++) {
      const number = heap.i32[numbers / 4 + row],
        text = valueAt(heap, { type: "VARCHAR", address: textColumn }, row) as string | null;
      const [min, max] = texts.get(number) ?? [undefined, undefined];
      const isLess = text !== null && (min === undefined || compareBytes(text, min) < 0);
      const isMore = text !== null && (max === undefined || compareBytes(text, max) > 0);
      texts.set(number, [isLess ? text : min!, isMore ? text : max!, text]);
    }
    const kept = ["min", "max", "last"].map((name) => agg(name, "VARCHAR", col(0, "VARCHAR")));
    assert.deepEqual(
      aggregateOf(node, [col(1, "INT")], kept, context),
      [...texts].map(([number, values]) => [number, ...values]),
    );
    // Without aggregates, and over columns that are computed first.
    const lengths = aggregateOf(node, [fn("upper", "VARCHAR", col(0, "VARCHAR"))], [agg("count", "LONG")], context);
    assert.equal(lengths.length, new Set([...expected.values()].map(([text]) => text)).size);
    assert.equal(lengths.reduce((sum, [, count]) => sum + Number(count), 0), rowCount);
    assert.deepEqual(
      aggregateOf(node, [], [agg("count_distinct", "LONG", col(0, "VARCHAR"))], context),
      [[BigInt(lengths.length - 1)]],
    );
    assert.equal((alone.memory as { usedBytes: number }).usedBytes, 0);
  }
});
