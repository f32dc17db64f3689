import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import type { Column, Expr, Plan, ScanNode, SortKey } from "../../sql/plan.ts";
import type { ColumnStats, ScanSource } from "../../storage/contract.ts";
import { typeOf, type Value } from "../../types/mod.ts";
import type { Operator, QueryContext } from "../contract.ts";
import { openTask } from "../parallel.ts";
import type { PlanFacts } from "../physical/mod.ts";
import {
  chunkAt,
  fn,
  lit,
  operatorOf,
  over,
  randomFrom,
  type Row,
  RowsInput,
  rowsOf,
  scanOf,
  segmentOf,
  sourceOf,
  testContext,
} from "../testing.ts";

const functions = createRegistry();
const TYPES = ["LONG", "INT", "DOUBLE", "FLOAT", "SYMBOL", "VARCHAR", "BOOLEAN", "CHAR", "SHORT"];
const COLUMNS: Column[] = TYPES.map((type, k) => ({ name: `c${k}`, type }));
const c = (k: number): Expr => ({ kind: "column", index: k, type: TYPES[k] });

/** The values of the first column drift, so that statistics exclude segments; the others have many ties and nulls. */
function makeRows(rowCount: number): Row[] {
  const random = randomFrom(5);
  return Array.from({ length: rowCount }, (_, k): Row => {
    const maybe = (value: Value): Value => (random() % 50 === 0 ? null : value);
    const n = random() % 100;
    return [
      BigInt((k * 7) % 5_000 + Math.floor(k / 3)) - 2_000n,
      maybe(n - 40),
      random() % 200 === 0 ? -0 : maybe((random() % 4_000) / 8 - 250),
      maybe(Math.fround(n / 4)),
      maybe(`s${n % 7}`),
      maybe(`text ${n}`),
      n % 2 === 0,
      maybe(String.fromCharCode(200 + n)),
      n - 50,
    ];
  });
}

function statsOf(rows: Row[], column: number): ColumnStats {
  const values = rows.map((row) => row[column]).filter((value) =>
    typeof value === "number" || typeof value === "bigint"
  );
  const nullCount = rows.filter((row) => row[column] === null).length;
  if (values.length === 0) return { nullCount };
  return { nullCount, min: values.reduce((a, b) => b < a ? b : a), max: values.reduce((a, b) => b > a ? b : a) };
}

function stored(rows: Row[], context: QueryContext, segmentRows: number): { node: ScanNode; source: ScanSource } {
  const { columns } = new RowsInput([...COLUMNS], rows, context, rows.length).next()!;
  const segments = Array.from({ length: Math.ceil(rows.length / segmentRows) }, (_, ordinal) => {
    const firstRow = ordinal * segmentRows, part = rows.slice(firstRow, firstRow + segmentRows);
    const chunks = columns.map(({ address, type }, k) =>
      chunkAt(address + firstRow * typeOf(type).width, statsOf(part, k))
    );
    return segmentOf(ordinal, part.length, chunks);
  });
  const dictionaries = columns.map((column) => column.dictionary);
  return { node: scanOf(COLUMNS), source: sourceOf(segments, { sorted: false, dictionaries }) };
}

const rows = makeRows(20_000);

function sorted(
  input: Operator | Plan,
  keys: SortKey[],
  limit: number,
  within: QueryContext & PlanFacts = context,
): Row[] {
  return rowsOf(over({ node: "sort", keys, limit, columns: input.columns }, input), within);
}

const context = testContext(1 << 27, { functions });
const { node, source } = stored(rows, context, 900);
context.sources.push(source);

/** The results of the sort for any input, and of the one for scans. */
function both(extend: (input: Plan) => Plan, keys: SortKey[], limit: number): [Row[], Row[]] {
  const answers: [Row[], Row[]] = [
    sorted(operatorOf(extend(node), context), keys, limit),
    sorted(extend(node), keys, limit),
  ];
  assert.equal(context.memory.usedBytes, 0, "all memory is given back");
  return answers;
}

const KEYS: SortKey[][] = [
  ...[0, 1, 2, 3, 6, 7, 8].flatMap((k): SortKey[][] =>
    [true, false].map((descending) => [{ expression: c(k), descending }])
  ),
  [{ expression: c(1), descending: true }, { expression: c(4), descending: false }, {
    expression: c(2),
    descending: true,
  }],
  [{ expression: c(6), descending: false }, { expression: c(5), descending: true }, {
    expression: c(0),
    descending: true,
  }],
  [{ expression: fn("+", "DOUBLE", c(2), lit(1, "DOUBLE")), descending: true }, {
    expression: c(5),
    descending: false,
  }],
  [{ expression: c(2), descending: true, nulls: "last" }],
  [{ expression: c(1), descending: false, nulls: "first" }, { expression: c(3), descending: true }],
];

Deno.test("the first rows of a scan equal those of a full sort, ties in the order of rows", () => {
  for (const keys of KEYS) {
    for (const limit of [1, 10, 700]) {
      const [expected, got] = both((input) => input, keys, limit);
      assert.deepEqual(
        got,
        expected,
        JSON.stringify([keys, limit], (_, value) => typeof value === "bigint" ? String(value) : value),
      );
    }
  }
});

Deno.test("the first rows with a filter, with computed columns, and of an empty table", () => {
  const positive = (k: number) => fn(">", "BOOLEAN", c(k), lit(10, "DOUBLE"));
  const [expected, got] = both(
    (input) => {
      const filtered = over({ node: "filter", columns: COLUMNS, predicate: positive(2) }, input);
      return over({
        node: "project",
        columns: [COLUMNS[5], COLUMNS[2], COLUMNS[4]],
        expressions: [c(5), fn("*", "DOUBLE", c(2), lit(-1, "DOUBLE")), c(4)],
      }, filtered);
    },
    [{ expression: { kind: "column", index: 1, type: "DOUBLE" }, descending: true }],
    50,
  );
  assert.equal(got.length, 50);
  assert.deepEqual(got, expected);
  const none = fn(">", "BOOLEAN", c(2), lit(1e9, "DOUBLE"));
  const [empty, alsoEmpty] = both(
    (input) => over({ node: "filter", columns: COLUMNS, predicate: none }, input),
    KEYS[0],
    5,
  );
  assert.deepEqual([empty, alsoEmpty], [[], []]);
});

Deno.test("the first rows found by several participants", () => {
  let sections = 0;
  const parallel: QueryContext["parallel"] = {
    workerCount: 3,
    run: (name, data, count) => {
      sections++;
      const participants = [0, 1, 2].map(() => openTask(name, structuredClone(data), context));
      for (let morsel = 0; morsel < count; morsel++) participants[(morsel * 5) % 3].run(morsel);
      return participants.map((participant) => {
        const result = JSON.parse(JSON.stringify(participant.finish()));
        participant.close?.();
        return result;
      });
    },
  };
  for (const keys of KEYS.slice(0, 17)) {
    const [expected] = both((input) => input, keys, 20);
    const top = sorted(node, keys, 20, { ...context, parallel, thresholds: { helpFromRows: 1 } });
    assert.deepEqual(top, expected);
  }
  assert.ok(sections > 10);
});
