/** Aggregates over moments and weights: variance, covariance, regression, weighted means, prices. All are fused. */
import { NULL_I64 } from "../../types/mod.ts";
import { f64, i32, i64, type IrNode, select } from "../../engine/compiler/ir.ts";
import type { FunctionEntry, FusedAggregate } from "./entry.ts";
import {
  finite,
  MIN64,
  NAN64,
  notNull,
  ONE64,
  TIMES,
  toF64,
  toI64,
  whenNotNull,
  withExamples,
  ZERO32,
  ZERO64,
} from "./nodes.ts";

type Fused = Omit<FusedAggregate, "kind">;
const F64 = { type: "f64", initial: 0 } as const;
const I64 = { type: "i64", initial: 0n } as const;
const ZERO = f64.const(0), ONE = f64.const(1);

function aggregate(
  name: string,
  args: [name: string, type: string][],
  returns: string,
  summary: string,
  fused: Fused,
): FunctionEntry {
  return {
    name,
    args: args.map(([name, type]) => ({ name, type })),
    returns,
    nulls: "custom",
    volatility: "immutable",
    summary,
    examples: [],
    aggregate: { kind: "fused", ...fused },
  };
}

/** Keeps the state if the row is omitted. */
function when(keep: IrNode, next: IrNode[], state: IrNode[]): IrNode[] {
  return next.map((value, i) => select(keep, value, state[i]));
}

const entries: FunctionEntry[] = [];

/**
 * Count, mean, sum of squared deviations from the mean.
 * Sources: Welford 1962; Chan, Golub and LeVeque 1979 for the merge.
 */
const moments = (finish: (n: IrNode, m2: IrNode) => IrNode): Fused => ({
  state: () => [F64, F64, F64],
  update: (state, [x]) => {
    const [n, mean, m2] = state;
    const value = toF64(x);
    const count = f64.add(n, ONE);
    const delta = f64.sub(value, mean);
    const next = f64.add(mean, f64.div(delta, count));
    return when(finite(value), [count, next, f64.add(m2, f64.mul(delta, f64.sub(value, next)))], state);
  },
  merge: ([n, mean, m2], [n2, mean2, m22]) => {
    const count = f64.add(n, n2);
    const divisor = f64.max(count, ONE);
    const delta = f64.sub(mean2, mean);
    return [
      count,
      f64.add(mean, f64.div(f64.mul(delta, n2), divisor)),
      f64.add(f64.add(m2, m22), f64.div(f64.mul(f64.mul(f64.mul(delta, delta), n), n2), divisor)),
    ];
  },
  finish: ([n, , m2]) => finish(n, m2),
});
const sample = (n: IrNode, m2: IrNode) => select(f64.gt(n, ONE), f64.div(m2, f64.sub(n, ONE)), NAN64);
const population = (n: IrNode, m2: IrNode) => select(f64.gt(n, ZERO), f64.div(m2, n), NAN64);
const NUMBER: [string, string][] = [["value", "DOUBLE"]];
for (const name of ["variance", "var_samp"]) {
  entries.push(
    aggregate(name, NUMBER, "DOUBLE", "The sample variance. Null for fewer than two values.", moments(sample)),
  );
}
for (const name of ["stddev", "stddev_samp"]) {
  entries.push(
    aggregate(
      name,
      NUMBER,
      "DOUBLE",
      "The sample standard deviation. Null for fewer than two values.",
      moments((n, m2) => f64.sqrt(sample(n, m2))),
    ),
  );
}
entries.push(
  aggregate("var_pop", NUMBER, "DOUBLE", "The population variance.", moments(population)),
  aggregate(
    "stddev_pop",
    NUMBER,
    "DOUBLE",
    "The population standard deviation.",
    moments((n, m2) => f64.sqrt(population(n, m2))),
  ),
);

/**
 * Count, mean, sums of squared, cubed and fourth powers of deviations from the mean.
 * Source: Pébay, "Formulas for robust, one-pass parallel computation of covariances and arbitrary-order statistical moments", 2008.
 */
const shape = (finish: (s: { n: IrNode; m2: IrNode; m3: IrNode; m4: IrNode }) => IrNode): Fused => ({
  state: () => [F64, F64, F64, F64, F64],
  update: (state, [x]) => {
    const [before, mean, m2, m3, m4] = state, value = toF64(x);
    const n = f64.add(before, ONE), delta = f64.sub(value, mean), step = f64.div(delta, n), step2 = f64.mul(step, step);
    const term = f64.mul(f64.mul(delta, step), before);
    const fourth = f64.add(f64.mul(n, f64.sub(n, f64.const(3))), f64.const(3));
    const next = [
      n,
      f64.add(mean, step),
      f64.add(m2, term),
      f64.sub(
        f64.add(m3, f64.mul(f64.mul(term, step), f64.sub(n, f64.const(2)))),
        f64.mul(f64.mul(f64.const(3), step), m2),
      ),
      f64.sub(
        f64.add(
          f64.add(m4, f64.mul(f64.mul(term, step2), fourth)),
          f64.mul(f64.mul(f64.const(6), step2), m2),
        ),
        f64.mul(f64.mul(f64.const(4), step), m3),
      ),
    ];
    return when(finite(value), next, state);
  },
  merge: ([n1, mean1, a2, a3, a4], [n2, mean2, b2, b3, b4]) => {
    const n = f64.add(n1, n2), divisor = f64.max(n, ONE), delta = f64.sub(mean2, mean1), step = f64.div(delta, divisor);
    const product = f64.mul(n1, n2), difference = f64.sub(n1, n2), step2 = f64.mul(step, step);
    const sum = (first: IrNode, ...rest: IrNode[]) => rest.reduce((a, b) => f64.add(a, b), first);
    const times = (first: IrNode, ...rest: IrNode[]) => rest.reduce((a, b) => f64.mul(a, b), first);
    const squares = f64.add(f64.sub(f64.mul(n1, n1), product), f64.mul(n2, n2));
    return [
      n,
      f64.add(mean1, f64.mul(step, n2)),
      sum(a2, b2, times(delta, step, product)),
      sum(
        a3,
        b3,
        times(delta, step2, product, difference),
        times(f64.const(3), step, f64.sub(f64.mul(n1, b2), f64.mul(n2, a2))),
      ),
      sum(
        a4,
        b4,
        times(delta, step2, step, product, squares),
        times(f64.const(6), step2, f64.add(times(n1, n1, b2), times(n2, n2, a2))),
        times(f64.const(4), step, f64.sub(f64.mul(n1, b3), f64.mul(n2, a3))),
      ),
    ];
  },
  finish: ([n, , m2, m3, m4]) => select(f64.gt(m2, ZERO), finish({ n, m2, m3, m4 }), NAN64),
});
type Shape = Parameters<Parameters<typeof shape>[0]>[0];
const skewness = ({ n, m2, m3 }: Shape) => f64.div(f64.mul(f64.sqrt(n), m3), f64.mul(m2, f64.sqrt(m2)));
const kurtosis = ({ n, m2, m4 }: Shape) => f64.sub(f64.div(f64.mul(n, m4), f64.mul(m2, m2)), f64.const(3));
const sampleSkewness = (s: Shape) => {
  const factor = f64.div(f64.sqrt(f64.mul(s.n, f64.sub(s.n, ONE))), f64.sub(s.n, f64.const(2)));
  return select(f64.gt(s.n, f64.const(2)), f64.mul(skewness(s), factor), NAN64);
};
const sampleKurtosis = (s: Shape) => {
  const { n } = s, divisor = f64.mul(f64.sub(n, f64.const(2)), f64.sub(n, f64.const(3)));
  const sum = f64.add(f64.mul(f64.add(n, ONE), kurtosis(s)), f64.const(6));
  return select(f64.gt(n, f64.const(3)), f64.mul(f64.div(f64.sub(n, ONE), divisor), sum), NAN64);
};
for (const name of ["skewness", "skewness_samp"]) {
  entries.push(
    aggregate(
      name,
      NUMBER,
      "DOUBLE",
      "The sample skewness. Null for fewer than three values, and if all are equal.",
      shape(sampleSkewness),
    ),
  );
}
for (const name of ["kurtosis", "kurtosis_samp"]) {
  entries.push(
    aggregate(
      name,
      NUMBER,
      "DOUBLE",
      "The sample excess kurtosis: 0 for a normal distribution. Null for fewer than four values, and if all are equal.",
      shape(sampleKurtosis),
    ),
  );
}
entries.push(
  aggregate(
    "skewness_pop",
    NUMBER,
    "DOUBLE",
    "The population skewness. Null if all values are equal.",
    shape(skewness),
  ),
  aggregate(
    "kurtosis_pop",
    NUMBER,
    "DOUBLE",
    "The population excess kurtosis: 0 for a normal distribution. Null if all values are equal.",
    shape(kurtosis),
  ),
);

/** Count, means of y and x, sums of products of deviations: xy, xx, yy. Rows with a null in either are left out. */
const pairs = (
  finish: (s: { n: IrNode; meanY: IrNode; meanX: IrNode; xy: IrNode; xx: IrNode; yy: IrNode }) => IrNode,
): Fused => ({
  state: () => [F64, F64, F64, F64, F64, F64],
  update: (state, [y, x]) => {
    const [n, meanY, meanX, xy, xx, yy] = state;
    const count = f64.add(n, ONE);
    const dy = f64.sub(y, meanY), dx = f64.sub(x, meanX);
    const nextY = f64.add(meanY, f64.div(dy, count)), nextX = f64.add(meanX, f64.div(dx, count));
    const next = [
      count,
      nextY,
      nextX,
      f64.add(xy, f64.mul(dx, f64.sub(y, nextY))),
      f64.add(xx, f64.mul(dx, f64.sub(x, nextX))),
      f64.add(yy, f64.mul(dy, f64.sub(y, nextY))),
    ];
    return when(i32.and(finite(x), finite(y)), next, state);
  },
  merge: (a, b) => {
    const count = f64.add(a[0], b[0]);
    const divisor = f64.max(count, ONE);
    const dy = f64.sub(b[1], a[1]), dx = f64.sub(b[2], a[2]);
    const weight = f64.div(f64.mul(a[0], b[0]), divisor);
    const joined = (i: number, product: IrNode) => f64.add(f64.add(a[i], b[i]), f64.mul(product, weight));
    return [
      count,
      f64.add(a[1], f64.div(f64.mul(dy, b[0]), divisor)),
      f64.add(a[2], f64.div(f64.mul(dx, b[0]), divisor)),
      joined(3, f64.mul(dx, dy)),
      joined(4, f64.mul(dx, dx)),
      joined(5, f64.mul(dy, dy)),
    ];
  },
  finish: ([n, meanY, meanX, xy, xx, yy]) => finish({ n, meanY, meanX, xy, xx, yy }),
});
const PAIR: [string, string][] = [["y", "DOUBLE"], ["x", "DOUBLE"]];
const positive = (test: IrNode, value: IrNode) => select(f64.gt(test, ZERO), value, NAN64);
entries.push(
  aggregate(
    "covar_samp",
    PAIR,
    "DOUBLE",
    "The sample covariance. Null for fewer than two pairs.",
    pairs(({ n, xy }) => select(f64.gt(n, ONE), f64.div(xy, f64.sub(n, ONE)), NAN64)),
  ),
  aggregate(
    "covar_pop",
    PAIR,
    "DOUBLE",
    "The population covariance.",
    pairs(({ n, xy }) => positive(n, f64.div(xy, n))),
  ),
  aggregate(
    "corr",
    PAIR,
    "DOUBLE",
    "Pearson's correlation. Null if one side is constant.",
    pairs(({ xy, xx, yy }) => positive(f64.mul(xx, yy), f64.div(xy, f64.mul(f64.sqrt(xx), f64.sqrt(yy))))),
  ),
  aggregate(
    "regr_slope",
    PAIR,
    "DOUBLE",
    "The slope of the least-squares line of y over x.",
    pairs(({ n, xy, xx }) => select(f64.gt(n, ONE), positive(xx, f64.div(xy, xx)), NAN64)),
  ),
  aggregate(
    "regr_r2",
    PAIR,
    "DOUBLE",
    "The coefficient of determination of the least-squares line of y over x: 1 if y is constant, null if x is.",
    pairs(({ n, xy, xx, yy }) => {
      const share = select(f64.gt(yy, ZERO), f64.mul(f64.div(xy, xx), f64.div(xy, yy)), ONE);
      return select(f64.gt(n, ONE), positive(xx, share), NAN64);
    }),
  ),
  aggregate(
    "regr_intercept",
    PAIR,
    "DOUBLE",
    "The intercept of the least-squares line of y over x.",
    pairs(({ n, meanX, meanY, xy, xx }) =>
      select(f64.gt(n, ONE), positive(xx, f64.sub(meanY, f64.mul(f64.div(xy, xx), meanX))), NAN64)
    ),
  ),
);

/** Σ value·weight and Σ weight over the rows where neither is null and the weight counts. */
const weighted = (counts: (weight: IrNode) => IrNode): Fused => ({
  state: () => [F64, F64],
  update: (state, [value, weight]) => {
    const keep = i32.and(i32.and(finite(value), finite(weight)), counts(weight));
    return when(keep, [f64.add(state[0], f64.mul(value, weight)), f64.add(state[1], weight)], state);
  },
  merge: ([a, b], [c, d]) => [f64.add(a, c), f64.add(b, d)],
  finish: ([sum, weights]) => select(f64.ne(weights, ZERO), f64.div(sum, weights), NAN64),
});
entries.push(
  aggregate(
    "vwap",
    [["price", "DOUBLE"], ["volume", "DOUBLE"]],
    "DOUBLE",
    "The volume-weighted average price, of the rows whose volume is above 0.",
    weighted((volume) => f64.gt(volume, ZERO)),
  ),
  aggregate(
    "weighted_avg",
    [["value", "DOUBLE"], ["weight", "DOUBLE"]],
    "DOUBLE",
    "The weighted mean. Null if the sum of the weights is 0.",
    weighted((weight) => f64.ne(weight, ZERO)),
  ),
);

/** Σw, Σw², mean, sum of weighted squared deviations (West 1979). */
const weightedSpread = (finish: (w: IrNode, w2: IrNode, s: IrNode) => IrNode): Fused => ({
  state: () => [F64, F64, F64, F64],
  update: (state, [x, w]) => {
    const [sum, squares, mean, spread] = state;
    const next = f64.add(sum, w);
    const delta = f64.sub(x, mean);
    const nextMean = f64.add(mean, f64.div(f64.mul(w, delta), next));
    const keep = i32.and(i32.and(finite(x), finite(w)), f64.ne(w, ZERO));
    return when(keep, [
      next,
      f64.add(squares, f64.mul(w, w)),
      nextMean,
      f64.add(spread, f64.mul(f64.mul(w, delta), f64.sub(x, nextMean))),
    ], state);
  },
  merge: ([w, w2, mean, s], [v, v2, mean2, s2]) => {
    const sum = f64.add(w, v);
    const divisor = select(f64.eq(sum, ZERO), ONE, sum);
    const delta = f64.sub(mean2, mean);
    return [
      sum,
      f64.add(w2, v2),
      f64.add(mean, f64.div(f64.mul(delta, v), divisor)),
      f64.add(f64.add(s, s2), f64.div(f64.mul(f64.mul(f64.mul(delta, delta), w), v), divisor)),
    ];
  },
  finish: ([w, w2, , s]) => finish(w, w2, s),
});
const reliability = weightedSpread((w, w2, s) => {
  const freedom = f64.sub(w, f64.div(w2, select(f64.eq(w, ZERO), ONE, w)));
  return positive(freedom, f64.sqrt(f64.div(s, freedom)));
});
const WEIGHTED: [string, string][] = [["value", "DOUBLE"], ["weight", "DOUBLE"]];
for (const name of ["weighted_stddev", "weighted_stddev_rel"]) {
  entries.push(
    aggregate(
      name,
      WEIGHTED,
      "DOUBLE",
      "The weighted standard deviation; weights are reliabilities.",
      reliability,
    ),
  );
}
entries.push(
  aggregate(
    "weighted_stddev_freq",
    WEIGHTED,
    "DOUBLE",
    "The weighted standard deviation; weights are frequencies.",
    weightedSpread((w, _, s) => {
      const freedom = f64.sub(w, ONE);
      return positive(freedom, f64.sqrt(f64.div(s, freedom)));
    }),
  ),
);

/** Sum, compensation, count. Source: Neumaier 1974. */
const compensated: Fused = {
  state: () => [F64, F64, I64],
  update: (state, [x]) => {
    const [sum, rest, n] = state;
    const total = f64.add(sum, x);
    const lost = select(
      f64.ge(f64.abs(sum), f64.abs(x)),
      f64.add(f64.sub(sum, total), x),
      f64.add(f64.sub(x, total), sum),
    );
    return when(finite(x), [total, f64.add(rest, lost), i64.add(n, ONE64)], state);
  },
  merge: ([sum, rest, n], [x, rest2, m]) => {
    const total = f64.add(sum, x);
    const lost = select(
      f64.ge(f64.abs(sum), f64.abs(x)),
      f64.add(f64.sub(sum, total), x),
      f64.add(f64.sub(x, total), sum),
    );
    return [total, f64.add(f64.add(rest, rest2), lost), i64.add(n, m)];
  },
  finish: ([sum, rest, n]) => select(i64.eqz(n), NAN64, f64.add(sum, rest)),
};
entries.push(
  aggregate("ksum", NUMBER, "DOUBLE", "The sum with compensation for rounding.", compensated),
  aggregate("nsum", NUMBER, "DOUBLE", "The sum with compensation for rounding, by Neumaier.", compensated),
);

/**
 * Σ price·time to the next row, Σ time, Σ price, count; then the first row's time and the last row's price and time, so
 * that runs of rows can be merged.
 */
const twap: Fused = {
  ordered: true,
  state: () => [F64, F64, F64, I64, I64, F64, I64],
  update: (state, [price, time]) => {
    const [area, span, sum, n, first, lastPrice, lastTime] = state;
    const isFirst = i64.eqz(n);
    const gap = select(isFirst, ZERO, f64.convertI64(i64.sub(time, lastTime)));
    const next = [
      f64.add(area, f64.mul(lastPrice, gap)),
      f64.add(span, gap),
      f64.add(sum, price),
      i64.add(n, ONE64),
      select(isFirst, time, first),
      price,
      time,
    ];
    return when(i32.and(finite(price), i64.ne(time, MIN64)), next, state);
  },
  merge: (a, b) => {
    const empty = i32.or(i64.eqz(a[3]), i64.eqz(b[3]));
    const gap = select(empty, ZERO, f64.convertI64(i64.sub(b[4], a[6])));
    const joined = [
      f64.add(f64.add(a[0], b[0]), f64.mul(a[5], gap)),
      f64.add(f64.add(a[1], b[1]), gap),
      f64.add(a[2], b[2]),
      i64.add(a[3], b[3]),
      select(i64.eqz(a[3]), b[4], a[4]),
      select(i64.eqz(b[3]), a[5], b[5]),
      select(i64.eqz(b[3]), a[6], b[6]),
    ];
    return joined;
  },
  finish: ([area, span, sum, n]) =>
    select(i64.eqz(n), NAN64, select(f64.gt(span, ZERO), f64.div(area, span), f64.div(sum, f64.convertI64(n)))),
};
for (const time of ["TIMESTAMP", "TIMESTAMP_NS"]) {
  entries.push(
    aggregate("twap", [["price", "DOUBLE"], ["time", time]], "DOUBLE", "The average price, weighted by time.", twap),
  );
}

const KEYS = ["LONG", "DOUBLE", ...TIMES];
const longOf = (int: IrNode) => whenNotNull(int, "INT", toI64(int), MIN64);

/** The key of the best row so far, its value, and whether there was one. Among equal keys the first row wins. */
for (const [name, greatest] of [["arg_min", false], ["arg_max", true]] as const) {
  for (const valueType of ["CHAR", "INT", "LONG", "DOUBLE", ...TIMES]) {
    for (const keyType of valueType === "INT" ? ["INT", ...KEYS] : KEYS) {
      // As in QuestDB, integers by a LONG are DOUBLE.
      const returns = valueType !== "INT" ? valueType : keyType === "LONG" ? "DOUBLE" : "LONG";
      const float = returns === "DOUBLE";
      const kept = (x: IrNode) => {
        if (valueType === "INT") return float ? whenNotNull(x, "INT", toF64(x), NAN64) : longOf(x);
        return valueType === "CHAR" ? i64.extendU(x) : x;
      };
      const beats = (key: IrNode, best: IrNode) =>
        keyType === "DOUBLE"
          ? (greatest ? f64.gt(key, best) : f64.lt(key, best))
          : (greatest ? i64.gtS(key, best) : i64.ltS(key, best));
      entries.push(
        aggregate(
          name,
          [["value", valueType], ["key", keyType]],
          returns,
          `The value of the first row with the ${greatest ? "greatest" : "smallest"} key.`,
          {
            ordered: true, // among equal keys the first row wins
            state: () => [
              keyType === "DOUBLE" ? F64 : I64,
              float ? { type: "f64", initial: NaN } : { type: "i64", initial: NULL_I64 },
              I64,
            ],
            update: (state, [value, given]) => {
              const key = keyType === "INT" ? longOf(given) : given;
              const keep = i32.and(notNull(given, keyType)!, i32.or(i64.eqz(state[2]), beats(key, state[0])));
              return when(keep, [key, kept(value), ONE64], state);
            },
            merge: (a, b) => when(i32.and(i64.ne(b[2], ZERO64), i32.or(i64.eqz(a[2]), beats(b[0], a[0]))), b, a),
            finish: ([, value, n]) => valueType === "CHAR" ? select(i64.eqz(n), ZERO32, i32.wrap(value)) : value,
          },
        ),
      );
    }
  }
}

/** First and last value, whether there was one, and whether the value ever decreased. */
for (const type of ["BYTE", "SHORT", "INT", "LONG", ...TIMES, "IPv4"]) {
  entries.push(
    aggregate(
      "isordered",
      [["value", type]],
      "BOOLEAN",
      "True if no value is less than the value of the previous row.",
      {
        ordered: true,
        state: () => [I64, I64, I64, I64],
        update: ([first, last, seen, fell], [x]) => {
          const value = type === "IPv4" ? i64.extendU(x) : toI64(x);
          return [
            select(i64.eqz(seen), value, first),
            value,
            ONE64,
            i64.or(fell, i64.extendU(i32.and(i64.ne(seen, ZERO64), i64.ltS(value, last)))),
          ];
        },
        merge: ([first, last, seen, fell], [first2, last2, seen2, fell2]) => {
          const both = i32.and(i64.ne(seen, ZERO64), i64.ne(seen2, ZERO64));
          return [
            select(i64.eqz(seen), first2, first),
            select(i64.eqz(seen2), last, last2),
            i64.or(seen, seen2),
            i64.or(i64.or(fell, fell2), i64.extendU(i32.and(both, i64.ltS(first2, last)))),
          ];
        },
        finish: ([, , , fell]) => i64.eqz(fell),
      },
    ),
  );
}

export const statisticsFunctions = withExamples(entries, {
  variance: [["SELECT variance(x) FROM long_sequence(3)", 1]],
  var_samp: [["SELECT var_samp(x) FROM long_sequence(3)", 1]],
  var_pop: [["SELECT var_pop(x) FROM long_sequence(2)", 0.25]],
  stddev: [["SELECT stddev(x) FROM long_sequence(3)", 1]],
  stddev_samp: [["SELECT stddev_samp(x) FROM long_sequence(3)", 1]],
  stddev_pop: [["SELECT stddev_pop(x) FROM long_sequence(2)", 0.5]],
  covar_samp: [["SELECT covar_samp(x, x) FROM long_sequence(3)", 1]],
  covar_pop: [["SELECT covar_pop(x, x) FROM long_sequence(2)", 0.25]],
  corr: [["SELECT corr(x, -x) FROM long_sequence(3)", -1]],
  regr_slope: [["SELECT regr_slope(2 * x + 1, x) FROM long_sequence(3)", 2]],
  regr_intercept: [["SELECT regr_intercept(2 * x + 1, x) FROM long_sequence(3)", 1]],
  vwap: [["SELECT vwap(x, x) FROM long_sequence(2)", 1.6666666666666667]],
  weighted_avg: [["SELECT weighted_avg(x, x) FROM long_sequence(2)", 1.6666666666666667]],
  weighted_stddev: [["SELECT weighted_stddev(x, 1) FROM long_sequence(3)", 1]],
  weighted_stddev_rel: [["SELECT weighted_stddev_rel(x, 1) FROM long_sequence(3)", 1]],
  weighted_stddev_freq: [["SELECT weighted_stddev_freq(x, 1) FROM long_sequence(3)", 1]],
  ksum: [["SELECT ksum(0.1) FROM long_sequence(10)", 1]],
  nsum: [["SELECT nsum(0.1) FROM long_sequence(10)", 1]],
  twap: [["SELECT twap(x, (x * x)::timestamp) FROM long_sequence(3)", 1.625]],
  arg_min: [["SELECT arg_min(x, -x) FROM long_sequence(3)", 3]],
  arg_max: [["SELECT arg_max(x, -x) FROM long_sequence(3)", 1]],
  isordered: [["SELECT isOrdered(x) FROM long_sequence(3)", true]],
});
