import assert from "node:assert/strict";
import v8 from "node:v8";
import vm from "node:vm";
import { col, fn, lit, over, type Row, storedRows, testContext } from "../engine/testing.ts";
import type { Column, Plan, ScanNode, WindowCall } from "../sql/plan.ts";
import { createRegistry } from "../sql/functions/mod.ts";
import type { ScanSource } from "../storage/contract.ts";
import type { OnMiss, SharedPool } from "../storage/mod.ts";
import { type DirectOptions, DirectRuns } from "./direct.ts";

const decoder = new TextDecoder();
const JSON_ROWS: DirectOptions["output"] = {
  kind: "rows",
  encoding: { name: "json", quoteLargeNumbers: false },
};

const COLUMNS: Column[] = [{ name: "c0", type: "LONG" }, { name: "c1", type: "LONG" }];

/** A table of these columns with `rowCount` rows, each value its row number, and what runs plans over it. */
function table(columnCount = 2, rowCount = 10, directRowsMax = 1_000, millisecondsACall = 0, workShare = 1) {
  let nowMs = 0, calls = 0, duringNext: (() => void) | undefined;
  /** Calls a function once while the next run is under way: the clock is asked at its start, and then by operators. */
  const during = (call: () => void) => (calls = 0, duringNext = call);
  const context = testContext(2 ** 31);
  const columns = Array.from({ length: columnCount }, (_, k): Column => ({ name: `c${k}`, type: "LONG" }));
  const rows = Array.from({ length: rowCount }, (_, row): Row => columns.map(() => BigInt(row)));
  const { node, source } = storedRows(columns, rows, context, 1_000);
  let allocations = 0;
  const { heap } = context, allocate = heap.allocate.bind(heap);
  heap.allocate = (...args: Parameters<typeof allocate>) => {
    allocations++;
    return allocate(...args);
  };
  const pool = {
    lease: (onMiss?: OnMiss) => ({
      pin: () => onMiss?.("frame") ?? assert.fail("a file is read"),
      unpin() {},
      gather: () => false,
      summaries: () => false,
      selectRows: () => undefined,
      gatherRows: () => false,
      isIndexed: () => false,
      present: () => undefined,
      find: () => undefined,
      release() {},
    }),
  };
  const direct = new DirectRuns({
    heap,
    pool: pool as unknown as SharedPool,
    functions: createRegistry(),
    nowMicros: () => 0n,
    nowMs: () => {
      if (++calls === 3) {
        const call = duringNext;
        duringNext = undefined;
        call?.();
      }
      return nowMs += millisecondsACall;
    },
    processorMs: () => nowMs * workShare,
    neverCancelled: context.cancelWord,
    settings: { directRowsMax, queryMemoryLimitBytes: 0 },
  });
  const run = (plan: Plan, more: Partial<DirectOptions> = {}, sources: ScanSource[] = [source]) => {
    const answer = direct.run(
      plan,
      sources,
      { output: JSON_ROWS, columns: plan.columns, user: "ann", ...more },
      { plan: () => plan },
    );
    return answer?.ready.map(({ bytes }) => decoder.decode(bytes)).join("");
  };
  const isEmpty = () => heap.usedBytes("query") === 0;
  return { context, node, source, direct, run, isEmpty, during, allocations: () => allocations };
}

/** c0 > bound */
const above = (node: Plan, columns: Column[], bound = 6n): Plan =>
  over({ node: "filter", columns, predicate: fn(">", "BOOLEAN", col(0, "LONG"), lit(bound, "LONG")) }, node);

Deno.test("DirectRuns: a known plan makes no operators, and no blocks for more columns", () => {
  for (const columnCount of [2, 40]) {
    using stack = new DisposableStack();
    const { node, direct, run, allocations } = table(columnCount);
    stack.defer(() => direct.close());
    const plan = above(node, node.columns);
    const first = run(plan);
    const made = direct.madeCount, blocks = allocations();
    for (let k = 0; k < 100; k++) assert.equal(run(plan), first);
    assert.equal(direct.madeCount, made);
    assert.equal(allocations(), blocks);
  }
});

/**
 * Bytes that a call takes of the JavaScript heap: the least of many measurements. Code that is still to be optimized takes more,
 * and on a loaded machine the optimizing compiler is late. A collection within a measurement makes it useless, and it is left out.
 */
function heapBytes(call: () => void): number {
  v8.setFlagsFromString("--expose-gc");
  const collect = vm.runInNewContext("gc") as () => void, calls = 50;
  for (let k = 0; k < 1_500; k++) call();
  const measured = Array.from({ length: 10 }, () => {
    collect();
    const before = Deno.memoryUsage().heapUsed;
    for (let k = 0; k < calls; k++) call();
    return (Deno.memoryUsage().heapUsed - before) / calls;
  });
  return Math.min(...measured.filter((bytes) => bytes > 0));
}

Deno.test("DirectRuns: a run of a known plan takes little of the JavaScript heap, and at most 352 bytes for each column", () => {
  const [few, many] = [2, 40].map((columnCount) => {
    const { node, source, direct } = table(columnCount);
    const plan = above(node, node.columns), { columns } = plan, user = "ann", sources = [source];
    const bytes = heapBytes(() =>
      void direct.run(plan, sources, { output: JSON_ROWS, columns, user }, { plan: () => plan })
    );
    direct.close();
    return bytes;
  });
  assert.ok(few < 4_000, `${few} bytes`);
  // Optimized code takes 10 bytes for a column. Code that V8 has not optimized takes 302 to 315, as it has numbers on the heap; how much of
  // the code that is depends on the other tests of the process.
  assert.ok(many < few + 38 * 352, `${many} bytes for 40 columns, ${few} for 2`);
});

Deno.test("DirectRuns: a run reads the rows as they are now", () => {
  const { node, source, direct, run, isEmpty } = table(1, 3);
  assert.equal(run(node), "[0],[1],[2]");
  const shorter = { ...source, rowCount: 2, segments: [{ ...source.segments.at(0)!, rowCount: 2 }] };
  assert.equal(run(node, {}, [shorter]), "[0],[1]");
  assert.equal(run(node), "[0],[1],[2]");
  direct.close();
  assert.ok(isEmpty());
});

/** A table of times 0 … 9, plans over a range of them, and runs of these by key, whose answers are text. */
function timed() {
  const made = table(2), { node, source, direct } = made;
  const [segment] = source.segments;
  const sorted: ScanSource = {
    ...source,
    sorted: true,
    segments: [{ ...segment, timestampMin: 0n, timestampMax: 9n }],
  };
  const within = (low: bigint, high: bigint): Plan => ({
    ...node,
    timestamp: 0,
    order: "asc",
    intervals: [[low, high]],
  });
  const sum = (plan: Plan, column: number): Plan =>
    over({
      node: "aggregate",
      keys: [],
      aggregates: [{ function: "sum(LONG)", args: [col(column, "LONG")], distinct: false, type: "LONG", at: 0 }],
      columns: [{ name: "sum", type: "LONG" }],
    }, plan);
  const run = (key: object, plan: Plan, sources = [sorted]) =>
    decoder.decode(
      direct.run(plan, sources, { output: JSON_ROWS, columns: plan.columns, user: "ann" }, { plan: () => plan }, key)
        ?.ready[0]
        ?.bytes,
    );
  return { ...made, source: sorted, within, sum, run };
}

Deno.test("DirectRuns: other intervals and newer rows take the operators of an earlier run of the statement", () => {
  const { direct, source, run, within, sum, isEmpty } = timed();
  const rows = {}, sums = {};
  assert.equal(run(rows, within(1n, 2n)), "[1,1],[2,2]");
  assert.equal(run(sums, sum(within(1n, 2n), 1)), "[3]");
  const fewer: ScanSource = { ...source, rowCount: 6, segments: [{ ...source.segments.at(0)!, rowCount: 6 }] };
  for (let k = 0; k < 3; k++) {
    assert.equal(run(rows, within(7n, 8n)), "[7,7],[8,8]");
    assert.equal(run(rows, within(5n, 7n), [fewer]), "[5,5]");
    assert.equal(run(sums, sum(within(2n, 20n), 1)), "[44]");
    assert.equal(run(sums, sum(within(5n, 7n), 1), [fewer]), "[5]");
    assert.equal(run(rows, within(4n, 3n)), "");
  }
  assert.equal(direct.madeCount, 2);
  // Other plans of the statement have runs of their own.
  for (let k = 0; k < 3; k++) {
    assert.equal(run(rows, above(within(0n, 7n), COLUMNS)), "[7,7]");
    assert.equal(run(sums, sum(within(1n, 3n), 0)), "[6]");
    assert.equal(run(sums, sum(within(1n, 2n), 1)), "[3]");
  }
  assert.equal(direct.madeCount, 4);
  direct.close();
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: a run with other intervals and constants takes a bounded part of the JavaScript heap", () => {
  const { direct, source, within } = timed(), sources = [source], key = {};
  const plans = [above(within(1n, 8n), COLUMNS, 3n), above(within(2n, 9n), COLUMNS, 4n)];
  let next = 0;
  const bytes = heapBytes(() => {
    const plan = plans[next++ % 2]!, options = { output: JSON_ROWS, columns: plan.columns, user: "ann" };
    direct.run(plan, sources, options, { plan: () => plan }, key);
  });
  assert.equal(direct.madeCount, 1);
  direct.close();
  // Optimized code takes 12,000. Code that V8 has not optimized takes more.
  assert.ok(bytes < 40_000, `${bytes} bytes`);
});

Deno.test("DirectRuns: other constants in conditions take the operators of an earlier run of the statement", () => {
  const { direct, run, within, sum, isEmpty } = timed();
  const times = (bound: bigint, input: Plan, factor = 1n): Plan => {
    const value = fn("*", "LONG", col(0, "LONG"), lit(factor, "LONG"));
    return over({ node: "filter", columns: COLUMNS, predicate: fn(">", "BOOLEAN", value, lit(bound, "LONG")) }, input);
  };
  const among = (values: bigint[], input: Plan): Plan =>
    over({
      node: "filter",
      columns: COLUMNS,
      predicate: { kind: "in", operand: col(0, "LONG"), values, type: "BOOLEAN" },
    }, input);
  const rows = {}, sums = {}, lists = {};
  for (let k = 0; k < 3; k++) {
    assert.equal(run(rows, times(6n, within(0n, 7n))), "[7,7]");
    assert.equal(run(rows, times(4n, within(0n, 7n))), "[5,5],[6,6],[7,7]");
    assert.equal(run(rows, times(12n, within(5n, 7n), 2n)), "[7,7]");
    // The constants are equal, and share an input of the kernel.
    assert.equal(run(rows, times(2n, within(0n, 2n), 2n)), "[2,2]");
    assert.equal(run(sums, sum(times(6n, within(0n, 8n)), 1)), "[15]");
    assert.equal(run(sums, sum(times(4n, within(0n, 7n)), 1)), "[18]");
    assert.equal(run(lists, among([1n, 5n], within(0n, 8n))), "[1,1],[5,5]");
    assert.equal(run(lists, among([8n, 4n], within(0n, 8n))), "[4,4],[8,8]");
  }
  assert.equal(direct.madeCount, 3);
  // A constant that is null needs other kernels.
  assert.equal(run(rows, times(null as unknown as bigint, within(0n, 7n))), "");
  assert.equal(direct.madeCount, 4);
  direct.close();
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: other bounds of LIMIT take the operators of an earlier run of the statement", () => {
  const { direct, run, within, isEmpty } = timed();
  const limited = (low: bigint | undefined, high: bigint): Plan =>
    over(
      {
        node: "limit",
        low: low === undefined ? undefined : lit(low, "LONG"),
        high: lit(high, "LONG"),
        columns: COLUMNS,
      },
      within(1n, 7n),
    );
  const first = {}, last = {}, between = {};
  for (let k = 0; k < 3; k++) {
    assert.equal(run(first, limited(undefined, 2n)), "[1,1],[2,2]");
    assert.equal(run(first, limited(undefined, 1n)), "[1,1]");
    assert.equal(run(last, limited(undefined, -1n)), "[7,7]");
    assert.equal(run(last, limited(undefined, -2n)), "[6,6],[7,7]");
    assert.equal(run(between, limited(2n, 4n)), "[3,3],[4,4]");
    assert.equal(run(between, limited(5n, 4n)), "[5,5]");
  }
  assert.equal(direct.madeCount, 3);
  // From the other end.
  assert.equal(run(first, limited(undefined, -2n)), "[6,6],[7,7]");
  assert.equal(run(between, limited(-3n, -1n)), "[5,5],[6,6]");
  assert.equal(direct.madeCount, 5);
  direct.close();
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: other constants in the result take the operators of an earlier run of the statement", () => {
  const { direct, run, within, isEmpty } = timed();
  const columns = [COLUMNS[0], { name: "product", type: "LONG" }, { name: "name", type: "VARCHAR" }];
  const projected = (factor: bigint, name: string, input: Plan): Plan =>
    over({
      node: "project",
      expressions: [col(0, "LONG"), fn("*", "LONG", col(1, "LONG"), lit(factor, "LONG")), lit(name, "VARCHAR")],
      columns,
    }, input);
  const nothing: Plan = { node: "values", columns: [], rows: [[]], timestamp: -1, order: "none" };
  const constants = (x: bigint, y: string): Plan =>
    over({ node: "project", expressions: [lit(x, "LONG"), lit(y, "VARCHAR")], columns: columns.slice(1) }, nothing);
  const [rows, all, values] = [{}, {}, {}];
  for (let k = 0; k < 3; k++) {
    assert.equal(run(rows, projected(10n, "a", within(1n, 2n))), '[1,10,"a"],[2,20,"a"]');
    assert.equal(run(rows, projected(3n, "a longer name", within(4n, 4n))), '[4,12,"a longer name"]');
    // A condition, too.
    assert.equal(run(all, projected(2n, "x", above(within(1n, 9n), COLUMNS, 7n))), '[8,16,"x"],[9,18,"x"]');
    assert.equal(run(all, projected(1n, "yy", above(within(1n, 9n), COLUMNS, 8n))), '[9,9,"yy"]');
    assert.equal(run(values, constants(1n, "one")), '[1,"one"]');
    assert.equal(run(values, constants(2n, "two words")), '[2,"two words"]');
  }
  assert.equal(direct.madeCount, 3);
  // Expressions that others read are in several operators.
  const sorted = (factor: bigint) =>
    over(
      { node: "sort", keys: [{ expression: col(1, "LONG"), descending: true }], columns },
      projected(factor, "s", within(1n, 3n)),
    );
  assert.equal(run(rows, sorted(-1n)), '[1,-1,"s"],[2,-2,"s"],[3,-3,"s"]');
  assert.equal(run(rows, sorted(1n)), '[3,3,"s"],[2,2,"s"],[1,1,"s"]');
  direct.close();
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: joins take the operators of an earlier run, and read a right side that is the same only once", () => {
  const { context, direct, source, within, isEmpty, sum } = timed();
  const stored = (rows: Row[]) => storedRows([COLUMNS[0], { name: "name", type: "VARCHAR" }], rows, context, 100);
  const few = stored([[2n, "two"], [5n, "five"], [5n, "cinq"]]), more = stored([[6n, "six"], [2n, "deux"]]);
  const right = few.node, columns = [...COLUMNS, ...right.columns];
  const join = (low: bigint, high: bigint, type = "inner", least = 0n): Plan => {
    const predicate = fn(">=", "BOOLEAN", col(0, "LONG"), lit(least, "LONG"));
    const left = over({ node: "filter", columns: COLUMNS, predicate }, within(low, high));
    return over({ node: "join", type, leftKeys: [col(0, "LONG")], rightKeys: [col(0, "LONG")], columns }, left, right);
  };
  const byTime = (type: "asof" | "splice", low: bigint, high: bigint): Plan =>
    over(
      {
        node: "timeJoin",
        type,
        leftTime: col(0, "LONG"),
        rightTime: col(0, "LONG"),
        leftKeys: [],
        rightKeys: [],
        columns,
      },
      within(low, high),
      right,
    );
  const [inner, left, after, spliced, groups] = [{}, {}, {}, {}, {}];
  const run = (key: object, plan: Plan, names = few.source) =>
    direct.run(
      plan,
      [source, names],
      { output: JSON_ROWS, columns: plan.columns, user: "ann" },
      { plan: () => plan },
      key,
    )
      ?.ready
      .map(({ bytes }) => decoder.decode(bytes)).join("");
  for (let k = 0; k < 3; k++) {
    assert.equal(run(inner, join(1n, 4n)), '[2,2,2,"two"]');
    assert.equal(run(inner, join(3n, 9n)), '[5,5,5,"five"],[5,5,5,"cinq"]');
    assert.equal(run(inner, join(1n, 9n, "inner", 3n)), '[5,5,5,"five"],[5,5,5,"cinq"]');
    assert.equal(run(inner, join(1n, 9n), more.source), '[2,2,2,"deux"],[6,6,6,"six"]');
    assert.equal(run(left, join(1n, 2n, "left")), '[1,1,null,null],[2,2,2,"two"]');
    assert.equal(run(left, join(6n, 6n, "left"), more.source), '[6,6,6,"six"]');
    assert.equal(run(after, byTime("asof", 1n, 2n)), '[1,1,null,null],[2,2,2,"two"]');
    assert.equal(run(after, byTime("asof", 4n, 5n)), '[4,4,2,"two"],[5,5,5,"cinq"]');
    const splice = (low: bigint, high: bigint) => run(spliced, byTime("splice", low, high));
    assert.equal(splice(1n, 2n), '[1,1,null,null],[2,2,2,"two"],[2,2,5,"five"],[2,2,5,"cinq"]');
    assert.equal(splice(4n, 5n), '[null,null,2,"two"],[4,4,2,"two"],[5,5,5,"five"],[5,5,5,"cinq"]');
    assert.equal(run(groups, sum(join(1n, 9n), 1)), "[12]");
    assert.equal(run(groups, sum(join(3n, 9n), 1)), "[10]");
  }
  assert.equal(direct.madeCount, 5);
  assert.equal(run(groups, sum(join(3n, 9n), 1), more.source), "[6]");
  direct.close();
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: groups by a symbol after a run without rows, whose symbols have no dictionary", () => {
  const { context, direct, isEmpty } = timed();
  const columns: Column[] = [{ name: "at", type: "TIMESTAMP" }, { name: "s", type: "SYMBOL" }];
  const rows = Array.from({ length: 10 }, (_, row): Row => [BigInt(row), `s${row % 3}`]);
  const { node, source } = storedRows(columns, rows, context, 100);
  const [segment] = source.segments;
  const sources = [source, { ...source, segments: [{ ...segment, timestampMin: 0n, timestampMax: 9n }] }];
  const plan = (low: bigint, high: bigint): Plan => {
    const scan: Plan = { ...node, timestamp: 0, order: "asc", intervals: [[low, high]] };
    const first = over({ node: "limit", high: lit(5n, "LONG"), columns }, scan);
    const count = { function: "count()", args: [], distinct: false, type: "LONG", at: 0 };
    return over({
      node: "aggregate",
      keys: [col(1, "SYMBOL")],
      aggregates: [count],
      columns: [columns[1], COLUMNS[0]],
    }, first);
  };
  const key = {};
  const run = (plan: Plan) =>
    direct.run(plan, sources, { output: JSON_ROWS, columns: plan.columns, user: "ann" }, { plan: () => plan }, key)
      ?.ready
      .map(({ bytes }) => decoder.decode(bytes)).join("");
  for (let k = 0; k < 3; k++) {
    assert.equal(run(plan(20n, 30n)), "");
    assert.equal(run(plan(1n, 9n)), '["s1",2],["s2",2],["s0",1]');
  }
  direct.close();
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: executions that overlap do not share operators", () => {
  const { direct, source, within, isEmpty, during } = timed();
  const key = {};
  const run = (low: bigint, bound: bigint) => {
    const plan = above(within(low, 9n), COLUMNS, bound);
    return decoder.decode(
      direct.run(plan, [source], { output: JSON_ROWS, columns: plan.columns, user: "ann" }, { plan: () => plan }, key)
        ?.ready[0]
        ?.bytes,
    );
  };
  for (let k = 0; k < 3; k++) {
    let inner = "";
    during(() => inner = run(8n, 6n));
    assert.equal(run(6n, 7n), "[8,8],[9,9]");
    assert.equal(inner, "[8,8],[9,9]");
    during(() => inner = run(9n, 5n));
    assert.equal(run(5n, 6n), "[7,7],[8,8],[9,9]");
    assert.equal(inner, "[9,9]");
  }
  assert.equal(direct.madeCount, 2);
  direct.close();
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: SAMPLE BY takes the operators of an earlier run, over rows in order and others", () => {
  for (const order of ["asc", "none"] as const) {
    const { node, direct, source, isEmpty } = timed();
    const columns = [{ name: "c0", type: "TIMESTAMP" }, COLUMNS[1]];
    const sample = (low: bigint, high: bigint): Plan => ({
      node: "sample",
      input: { ...node, columns, timestamp: 0, order, intervals: [[low, high]] } as Plan,
      time: col(0, "TIMESTAMP"),
      sampling: { count: 4, unit: "U", align: "calendar", timeZone: "", offset: 0n },
      keys: [],
      aggregates: [{ function: "sum(LONG)", args: [col(1, "LONG")], distinct: false, type: "LONG", at: 0 }],
      fills: [],
      columns: [columns[0], { name: "sum", type: "LONG" }],
      timestamp: 0,
      order: "asc",
    });
    const key = {};
    const run = (plan: Plan): string => {
      const options: DirectOptions = { output: JSON_ROWS, columns: [...plan.columns], user: "ann" };
      return decoder.decode(direct.run(plan, [source], options, { plan: () => plan }, key)?.ready[0]?.bytes);
    };
    const at = (micros: number) => `"1970-01-01T00:00:00.${String(micros).padStart(6, "0")}Z"`;
    for (let k = 0; k < 3; k++) {
      assert.equal(run(sample(0n, 9n)), `[${at(0)},6],[${at(4)},22],[${at(8)},17]`);
      assert.equal(run(sample(3n, 4n)), `[${at(0)},3],[${at(4)},4]`);
      assert.equal(run(sample(5n, 4n)), "");
    }
    assert.equal(direct.madeCount, 1, order);
    direct.close();
    assert.ok(isEmpty());
  }
});

const byThirds = [fn("%", "LONG", col(1, "LONG"), lit(3n, "LONG"))];
/** One that needs earlier rows only, and one that needs all. */
const WINDOWS = ["row_number()", "rank()"].map((name): [string, WindowCall] => [name, {
  function: name,
  args: [],
  ignoreNulls: false,
  partitionBy: byThirds,
  orderBy: [{ expression: col(0, "TIMESTAMP"), descending: false }],
  frame: { unit: "rows", excludeCurrentRow: false },
  type: "LONG",
  at: 0,
}]);

Deno.test("DirectRuns: sorts, LATEST ON, windows and set operations take the operators of an earlier run, over other intervals", () => {
  const { node, direct, source, isEmpty } = timed();
  const columns = [{ name: "c0", type: "TIMESTAMP" }, COLUMNS[1]];
  const scan = (low: bigint, high: bigint) =>
    ({ ...node, columns, timestamp: 0, order: "asc", intervals: [[low, high]] }) as ScanNode;
  const keys = [{ expression: fn("%", "LONG", col(1, "LONG"), lit(3n, "LONG")), descending: true }];
  const plans: Record<string, (low: bigint, high: bigint) => Plan> = {
    all: (low, high) => ({ node: "sort", input: scan(low, high), keys, columns, timestamp: -1, order: "none" }),
    first: (low, high) => ({
      node: "sort",
      input: scan(low, high),
      keys,
      limit: 2,
      columns,
      timestamp: -1,
      order: "none",
    }),
    latest: (low, high) => ({
      node: "latest",
      input: scan(low, high),
      time: col(0, "TIMESTAMP"),
      keys: [keys[0]!.expression],
      columns,
      timestamp: 0,
      order: "asc",
    }),
    ...Object.fromEntries(WINDOWS.map(([name, call]) => [name, (low, high) => ({
      node: "project",
      input: {
        node: "window",
        input: scan(low, high),
        calls: [call],
        columns: [...columns, { name: "w", type: "LONG" }],
        timestamp: 0,
        order: "asc",
      },
      expressions: [col(0, "TIMESTAMP"), col(2, "LONG")],
      columns,
      timestamp: 0,
      order: "asc",
    })])),
    ...Object.fromEntries((["union", "union all", "except", "intersect all"] as const).map((operator) => [
      operator,
      (low, high) => ({
        node: "set",
        operator,
        left: scan(low, high),
        right: { ...scan(low + 2n, high), id: node.id + 1 },
        columns,
        timestamp: -1,
        order: "none",
      }),
    ])),
  };
  const at = (micros: number, value = micros) => `["1970-01-01T00:00:00.00000${micros}Z",${value}]`;
  const tenth = Array.from({ length: 10 }, (_, k) => k);
  const expected: Record<string, [string[], string[]]> = {
    all: [[2, 5, 8, 1, 4, 7, 0, 3, 6, 9].map((n) => at(n)), [5, 4, 3].map((n) => at(n))],
    first: [[2, 5].map((n) => at(n)), [5, 4].map((n) => at(n))],
    latest: [[7, 8, 9].map((n) => at(n)), [3, 4, 5].map((n) => at(n))],
    // Of rows with the same remainder of a division by three.
    "row_number()": [tenth.map((n) => at(n, 1 + Math.floor(n / 3))), [at(3, 1), at(4, 1), at(5, 1)]],
    "rank()": [tenth.map((n) => at(n, 1 + Math.floor(n / 3))), [at(3, 1), at(4, 1), at(5, 1)]],
    union: [tenth.map((n) => at(n)), [3, 4, 5].map((n) => at(n))],
    "union all": [[...tenth, ...tenth.slice(2)].map((n) => at(n)), [3, 4, 5, 5].map((n) => at(n))],
    except: [[0, 1].map((n) => at(n)), [3, 4].map((n) => at(n))],
    "intersect all": [tenth.slice(2).map((n) => at(n)), [at(5)]],
  };
  for (const [made, [name, plan]] of Object.entries(plans).entries()) {
    const key = {};
    const run = (low: bigint, high: bigint) => {
      const now = plan(low, high), options: DirectOptions = { output: JSON_ROWS, columns: [...columns], user: "ann" };
      const answer = direct.run(now, [source, source], options, { plan: () => now }, key);
      return answer?.ready.map(({ bytes }) => decoder.decode(bytes)).join("");
    };
    for (let k = 0; k < 3; k++) {
      assert.equal(run(0n, 9n), expected[name]![0].join(), name);
      assert.equal(run(3n, 5n), expected[name]![1].join(), name);
      assert.equal(run(5n, 4n), "", name);
    }
    assert.equal(direct.madeCount, made + 1, name);
  }
  direct.close();
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: encodings, windows and users have runs of their own", () => {
  const { node, direct, run, isEmpty } = table(1, 3);
  for (let k = 0; k < 3; k++) {
    assert.equal(run(node), "[0],[1],[2]");
    assert.equal(run(node, { output: { ...JSON_ROWS, window: { first: 1, count: 1 } } as typeof JSON_ROWS }), "[1]");
    assert.equal(run(node, { output: { kind: "rows", encoding: { name: "csv", delimiter: "," } } }), "0\r\n1\r\n2\r\n");
    assert.equal(run(node, { user: "bob" }), "[0],[1],[2]");
  }
  assert.equal(direct.madeCount, 4);
  direct.close();
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: functions that give other values in each run are computed anew", () => {
  const { node, direct, run } = table(1, 3);
  const random: Plan = over({
    node: "project",
    columns: [{ name: "r", type: "DOUBLE" }],
    expressions: [fn("rnd_double", "DOUBLE")],
  }, node);
  assert.notEqual(run(random), run(random));
  const user: Plan = over({
    node: "project",
    columns: [{ name: "u", type: "STRING" }],
    expressions: [fn("current_user", "STRING")],
  }, node);
  assert.equal(run(user), `["ann"],["ann"],["ann"]`);
  assert.equal(run(user, { user: "bob" }), `["bob"],["bob"],["bob"]`);
  direct.close();
});

Deno.test("DirectRuns: a run that fails leaves nothing", () => {
  const { node, run, isEmpty } = table(1, 3);
  const failing: Plan = over({
    node: "project",
    columns: [{ name: "r", type: "LONG" }],
    expressions: [fn("no_such_function", "LONG")],
  }, node);
  assert.throws(() => run(failing));
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: a run that takes long is for workers, and so is its plan for a while", () => {
  const { node, direct, run, isEmpty } = table(1, 3, 1_000, 30);
  for (let k = 0; k < 2; k++) assert.equal(run(node), undefined);
  assert.equal(direct.madeCount, 2);
  for (let k = 0; k < 10; k++) assert.equal(run(node), undefined);
  assert.equal(direct.madeCount, 2);
  for (let k = 0; k < 40; k++) run(node);
  assert.ok(direct.madeCount > 2);
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: a run that takes long because the machine is busy is not for workers", () => {
  const { node, direct, run, isEmpty } = table(1, 3, 1_000, 30, 0.01);
  for (let k = 0; k < 3; k++) assert.equal(run(node), "[0],[1],[2]", "little processor time");
  direct.close();
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: texts that take long to read are made by workers", () => {
  const { node, direct, run, isEmpty } = table(1, 1, 1_000_000);
  const repeated = (count: number): Plan => {
    const text = fn("repeat", "STRING", lit("9", "STRING"), lit(count, "INT"));
    const columns = [{ name: "n", type: "INT" }];
    return over({ node: "project", expressions: [fn("length", "INT", text)], columns }, node);
  };
  assert.equal(run(repeated(10_000)), "[10000]");
  assert.equal(run(repeated(1_000_000)), undefined);
  direct.close();
  assert.ok(isEmpty());
});

Deno.test("DirectRuns: frames that are not in memory and many rows are for workers", () => {
  const { node, source, direct, run, isEmpty } = table(1, 3);
  const [segment] = source.segments, [chunk] = segment.chunks;
  const onDisk = { ...source, segments: [{ ...segment, chunks: [{ ...chunk!, address: 0 }] }] };
  assert.equal(run(node, {}, [onDisk]), undefined);
  assert.ok(direct.lacksFrame);
  assert.equal(run(node), "[0],[1],[2]", "frames may be there later");
  direct.close();
  assert.ok(isEmpty());
  const few = table(1, 1_000, 10);
  assert.equal(few.run(few.node), undefined);
  assert.ok(!few.direct.lacksFrame);
});
