/** Reference implementations of the aggregates for tests: from all rows of a group, in order, to the result. */
import { decimalOf } from "../../types/wide.ts";
import type { Value } from "../../types/mod.ts";

/** `rows`: the arguments of each row. `types`: the argument types. `type`: the result type. */
export type AggregateReference = (rows: Value[][], types: readonly string[], type: string) => Value;

type Known = Exclude<Value, null>;
const isNull = (value: Value): boolean => value === null || (typeof value === "number" && !Number.isFinite(value));
const known = (rows: Value[][]): Known[] => rows.map(([value]) => value).filter((value) => !isNull(value)) as Known[];
/** The rows without a null argument, as numbers. */
const numbers = (rows: Value[][]): number[][] => rows.filter((row) => !row.some(isNull)).map((row) => row.map(Number));

const isWhole = (type: string): boolean => !["FLOAT", "DOUBLE"].includes(type);
const total = (values: number[]): number => values.reduce((sum, x) => sum + x, 0);
const mean = (values: number[]): number => total(values) / values.length;

/** Order of values: texts by UTF-8 bytes, others by value. */
function compare(a: Value, b: Value): number {
  if (typeof a === "string" && typeof b === "string") {
    const x = new TextEncoder().encode(a), y = new TextEncoder().encode(b);
    const k = x.findIndex((byte, i) => byte !== y[i]);
    return k < 0 ? x.length - y.length : y[k] === undefined ? 1 : x[k] - y[k];
  }
  return a! < b! ? -1 : a! > b! ? 1 : 0;
}

const of = (reduce: (values: Known[]) => Value): AggregateReference => (rows) => {
  const values = known(rows);
  return values.length === 0 ? null : reduce(values);
};

const sum: AggregateReference = (rows, [type]) => {
  const values = known(rows);
  if (values.length === 0) return null;
  return isWhole(type) ? values.reduce<bigint>((a, b) => a + BigInt(b), 0n) : total(values.map(Number));
};

const average: AggregateReference = (rows, [type], result) => {
  const values = known(rows), decimal = decimalOf(type);
  if (values.length === 0) return null;
  if (decimal === undefined) return mean(values.map(Number));
  const all = values.reduce<bigint>((a, b) => a + BigInt(b), 0n), count = BigInt(values.length);
  // Rounded to the result's digits, halves to the even digit.
  const shift = decimalOf(result)!.scale - decimal.scale;
  const [value, divisor] = shift < 0 ? [all, count * 10n ** BigInt(-shift)] : [all * 10n ** BigInt(shift), count];
  const size = value < 0n ? -value : value, whole = size / divisor, twice = 2n * (size % divisor);
  const rounded = twice > divisor || (twice === divisor && whole % 2n === 1n) ? whole + 1n : whole;
  return value < 0n ? -rounded : rounded;
};

const extreme = (sign: number): AggregateReference =>
  of((values) => values.reduce((best, value) => compare(value, best) * sign > 0 ? value : best));

/** Element by element, over arrays of any shape. An element is null if no array has it. */
const elements = (reduce: (values: number[]) => number): AggregateReference =>
  of((values) => {
    const combined = (items: unknown[]): unknown => {
      const lists = items.filter(Array.isArray);
      if (lists.length === 0) {
        const there = items.filter((item) => typeof item === "number") as number[];
        return there.length === 0 ? null : reduce(there);
      }
      const length = Math.max(...lists.map((list) => list.length));
      return Array.from({ length }, (_, k) => combined(lists.map((list) => list[k])));
    };
    return JSON.stringify(combined(values.map((value) => JSON.parse(value as string))));
  });

const distinct = (values: Known[]): Known[] => [...new Set(values)];

const spread = (freedom: number, root: boolean): AggregateReference => (rows) => {
  const values = numbers(rows).map(([x]) => x);
  if (values.length <= freedom) return null;
  const center = mean(values);
  const variance = total(values.map((x) => (x - center) ** 2)) / (values.length - freedom);
  return root ? Math.sqrt(variance) : variance;
};

/** By count and sums of powers of deviations from the mean. */
const shape =
  (finish: (n: number, m2: number, m3: number, m4: number) => number | null): AggregateReference => (rows) => {
    const values = numbers(rows).map(([x]) => x), center = values.length === 0 ? 0 : mean(values);
    const power = (k: number) => total(values.map((x) => (x - center) ** k));
    return new Set(values).size < 2 ? null : finish(values.length, power(2), power(3), power(4));
  };

const sampleSkewness = (n: number, m2: number, m3: number) =>
  n > 2 ? n * Math.sqrt(n - 1) / (n - 2) * m3 / m2 ** 1.5 : null;
const sampleKurtosis = (n: number, m2: number, _: number, m4: number) =>
  n > 3 ? (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * (n * m4 / m2 ** 2 - 3) + 6) : null;

interface Pairs {
  n: number;
  meanX: number;
  meanY: number;
  xy: number;
  xx: number;
  yy: number;
}
const pairs = (finish: (p: Pairs) => number | null): AggregateReference => (rows) => {
  const both = numbers(rows);
  if (both.length === 0) return null;
  const ys = both.map(([y]) => y), xs = both.map(([, x]) => x), meanY = mean(ys), meanX = mean(xs);
  const product = (a: number[], b: number[], ma: number, mb: number) => total(a.map((v, k) => (v - ma) * (b[k] - mb)));
  const [xy, xx, yy] = [product(xs, ys, meanX, meanY), product(xs, xs, meanX, meanX), product(ys, ys, meanY, meanY)];
  // Rounding errors of a constant side count as 0.
  const clean = (x: number) => (x < 1e-20 ? 0 : x);
  return finish({ n: both.length, meanX, meanY, xy, xx: clean(xx), yy: clean(yy) });
};

const weighted = (counts: (weight: number) => boolean): AggregateReference => (rows) => {
  const both = numbers(rows).filter(([, weight]) => counts(weight));
  const weights = total(both.map(([, w]) => w));
  return weights === 0 ? null : total(both.map(([x, w]) => x * w)) / weights;
};

const weightedSpread = (freedom: (weights: number, squares: number) => number): AggregateReference => (rows) => {
  const both = numbers(rows).filter(([, weight]) => weight !== 0);
  const weights = total(both.map(([, w]) => w)), squares = total(both.map(([, w]) => w * w));
  const left = weights === 0 ? 0 : freedom(weights, squares);
  if (!(left > 0)) return null;
  const center = total(both.map(([x, w]) => x * w)) / weights;
  return Math.sqrt(total(both.map(([x, w]) => w * (x - center) ** 2)) / left);
};

const bits = (reduce: (a: bigint, b: bigint) => bigint): AggregateReference => (rows, _, type) => {
  const values = known(rows).map((value) => BigInt(value));
  if (values.length === 0) return type === "INT" || type === "LONG" ? null : 0;
  const result = values.reduce(reduce);
  return type === "LONG" ? result : Number(result);
};

/** The argument of the row with the best key, the first one of equals. Rows without a key are left out. */
const best = (sign: number): AggregateReference => (rows, _, type) => {
  const there = rows.filter(([, key]) => !isNull(key));
  if (there.length === 0) return null;
  const [value] = there.reduce((now, row) => compare(row[1], now[1]) * sign > 0 ? row : now);
  return isNull(value) ? null : type === "DOUBLE" ? Number(value) : value;
};

const twap: AggregateReference = (rows) => {
  const both = numbers(rows);
  if (both.length === 0) return null;
  let area = 0, span = 0;
  for (let k = 1; k < both.length; k++) {
    const gap = both[k][1] - both[k - 1][1];
    area += both[k - 1][0] * gap;
    span += gap;
  }
  return span > 0 ? area / span : mean(both.map(([price]) => price));
};

/** Distance on a sphere, in kilometres. */
function kilometres([latitude, longitude]: number[], [latitude2, longitude2]: number[]): number {
  const point = (lat: number, lon: number) => {
    const [a, b] = [lat * Math.PI / 180, lon * Math.PI / 180];
    return [Math.cos(a) * Math.cos(b), Math.cos(a) * Math.sin(b), Math.sin(a)];
  };
  const p = point(latitude, longitude), q = point(latitude2, longitude2);
  const chord = Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
  return 2 * 6371.088 * Math.asin(Math.min(1, chord / 2));
}

const distance: AggregateReference = (rows) => {
  const there = rows.filter((row) => !row.some(isNull)).map((row) => row.map(Number));
  if (there.length === 0) return null;
  return total(there.slice(1).map((point, k) => kilometres(there[k], point)));
};

/** Exact if integers are counted exactly, which they are up to twenty. */
const percentile = (rows: Value[][], fraction: number): Value => {
  const values = known(rows).map(Number).sort((a, b) => a - b);
  return values.length === 0 ? null : values[Math.max(1, Math.ceil(fraction * values.length)) - 1];
};

const missing = (type: string): Value => type === "BOOLEAN" ? false : type === "BYTE" || type === "SHORT" ? 0 : null;
const end = (rows: Value[][], k: number, type: string): Value => rows.length === 0 ? missing(type) : rows.at(k)![0];
const knownEnd = (rows: Value[][], k: number): Value => known(rows).at(k) ?? null;

export const AGGREGATES: Record<string, AggregateReference> = {
  count: (rows) => BigInt(rows.filter(([value]) => value === undefined || !isNull(value)).length),
  sum,
  ksum: sum,
  nsum: sum,
  avg: average,
  min: extreme(-1),
  max: extreme(1),
  first: (rows, [type]) => end(rows, 0, type),
  last: (rows, [type]) => end(rows, -1, type),
  first_not_null: (rows, [type]) => knownEnd(rows, 0) ?? missing(type),
  last_not_null: (rows, [type]) => knownEnd(rows, -1) ?? missing(type),
  bool_and: (rows) => rows.length > 0 && rows.every(([value]) => value === true),
  bool_or: (rows) => rows.some(([value]) => value === true),
  bit_and: bits((a, b) => a & b),
  bit_or: bits((a, b) => a | b),
  bit_xor: bits((a, b) => a ^ b),
  count_distinct: (rows) => BigInt(distinct(known(rows)).length),
  approx_count_distinct: (rows) => BigInt(distinct(known(rows)).length),
  mode: of((values) => {
    const counts = new Map<Known, number>();
    for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
    return [...counts].reduce((most, next) => next[1] > most[1] ? next : most)[0];
  }),
  string_agg: (rows) => known(rows).length === 0 ? null : known(rows).join(String(rows[0][1])),
  string_distinct_agg: (rows) => known(rows).length === 0 ? null : distinct(known(rows)).join(String(rows[0][1])),
  geomean: (rows) => {
    const values = numbers(rows).map(([x]) => x);
    return values.length === 0 || values.some((x) => x <= 0) ? null : Math.exp(mean(values.map(Math.log)));
  },
  haversine_dist_deg: distance,
  approx_percentile: (rows) => rows.length === 0 ? null : percentile(rows, Number(rows[0][1])),
  approx_median: (rows) => percentile(rows, 0.5),
  array_elem_min: elements((values) => Math.min(...values)),
  array_elem_max: elements((values) => Math.max(...values)),
  array_elem_sum: elements(total),
  array_elem_avg: elements(mean),
  variance: spread(1, false),
  var_samp: spread(1, false),
  var_pop: spread(0, false),
  stddev: spread(1, true),
  stddev_samp: spread(1, true),
  stddev_pop: spread(0, true),
  skewness: shape(sampleSkewness),
  skewness_samp: shape(sampleSkewness),
  skewness_pop: shape((n, m2, m3) => Math.sqrt(n) * m3 / m2 ** 1.5),
  kurtosis: shape(sampleKurtosis),
  kurtosis_samp: shape(sampleKurtosis),
  kurtosis_pop: shape((n, m2, _, m4) => n * m4 / m2 ** 2 - 3),
  covar_samp: pairs(({ n, xy }) => n > 1 ? xy / (n - 1) : null),
  covar_pop: pairs(({ n, xy }) => xy / n),
  corr: pairs(({ xy, xx, yy }) => xx * yy > 0 ? xy / Math.sqrt(xx) / Math.sqrt(yy) : null),
  regr_slope: pairs(({ n, xy, xx }) => n > 1 && xx > 0 ? xy / xx : null),
  regr_r2: pairs(({ n, xy, xx, yy }) => n > 1 && xx > 0 ? yy > 0 ? xy * xy / xx / yy : 1 : null),
  regr_intercept: pairs(({ n, meanX, meanY, xy, xx }) => n > 1 && xx > 0 ? meanY - xy / xx * meanX : null),
  vwap: weighted((volume) => volume > 0),
  weighted_avg: weighted((weight) => weight !== 0),
  weighted_stddev: weightedSpread((weights, squares) => weights - squares / weights),
  weighted_stddev_rel: weightedSpread((weights, squares) => weights - squares / weights),
  weighted_stddev_freq: weightedSpread((weights) => weights - 1),
  twap,
  arg_min: best(-1),
  arg_max: best(1),
  // Null is the smallest value.
  isordered: (rows) =>
    rows.every(([value], k) =>
      k === 0 || rows[k - 1][0] === null || (value !== null && compare(rows[k - 1][0], value) <= 0)
    ),
};
