/**
 * Compares each aggregate of the catalogue with OVER, run by SQL, with a reference that computes each frame from
 * scratch.
 */
import assert from "node:assert/strict";
import { createOperator } from "../../engine/operators/mod.ts";
import { randomFrom, rowsOf, testContext } from "../../engine/testing.ts";
import type { Value } from "../../types/mod.ts";
import { FakeCatalogue } from "../binder/fake-catalogue.ts";
import { bind } from "../bind.ts";
import { parse } from "../parser.ts";
import type { Column, NewTable, Plan } from "../plan.ts";
import { mapPlan } from "../planner/nodes.ts";
import { createRegistry, FUNCTIONS } from "./mod.ts";
import { AGGREGATES } from "./testing-aggregates.ts";
import { signatures } from "./testing-values.ts";
import { SEED } from "../../testing.ts";

/** Few distinct values of each type, so that they repeat; small values, so that sums are exact. */
const FEW: Record<string, Value[]> = {
  BOOLEAN: [true, false],
  BYTE: [0, 1, 5, 7],
  SHORT: [0, 1, 5, 300],
  CHAR: ["a", "b", "c", null],
  INT: [0, 3, 12, 19, null],
  LONG: [0n, 1n, 2n, 7n, 19n, null],
  FLOAT: [0.5, 1.5, 2, null],
  DOUBLE: [0, 1, 3, 4, 7, 19, null],
  DATE: [0n, 1000n, 1700000000000n, null],
  TIMESTAMP: [0n, 1000000n, 1700000000000000n, null],
  TIMESTAMP_NS: [0n, 1000000000n, 1700000000000000000n, null],
  IPv4: [1, 0x0a000005, 0xffffffff, null],
  STRING: ["", "a", "žluť", "b", null],
  VARCHAR: ["", "a", "žluť", "b", null],
  SYMBOL: ["a", "bb", "c", null],
  UUID: [0n, 1n, (1n << 128n) - 1n, null],
  LONG256: [1n, 2n, 1n << 200n, null],
  BINARY: ["\\x00ff", "\\x61", null],
  "GEOHASH(4c)": [1n, 5n, null],
  "DECIMAL(12,3)": [1000n, -1500n, 12345n, null],
  "DECIMAL(30,4)": [10n ** 25n, -15000n, 123450n, null],
  "DECIMAL(60,5)": [10n ** 50n, -15000n, 123450n, null],
  "DOUBLE[]": ["[1.0,2.5,null]", "[4.0]", "[0.5,3.0]", null],
  "DOUBLE[][]": ["[[1.0,2.0],[3.0,4.0]]", "[[0.5]]", null],
};

/** Constant arguments, by name. */
const CONSTANTS: Record<string, { sql: string; value: Value }> = {
  delimiter: { sql: "','", value: "," },
  fraction: { sql: "0.75", value: 0.75 },
  precision: { sql: "2", value: 2 },
  scale: { sql: "1", value: 1 },
};

interface FrameCase {
  sql: string;
  /** The order of the rows within a partition. */
  order?: "ts" | "ts desc";
  partitioned?: boolean;
  /** True if row `j` is in the frame of row `i`. Arguments are positions in the partition and times. */
  has: (i: number, j: number, time: (place: number) => bigint) => boolean;
}

const FRAMES: FrameCase[] = [
  { sql: "", has: () => true },
  { sql: "partition by k", partitioned: true, has: () => true },
  { sql: "order by ts", order: "ts", has: (i, j) => j <= i },
  { sql: "partition by k order by ts desc", order: "ts desc", partitioned: true, has: (i, j) => j <= i },
  {
    sql: "partition by k order by ts rows between 3 preceding and current row",
    order: "ts",
    partitioned: true,
    has: (i, j) => j <= i && j >= i - 3,
  },
  {
    sql: "order by ts rows between 9 preceding and 2 preceding",
    order: "ts",
    has: (i, j) => j <= i - 2 && j >= i - 9,
  },
  {
    sql: "order by ts rows between 4 preceding and current row exclude current row",
    order: "ts",
    has: (i, j) => j < i && j >= i - 4,
  },
  {
    sql: "partition by k order by ts range between 3 second preceding and current row",
    order: "ts",
    partitioned: true,
    has: (i, j, time) => j <= i && time(i) - time(j) <= 3_000_000n,
  },
];

const ROWS = 48;
/** Percentiles of fractions are approximate. */
const APPROXIMATE = /^approx_(?:percentile|median)\(DOUBLE/;

const functions = createRegistry();

const heap = testContext(1 << 26, { functions });

function rowsOfPlan(plan: Plan): Value[][] {
  const usedBytes = heap.memory.usedBytes;
  const rows = rowsOf(createOperator(plan, heap), heap);
  assert.equal(heap.memory.usedBytes, usedBytes, "all memory was given back");
  return rows;
}

function tableOf(columns: Column[]): NewTable {
  return {
    name: "t",
    columns: columns.map((column) => ({ ...column, indexed: false, symbolCapacity: 256, symbolCached: true })),
    timestamp: 0,
    partitionBy: "DAY",
    wal: true,
    dedupKeys: [],
  };
}

/** The plan of a query over a table of these rows. */
function planOf(sql: string, catalogue: FakeCatalogue, rows: Value[][]): Plan {
  const { statement } = bind(parse(sql), {
    catalogue,
    parameterTypes: [],
    importRoot: "/nowhere",
    nowMicros: 0n,
    user: "test",
    parquetSchema: () => ({ columns: [], leftOut: [] }),
  });
  assert.ok(statement.kind === "query" && statement.plan !== undefined);
  return mapPlan(
    statement.plan,
    (node) =>
      node.node === "scan"
        ? { node: "values", rows, columns: node.columns, timestamp: node.timestamp, order: node.order }
        : node,
  );
}

/** Compares numbers with a tolerance, arrays by element, because sums of fractions differ in the last digits. */
function assertAlike(found: Value, expected: Value, tolerance: number, explain: () => string): void {
  if (typeof found === "string" && found.startsWith("[")) {
    const flat = (text: Value): (number | null)[] => text === null ? [] : JSON.parse(String(text)).flat();
    const a = flat(found), b = flat(expected);
    assert.ok(a.length === b.length, explain());
    a.forEach((x, k) => assertAlike(x, b[k], tolerance, explain));
    return;
  }
  const number = (value: Value) => typeof value === "bigint" || typeof value === "boolean" ? Number(value) : value;
  const a = number(found), b = number(expected);
  if (typeof a === "number" && typeof b === "number" && Number.isFinite(a)) {
    if (!(Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(b)))) assert.fail(explain());
    if (typeof found === "bigint" && typeof expected === "bigint" && found !== expected) assert.fail(explain());
  } else if ((typeof a === "number" ? null : a) !== b) assert.fail(explain());
}

for (const entry of FUNCTIONS.filter(({ aggregate }) => aggregate !== undefined)) {
  const known = signatures(entry).filter((types) =>
    types.every((type, k) => FEW[type] !== undefined || entry.args[k].constant)
  );
  // A computed symbol is a text; a bare NULL has no type.
  if (known.length === 0 && entry.args.some(({ type }) => type === "SYMBOL_TEXT" || type === "NULL")) continue;
  for (const types of known) {
    Deno.test(`${entry.name}(${types}) over (…)`, () => {
      const reference = AGGREGATES[entry.name];
      assert.ok(reference !== undefined, "its meaning is written in testing-aggregates.ts");
      const random = randomFrom(SEED + types.join().length);
      const columns = [
        { name: "ts", type: "TIMESTAMP" },
        { name: "k", type: "INT" },
        ...types.map((type, k) => ({ name: `c${k}`, type: FEW[type] === undefined ? "INT" : type })),
      ];
      const catalogue = new FakeCatalogue();
      catalogue.add(tableOf(columns));
      let time = 1_700_000_000_000_000n;
      const rows = Array.from({ length: ROWS }, (): Value[] => [
        time += BigInt(random() % 3) * 1_000_000n,
        random() % 3,
        ...columns.slice(2).map(({ type }) => FEW[type][random() % FEW[type].length]),
      ]);
      const args = entry.args.slice(0, types.length).map((arg, k) => arg.constant ? CONSTANTS[arg.name].sql : `c${k}`);
      const values = (row: Value[]): Value[] =>
        types.map((_, k) => entry.args[k].constant ? CONSTANTS[entry.args[k].name].value : row[k + 2]);
      for (const frame of FRAMES) {
        const sql = `select ts, ${entry.name}(${args.join(", ")}) over (${frame.sql}) v from t`;
        const plan = planOf(sql, catalogue, rows);
        const type = plan.columns[1].type;
        const found = rowsOfPlan(plan).map((row) => row[1]);
        const partitions = Map.groupBy(rows.map((_, row) => row), (row) => frame.partitioned ? rows[row][1] : 0);
        for (const members of partitions.values()) {
          const places = frame.order === "ts desc"
            ? members.toSorted((a, b) => rows[a][0] === rows[b][0] ? a - b : rows[a][0]! < rows[b][0]! ? 1 : -1)
            : members;
          places.forEach((row, i) => {
            const inFrame = places.filter((_, j) => frame.has(i, j, (place) => rows[places[place]][0] as bigint));
            const expected = reference(inFrame.map((each) => values(rows[each])), types, type);
            assertAlike(
              found[row],
              expected,
              APPROXIMATE.test(`${entry.name}(${types}`) ? 0.1 : 1e-9,
              () =>
                `${sql}: row ${row} has ${found[row]}, not ${expected} of ${
                  inFrame.map((each) => values(rows[each]).join("/"))
                }`,
            );
          });
        }
      }
    });
  }
}

/** True if `a` and `b` differ by more than rounding. */
function differ(a: Value, b: Value): boolean {
  try {
    assertAlike(a, b, 1e-9, () => "");
    return false;
  } catch {
    return true;
  }
}

/** Beside an aggregate with ORDER BY such aggregates are refused, and their rows are never spread over lanes. */
Deno.test("the entry of an aggregate says whether its result depends on the order of rows", () => {
  const random = randomFrom(7);
  for (const entry of FUNCTIONS.filter(({ aggregate }) => aggregate !== undefined)) {
    const known = signatures(entry).filter((types) =>
      types.every((type, k) => FEW[type] !== undefined || entry.args[k].constant)
    );
    for (const types of known) {
      const reference = AGGREGATES[entry.name];
      const rowOf = () =>
        types.map((type, k): Value => {
          if (entry.args[k].constant) return CONSTANTS[entry.args[k].name].value;
          return FEW[type][random() % FEW[type].length];
        });
      const depends = Array.from({ length: 60 }).some(() => {
        const rows = Array.from({ length: 2 + random() % 9 }, rowOf),
          type = typeof entry.returns === "string" ? entry.returns : entry.returns([...types]);
        const others = rows.map((row) => ({ row, at: random() })).sort((a, b) => a.at - b.at).map(({ row }) => row);
        return differ(reference(rows, types, type), reference(others, types, type));
      });
      assert.equal(entry.aggregate!.ordered ?? false, depends, `${entry.name}(${types})`);
    }
  }
});

/** The values of an expression over rows of `ts` and `c0`. */
function overTimes(rows: Value[][], type: string, sql: string): Value[] {
  const catalogue = new FakeCatalogue();
  const columns = [{ name: "ts", type: "TIMESTAMP" }, { name: "c0", type }];
  catalogue.add(tableOf(columns));
  return rowsOfPlan(planOf(`select ${sql} from t`, catalogue, rows)).map(([value]) => value);
}

Deno.test("sliding frames are computed in groups that fit in memory, and in pieces if a single frame does not fit", () => {
  const few = Array.from({ length: 30_000 }, (_, i): Value[] => [BigInt(i), BigInt(i % 7)]);
  assert.deepEqual(
    overTimes(few, "LONG", "count_distinct(c0) over (order by ts rows between 3 preceding and current row)"),
    few.map((_, i) => BigInt(Math.min(4, i + 1))),
  );
  // 70,000 rows in one second, followed by three rows whose frames contain all of them.
  const many = Array.from({ length: 70_003 }, (_, i): Value[] => [i < 70_000 ? 0n : 7_000_000n, BigInt(i % 1_000)]);
  const found = overTimes(
    many,
    "LONG",
    "count_distinct(c0) over (order by ts range between 10 second preceding and 5 second preceding)",
  );
  assert.deepEqual(found.slice(-4), [0n, 1000n, 1000n, 1000n]);
});

Deno.test("texts of frames stay valid as long as the answer", () => {
  const rows = Array.from({ length: 100 }, (_, i): Value[] => [BigInt(i), `text ${i}`]);
  assert.deepEqual(
    overTimes(rows, "VARCHAR", "string_agg(c0, '+') over (order by ts rows between 1 preceding and current row)"),
    rows.map((_, i) => i === 0 ? "text 0" : `text ${i - 1}+text ${i}`),
  );
});
