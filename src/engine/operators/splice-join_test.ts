import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import type { Column, Plan, TimeJoinNode } from "../../sql/plan.ts";
import { FULL } from "../../testing.ts";
import type { Value } from "../../types/mod.ts";
import { createQueryMemory } from "../memory.ts";
import {
  agg,
  assertRows,
  col,
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

const COLUMNS: Column[] = ["TIMESTAMP", "SYMBOL", "LONG"].map((type, k) => ({ name: `c${k}`, type }));

/** The last column is the row's number. */
function timedRows(count: number, seed: number, span: number, distinct: number): Row[] {
  const random = randomFrom(seed);
  const times = Array.from({ length: count }, () => random() % span).sort((a, b) => a - b);
  return times.map((time, row): Row => {
    const n = random() % distinct;
    return [time === 0 ? null : BigInt(time), n === 0 ? null : `s${n}`, BigInt(row)];
  });
}

const known = new Map<string, [Value, Value][]>();

/** The numbers of the paired rows. Two tests ask for those of a title. */
function spliced(title: string, left: readonly Row[], right: readonly Row[], isKeyed: boolean): [Value, Value][] {
  const name = `${title} ${isKeyed}`, pairs = known.get(name) ?? plainlySpliced(left, right, isKeyed);
  known.set(name, pairs);
  return pairs;
}

/** Time by time, the left side first. */
function plainlySpliced(left: readonly Row[], right: readonly Row[], isKeyed: boolean): [Value, Value][] {
  const timeOf = (row: Row) => row[0] === null ? -1n : row[0] as bigint, pairs: [Value, Value][] = [];
  const keyOf = (row: Row) => isKeyed ? row[1] : 0,
    lastLeft = new Map<Value, Value>(),
    lastRight = new Map<Value, Value>();
  const byTime = (rows: readonly Row[]) => Map.groupBy(rows, timeOf), lefts = byTime(left), rights = byTime(right);
  for (const time of [...new Set([...lefts.keys(), ...rights.keys()])].sort((a, b) => a < b ? -1 : 1)) {
    const waiting = Map.groupBy(rights.get(time) ?? [], keyOf), paired = new Set<Row>();
    for (const row of lefts.get(time) ?? []) {
      const partner = waiting.get(keyOf(row))?.shift();
      if (partner !== undefined) {
        paired.add(partner);
        lastRight.set(keyOf(row), partner[2]);
      }
      pairs.push([row[2], lastRight.get(keyOf(row)) ?? null]);
      lastLeft.set(keyOf(row), row[2]);
    }
    for (const row of rights.get(time) ?? []) {
      if (!paired.has(row)) pairs.push([lastLeft.get(keyOf(row)) ?? null, row[2]]);
      lastRight.set(keyOf(row), row[2]);
    }
  }
  return pairs;
}

function spliceOf(left: RowsInput | Plan, right: RowsInput | Plan, isKeyed: boolean): Plan {
  const keys = isKeyed ? [col(1, "SYMBOL")] : [], time = col(0, "TIMESTAMP");
  const node = { node: "timeJoin", type: "splice", leftTime: time, rightTime: time, leftKeys: keys, rightKeys: keys };
  return over({ ...node, columns: [...COLUMNS, ...COLUMNS] } as Partial<TimeJoinNode>, left, right);
}

const CASES: [title: string, left: Row[], right: Row[]][] = [
  ["ties of several ranges", timedRows(90_000, 1, 60_000, 40), timedRows(70_000, 2, 60_000, 45)],
  ["many keys", timedRows(80_000, 3, 1_000_000, 50_000), timedRows(80_000, 4, 1_000_000, 50_000)],
  ["one time", timedRows(300, 5, 1, 3), timedRows(200, 6, 1, 3)],
  ["few left rows", timedRows(5, 7, 50_000, 2), timedRows(100_000, 8, 50_000, 2)],
  ["no right rows", timedRows(50, 9, 40, 3), []],
  ["no left rows", [], timedRows(50, 10, 40, 3)],
];

Deno.test("a splice join equals a plain merge, in order and by morsels on one thread and on three", () => {
  for (const [title, left, right] of CASES) {
    for (const isKeyed of [false, true]) {
      const expected = spliced(title, left, right, isKeyed);
      // At full length, pairs without keys are made by three, too.
      for (const isParallel of isKeyed || FULL ? [false, true] : [false]) {
        const alone = testContext(1 << 29, { functions: createRegistry() });
        const context = onThreads(alone, isParallel);
        const join = () =>
          spliceOf(new RowsInput(COLUMNS, left, alone, 9_000), new RowsInput(COLUMNS, right, alone, 7_000), isKeyed);
        if (!isParallel) {
          const made = rowsOf(join(), context);
          assertRows(made.map((row) => [row[2], row[5]]), expected, title);
          for (const row of made.slice(0, 1_000)) {
            assert.deepEqual(row.slice(0, 2), row[2] === null ? [null, null] : left[Number(row[2])].slice(0, 2));
            assert.deepEqual(row.slice(3, 5), row[5] === null ? [null, null] : right[Number(row[5])].slice(0, 2));
          }
        }
        // Each pair is a group: their order is that of the pairs.
        const keys = [col(2, "LONG"), col(5, "LONG")], columns = keys.map(({ type }, k) => ({ name: `g${k}`, type }));
        const groups = over(
          {
            node: "aggregate",
            keys,
            aggregates: [agg("count", "LONG")],
            columns: [...columns, { name: "n", type: "LONG" }],
          },
          join(),
        );
        assertRows(rowsOf(groups, context), expected.map((pair) => [...pair, 1n]), title);
        assert.equal(alone.memory.usedBytes, 0);
      }
    }
  }
});

Deno.test("a splice join that exceeds its memory is merged in order, and on disk if there are too many keys for that", () => {
  const ONE_TIME: typeof CASES[number] = [
    "many rows of one time",
    timedRows(9_000, 11, 1, 3),
    timedRows(8_000, 12, 1, 3),
  ];
  for (const [title, left, right] of [...CASES, ONE_TIME]) {
    for (const isKeyed of [false, true]) {
      const chosen: string[] = [], alone = testContext(1 << 29, { functions: createRegistry() });
      const tables = [left, right].map((rows) => storedRows(COLUMNS, rows, alone, 5_000));
      const sources = tables.map(({ source }) => source);
      const { context, memory, partCount } = withLittleMemory(
        { ...alone, sources, chose: (choice: string) => chosen.push(choice) },
        5 << 20,
      );
      const [l, r] = tables.map(({ node }, id): Plan => ({ ...node, id, timestamp: 0, order: "asc" }));
      const made = rowsOf(spliceOf(l, r, isKeyed), context);
      assertRows(made.map((row) => [row[2], row[5]]), spliced(title, left, right, isKeyed), title);
      for (const row of made.slice(-1_000)) {
        assert.deepEqual(row.slice(0, 2), row[2] === null ? [null, null] : left[Number(row[2])].slice(0, 2));
        assert.deepEqual(row.slice(3, 5), row[5] === null ? [null, null] : right[Number(row[5])].slice(0, 2));
      }
      const isLarge = left.length + right.length > 100_000;
      assert.ok(chosen.includes(isLarge ? "last rows" : "all rows"), title);
      assert.equal(partCount() > 0, isKeyed && title === "many keys", title);
      assert.equal(memory.usedBytes, 0);
    }
  }
});

Deno.test("a splice join in order needs memory for the long texts of the last rows only", () => {
  const texts = [...COLUMNS, { name: "v", type: "VARCHAR" }];
  const [left, right] = [timedRows(5_000, 13, 60_000, 30), timedRows(6_000, 14, 60_000, 30)];
  const padded = (rows: Row[]) => rows.map((row): Row => [...row, "y".repeat(1_500) + row[2]]);
  for (const isKeyed of [false, true]) {
    const alone = testContext(1 << 29, { functions: createRegistry() }),
      memory = createQueryMemory(alone.heap, 5 << 20);
    const tables = [padded(left), padded(right)].map((rows) => storedRows(texts, rows, alone, 2_000));
    const context = { ...alone, memory, sources: tables.map(({ source }) => source) };
    const [l, r] = tables.map(({ node }, id): Plan => ({ ...node, id, timestamp: 0, order: "asc" }));
    const join = { ...spliceOf(l, r, isKeyed), columns: [...texts, ...texts] } as Plan;
    const expected = plainlySpliced(left, right, isKeyed);
    const textOf = (number: Value) => number === null ? null : "y".repeat(1_500) + number;
    const made = rowsOf(join, context);
    assert.equal(made.length, expected.length);
    made.forEach((row, k) => {
      const [a, b] = expected[k];
      assert.deepEqual([row[2], row[3], row[6], row[7]], [a, textOf(a), b, textOf(b)], `row ${k}`);
    });
    assert.equal(memory.usedBytes, 0);
  }
});
