import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import type {
  AggregateCall,
  Expr,
  JoinNode,
  LimitNode,
  Plan,
  SampleNode,
  SortKey,
  TimeJoinNode,
  WindowNode,
} from "../../sql/plan.ts";
import { agg, chunkAt, col, fn, lit, scanOf, segmentOf, sourceOf } from "../testing.ts";
import { nodeCalls, physicalPlan, type PlanFacts } from "./mod.ts";
import { readsAfter } from "./grouping.ts";
import { denseSlots, isByCodes } from "./join.ts";
import { parquetBatchRows } from "./parquet.ts";
import { MORSEL_ROWS } from "../contract.ts";
import type { Grouping, GroupSpec, LimitWay, PhysicalPlan, SpillWay } from "./plan.ts";

const functions = createRegistry();
const columns = ["TIMESTAMP", "LONG", "SYMBOL", "DOUBLE", "VARCHAR"].map((type, k) => ({ name: `c${k}`, type }));
const base = { columns, timestamp: 0, order: "asc" as const };
const scan = scanOf(columns, base);
const limit = (input: Plan, high: bigint, low?: bigint): LimitNode => ({
  node: "limit",
  input,
  high: lit(high, "LONG"),
  low: low === undefined ? undefined : lit(low, "LONG"),
  ...base,
});

/** A table with segments of 50,000 rows, a LONG in 0 … `highest` and a SYMBOL with `symbols` entries. */
function facts(rowCount: number, { symbols = 5, sorted = true, highest = 999n } = {}): PlanFacts {
  const chunks = columns.map((_, k) =>
    chunkAt(0, k === 1 ? { nullCount: 0, min: 0n, max: highest } : { nullCount: 0 })
  );
  const segments = Array.from({ length: Math.ceil(rowCount / 50_000) }, (_, ordinal) => {
    const time = BigInt(ordinal);
    return segmentOf(ordinal, Math.min(50_000, rowCount - ordinal * 50_000), chunks, [time, time]);
  });
  const dictionaries = columns.map(({ type }, columnId) =>
    type === "SYMBOL" ? { tableId: 1, columnId, entries: 8, count: symbols } : undefined
  );
  return { functions, sources: [sourceOf(segments, { sorted, dictionaries })] };
}
const context = facts(1_000);

const sorted: Plan = { node: "sort", input: scan, keys: [{ expression: col(1, "LONG"), descending: false }], ...base };

const LIMITS: [title: string, node: LimitNode, way: LimitWay][] = [
  ["first rows", limit(scan, 5n), { kind: "first", from: 0, to: 5 }],
  ["bounds the wrong way round", limit(scan, 2n, 5n), { kind: "first", from: 2, to: 5 }],
  ["the last rows of a table", limit(scan, -5n), { kind: "last of reversed", count: 5 }],
  ["the last rows of a sort", limit(sorted, -5n), { kind: "last", count: 5, without: 0 }],
  ["last rows without the very last", limit(scan, -2n, -5n), { kind: "last", count: 5, without: 2 }],
  ["all but rows of both ends", limit(scan, -2n, 3n), { kind: "without ends", skip: 3, without: 2 }],
];
for (const [title, node, way] of LIMITS) {
  Deno.test(`physicalPlan() of LIMIT: ${title}`, () => {
    const made = physicalPlan(node, context);
    assert.ok(made.operator === "limit");
    assert.deepEqual(made.way, way);
    const [{ node: input }] = made.inputs;
    assert.equal(input.node === "scan" && input.reverse, way.kind === "last of reversed");
  });
}

Deno.test("physicalPlan() reads the last row groups of a Parquet file", () => {
  const file: Plan = { node: "parquet", path: "/f.parquet", root: "/", fileColumns: [], at: 0, ...base };
  const over = (input: Plan, expression: Expr): Plan => ({
    node: "project",
    input,
    expressions: [expression],
    ...base,
  });
  const lastRows = (input: Plan, high: bigint, low?: bigint) => {
    let plan = physicalPlan(limit(input, high, low), context);
    while (plan.inputs.length > 0) plan = plan.inputs[0];
    return plan.node.node === "parquet" ? plan.node.lastRows : undefined;
  };
  assert.equal(lastRows(file, -5n), 5);
  assert.equal(lastRows(file, -2n, -7n), 7);
  assert.equal(lastRows(over(file, col(1, "LONG")), -5n), 5);
  assert.equal(lastRows(over(file, fn("rnd_long", "LONG")), -5n), undefined);
  assert.equal(lastRows(filtered(file), -5n), undefined);
  assert.equal(lastRows(file, 5n), undefined);
  assert.equal(lastRows(file, -5n, 3n), undefined);
});

Deno.test("physicalPlan() does not reverse scans below functions that depend on previous rows", () => {
  const generated: Plan = {
    node: "project",
    input: scan,
    expressions: [col(0, "TIMESTAMP"), fn("rnd_long", "LONG")],
    ...base,
  };
  const made = physicalPlan(limit(generated, -5n), context);
  assert.ok(made.operator === "limit" && made.way.kind === "last");
});

Deno.test("physicalPlan() streams windows whose calls depend only on earlier rows", () => {
  const wayOf = (call: object) => {
    const call_ = { args: [], partitionBy: [], orderBy: [], ignoreNulls: false, type: "LONG", at: 0, ...call };
    const made = physicalPlan(
      { node: "window", input: scan, calls: [call_], ...base } as unknown as WindowNode,
      context,
    );
    assert.ok(made.operator === "window");
    const { way } = made;
    return way.kind === "streaming" ? way.calls : way.kind;
  };
  const frame = { unit: "rows", end: 0n, excludeCurrentRow: false };
  const by = (index: number) => [{ expression: col(index, columns[index].type), descending: false }];
  assert.deepEqual(wayOf({ function: "row_number()", frame }), [{ kind: "row number" }]);
  assert.deepEqual(wayOf({ function: "row_number()", frame, orderBy: by(0) }), [{ kind: "row number" }]);
  const lag = { function: "lag(LONG,LONG)", frame, args: [col(1, "LONG"), lit(3n, "LONG")] };
  assert.deepEqual(wayOf(lag), [{ kind: "lag", offset: 3 }]);
  assert.equal(wayOf({ ...lag, args: [col(1, "LONG"), lit(300n, "LONG")] }), "general");
  assert.equal(wayOf({ function: "row_number()", frame, orderBy: by(1) }), "general");
  assert.equal(wayOf({ function: "rank()", frame, orderBy: by(0) }), "general");
});

Deno.test("physicalPlan() numbers nodes from the root, left before right, including fused ones", () => {
  const ids = (
    { id, fused, inputs }: PhysicalPlan,
  ): unknown[] => [id, ...fused.map((part) => part.id), ...inputs.map(ids)];
  const union: Plan = { node: "set", operator: "union all", left: sorted, right: limit(filtered(scan), 1n), ...base };
  assert.deepEqual(ids(physicalPlan(union, context)), [0, [1, [2]], [3, [4, 5]]]);
});

const positive = fn(">", "BOOLEAN", col(1, "LONG"), lit(0n, "LONG"));
function filtered(input: Plan, predicate: Expr = positive): Plan {
  return { node: "filter", input, predicate, ...base };
}
function projected(input: Plan, ...expressions: Expr[]): Plan {
  const names = expressions.map(({ type }, k) => ({ name: `p${k}`, type }));
  return { node: "project", input, expressions, ...base, columns: names };
}
const c = (k: number) => col(k, columns[k].type);
const random = fn("rnd_long", "LONG");

/** An operator with the nodes fused into it, and its inputs. */
function shape({ operator, fused, inputs }: PhysicalPlan): unknown[] {
  return [[operator, ...fused.map((part) => part.node.node)].join(" "), ...inputs.map(shape)];
}

const PIPELINES: [title: string, plan: Plan, shape: unknown[]][] = [
  ["a scan", scan, ["pipeline"]],
  ["filters and projections over a scan", projected(filtered(scan), c(1), c(3)), ["pipeline filter scan"]],
  ["a filter of generated values", filtered(projected(scan, c(0), random), positive), [
    "pipeline",
    ["pipeline scan"],
  ]],
  ["a filter over a sort", filtered(projected(sorted, ...columns.map((_, k) => c(k)))), ["pipeline project", ["sort", [
    "pipeline",
  ]]]],
  ["groups of a filtered scan", aggregate([c(2)], [agg("sum", "DOUBLE", c(3))], filtered(scan)), [
    "aggregate filter scan",
  ]],
  ["groups of a table from its end", aggregate([c(2)], [], { ...scan, reverse: true }), ["aggregate scan"]],
  ["groups of generated values", aggregate([col(0, "LONG")], [], projected(scan, random)), [
    "aggregate",
    ["pipeline scan"],
  ]],
  ["groups of a join", aggregate([c(2)], [], join("inner")), ["aggregate", ["join filter scan", ["pipeline"]]]],
  ["a projection of a join of a join", projected(join("left", join("full")), c(1)), [
    "pipeline",
    ["join", ["join filter scan", ["pipeline"]], ["pipeline"]],
  ]],
  ["a left side with generated values", join("inner", projected(scan, c(0), random)), [
    "join",
    ["pipeline scan"],
    ["pipeline"],
  ]],
];
for (const [title, plan, expected] of PIPELINES) {
  Deno.test(`physicalPlan() combines ${title}`, () => {
    assert.deepEqual(shape(physicalPlan(plan, context)), expected);
  });
}

function join(type: JoinNode["type"], left: Plan = filtered(scan), key = 1): Plan {
  const both = [...left.columns, ...columns];
  const keys = [col(key, left.columns[key].type)];
  return { node: "join", type, left, right: scan, leftKeys: keys, rightKeys: keys, ...base, columns: both };
}
function timeJoin(type: TimeJoinNode["type"], keys: Expr[]): Plan {
  const sides = { left: scan, right: scan, leftTime: c(0), rightTime: c(0), leftKeys: keys, rightKeys: keys };
  return { node: "timeJoin", type, ...sides, ...base, columns: [...columns, ...columns] };
}
function aggregate(keys: Expr[], aggregates: AggregateCall[], input: Plan = scan): Plan {
  const names = [...keys, ...aggregates].map(({ type }, k) => ({ name: `g${k}`, type }));
  return { node: "aggregate", input, keys, aggregates, columns: names, timestamp: -1, order: "none" };
}

function groupingText({ way }: Grouping): string {
  switch (way.kind) {
    case "kernel":
      return `${way.spec.table}, ${way.reads}${way.spec.staged === false ? "" : `, staged ${way.spec.staged}`}`;
    case "values":
      return `values (${groupingText(way.groups)})`;
    case "pairs":
      return `pairs (${groupingText(way.pairs)}), counted (${groupingText(way.counts)})`;
    case "side by side":
      return way.parts.map(groupingText).join(" | ");
    default:
      return way.kind;
  }
}

const many = 100_000, distinct = (k: number) => agg("count_distinct", "LONG", c(k));
const GROUPINGS: [title: string, plan: Plan, facts: PlanFacts, way: string][] = [
  ["no key", aggregate([], [agg("sum", "DOUBLE", c(3))]), context, "single, ranges"],
  ["no key and no column", aggregate([], [agg("count", "LONG")]), context, "single, count"],
  ["a symbol of few entries", aggregate([c(2)], []), context, "dense, ranges"],
  ["a symbol of many entries", aggregate([c(2)], []), facts(10, { symbols: 70_000 }), "hash, ranges"],
  ["numbers", aggregate([c(1)], []), context, "hash, ranges"],
  ["a symbol of an unknown dictionary", aggregate([c(2)], [], sorted), context, "measured, in order"],
  ["a symbol of a join's right side", aggregate([col(7, "SYMBOL")], [], join("inner")), context, "measured, ranges"],
  ["a full join", aggregate([c(1)], [], join("full")), context, "hash, ranges"],
  ["calls that are counted", aggregate([fn("rnd_long", "LONG")], []), context, "hash, one range, staged true"],
  [
    "a function without a kernel form",
    aggregate([fn("upper", "STRING", c(4))], []),
    context,
    "hash, ranges, staged true",
  ],
  ["such a function of a symbol", aggregate([fn("length", "INT", c(2))], []), context, "hash, ranges"],
  [
    "aggregates over batches",
    aggregate([c(2)], [agg("string_agg", "STRING", c(4), lit(",", "STRING"))]),
    context,
    "batches",
  ],
  ["distinct values of a small range", aggregate([], [distinct(1)]), facts(many), "bits"],
  [
    "distinct values of a wide range",
    aggregate([], [distinct(1)]),
    facts(many, { highest: 1n << 40n }),
    "values (hash, ranges)",
  ],
  ["distinct texts", aggregate([], [distinct(4)]), context, "values (hash, ranges)"],
  ["distinct values by key, of few rows", aggregate([c(2)], [distinct(1)]), context, "batches"],
  [
    "distinct values by key, beside a sum",
    aggregate([c(2)], [distinct(1), agg("sum", "DOUBLE", c(3))]),
    facts(many),
    "dense, ranges | pairs (hash, ranges), counted (measured, in order)",
  ],
];
for (const [title, plan, known, way] of GROUPINGS) {
  Deno.test(`physicalPlan() groups by ${title}`, () => {
    const made = physicalPlan(plan, known);
    assert.ok(made.operator === "aggregate");
    assert.equal(groupingText(made.grouping), way);
  });
}

const first = (limit: number, input: Plan, expression: Expr = col(1, "LONG")): Plan => ({
  node: "sort",
  input,
  keys: [{ expression, descending: false }],
  limit,
  ...base,
  columns: input.columns,
});
const WAYS: [title: string, plan: Plan, facts: PlanFacts, way: string][] = [
  ["ORDER BY", sorted, context, "all"],
  ["the first rows of a large table", first(10, scan), facts(many), "top"],
  ["the first rows by a text", first(10, scan, c(4)), facts(300_000), "best by morsels"],
  ["the first rows by a text of fewer", first(10, scan, c(4)), facts(many), "best"],
  ["the first rows of a small table", first(10, scan), context, "all"],
  ["the first rows of a join", first(10, join("inner")), facts(300_000), "best by morsels"],
  ["the first rows of a full join", first(10, join("full")), facts(300_000), "best by morsels"],
  ["the first of many rows", first(20_000, filtered(scan)), facts(300_000), "best"],
  ["LATEST ON by a symbol", latest(c(2)), context, "by symbol"],
  ["LATEST ON by a number", latest(c(1)), context, "groups"],
  ["LATEST ON under a condition", latest(c(2), { ...scan, predicate: positive }), context, "newest first"],
  ["LATEST ON of unsorted rows", latest(c(2)), facts(10, { sorted: false }), "all rows"],
  ["LATEST ON of a sort", latest(c(2), sorted), context, "all rows"],
  ["SAMPLE BY", sample([], scan), context, "runs"],
  ["SAMPLE BY and a symbol", sample([c(2)], scan), context, "runs"],
  ["SAMPLE BY and a number", sample([c(1)], scan), context, "computed"],
  ["SAMPLE BY of unsorted rows", sample([], scan), facts(10, { sorted: false }), "computed"],
  ["SAMPLE BY of an aggregate over batches", sample([], scan, distinct(1)), context, "buckets"],
];
for (const [title, plan, known, kind] of WAYS) {
  Deno.test(`physicalPlan() chooses for ${title}`, () => {
    const made = physicalPlan(plan, known);
    assert.ok("way" in made && typeof made.way === "object");
    assert.equal(made.way.kind, kind);
  });
}

function latest(key: Expr, input: Plan = scan): Plan {
  return { node: "latest", input, time: c(0), keys: [key], ...base };
}
function sample(keys: Expr[], input: Plan, call = agg("sum", "DOUBLE", c(3))): SampleNode {
  return {
    node: "sample",
    input,
    time: c(0),
    sampling: { count: 1, unit: "h", align: "calendar", timeZone: "", offset: 0n },
    keys,
    aggregates: [call],
    fills: [],
    ...base,
    columns: [columns[0], ...[...keys, call].map(({ type }, k) => ({ name: `s${k}`, type }))],
  };
}

Deno.test("physicalPlan() reads the rows of LATEST ON by symbols under a condition from the newest backwards", () => {
  const [{ node }] = physicalPlan(latest(c(2), { ...scan, predicate: positive }), context).inputs;
  assert.ok(node.node === "scan" && node.reverse);
});

Deno.test("physicalPlan() groups the rows of a table in its order", () => {
  const [{ node }] = physicalPlan(aggregate([c(2)], [], { ...scan, reverse: true }), context).fused;
  assert.ok(node.node === "scan" && !node.reverse);
});

Deno.test("physicalPlan() lists the functions that run between kernels, and those that run once for each symbol", () => {
  const plan = projected(scan, fn("upper", "STRING", c(4)), fn("upper", "STRING", c(2)), fn("+", "LONG", c(1), c(1)));
  const made = physicalPlan(plan, context);
  assert.deepEqual(nodeCalls(made, context), { batch: ["upper"], perSymbol: ["upper"], measured: [] });
});

const text = agg("string_agg", "STRING", c(4), lit(",", "STRING"));
const SPILLS: [title: string, plan: Plan, way: SpillWay | undefined][] = [
  ["ORDER BY", sorted, "sorted runs"],
  ["the first rows of a small table", first(10, scan), "sorted runs"],
  ["the first of many rows", first(20_000, filtered(scan)), "sorted runs"],
  ["groups", aggregate([c(1)], []), "hash partitions"],
  ["groups without a kernel form", aggregate([c(1)], [text]), "hash partitions"],
  ["one group", aggregate([], [agg("sum", "DOUBLE", c(3))]), undefined],
  ["one group without a kernel form", aggregate([], [text]), undefined],
  ["distinct values with others, without keys", aggregate([], [distinct(1), text]), "hash partitions"],
  [
    "distinct values of rows that differ each time",
    aggregate([], [distinct(1), text], projected(scan, ...columns.map((_, k) => k === 1 ? random : c(k)))),
    undefined,
  ],
  ["a join by keys", join("left"), "hash partitions"],
  ["a join without keys", { ...join("inner"), leftKeys: [], rightKeys: [] } as JoinNode, undefined],
  ["a SPLICE join by keys", timeJoin("splice", [c(1)]), "hash partitions"],
  ["a SPLICE join without keys", timeJoin("splice", []), undefined],
  ["an ASOF join by keys", timeJoin("asof", [c(1)]), "hash partitions"],
  ["an LT join of a sub-query", { ...timeJoin("lt", [c(1)]), left: sorted } as Plan, "hash partitions"],
  ["an ASOF join without keys", timeJoin("asof", []), undefined],
  ["UNION", { node: "set", operator: "union", left: scan, right: scan, ...base }, "hash partitions"],
  ["EXCEPT ALL", { node: "set", operator: "except all", left: scan, right: scan, ...base }, "hash partitions"],
  ["UNION ALL", { node: "set", operator: "union all", left: scan, right: scan, ...base }, undefined],
  ["window functions by a common key", window([c(1), c(2)], [c(2)]), "hash partitions"],
  ["window functions that need earlier rows only", running(window([c(1)])), "hash partitions"],
  ["window functions by other keys", window([c(1)], [c(2)]), "hash partitions"],
  ["window functions over all rows", window([]), "rows in order"],
  ["window functions over all rows that are sorted", sortedBy(c(1), window([])), "sorted runs"],
  ["window functions by keys and over all rows", window([c(1)], []), "hash partitions"],
  [
    "window functions by keys and over sorted rows",
    sortedBy(c(2), window([c(1)], [])),
    "hash partitions and sorted runs",
  ],
  ["window functions over all rows that need earlier rows only", running(window([])), undefined],
  [
    "window functions by keys and over all rows that need earlier rows only",
    running(window([c(1)], [])),
    "hash partitions",
  ],
  ["window functions that need all rows", percents(window([c(1)], [])), undefined],
];
for (const [title, plan, way] of SPILLS) {
  Deno.test(`physicalPlan() chooses how ${title} can continue on disk`, () => {
    assert.equal(spillOf(physicalPlan(plan, { ...context, spills: true })), way);
    assert.equal(spillOf(physicalPlan(plan, context)), undefined, "without a place to write to");
  });
}

function spillOf(plan: PhysicalPlan): SpillWay | undefined {
  const choice = plan.operator === "aggregate" ? plan.grouping.way : "way" in plan ? plan.way : plan;
  return typeof choice === "object" && "spill" in choice ? choice.spill : "spill" in plan ? plan.spill : undefined;
}

Deno.test("physicalPlan() finds the keys of all window functions, wherever they are in the statement", () => {
  const key = (at: number): Expr => Object.assign(fn("-", "LONG", c(1)), { at });
  const made = physicalPlan(window([c(1), key(5)], [key(9)]), { ...context, spills: true });
  assert.ok(made.operator === "window" && made.way.kind === "general");
  assert.deepEqual(made.way.steps, [{ kind: "hash partitions", calls: [0, 1], keys: [key(5)] }]);
});

Deno.test("physicalPlan() divides window functions into steps by common keys, and others by their order", () => {
  const orders = [[], [], [c(2)], [], [c(2)], []];
  const node = window([c(1)], [], [], [c(2), c(1)], [], [c(2)]);
  node.calls.forEach((call, k) => call.orderBy = orders[k].map((expression) => ({ expression, descending: false })));
  const made = physicalPlan(node, { ...context, spills: true });
  assert.ok(made.operator === "window");
  const inOrder = (sortBy: SortKey[], ...calls: number[]) => {
    const ways = calls.map(() => ({ kind: "rank" })), isWhole = calls.map(() => false);
    return { kind: "in order", sortBy, near: { calls: [], before: 0, after: 0 }, calls, ways, isWhole };
  };
  assert.deepEqual(made.way.steps, [
    { kind: "hash partitions", calls: [0, 3], keys: [c(1)] },
    inOrder([], 1),
    inOrder([{ expression: c(2), descending: false }], 2, 4),
    { kind: "hash partitions", calls: [5], keys: [c(2)] },
  ]);
});

Deno.test("physicalPlan() lets set operations start again unless their rows would differ", () => {
  const restarts = (left: Plan) => {
    const union: Plan = { node: "set", operator: "union", left, right: scan, ...base };
    const made = physicalPlan(union, { ...context, spills: true });
    return made.operator === "set" && made.canRestart;
  };
  assert.equal(restarts(scan), true);
  assert.equal(restarts(projected(scan, ...columns.map((_, k) => k === 1 ? random : c(k)))), false);
});

/** Ranks, each partitioned by other keys. */
function window(...keys: Expr[][]): WindowNode {
  const frame = { unit: "rows", end: 0n, excludeCurrentRow: false };
  const calls = keys.map((partitionBy) => ({
    function: "rank()",
    args: [],
    partitionBy,
    orderBy: [],
    ignoreNulls: false,
    type: "LONG",
    at: 0,
    frame,
  }));
  return { node: "window", input: scan, calls, ...base } as unknown as WindowNode;
}

function sortedBy(expression: Expr, { calls, ...node }: WindowNode): WindowNode {
  return { ...node, calls: calls.map((call) => ({ ...call, orderBy: [{ expression, descending: false }] })) };
}

function percents({ calls, ...node }: WindowNode): WindowNode {
  return { ...node, calls: calls.map((call) => ({ ...call, function: "percent_rank()", type: "DOUBLE" })) };
}

function running({ calls, ...node }: WindowNode): WindowNode {
  return { ...node, calls: calls.map((call) => ({ ...call, function: "row_number()" })) };
}

Deno.test("denseSlots() accepts keys of a small range; the last one has the smallest step", () => {
  assert.deepEqual(denseSlots([{ low: 5n, high: 14n }, { low: -1n, high: 1n }], 10), {
    keys: [{ low: 5n, count: 10n, step: 5 }, { low: -1n, count: 3n, step: 1 }],
    slots: 60,
  });
  assert.equal(denseSlots([{ low: 0n, high: 1n << 40n }], 10), undefined);
  assert.equal(denseSlots([undefined], 10), undefined);
});

Deno.test("isByCodes() translates dictionaries that are small compared to the rows", () => {
  assert.equal(isByCodes(undefined, { entries: 100, rows: 10 }, false), true);
  assert.equal(isByCodes(undefined, { entries: 100_000, rows: 10 }, false), false);
  assert.equal(isByCodes({ entries: 100_000, rows: 10 }, { entries: 1, rows: 1 }, false), false);
  assert.equal(isByCodes({ entries: 100_000, rows: 10 }, { entries: 100_000, rows: 10 }, true), true);
});

Deno.test("parquetBatchRows() limits the bytes of a batch", () => {
  assert.equal(parquetBatchRows({ rowCount: 1_000_000, plainSizeBytes: 8_000_000 }), MORSEL_ROWS);
  assert.equal(parquetBatchRows({ rowCount: 1_000, plainSizeBytes: 1 << 26 }), 1_000);
  assert.equal(parquetBatchRows({ rowCount: 1_000, plainSizeBytes: 2 ** 40 }), 256);
});

Deno.test("readsAfter() partitions rows with many groups, or their groups if keys have texts", () => {
  const spec = (key: Expr): GroupSpec => ({
    predicates: [],
    keys: [key],
    calls: [],
    expectedRows: 0,
    staged: false,
    table: "hash",
  });
  const sample = { groups: 10_000, rows: 50_000, scanned: 50_000, bytes: 1 << 20 };
  assert.equal(readsAfter(sample, spec(c(1)), false), "parts");
  assert.equal(readsAfter({ ...sample, groups: 10 }, spec(c(1)), false), "ranges");
  assert.equal(readsAfter({ ...sample, rows: 500_000 }, spec(c(1)), false), "merged");
  assert.equal(readsAfter(sample, spec(c(4)), false), "merged");
  assert.equal(readsAfter(sample, spec(c(1)), true), "merged");
});
