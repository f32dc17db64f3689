/** Every operator stops when cancelled, names itself when memory runs out, and frees everything. */
import assert from "node:assert/strict";
import { SqlError } from "../../errors.ts";
import type { Column, Expr, Plan } from "../../sql/plan.ts";
import { MORSEL_ROWS, type Operator, type QueryContext } from "../contract.ts";
import { createQueryMemory } from "../memory.ts";
import { createRegistry } from "../../sql/functions/mod.ts";
import { agg, col, operatorOf, over, randomFrom, type Row, RowsInput, testContext } from "../testing.ts";

const COLUMNS: Column[] = [{ name: "t", type: "TIMESTAMP" }, { name: "s", type: "VARCHAR" }, {
  name: "d",
  type: "DOUBLE",
}];
const SUM: Column = { name: "sum", type: "DOUBLE" };
const column = (index: number): Expr => ({ kind: "column", index, type: COLUMNS[index].type });
const long = (value: bigint): Expr => ({ kind: "constant", value, type: "LONG" });
const functions = createRegistry();
const random = randomFrom(31);
const ROWS = Array.from({ length: 150_000 }, (_, n): Row => [BigInt(n), `text ${random()}`, random() / 7]);
const base = { timestamp: 0, order: "asc" };
const windowed = {
  partitionBy: [column(1)],
  orderBy: [{ expression: column(2), descending: false }],
  ignoreNulls: false,
  frame: { unit: "rows", end: 0n, excludeCurrentRow: false },
  at: 0,
};

/** By the name in errors. `plan` contains only the fields that the operator uses. */
const OPERATORS: [
  name: string,
  // deno-lint-ignore no-explicit-any
  make: (plan: (node: object) => any, input: () => Operator) => Plan,
][] = [
  [
    "sort",
    (plan, input) => over(plan({ node: "sort", keys: [{ expression: column(1), descending: false }] }), input()),
  ],
  [
    "sort",
    (plan, input) =>
      over(plan({ node: "sort", keys: [{ expression: column(2), descending: true }], limit: 100_000 }), input()),
  ],
  ["limit", (plan, input) => over(plan({ node: "limit", high: long(-100_000n) }), input())],
  [
    "limit",
    (plan, input) => over(plan({ node: "limit", low: long(2n), high: long(-100_000n) }), input()),
  ],
  ["union", (plan, input) => over(plan({ node: "set", operator: "union" }), input(), input())],
  ["except", (plan, input) => over(plan({ node: "set", operator: "except all" }), input(), input())],
  [
    "join",
    (plan, input) =>
      over(plan({ node: "join", type: "full", leftKeys: [column(1)], rightKeys: [column(1)] }), input(), input()),
  ],
  [
    "cross join",
    (plan, input) => over(plan({ node: "join", type: "cross", leftKeys: [], rightKeys: [] }), input(), input()),
  ],
  [
    "asof join",
    (plan, input) =>
      over(
        plan({
          node: "timeJoin",
          type: "asof",
          columns: [...COLUMNS, ...COLUMNS],
          leftTime: column(0),
          rightTime: column(0),
          leftKeys: [column(1)],
          rightKeys: [column(1)],
        }),
        input(),
        input(),
      ),
  ],
  [
    "splice join",
    (plan, input) =>
      over(
        plan({
          node: "timeJoin",
          type: "splice",
          columns: [...COLUMNS, ...COLUMNS],
          leftTime: column(0),
          rightTime: column(0),
          leftKeys: [column(1)],
          rightKeys: [column(1)],
        }),
        input(),
        input(),
      ),
  ],
  [
    "window join",
    (plan, input) =>
      over(
        plan({
          node: "windowJoin",
          columns: [...COLUMNS, { name: "sum", type: "DOUBLE" }, { name: "max", type: "VARCHAR" }],
          leftTime: column(0),
          rightTime: column(0),
          leftKeys: [column(1)],
          rightKeys: [column(1)],
          start: { offset: long(1_000_000n), unit: 1n, direction: "preceding" },
          end: { offset: long(1_000_000n), unit: 1n, direction: "following" },
          includesPrevailing: true,
          aggregates: [agg("sum", "DOUBLE", col(5, "DOUBLE")), agg("max", "VARCHAR", col(4, "VARCHAR"))],
        }),
        input(),
        input(),
      ),
  ],
  [
    "horizon join",
    (plan, input) =>
      over(
        plan({
          node: "horizonJoin",
          columns: [...COLUMNS, { name: "offset", type: "LONG" }, { name: "timestamp", type: "TIMESTAMP" }, ...COLUMNS],
          leftTime: column(0),
          rightTime: column(0),
          time: column(0),
          leftKeys: [column(1)],
          rightKeys: [column(1)],
          offsets: [0n, 1_000_000n],
        }),
        input(),
        input(),
      ),
  ],
  [
    "latest on",
    (plan, input) => over(plan({ node: "latest", time: column(0), keys: [column(1)] }), input()),
  ],
  [
    "window",
    (plan, input) =>
      over(
        plan({
          node: "window",
          columns: [...COLUMNS, SUM],
          calls: [{ function: "sum(DOUBLE)", args: [column(2)], type: "DOUBLE", ...windowed }],
        }),
        input(),
      ),
  ],
  [
    "window",
    (plan, input) =>
      over(
        plan({
          node: "window",
          columns: [...COLUMNS, SUM],
          calls: [{ function: "sum(DOUBLE)", args: [column(2)], type: "DOUBLE", ...windowed, orderBy: [] }],
        }),
        input(),
      ),
  ],
];

const planOf = (node: object) => ({ columns: COLUMNS, ...base, ...node });

function drain(operator: Operator): void {
  try {
    while (operator.next() !== undefined) { /* rows are not examined */ }
  } finally {
    operator.close();
  }
}

Deno.test("operators that run out of memory name themselves, and free everything", () => {
  for (const [name, make] of OPERATORS) {
    const context = testContext(1 << 28, { functions }) as unknown as {
      -readonly [K in keyof QueryContext]: QueryContext[K];
    };
    const memory = createQueryMemory(context.heap, 5_000_000);
    context.memory = memory;
    const run = () => drain(operatorOf(make(planOf, () => new RowsInput(COLUMNS, ROWS, context, 20_000)), context));
    assert.throws(
      run,
      (error: unknown) => error instanceof SqlError && error.sqlState === "53200" && error.message.startsWith(name),
      name,
    );
    memory.release();
    assert.equal(memory.usedBytes, 0);
  }
});

Deno.test("a cancelled query stops at any poll, closes its inputs once and frees its memory", () => {
  for (const [name, make] of OPERATORS) {
    for (const after of [1, 4]) {
      let polls = 0;
      const context = testContext(1 << 28, {
        functions,
        poll: () => {
          if (++polls > after) throw new SqlError("cancelled", 0, "57014");
        },
      });
      const inputs: RowsInput[] = [];
      const input = () => {
        inputs.push(new RowsInput(COLUMNS, ROWS.slice(0, 100_000), context, 20_000));
        return inputs.at(-1)!;
      };
      assert.throws(() => drain(operatorOf(make(planOf, input), context)), { sqlState: "57014" }, name);
      assert.equal(context.memory.usedBytes, 0, name);
      assert.deepEqual(inputs.map((each) => each.closed), inputs.map(() => 1), name);
    }
  }
});

Deno.test("a long sequence is polled at every batch", () => {
  let polls = 0;
  const context = testContext(1 << 26, { poll: () => polls++ });
  drain(
    operatorOf({
      node: "sequence",
      columns: [{ name: "x", type: "LONG" }],
      start: 1n,
      step: 1n,
      count: 20 * MORSEL_ROWS,
      timestamp: -1,
      order: "none",
    }, context),
  );
  assert.ok(polls >= 20);
});
