import assert from "node:assert/strict";
import { createRegistry } from "../../sql/functions/mod.ts";
import type { Column, Plan, WindowBound } from "../../sql/plan.ts";
import type { Value } from "../../types/mod.ts";
import { FULL, SEED } from "../../testing.ts";
import { createQueryMemory } from "../memory.ts";
import { agg, col, fn, lit, over, randomFrom, type Row, RowsInput, rowsOf, testContext } from "../testing.ts";

const functions = createRegistry();

/** The last two columns are the row's number and an offset. */
const TYPES = ["TIMESTAMP", "SYMBOL", "INT", "VARCHAR", "DOUBLE", "LONG", "LONG"];
const COLUMNS: Column[] = TYPES.map((type, k) => ({ name: `c${k}`, type }));
const WIDTH = COLUMNS.length, NUMBER = 5, OFFSET = 6, START = 1_700_000_000_000_000n;
const c = (index: number, first = 0) => col(first + index, TYPES[index]);

function timedRows(random: () => number, count: number, span: number, distinct: number): Row[] {
  const times = Array.from({ length: count }, () => random() % span).sort((a, b) => a - b);
  return times.map((time, row): Row => {
    const n = random() % distinct, maybe = (value: Value): Value => random() % 7 === 0 ? null : value;
    return [
      time === 0 ? null : START + BigInt(time),
      maybe(`s${n}`),
      maybe(n),
      maybe(`text ${"x".repeat(n % 11)}${n}`),
      maybe(random() % 64 / 8),
      BigInt(row),
      maybe(BigInt(random() % ((span >> 2) + 1)) - 3n),
    ];
  });
}

interface Shape {
  keys: number[];
  start: WindowBound;
  end: WindowBound;
  includesPrevailing: boolean;
  /** A right row counts if its number, modulo three, is not that of the left row. */
  differs: boolean;
  /** Left rows with this value in the column of doubles have no window. */
  isLeftOnly: boolean;
}

const MODULO = (first: number) => fn("%", "LONG", c(NUMBER, first), lit(3n, "LONG"));
const keyOf = (keys: readonly number[], row: Row) => keys.map((k) => String(row[k])).join("|");

const timeOf = (row: Row) => row[0] as bigint;

/** The right rows of a left row's window, by looking at all of them. */
function windowOf(
  { keys, start, end, includesPrevailing, differs, isLeftOnly }: Shape,
  left: Row,
  right: Row[],
): Row[] {
  const bound = ({ offset, unit, direction }: WindowBound): bigint | undefined => {
    const value = (offset.kind === "constant" ? offset.value : left[OFFSET]) as bigint | null;
    if (value === null || left[0] === null) return undefined;
    const distance = value < 0n ? 0n : value * unit;
    return left[0] as bigint + (direction === "preceding" ? -distance : distance);
  };
  const low = bound(start), high = bound(end);
  if (low === undefined || high === undefined || (isLeftOnly && left[4] === 1)) return [];
  const matches = right.filter((row) =>
    row[0] !== null && keyOf(keys, row) === keyOf(keys, left) &&
    (!differs || (row[NUMBER] as bigint) % 3n !== (left[NUMBER] as bigint) % 3n)
  );
  const within = matches.filter((row) => timeOf(row) >= low && timeOf(row) <= high);
  const prevailing = includesPrevailing ? matches.findLast((row) => timeOf(row) <= low) : undefined;
  return prevailing === undefined || within.includes(prevailing) ? within : [prevailing, ...within];
}

const AGGREGATES = [
  agg("sum", "LONG", c(NUMBER, WIDTH)),
  agg("count", "LONG"),
  agg("first", "SYMBOL", c(1, WIDTH)),
  agg("last", "VARCHAR", c(3, WIDTH)),
  agg("min", "DOUBLE", c(4, WIDTH)),
  { ...agg("count", "LONG", c(2, WIDTH)), distinct: true },
  agg("string_agg", "VARCHAR", c(3, WIDTH), lit(",", "VARCHAR")),
  agg("sum", "LONG", fn("+", "LONG", c(NUMBER), c(NUMBER, WIDTH))),
];

function expectedOf(left: Row, rows: Row[]): Value[] {
  const numbers = rows.map((row) => row[NUMBER] as bigint), texts = rows.flatMap((row) => row[3] ?? []);
  const doubles = rows.flatMap((row) => row[4] ?? []) as number[];
  const sum = (values: bigint[]) => values.length === 0 ? null : values.reduce((a, b) => a + b, 0n);
  return [
    sum(numbers),
    BigInt(rows.length),
    rows[0]?.[1] ?? null,
    rows.at(-1)?.[3] ?? null,
    doubles.length === 0 ? null : Math.min(...doubles),
    BigInt(new Set(rows.flatMap((row) => row[2] ?? [])).size),
    texts.length === 0 ? null : texts.join(","),
    sum(numbers.map((number) => number + (left[NUMBER] as bigint))),
  ];
}

function joinOf(shape: Shape, left: RowsInput, right: RowsInput): Plan {
  const { keys, start, end, includesPrevailing, differs, isLeftOnly } = shape;
  const residual = [
    ...differs ? [fn("!=", "BOOLEAN", MODULO(0), MODULO(WIDTH))] : [],
    ...isLeftOnly ? [fn("!=", "BOOLEAN", c(4), lit(1, "DOUBLE"))] : [],
  ].reduce((a: ReturnType<typeof fn> | undefined, b) => a === undefined ? b : fn("and", "BOOLEAN", a, b), undefined);
  return over(
    {
      node: "windowJoin",
      leftTime: c(0),
      rightTime: c(0),
      leftKeys: keys.map((k) => c(k)),
      rightKeys: keys.map((k) => c(k)),
      start,
      end,
      includesPrevailing,
      residual,
      aggregates: AGGREGATES,
      columns: [...COLUMNS, ...AGGREGATES.map(({ type }, k) => ({ name: `a${k}`, type }))],
    },
    left,
    right,
  );
}

Deno.test("window joins equal windows found by looking at all right rows", () => {
  console.log(`SEED=${SEED}`);
  const random = randomFrom(SEED), pick = <T>(values: readonly T[]): T => values[random() % values.length];
  for (let round = 0; round < (FULL ? 150 : 75); round++) {
    const span = pick([3, 40, 2_000]), distinct = pick([2, 5, 60]);
    const left = timedRows(random, pick([0, 1, 30, 300]), span, distinct);
    const right = timedRows(random, pick([0, 1, 30, 300, 900]), span, distinct);
    const offset = () =>
      pick([lit(0n, "LONG"), lit(BigInt(random() % 9), "LONG"), lit(BigInt(random() % span), "LONG"), c(OFFSET)]);
    const bound = (direction: WindowBound["direction"]): WindowBound => ({
      offset: offset(),
      unit: pick([1n, 3n]),
      direction,
    });
    const shape: Shape = {
      keys: pick([[], [1], [2], [3, 1]]),
      start: bound(pick(["preceding", "preceding", "following"])),
      end: bound(pick(["preceding", "following", "following"])),
      includesPrevailing: pick([true, false]),
      differs: random() % 3 === 0,
      isLeftOnly: random() % 3 === 0,
    };
    const context = testContext(1 << 26, { functions });
    const inputs = [left, right].map((rows) => new RowsInput(COLUMNS, rows, context, pick([7, 100, 1_000])));
    const made = rowsOf(joinOf(shape, inputs[0], inputs[1]), context);
    const expected = left.map((row) => [...row, ...expectedOf(row, windowOf(shape, row, right))]);
    made.forEach((row, k) =>
      assert.deepEqual(row, expected[k], `round ${round}: ${Deno.inspect(shape)} ${left.length} ${right.length}`)
    );
    assert.equal(made.length, expected.length);
    assert.equal(context.memory.usedBytes, 0);
    assert.deepEqual(inputs.map(({ closed }) => closed), [1, 1]);
  }
});

/** Many rows with few in each window: the numbers of the first and the last row of each window are expected. */
function manyRows(count: number, step: bigint): Row[] {
  return Array.from({ length: count }, (_, row): Row => {
    return [START + BigInt(row) * step, `s${row % 50}`, row % 50, null, null, BigInt(row), null];
  });
}

Deno.test("a window join drops right rows before the windows, and needs memory for the rows within them", () => {
  const all = manyRows(100_000, 20n), right = manyRows(400_000, 5n);
  // Most right rows may be before the first window.
  const cases = [[[], false, 0], [[1], false, 0], [[1], true, 0], [[], false, 99_000], [[1], true, 99_000]] as const;
  for (const [keys, includesPrevailing, skipped] of cases) {
    const left = all.slice(skipped);
    const context = testContext(1 << 27, { functions });
    const memory = createQueryMemory(context.heap, 16 << 20);
    const inputs = [left, right].map((rows) => new RowsInput(COLUMNS, rows, context, 10_000));
    const shape: Shape = {
      keys: [...keys],
      start: { offset: lit(500n, "LONG"), unit: 1n, direction: "preceding" },
      end: { offset: lit(0n, "LONG"), unit: 1n, direction: "following" },
      includesPrevailing,
      differs: false,
      isLeftOnly: false,
    };
    const made = rowsOf(joinOf(shape, inputs[0], inputs[1]), { ...context, memory });
    assert.equal(made.length, left.length);
    made.forEach((row, position) => {
      const k = position + skipped;
      // Right row r is at 5 r, and left row k at 20 k.
      const first = Math.max(0, 4 * k - 100), last = 4 * k;
      const step = keys.length > 0 ? 50 : 1, numbers: number[] = [];
      for (let number = first + (k - first % step + step) % step; number <= last; number += step) numbers.push(number);
      const before = 4 * k - 100 - ((4 * k - 100 - k % 50) % 50);
      if (includesPrevailing && before >= 0 && !numbers.includes(before)) numbers.unshift(before);
      assert.equal(row[WIDTH], numbers.length === 0 ? null : BigInt(numbers.reduce((a, b) => a + b, 0)), `row ${k}`);
      assert.equal(row[WIDTH + 1], BigInt(numbers.length), `row ${k}`);
    });
    assert.equal(memory.usedBytes, 0);
  }
});

Deno.test("a window join whose windows exceed the memory is refused by name", () => {
  const context = testContext(1 << 27, { functions }), memory = createQueryMemory(context.heap, 16 << 20);
  const inputs = [manyRows(1_000, 20n), manyRows(400_000, 5n)]
    .map((rows) => new RowsInput(COLUMNS, rows, context, 10_000));
  const shape: Shape = {
    keys: [1],
    start: { offset: lit(0n, "LONG"), unit: 1n, direction: "preceding" },
    end: { offset: lit(10_000_000n, "LONG"), unit: 1n, direction: "following" },
    includesPrevailing: true,
    differs: false,
    isLeftOnly: false,
  };
  assert.throws(() => rowsOf(joinOf(shape, inputs[0], inputs[1]), { ...context, memory }), {
    sqlState: "53200",
    message: /^window join/,
  });
  memory.release();
  assert.equal(memory.usedBytes, 0);
});

Deno.test("horizon joins equal the last rows found by looking at all right rows", () => {
  console.log(`SEED=${SEED}`);
  const random = randomFrom(SEED), pick = <T>(values: readonly T[]): T => values[random() % values.length];
  for (let round = 0; round < (FULL ? 100 : 50); round++) {
    const span = pick([3, 40, 2_000]), distinct = pick([2, 5, 60]), keys = pick([[], [1], [2], [3, 1]]);
    const left = timedRows(random, pick([0, 1, 30, 300]), span, distinct);
    const right = timedRows(random, pick([0, 1, 30, 300, 900]), span, distinct);
    const counts = left.length > 30 ? [1, 3, 40] : [1, 3, 40, 9_000];
    const offsets = [...new Set(Array.from({ length: pick(counts) }, () => random() % span - (span >> 1)))]
      .sort((a, b) => a - b).map(BigInt);
    const context = testContext(1 << 28, { functions });
    const inputs = [left, right].map((rows) => new RowsInput(COLUMNS, rows, context, pick([7, 100, 1_000])));
    const plan = over(
      {
        node: "horizonJoin",
        leftTime: c(0),
        rightTime: c(0),
        leftKeys: keys.map((k) => c(k)),
        rightKeys: keys.map((k) => c(k)),
        time: c(0),
        offsets,
        columns: [...COLUMNS, { name: "offset", type: "LONG" }, { name: "timestamp", type: "TIMESTAMP" }, ...COLUMNS],
      },
      inputs[0],
      inputs[1],
    );
    const made = rowsOf(plan, context);
    let k = 0;
    for (const row of left) {
      const matches = right.filter((each) => each[0] !== null && keyOf(keys, each) === keyOf(keys, row));
      for (const offset of offsets) {
        const time = row[0] === null ? null : row[0] as bigint + offset;
        const last = time === null ? undefined : matches.findLast((each) => timeOf(each) <= time);
        const expected = [...row, offset, time, ...last ?? COLUMNS.map(() => null)];
        assert.deepEqual(made[k++], expected, `round ${round}`);
      }
    }
    assert.equal(made.length, k);
    assert.equal(context.memory.usedBytes, 0);
    assert.deepEqual(inputs.map(({ closed }) => closed), [1, 1]);
  }
});
