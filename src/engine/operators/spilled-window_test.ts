/** Windows in steps on disk against the same windows in memory. */
import assert from "node:assert/strict";
import type { Column, Expr, Plan, SortKey, WindowCall, WindowFrame, WindowNode } from "../../sql/plan.ts";
import { FULL } from "../../testing.ts";
import { windowWay } from "../physical/window.ts";
import {
  assertRows,
  leaf,
  lit,
  over,
  randomFrom,
  type Row,
  RowsInput,
  rowsOf,
  spillOf,
  testContext,
} from "../testing.ts";
import { windowOnDisk } from "./window.ts";

const COLUMNS: Column[] = [
  { name: "ts", type: "TIMESTAMP" },
  { name: "k", type: "SYMBOL" },
  { name: "d", type: "DOUBLE" },
  { name: "i", type: "INT" },
  { name: "s", type: "VARCHAR" },
  { name: "l", type: "LONG" },
];
const column = (index: number): Expr => ({ kind: "column", index, type: COLUMNS[index].type });
const frameOf = (start?: bigint, end?: bigint): WindowFrame => ({ unit: "rows", start, end, excludeCurrentRow: false });
const WHOLE = frameOf(), RUNNING = frameOf(undefined, 0n);
const by = (index: number, descending = false, nulls?: "first" | "last"): SortKey => ({
  expression: column(index),
  descending,
  nulls,
});

function randomRows(count: number, seed: number): Row[] {
  const random = randomFrom(seed), orNull = <T>(value: T) => random() % 6 === 0 ? null : value;
  return Array.from({ length: count }, (_, n): Row => [
    1_000_000n * BigInt(Math.floor(n / 3)),
    orNull(`k${random() % 4}`),
    orNull(random() % 9 === 0 ? -0 : (random() % 1_000_000) / 7 * 10 ** (random() % 12)),
    orNull((random() % 20) - 10),
    orNull(`text${random() % 9}`),
    orNull(BigInt(random() % 50)),
  ]);
}

function call(name: string, type: string, args: Expr[] = [], more: Partial<WindowCall> = {}): WindowCall {
  return {
    function: `${name}()`,
    args,
    ignoreNulls: false,
    partitionBy: [],
    orderBy: [],
    frame: RUNNING,
    type,
    at: 0,
    ...more,
  };
}

/** `order`: of the input by time. */
function nodeOf(calls: WindowCall[], order: "asc" | "none"): WindowNode {
  return {
    node: "window",
    input: { timestamp: 0, order },
    calls,
    columns: [...COLUMNS, ...calls.map(({ type }, k) => ({ name: `w${k}`, type }))],
    timestamp: 0,
    order,
  } as unknown as WindowNode;
}

function assertSame(rows: Row[], calls: WindowCall[], order: "asc" | "none", title: string): void {
  const context = testContext(1 << 28), node = nodeOf(calls, order);
  const input = () => new RowsInput(COLUMNS, rows, context, 100);
  const inMemory = rowsOf(over(node, leaf(input(), { timestamp: 0, order } as Plan)), context);
  assert.equal(context.memory.usedBytes, 0);
  const onDisk = { ...context, spill: spillOf(context.heap) };
  const way = windowWay(node, { spills: true, functions: context.functions });
  assert.ok(way.steps.length > 0, `${title} has steps`);
  const read = input(), made = rowsOf(windowOnDisk(node, way, read, onDisk), onDisk);
  assert.equal(read.closed, 1);
  assert.equal(context.memory.usedBytes, 0, "all memory is free again");
  assertRows(made, inMemory, title);
}

const ORDERS: [title: string, SortKey[]][] = [
  ["without order", []],
  ["by time", [by(0)]],
  ["by texts, nulls first", [by(4, true, "first")]],
  ["by symbols and doubles", [by(1), by(2, true)]],
  ["by few doubles", [{ expression: column(2), descending: false }]],
];

for (const [k, [title, orderBy]] of ORDERS.entries()) {
  for (const order of ["asc", "none"] as const) {
    Deno.test(`windows on disk equal those in memory: one partition ${title}, input ${order}`, () => {
      const rows = randomRows(title === "by time" ? 12_000 : 1_100, 7);
      const over = (frame: WindowFrame, more = {}) => ({ orderBy, frame, ...more });
      const calls = [
        call("row_number", "LONG", [], over(WHOLE)),
        call("rank", "LONG", [], over(WHOLE)),
        call("dense_rank", "LONG", [], over(RUNNING)),
        call("lag", "DOUBLE", [column(2), lit(3n, "LONG")], over(WHOLE)),
      ];
      for (const frame of [WHOLE, RUNNING]) {
        calls.push(
          call("sum", "DOUBLE", [column(2)], over(frame)),
          call("avg", "DOUBLE", [column(3)], over(frame)),
          call("count", "LONG", [], over(frame)),
          call("count", "LONG", [column(4)], over(frame)),
          call("min", "DOUBLE", [column(2)], over(frame)),
          call("max", "LONG", [column(5)], over(frame)),
          call("first_value", "DOUBLE", [column(2)], over(frame)),
          call("last_value", "LONG", [column(5)], over(frame)),
          call("last_value", "LONG", [column(5)], over(frame, { ignoreNulls: true })),
        );
      }
      calls.push(
        call("first_value", "DOUBLE", [column(2)], over(WHOLE, { ignoreNulls: true })),
        call("lead", "VARCHAR", [column(4)], over(WHOLE)),
        call("lead", "SYMBOL", [column(1), lit(40n, "LONG")], over(WHOLE)),
        call("lag", "DOUBLE", [column(2), lit(0n, "LONG")], over(RUNNING)),
        call("lag", "DOUBLE", [column(2), lit(700n, "LONG"), lit(-1.5, "DOUBLE")], over(RUNNING)),
      );
      for (const [start, end] of [[0n, 0n], [-1n, 0n], [-5n, -2n], [-3n, -3n], [-400n, 0n], [-2_000n, -1_500n]]) {
        calls.push(
          call("sum", "DOUBLE", [column(2)], over(frameOf(start, end))),
          call("avg", "DOUBLE", [column(5)], over(frameOf(start, end))),
        );
      }
      for (const [start, end] of [[0n, 0n], [-5n, -2n], [-400n, 0n], [-3n, 20n], [2n, 5n]]) {
        calls.push(
          call("min", "VARCHAR", [column(4)], over(frameOf(start, end))),
          call("max", "LONG", [column(3)], over(frameOf(start, end))),
          call("count", "LONG", [column(1)], over(frameOf(start, end))),
          call("first_value", "DOUBLE", [column(2)], over(frameOf(start, end), { ignoreNulls: true })),
          call("last_value", "SYMBOL", [column(1)], over(frameOf(start, end))),
        );
      }
      assertSame(rows, calls, order, "all calls");
      // Enough rows for each frame and offset.
      const fewer = FULL ? rows : rows.slice(0, 3_000);
      for (const [c, each] of calls.entries()) {
        // Each call runs alone in some orders, or at full length in all.
        if (!FULL && (c + k) % 3 !== 0) continue;
        assertSame(fewer, [each], order, `${each.function} ${each.frame.start} ${each.frame.end}`);
      }
      assertSame([], calls, order, "no rows");
    });
  }
}

Deno.test("windows on disk equal those in memory: calls with different keys, with common keys and without keys", () => {
  for (const seed of [1, 2, 3]) {
    const rows = randomRows(900, seed);
    for (const order of ["asc", "none"] as const) {
      const calls = [
        call("rank", "LONG", [], { partitionBy: [column(4)], orderBy: [by(2)] }),
        call("sum", "DOUBLE", [column(2)], { orderBy: [by(5, true)] }),
        call("lead", "VARCHAR", [column(4)], { partitionBy: [column(1), column(5)], orderBy: [by(0)] }),
        call("max", "VARCHAR", [column(4)], { partitionBy: [column(1)], orderBy: [by(0)], frame: frameOf(-2n, 1n) }),
        call("count", "LONG", [], { frame: WHOLE }),
        call("sum", "DOUBLE", [column(2)], { partitionBy: [column(3)], frame: WHOLE }),
        call("dense_rank", "LONG", [], { orderBy: [by(4)] }),
      ];
      assertSame(rows, calls, order, `seed ${seed}`);
      // All depend only on earlier rows.
      const streaming = [
        call("lag", "LONG", [column(5)], { partitionBy: [column(4)] }),
        call("row_number", "LONG", []),
        call("sum", "DOUBLE", [column(2)], { partitionBy: [column(1)] }),
      ];
      assertSame(rows, streaming, order, `seed ${seed}`);
    }
  }
});

Deno.test("windows that need all rows of one partition have no steps", () => {
  const functions = testContext(1 << 20).functions;
  const stepsOf = (...calls: WindowCall[]) => windowWay(nodeOf(calls, "none"), { spills: true, functions }).steps;
  const ordered = call("row_number", "LONG", [], { orderBy: [by(2)] });
  assert.equal(stepsOf(ordered).length, 1);
  for (
    const each of [
      call("percent_rank", "DOUBLE", [], { orderBy: [by(2)] }),
      call("cume_dist", "DOUBLE", [], { orderBy: [by(2)] }),
      call("ntile", "LONG", [lit(4n, "LONG")], { orderBy: [by(2)] }),
      call("nth_value", "DOUBLE", [column(2), lit(2n, "LONG")], { orderBy: [by(2)] }),
      call("sum", "DOUBLE", [column(2)], { frame: frameOf(-1n, 1n) }),
      call("min", "VARCHAR", [column(4)]),
      call("avg", "DOUBLE", [column(2), lit("alpha", "STRING"), lit(0.5, "DOUBLE")]),
      call("first_value", "DOUBLE", [column(2)], { ignoreNulls: true }),
      call("sum", "DOUBLE", [column(2)], { frame: { ...frameOf(-10n, 0n), unit: "range" }, orderBy: [by(0)] }),
    ]
  ) assert.deepEqual(stepsOf(ordered, each), [], each.function);
});
