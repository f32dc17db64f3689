/** Tables, queries that need more than 24 MiB for them, and such that cannot do with less. */

export const ROWS = 550_000;
export const CREATE = [
  `create table t as (
    select timestamp_sequence('2024-01-01', 1000) ts, rnd_long(0, 400000, 0) k, rnd_int(0, 1000000, 0) i, rnd_double() d, x,
      rnd_symbol('a', 'bb', 'ccc', null) sym
    from long_sequence(${ROWS}, 3, 4)
  ) timestamp(ts) partition by day`,
  // Keys 1 … 1,000 have several rows, and half of the others have no match.
  `create table r as (
    select cast(case when x <= 20000 then x % 1000 else x * 2 end as long) k, x y, rnd_double() e, rnd_varchar(8, 16, 2) v,
      rnd_symbol('a', 'bb', 'zz', null) sym
    from long_sequence(280000, 5, 6)
  )`,
];

/** A number that depends on all values of a column and their order. */
const inOrder = (column: string) => `sum((${column} % 1000003) * (row_number % 10007))`;
const numbered = (query: string) => `(select *, row_number() over () row_number from (${query}))`;

/** Sums of floats depend on the order of the rows, and the last column on that of the groups. */
export const QUERIES: [shape: string, sql: string][] = [
  [
    "GROUP BY",
    `select count(), sum(s), sum(c), sum(f), sum(d * x) from (
       select s, c, f, d, row_number() over () x from (select k, sum(d) s, count() c, first(x) f, last(d) d from t group by k)
     )`,
  ],
  [
    "GROUP BY two keys",
    "select count(), sum(s), min(k), max(i) from (select k, i % 7 j, max(i) i, sum(d) s from t group by k, j)",
  ],
  [
    "GROUP BY and ORDER BY",
    "select k, sum(d) s, count() c from t where i > 1000 group by k order by s desc, k limit 10",
  ],
  ["DISTINCT", "select count(), sum(d), sum(k) from (select distinct k, d from t)"],
  ["count(DISTINCT)", "select count(distinct d) from t"],
  [
    "count(DISTINCT) beside others, by few keys",
    "select i % 2 m, count(distinct x) a, count(distinct d) b, last(sym), sum(x) from (select i, x, d, sym from t order by ts desc limit 500000) group by m order by m",
  ],
  [
    "count(DISTINCT) beside others",
    "select count(distinct x), count(distinct d), sum(i), first(k) from (select * from t order by ts desc limit 500000)",
  ],
  [
    "SAMPLE BY and a key",
    `select count(), max(d), ${inOrder("t")}, ${inOrder("x")}, sum(i) from ${
      numbered("select ts::long t, x, max(d) d, min(i) i from t sample by 1s")
    }`,
  ],
  [
    "count(DISTINCT) by buckets of time and a key",
    `select count(), ${inOrder("t")}, ${inOrder("k")}, sum(c) from ${
      numbered("select ts::long t, k, count(distinct x) c from t sample by 1s")
    }`,
  ],
  ["count(DISTINCT) by buckets of time", "select ts, count(distinct x) c, sum(i) from t sample by 1h order by ts"],
  ["count(DISTINCT) by key", "select k % 3 m, count(distinct d) from t group by m order by m"],
  [
    "GROUP BY text",
    `select count(), ${inOrder("f")}, sum(c), sum(s) from ${
      numbered("select k || '-key' t, count() c, sum(d) s, first(x) f from t where x < 350000 group by t")
    }`,
  ],
  [
    "GROUP BY text and symbol with other aggregates",
    `select count(), ${inOrder("f")}, sum(length(l)), last(l) from ${
      numbered(
        "select k || '' t, sym, string_agg(cast(i as string), ',') l, min(x) f from t where x < 150000 group by t, sym",
      )
    }`,
  ],
  [
    // Few groups at first, so that each range of the table has groups of its own.
    "sums of floats by text, in the same portions as in memory",
    `select count(), ${inOrder("f")}, ${inOrder("s")} from ${
      numbered(
        `select case when x < 70000 then 'few' else repeat('x', 200) || k % 10000 end t, cast(sum(d) * 1e13 as long) s, min(x) f
         from t where x < 300000 group by t`,
      )
    }`,
  ],
  [
    "count(DISTINCT) of two columns by text",
    `select count(), ${inOrder("a")}, ${inOrder("b")} from ${
      numbered("select k || '' t, count(distinct d) a, count(distinct i) b from t where x < 160000 group by t")
    }`,
  ],
  [
    "GROUP BY over a sub-query",
    `select count(), ${inOrder("f")}, sum(s) from ${
      numbered("select k, sum(d) s, min(x) f from (select k, d, x from t order by ts desc limit 500000) group by k")
    }`,
  ],
  [
    "DISTINCT over texts of a sub-query",
    `select count(), sum(length(a)), last(a), last(k) from (
       select distinct k, a, x from (select k, x, rpad('a', cast(k % 11 as int), 'b') a from t where x < 300000)
     )`,
  ],
  [
    "ORDER BY",
    `select count(), ${inOrder("x")}, ${inOrder("i")}, sum(d) from ${numbered("select * from t order by i desc, d")}`,
  ],
  [
    "ORDER BY text",
    `select count(), ${inOrder("x")}, first(s), last(s) from ${
      numbered("select x, k || '-' || i s, sym from t where x <= 300000 order by sym desc, s, x desc")
    }`,
  ],
  [
    "ORDER BY few values and a computed key",
    `select count(), ${inOrder("x")} from ${
      numbered("select *, rpad('', 30, 'z') pad from t order by sym, k % 3 desc")
    }`,
  ],
  [
    "ORDER BY with a large limit",
    `select count(), ${inOrder("x")}, ${inOrder("i")}, sum(d) from ${
      numbered("select * from t order by i desc, d limit 200000")
    }`,
  ],
  [
    "ORDER BY text with a large limit",
    `select count(), ${inOrder("x")}, first(s), last(s) from ${
      numbered("select x, k || '-' || i s, sym from t where x <= 300000 order by sym desc, s, x desc limit 150000")
    }`,
  ],
  [
    "the first rows with long texts",
    `select count(), ${inOrder("x")}, sum(length(pad)) from ${
      numbered(
        `select x, y, pad from t join (select y, repeat('z', 2999) || y pad from r where y < 1500) w on x % 1500 = y
         order by y % 7, x limit 9000`,
      )
    }`,
  ],
  ...["inner", "left", "right", "full"].map((type): [string, string] => [
    `${type} join`,
    `select count(), ${inOrder("x")}, ${inOrder("y")}, count(v), sum(length(v)) from ${
      numbered(`select t.x, r.y, r.v, t.sym, r.sym s2 from t ${type} join r on t.k = r.k`)
    }`,
  ]),
  [
    "join by two keys and a condition",
    `select count(), ${inOrder("x")}, ${inOrder("y")}, last(v) from ${
      numbered("select t.x, r.y, r.v from t left join r on t.k = r.k and t.sym = r.sym and r.e > t.d where t.i > 1000")
    }`,
  ],
  [
    "join by text",
    `select count(), ${inOrder("x")}, ${inOrder("y")} from ${
      numbered(
        "select a.x, b.y from (select x, k || '' s from t where x <= 300000) a join (select y, v, k || '' s from r) b on a.s = b.s",
      )
    }`,
  ],
  [
    "join, GROUP BY and ORDER BY with a limit",
    "select t.sym, count(), sum(r.y) y, max(r.e) e from t join r on t.k = r.k group by t.sym order by t.sym",
  ],
  ...["right", "full"].map((type): [string, string] => [
    `${type} join, GROUP BY and ORDER BY with a limit`,
    `select * from (select t.sym, r.sym s2, count() n, sum(r.y) y, sum(t.x) x, max(r.e) e from t ${type} join r on t.k = r.k group by t.sym, s2)
     union all
     select * from (select null::symbol, null::symbol, r.y n, t.x y, t.i x, r.e from t ${type} join r on t.k = r.k order by r.e desc, t.x, r.y limit 20)`,
  ]),
  ...["right", "full"].map((type): [string, string] => [
    `${type} join and GROUP BY with many groups`,
    `select count(), ${inOrder("y")}, ${inOrder("f")}, sum(n), sum(s) from ${
      numbered(
        `select r.y, t.k, count() n, sum(t.x) s, first(t.x) f from t ${type} join r on t.k = r.k group by r.y, t.k`,
      )
    }`,
  ]),
  ["join and ORDER BY with a limit", "select t.x, r.y, r.v from t join r on t.k = r.k order by r.e desc, t.x limit 20"],
  [
    "joins of joins",
    `select count(), sum(x), sum(y), sum(z) from (
       select t.x, r.y, s.y z from t join r on t.k = r.k join (select * from r where y % 3 = 0) s on s.y = t.x
     )`,
  ],
  ...["union", "except", "intersect", "except all", "intersect all"].map((operator): [string, string] => [
    operator,
    `select count(), ${inOrder("k")}, last(k), last(i) from ${
      numbered(`select k, i % 3 i from t ${operator} select x * 2, cast(x % 3 as int) from t`)
    }`,
  ]),
  ...["asof", "lt"].map((type): [string, string] => [
    `${type} join with many keys`,
    `select count(), sum(a.x), sum(b.x - a.x), count(b.x), max(b.d), sum(b.i) from t a ${type} join t b on (k)`,
  ]),
  [
    "asof join with many keys and a condition, below groups",
    `select a.sym, b.sym s2, count(), sum(b.x), max(b.d) from (select * from t where i > 300000) a asof join t b on (k, sym) order by 1, 2`,
  ],
  [
    "lt join by texts with a tolerance, in order",
    `select count(), ${inOrder("x")}, ${inOrder("y")}, count(y), last(v), sum(length(w)) from ${
      numbered(
        `select a.x, b.y, b.v, a.w from (select ts, x, k || 'key' w from t where x <= 300000) a lt join
         (select ts, x y, 'text ' || k % 1000 v, k || 'key' w from t where i != 3 and x <= 300000) b on (w) tolerance 100s`,
      )
    }`,
  ],
  [
    "asof join of sub-queries with computed times, in order",
    `select count(), ${inOrder("x")}, ${inOrder("y")}, last(s) from ${
      numbered(
        `select a.x, coalesce(b.y, 0) y, a.s from
         (select dateadd('s', cast(x / 1000 as int), '2024-01-01') ts, x, sym s, x % 250000 n from t limit 400000) timestamp(ts) a asof join
         (select dateadd('s', cast(x / 1500 as int), '2024-01-01') ts, x y, i, d, x % 250000 n from t order by ts, x) timestamp(ts) b on (n)`,
      )
    }`,
  ],
  ["splice join with many keys", "select count(), sum(a.i), sum(b.x), max(b.d) from t a splice join t b on (k)"],
  [
    "splice join with many keys and computed times, in order",
    `select count(), ${inOrder("x")}, ${inOrder("y")}, ${inOrder("s")}, sum(length(v)), sum(length(w)) from ${
      numbered(
        `select coalesce(a.x, 0) x, coalesce(b.y, 0) y, length(coalesce(a.sym, 'none')) s, b.v, a.w from
         (select dateadd('s', cast(x / 1000 as int), '2024-01-01') ts, x, sym, k || 'key' w from t where x <= 300000) timestamp(ts) a splice join
         (select dateadd('s', cast(x / 1500 as int), '2024-01-01') ts, x y, 'text ' || k % 1000 v, k || 'key' w from t where x <= 300000) timestamp(ts) b on (w)`,
      )
    }`,
  ],
  ["except without rows that are left", "select count() from (select k, d from t except select k, d from t)"],
  [
    "window functions by partition",
    `select count(), ${inOrder("x")}, ${inOrder("n")}, ${inOrder("before")}, max(s) from ${
      numbered(
        `select x, k, rank() over (partition by k order by d) n, lag(x) over (partition by k order by i, x) before,
         sum(i) over (partition by k, sym order by d rows between 3 preceding and current row) s from t`,
      )
    }`,
  ],
  [
    "window functions that need earlier rows only",
    `select count(), ${inOrder("x")}, ${inOrder("n")}, ${inOrder("before")}, sum(s) from ${
      numbered(
        `select x, row_number() over (partition by x % 300000 order by ts) n, lag(x) over (partition by x % 300000 order by ts) before,
         sum(d) over (partition by x % 300000 order by ts) s from t`,
      )
    }`,
  ],
  [
    "window functions by different keys",
    `select count(), ${inOrder("x")}, ${inOrder("n")}, ${inOrder("before")}, max(s) from ${
      numbered(
        `select x, k, rank() over (partition by k order by d) n, lag(x) over (partition by i order by x) before,
         sum(d) over (partition by i order by d) s from t`,
      )
    }`,
  ],
  [
    "window functions by different keys that need earlier rows only",
    `select count(), ${inOrder("x")}, ${inOrder("n")}, ${inOrder("before")}, ${inOrder("a")} from ${
      numbered(
        `select x, k, lag(x) over (partition by x % 300000 order by ts) before, row_number() over (order by ts) a,
         row_number() over (partition by k order by ts) n from t`,
      )
    }`,
  ],
  [
    "window functions over all rows, by several orders",
    `select count(), ${inOrder("x")}, ${inOrder("n")}, ${inOrder("r")}, ${
      inOrder("before")
    }, sum(s), sum(m), last(v), max(e) from ${
      numbered(
        `select x, k || 'text' v, sym, row_number() over (order by d) n, rank() over (order by sym desc, k) r, lag(x) over (order by d) before,
         sum(d) over (order by i, x) s, avg(d) over (order by d rows between 30 preceding and current row) m, max(d) over (order by i) e from t`,
      )
    }`,
  ],
  [
    "window functions over all rows, in their order",
    `select count(), ${inOrder("x")}, ${inOrder("n")}, sum(m), sum(d), max(s) from ${
      numbered(
        `select x, sym, count(i) over () n, avg(i) over (order by ts rows between 9 preceding and 2 preceding) m, d - avg(d) over () d,
         sum(d) over (order by ts) s from t`,
      )
    }`,
  ],
  [
    "window functions of near rows",
    `select count(), ${inOrder("x")}, ${inOrder("n")}, ${
      inOrder("b")
    }, sum(m), sum(s), last(v), sum(length(v)), max(y) from ${
      numbered(
        `select x, lead(x) over (order by ts) n, lag(x, 1000) over (order by d) b, min(d) over (order by ts rows between 99 preceding and current row) m,
         sum(d) over (order by ts rows between 5 preceding and current row) s, lead(w, 3) over (order by i, x) v,
         last_value(sym) over (order by k, x rows between 9 preceding and 2 preceding) y
         from (select ts, x, d, i, k, sym, k || '-text' w from t)`,
      )
    }`,
  ],
  [
    "window functions by keys and over all rows, in order of a window",
    `select count(), ${inOrder("x")}, ${inOrder("n")}, ${inOrder("y")}, sum(s) from ${
      numbered(
        `select x, row_number() over (order by k, x) n, rank() over (partition by k order by d) y, sum(d) over () s from t
         order by n desc limit 300000`,
      )
    }`,
  ],
  [
    "operators that spill beside each other",
    "select count(), max(x) from t where exists (select 1 from r where r.y = t.x)",
  ],
  ["LATEST ON by a number", "select count(), max(d), sum(x) from (t latest on ts partition by x)"],
];

/** They need less memory than all rows of the right side. Most write nothing. */
export const MERGED: string[] = ["asof", "lt"].flatMap((type) => [
  `select count(), sum(b.x), sum(b.k - a.k), max(b.d), sum(b.i) from t a ${type} join t b on (sym)`,
  `select a.sym, count(), sum(b.x), max(b.d), max(b.ts), sum(b.i) from (select ts, sym, k % 50 m from t where i > 10) a
   ${type} join (select ts, k % 50 m, x, d, i, k from t) b on (m) order by 1`,
  `select count(), ${inOrder("x")}, ${inOrder("y")} from ${
    numbered(`select a.x, b.x y, b.d, b.k, b.i, b.sym s from t a ${type} join t b on (sym)`)
  }`,
  `select count(), ${inOrder("x")}, ${inOrder("y")}, last(v), last(w), last(e) from ${
    numbered(
      `select a.x, b.y, b.v, b.w, b.e from (select ts, x, sym from t where x % 10 < 7) a ${type} join
       (select ts, x y, 'key ' || k % 1000 v, k * 3 w, d / 2 e, i, sym from t where i != 3) b on (sym)`,
    )
  }`,
]);

const SPLICED = "(select ts, sym, k % 50 m, x, d, i from t where i > 200000)";
MERGED.push(
  "select count(), sum(a.x - b.x), sum(b.k - a.k), max(b.d), sum(b.i) from t a splice join t b on (sym)",
  "select count(), sum(a.x), sum(b.x), min(b.i) from t a splice join t b",
  `select a.sym, b.sym s2, count(), sum(a.x), sum(b.x), max(b.d), sum(a.i) from ${SPLICED} a splice join (select ts, sym, k % 50 m, x, d, i from t) b on (m)
   order by 1, 2`,
  `select count(), ${inOrder("x")}, ${inOrder("y")}, ${inOrder("s")}, sum(length(v)) from ${
    numbered(
      `select coalesce(a.x, 0) x, coalesce(b.y, 0) y, length(coalesce(a.sym, 'none')) s, b.v from t a
       splice join (select ts, x y, 'text ' || k % 1000 v, sym from t where x % 3 > 0) b on (sym)`,
    )
  }`,
);

/** They would need the rows of one key, or all rows, in memory. */
export const REFUSED: [sql: string, error: RegExp][] = [
  // The groups exceed the memory, and so do the rows that are divided for them.
  [
    "select ts, arg_min(x, cast(repeat('x' || x, 100000) as timestamp)) from t sample by 1h",
    /needs \d+ more bytes: .*\(cairo\.query\.memory\.limit\)$/,
  ],
  [
    `select max(s.x), max(s.i), max(s.d), max(s.ts), max(s.y) from r
       join (select cast(7 as long) k, x, i, d, ts, x + k y from t) s on r.k = s.k`,
    /^join cannot divide rows with equal keys: .*\(cairo\.query\.memory\.limit\)$/,
  ],
  [
    "select count(), max(b.x), max(d), max(ts), max(i), max(k) from (select y from r limit 1) a join t b on b.x > a.y",
    /^join needs \d+ more bytes: .*\(cairo\.query\.memory\.limit\)$/,
  ],
  [
    `select count(), max(b.d), max(b.i), max(b.k), max(b.x) from t a
       splice join (select cast('2024-01-01' as timestamp) ts, x, k, d, i from t) timestamp(ts) b`,
    /^splice join needs \d+ more bytes: .*\(cairo\.query\.memory\.limit\)$/,
  ],
  [
    "select count() from (select ts, x, max(d) d from t sample by 1m fill(null))",
    /^SAMPLE BY needs \d+ more bytes: .*\(cairo\.query\.memory\.limit\)$/,
  ],
  [
    "select length(string_agg(rpad('', 60, 'z') || x, ',')) from t",
    /^string_agg\(\) needs \d+ more bytes: .*\(cairo\.query\.memory\.limit\)$/,
  ],
  [
    `with recursive w(n, p) as (select x, rpad('', 100, 'z') || x from long_sequence(300000) union select n, p from w where n < 3)
     select count(), max(p) from w`,
    /^recursion needs \d+ more bytes: .*\(cairo\.query\.memory\.limit\)$/,
  ],
  [
    "select max(s), max(n) from (select rank() over (partition by k order by d) s, percent_rank() over (order by d) n from t)",
    /^window needs \d+ more bytes: .*\(cairo\.query\.memory\.limit\)$/,
  ],
  [
    "select max(s) from (select ts, k, d, x, sum(i) over (order by ts range between 1 second preceding and current row) s from t)",
    /^window needs \d+ more bytes: .*\(cairo\.query\.memory\.limit\)$/,
  ],
];
