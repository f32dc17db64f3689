/**
 * Random tables that are large enough for an index in parts and for several ranges of time, and random joins over them. Their answers depend
 * on the order of the rows, and sums are exact, so they are the same with any number of workers and any memory.
 */
import fc from "../../src/properties.ts";

/** The index of a build side with this many rows is filled in parts; see `INDEX_PARTS_ROWS_MIN` of the engine. */
const BUILD_ROWS_MIN = 300_000;

const PRIMES = [7_919, 104_729, 611_953, 1_299_709];

interface TableShape {
  name: "l" | "r";
  rowCount: number;
  /** The next key, as a multiple of the row's number. */
  step: number;
  keyCount: number;
  symbolCount: number;
  /** Rows with equal times. */
  ties: number;
  /** One of this many keys is null, and one of this many rows has the same key. */
  nullEvery: number;
  hotEvery: number;
}

function create({ name, rowCount, step, keyCount, symbolCount, ties, nullEvery, hotEvery }: TableShape): string {
  const key =
    `case when x % ${nullEvery} = 0 then null when x % ${hotEvery} = 1 then 7 else (x * ${step}) % ${keyCount} end`;
  const symbol = `case when x % ${nullEvery} = 2 then null else 's' || (x * ${step}) % ${symbolCount} end`;
  return `create table ${name} as (
    select cast(1704067200000000 + (x / ${ties}) * ${ties * 1_000} as timestamp) ts, x, k, k * 1000003 w, 'key ' || k v,
      cast(k % 5 as int) i, cast(sym as symbol) sym, ((x * 31) % 1000) / 4.0 d
    from (select x, cast(${key} as long) k, ${symbol} sym from long_sequence(${rowCount}))
  ) timestamp(ts) partition by day`;
}

const shape = (name: "l" | "r", rowCount: fc.Arbitrary<number>): fc.Arbitrary<TableShape> =>
  fc.record({
    name: fc.constant(name),
    rowCount,
    step: fc.constantFrom(...PRIMES),
    keyCount: fc.integer({ min: 150_000, max: 500_000 }),
    symbolCount: fc.integer({ min: 2, max: 300 }),
    ties: fc.constantFrom(1, 3, 40),
    nullEvery: fc.integer({ min: 3_000, max: 9_000 }),
    hotEvery: fc.integer({ min: 8_000, max: 20_000 }),
  });

/** The statements that create tables l and r. */
export const joinTables: fc.Arbitrary<string[]> = fc.tuple(
  shape("l", fc.integer({ min: 60_000, max: 150_000 })),
  shape("r", fc.integer({ min: BUILD_ROWS_MIN, max: BUILD_ROWS_MIN + 100_000 })),
).map((shapes) => shapes.map(create));

const condition = fc.constantFrom(
  "true",
  "i != 3",
  "k > 20000",
  "sym != 's1'",
  "x % 10 < 7",
  "sym = 's0'",
  "i is null",
);

/** Some sources are plain tables, so that they are read by morsels without a filter. */
const source = (table: "l" | "r") =>
  fc.option(condition, { nil: undefined }).map((test) =>
    test === undefined ? table : `(select ts, x, k, w, v, i, sym, d from ${table} where ${test})`
  );

/** Both ways round: the right side is the build side. */
const sides = fc.boolean().chain((isSwapped) =>
  isSwapped ? fc.tuple(source("r"), source("l")) : fc.tuple(source("l"), source("r"))
);

const byKeys = fc.tuple(
  fc.constantFrom("join", "left join", "right join", "full join"),
  sides,
  fc.constantFrom(["k"], ["w"], ["v"], ["k", "i"], ["k", "sym"], ["v", "sym"]),
  fc.constantFrom("", "", " and a.d > b.d"),
).map(([kind, [left, right], keys, more]) =>
  `${left} a ${kind} ${right} b on ${keys.map((key) => `a.${key} = b.${key}`).join(" and ")}${more}`
);

/** The keys in `k` and `v` are so many that the last row of each does not fit into little memory. */
const timeKeys = fc.constantFrom("", " on (sym)", " on (i, sym)", " on (k)", " on (v)", " on (k, sym)");

const byTime = fc.oneof(
  fc.tuple(fc.constantFrom("asof", "lt"), sides, timeKeys, fc.constantFrom("", "", " tolerance 20s")),
  fc.tuple(fc.constant("splice"), sides, timeKeys, fc.constant("")),
).map(([kind, [left, right], keys, tolerance]) => `${left} a ${kind} join ${right} b${keys}${tolerance}`);

const ROW = "coalesce(a.x, 0) x, coalesce(b.x, 0) y, a.sym s, b.sym s2, a.d, b.d e, length(b.v) n";

/** What is made of the pairs. */
const FORMS: ((pairs: string) => string)[] = [
  (pairs) => `select count(), count(a.x), sum(a.x), sum(b.x), sum(a.d), max(b.d), min(b.k), count(b.sym) from ${pairs}`,
  (pairs) =>
    `select a.sym s, b.i, count() c, sum(a.x) x, sum(b.x) y, min(b.d) low, max(a.d) high from ${pairs} group by a.sym, b.i order by s, b.i, c, x, y`,
  (pairs) =>
    `select count(), sum(c * (n % 1009)), sum(f * (n % 10007)) from (select *, row_number() over () n from
       (select a.k, b.sym, count() c, first(coalesce(a.x, b.x)) f from ${pairs} group by a.k, b.sym))`,
  (pairs) =>
    `select count(), sum(x * (r % 10007)), sum(y * (r % 10007)), count(s), count(s2), sum(d), sum(e), sum(n * (r % 1009)) from
       (select *, row_number() over () r from (select ${ROW} from ${pairs}))`,
  (pairs) => `select ${ROW} from ${pairs} order by e desc, d, x, y limit 15`,
];

/** These keep the rows of windows, and the last row of each key. */
const windowKeys = fc.constantFrom("", " on (sym)", " on (i, sym)", " on a.sym = b.sym and b.x % 3 = 1");

const windowed = fc.tuple(
  sides,
  windowKeys,
  fc.constantFrom("5 milliseconds preceding", "20000 preceding", "current row"),
  fc.constantFrom("current row", "40 milliseconds following"),
  fc.constantFrom("", " exclude prevailing"),
).map(([[left, right], keys, start, end, prevailing]) =>
  `select count(), sum(n * (x % 1009)), sum(s * (x % 10007)), count(y), sum(m), sum(length(v) * (x % 1009)) from
     (select a.x, count() n, sum(b.x) s, last(b.sym) y, max(b.d) m, first(b.v) v
      from ${left} a window join ${right} b${keys} range between ${start} and ${end}${prevailing})`
);

const atHorizons = fc.tuple(
  sides,
  fc.constantFrom("", " on (sym)", " on (i, sym)"),
  fc.constantFrom("list (-1s, 0, 50T)", "range from -100T to 100T step 20T"),
).map(([[left, right], keys, offsets]) =>
  `select h.offset o, a.sym s, count() c, sum(a.x) x, sum(b.x) y, min(b.d) low, max(b.v) high
   from ${left} a horizon join ${right} b${keys} ${offsets} as h order by o, s`
);

export const joinQuery: fc.Arbitrary<string> = fc.oneof(
  {
    arbitrary: fc.tuple(fc.oneof(byKeys, byTime), fc.constantFrom(...FORMS)).map(([pairs, form]) => form(pairs)),
    weight: 4,
  },
  { arbitrary: fc.oneof(windowed, atHorizons), weight: 1 },
);
