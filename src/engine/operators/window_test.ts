import assert from "node:assert/strict";
import type { Column, Expr, Plan, SortKey, WindowCall, WindowFrame, WindowNode } from "../../sql/plan.ts";
import type { Value } from "../../types/mod.ts";
import { assertRows, leaf, over, randomFrom, type Row, RowsInput, rowsOf, testContext } from "../testing.ts";

const COLUMNS: Column[] = [
  { name: "ts", type: "TIMESTAMP" },
  { name: "k", type: "SYMBOL" },
  { name: "d", type: "DOUBLE" },
  { name: "i", type: "INT" },
  { name: "s", type: "VARCHAR" },
];
const column = (index: number): Expr => ({ kind: "column", index, type: COLUMNS[index].type });
const constant = (value: Value, type: string): Expr => ({ kind: "constant", value, type });
const WHOLE: WindowFrame = { unit: "rows", excludeCurrentRow: false };
const RUNNING: WindowFrame = { unit: "rows", end: 0n, excludeCurrentRow: false };

function call(name: string, args: Expr[], type: string, more: Partial<WindowCall> = {}): WindowCall {
  return {
    function: `${name}()`,
    args,
    ignoreNulls: false,
    partitionBy: [],
    orderBy: [],
    frame: WHOLE,
    type,
    at: 7,
    ...more,
  };
}

function run(rows: Row[], calls: WindowCall[], batchRows = 100): Row[] {
  const made = runAs(rows, calls, batchRows, "none");
  // If rows are known to arrive in order, a different algorithm may be used.
  assertRows(runAs(rows, calls, batchRows, "asc"), made);
  for (const [k, call] of calls.entries()) {
    assertRows(runAs(rows, [call], batchRows, "asc"), made.map((row) => [row[k]]), call.function);
  }
  return made;
}

function runAs(rows: Row[], calls: WindowCall[], batchRows: number, order: string): Row[] {
  const context = testContext(1 << 28);
  const plan = {
    input: { timestamp: 0, order },
    node: "window",
    calls,
    columns: [...COLUMNS, ...calls.map(({ type }, k) => ({ name: `w${k}`, type }))],
    timestamp: 0,
    order: "asc",
  } as unknown as WindowNode;
  const made = rowsOf(
    over(plan, leaf(new RowsInput(COLUMNS, rows, context, batchRows), { timestamp: 0, order } as Plan)),
    context,
  );
  assert.equal(context.memory.usedBytes, 0);
  assertRows(made.map((row) => row.slice(0, COLUMNS.length)), rows);
  return made.map((row) => row.slice(COLUMNS.length));
}

function randomRows(count: number, seed: number, ties = 3): Row[] {
  const random = randomFrom(seed);
  return Array.from({ length: count }, (_, n): Row => [
    1_000_000n * BigInt(Math.floor(n / ties)),
    random() % 6 === 0 ? null : `k${random() % 4}`,
    random() % 5 === 0 ? null : (random() % 1000) / 8,
    random() % 5 === 0 ? null : (random() % 20) - 10,
    random() % 5 === 0 ? null : `text${random() % 9}`,
  ]);
}

/** Each row's frame by definition, over rows that are partitioned and stably sorted by time. */
function framesOf(rows: Row[], partitioned: boolean, frame: WindowFrame): Row[][] {
  return rows.map((row, at) => {
    const partition = rows.map((other, index) => ({ other, index })).filter(({ other }) =>
      !partitioned || other[1] === row[1]
    );
    const i = partition.findIndex(({ index }) => index === at);
    return partition.filter(({ other }, j) => {
      if (frame.excludeCurrentRow && j >= i) return false;
      if (frame.unit === "rows") {
        return (frame.start === undefined || j >= i + Number(frame.start)) &&
          (frame.end === undefined || j <= i + Number(frame.end));
      }
      const distance = (other[0] as bigint) - (row[0] as bigint);
      const inStart = frame.start === undefined || distance >= frame.start;
      return inStart && (frame.end === undefined || (frame.end === 0n ? j <= i : distance <= frame.end));
    }).map(({ other }) => other);
  });
}

const FRAMES: WindowFrame[] = [
  WHOLE,
  RUNNING,
  { unit: "rows", start: -2n, end: 0n, excludeCurrentRow: false },
  { unit: "rows", start: -5n, end: -2n, excludeCurrentRow: false },
  { unit: "rows", start: 0n, end: 0n, excludeCurrentRow: false },
  { unit: "rows", start: -1n, end: 3n, excludeCurrentRow: false },
  { unit: "rows", end: 0n, excludeCurrentRow: true },
  { unit: "rows", start: -3n, end: 0n, excludeCurrentRow: true },
  { unit: "range", start: -2_000_000n, end: 0n, excludeCurrentRow: false },
  { unit: "range", start: -3_000_000n, end: -1_000_000n, excludeCurrentRow: false },
  { unit: "range", end: -1_000_000n, excludeCurrentRow: false },
  { unit: "range", start: 0n, end: 0n, excludeCurrentRow: false },
  { unit: "range", end: 0n, excludeCurrentRow: false },
];

Deno.test("aggregates and ends of frames equal those over the frames' rows", () => {
  const rows = randomRows(300, 1);
  const order: SortKey[] = [{ expression: column(0), descending: false }];
  for (const frame of FRAMES) {
    for (const partitionBy of [[], [column(1)]]) {
      const over = { partitionBy, orderBy: order, frame };
      const made = run(rows, [
        call("sum", [column(2)], "DOUBLE", over),
        call("avg", [column(3)], "DOUBLE", over),
        call("count", [], "LONG", over),
        call("count", [column(4)], "LONG", over),
        call("min", [column(2)], "DOUBLE", over),
        call("max", [column(3)], "LONG", over),
        call("min", [column(4)], "VARCHAR", over),
        call("first_value", [column(2)], "DOUBLE", over),
        call("last_value", [column(3)], "LONG", over),
        call("first_value", [column(2)], "DOUBLE", { ...over, ignoreNulls: true }),
        call("last_value", [column(4)], "VARCHAR", { ...over, ignoreNulls: true }),
      ]);
      const seesAhead = partitionBy.length === 0 && frame.start === undefined && frame.end === 0n &&
        !frame.excludeCurrentRow;
      const frames = framesOf(rows, partitionBy.length > 0, frame);
      made.forEach((row, i) => {
        const values = (c: number) => frames[i].map((other) => other[c]).filter((value) => value !== null);
        const numbers = values(2) as number[], ints = values(3) as number[], texts = values(4) as string[];
        const sum = (list: number[]) => list.reduce((a, b) => a + b, 0);
        const long = (value: Value | undefined) =>
          value === null || value === undefined ? null : BigInt(value as number);
        const expected = [
          numbers.length === 0 ? null : sum(numbers),
          ints.length === 0 ? null : sum(ints) / ints.length,
          BigInt(frames[i].length),
          BigInt(texts.length),
          numbers.length === 0 ? null : Math.min(...numbers),
          ints.length === 0 ? null : BigInt(Math.max(...ints)),
          texts.toSorted()[0] ?? null,
          frames[i][0]?.[2] ?? null,
          long(frames[i].at(-1)?.[3]),
          seesAhead ? rows.find((other) => other[2] !== null)?.[2] ?? null : numbers[0] ?? null,
          texts.at(-1) ?? null,
        ];
        assert.deepEqual(row, expected, `row ${i} of frame ${frame.unit} ${frame.start} ${frame.end}`);
      });
    }
  }
});

Deno.test("ranks and row numbers follow any order, by partition", () => {
  const rows = randomRows(400, 2);
  const orderBy: SortKey[] = [{ expression: column(3), descending: true }];
  const over = { partitionBy: [column(1)], orderBy };
  const made = run(rows, [
    call("row_number", [], "LONG", over),
    call("rank", [], "LONG", over),
    call("dense_rank", [], "LONG", over),
    call("percent_rank", [], "DOUBLE", over),
    call("rank", [], "LONG"),
    call("cume_dist", [], "DOUBLE", over),
    call("ntile", [constant(7n, "LONG")], "LONG", over),
  ]);
  rows.forEach((row, i) => {
    const key = (other: Row) => other[3] === null ? -Infinity : other[3] as number;
    const partition = rows.map((other, index) => ({ other, index })).filter(({ other }) => other[1] === row[1]);
    const before = partition.filter(({ other }) => key(other) > key(row));
    const peersBefore = partition.filter(({ other, index }) => key(other) === key(row) && index < i).length;
    const rank = before.length + 1, peers = partition.filter(({ other }) => key(other) === key(row)).length;
    const size = Math.floor(partition.length / 7), larger = partition.length % 7, sizes: number[] = [];
    for (let part = 0; part < 7; part++) sizes.push(...Array<number>(part < larger ? size + 1 : size).fill(part + 1));
    assert.deepEqual(made[i], [
      BigInt(before.length + peersBefore + 1),
      BigInt(rank),
      BigInt(new Set(before.map(({ other }) => key(other))).size + 1),
      partition.length > 1 ? (rank - 1) / (partition.length - 1) : 0,
      1n,
      (before.length + peers) / partition.length,
      BigInt(sizes[before.length + peersBefore]),
    ]);
  });
});

Deno.test("lag and lead, with defaults and without nulls", () => {
  const rows = randomRows(300, 3);
  const orderBy: SortKey[] = [{ expression: column(0), descending: false }];
  const over = { partitionBy: [column(1)], orderBy };
  const made = run(rows, [
    call("lag", [column(2)], "DOUBLE", over),
    call("lead", [column(3), constant(2n, "LONG")], "LONG", over),
    call("lag", [column(2), constant(3n, "LONG"), constant(-1.5, "DOUBLE")], "DOUBLE", over),
    call("lag", [column(2), constant(2n, "LONG")], "DOUBLE", { ...over, ignoreNulls: true }),
    call("lead", [column(2), constant(1n, "LONG"), column(2)], "DOUBLE", { ...over, ignoreNulls: true }),
    call("lag", [column(4), constant(0n, "LONG")], "VARCHAR", over),
    call("lag", [column(1)], "SYMBOL", { orderBy }),
  ]);
  rows.forEach((row, i) => {
    const partition = rows.map((other, index) => ({ other, index })).filter(({ other }) => other[1] === row[1]);
    const at = partition.findIndex(({ index }) => index === i);
    const lead3 = partition[at + 2]?.other[3];
    const before = partition.slice(0, at).filter(({ other }) => other[2] !== null),
      after = partition.slice(at + 1).filter(({ other }) => other[2] !== null);
    assert.deepEqual(made[i], [
      partition[at - 1]?.other[2] ?? null,
      lead3 === undefined || lead3 === null ? null : BigInt(lead3 as number),
      at < 3 ? -1.5 : partition[at - 3].other[2],
      before.at(-2)?.other[2] ?? null,
      after.length > 0 ? after[0].other[2] : row[2],
      row[4],
      rows[i - 1]?.[1] ?? null,
    ]);
  });
});

Deno.test("exponential averages equal the recorded ones", () => {
  const second = 1_000_000n;
  const rows: Row[] = [
    [0n, "a", 1.5, 10, null],
    [60n * second, "b", 2.5, 20, null],
    [120n * second, "a", null, 5, null],
    [120n * second, "a", 5, 0, null],
    [210n * second, "b", 4, 40, null],
    [7200n * second, "a", 6, null, null],
    [86400n * second, "a", 8, 5, null],
  ];
  const orderBy: SortKey[] = [{ expression: column(0), descending: false }];
  const average = (kind: string, n: number, more: Expr[] = []) =>
    call("avg", [column(2), constant(kind, "STRING"), constant(n, "DOUBLE"), ...more], "DOUBLE", {
      orderBy,
      frame: RUNNING,
    });
  const made = run(rows, [
    average("alpha", 0.5),
    average("period", 3),
    average("minute", 5),
    average("alpha", 0.5, [column(3)]),
  ]);
  const expected = [
    [1.5, 2, 2, 3.5, 3.75, 4.875, 6.4375],
    [1.5, 2, 2, 3.5, 3.75, 4.875, 6.4375],
    [1.5, 1.6812692469220183, 1.6812692469220183, 5, 4.740818220681717, 5.999999999904275, 8],
    [1.5, 2.1666666666666665, 2.1666666666666665, 2.1666666666666665, 3.5, 3.5, 4.1923076923076925],
  ];
  made.forEach((row, i) =>
    row.forEach((value, k) =>
      assert.ok(Math.abs((value as number) - expected[k][i]) < 1e-9, `${value} ${expected[k][i]}`)
    )
  );
});

Deno.test("values that leave a frame leave no rounding error in its sum", () => {
  const rows: Row[] = [[0n, "a", 1e17, 0, null], [1n, "a", 0.1, 0, null], [2n, "a", 0.2, 0, null], [
    3n,
    "a",
    -1e17,
    0,
    null,
  ], [4n, "a", 0.3, 0, null]];
  const orderBy: SortKey[] = [{ expression: column(0), descending: false }];
  const made = run(rows, [
    call("sum", [column(2)], "DOUBLE", {
      orderBy,
      frame: { unit: "rows", start: -1n, end: 0n, excludeCurrentRow: false },
    }),
  ]);
  assert.deepEqual(made.map((row) => row[0]), [1e17, 1e17, 0.1 + 0.2, -1e17, -1e17]);
  assert.deepEqual(
    run(rows.slice(0, 3), [
      call("sum", [column(2)], "DOUBLE", {
        orderBy,
        frame: { unit: "rows", start: 0n, end: 0n, excludeCurrentRow: false },
      }),
    ]).map((row) => row[0]),
    [1e17, 0.1, 0.2],
  );
});

Deno.test("lag by symbol over more than two morsels", () => {
  const rows = randomRows(135_000, 5);
  const orderBy: SortKey[] = [{ expression: column(0), descending: false }];
  const made = run(rows, [call("lag", [column(2)], "DOUBLE", { partitionBy: [column(1)], orderBy })], 60_000);
  const last = new Map<Value, Value>();
  rows.forEach((row, i) => {
    assert.equal(made[i][0], last.get(row[1]) ?? null);
    last.set(row[1], row[2]);
  });
});
