/** The benchmark's queries in both dialects. Answers are compared as sorted rows with the same column names. */
export interface BenchQuery {
  name: string;
  sundial: string;
  duckdb: string;
  /** Maximum time in milliseconds (promised by the README). */
  underMs?: number;
}

const DAY = "timestamp >= TIMESTAMP '2024-01-15' and timestamp < TIMESTAMP '2024-01-16'";
const MINUTE = "timestamp >= TIMESTAMP '2024-01-15 10:30:00' and timestamp < TIMESTAMP '2024-01-15 10:31:00'";

export const QUERIES: BenchQuery[] = [
  { name: "count", sundial: "select count() c from trades", duckdb: "select count(*) c from trades" },
  {
    name: "sums, min, max",
    sundial: "select sum(price) sp, sum(amount) sa, min(price) mn, max(price) mx from trades",
    duckdb: "select sum(price) sp, sum(amount) sa, min(price) mn, max(price) mx from trades",
  },
  {
    name: "filter two doubles, sum",
    sundial: "select sum(price * amount) s, count() c from trades where price > 200 and amount < 50",
    duckdb: "select sum(price * amount) s, count(*) c from trades where price > 200 and amount < 50",
  },
  {
    name: "weighted average of a symbol",
    sundial: "select sum(price * amount) / sum(amount) w from trades where symbol = 'SYM003-USD'",
    duckdb: "select sum(price * amount) / sum(amount) w from trades where symbol = 'SYM003-USD'",
  },
  {
    name: "group by symbol",
    sundial: "select symbol, count() c, avg(price) p, sum(amount) a from trades group by symbol",
    duckdb: "select symbol, count(*) c, avg(price) p, sum(amount) a from trades group by symbol",
  },
  {
    name: "group by symbol and side",
    sundial: "select symbol, side, count() c, sum(price * amount) v from trades group by symbol, side",
    duckdb: "select symbol, side, count(*) c, sum(price * amount) v from trades group by symbol, side",
  },
  {
    name: "top 10 traders of 1M",
    sundial: "select trader, sum(amount) a, count() c from trades group by trader order by a desc, trader limit 10",
    duckdb: "select trader, sum(amount) a, count(*) c from trades group by trader order by a desc, trader limit 10",
  },
  {
    name: "sample by 1h",
    sundial: "select timestamp, avg(price) p, sum(amount) a from trades sample by 1h",
    duckdb:
      "select time_bucket(INTERVAL 1 hour, timestamp) ts, avg(price) p, sum(amount) a from trades group by 1 order by 1",
  },
  {
    name: "one symbol's OHLC by 1m",
    sundial:
      "select timestamp, first(price) o, max(price) h, min(price) l, last(price) c, sum(amount) v from trades where symbol = 'SYM003-USD' sample by 1m",
    duckdb:
      "select time_bucket(INTERVAL 1 minute, timestamp) ts, arg_min(price, timestamp) o, max(price) h, min(price) l, arg_max(price, timestamp) c, sum(amount) v from trades where symbol = 'SYM003-USD' group by 1 order by 1",
  },
  {
    name: "sample by 1h by symbol",
    sundial: "select timestamp, symbol, avg(price) p, count() c from trades sample by 1h",
    duckdb:
      "select time_bucket(INTERVAL 1 hour, timestamp) ts, symbol, avg(price) p, count(*) c from trades group by 1, 2 order by 1",
  },
  {
    name: "one day by symbol",
    sundial: "select symbol, count() c, max(price) mx from trades where timestamp in '2024-01-15' group by symbol",
    duckdb: `select symbol, count(*) c, max(price) mx from trades where ${DAY} group by symbol`,
    underMs: 5,
  },
  {
    name: "all columns of one minute",
    sundial: "select * from trades where timestamp in '2024-01-15T10:30'",
    duckdb: `select * from trades where ${MINUTE}`,
    underMs: 5,
  },
  {
    name: "latest on by symbol",
    sundial: "select timestamp, symbol, price from trades latest on timestamp partition by symbol",
    duckdb:
      "select timestamp, symbol, price from trades qualify row_number() over (partition by symbol order by timestamp desc) = 1",
    underMs: 5,
  },
  {
    name: "top 10 by amount",
    sundial: "select timestamp, symbol, amount, trader from trades order by amount desc, timestamp, trader limit 10",
    duckdb: "select timestamp, symbol, amount, trader from trades order by amount desc, timestamp, trader limit 10",
  },
  {
    name: "count distinct traders",
    sundial: "select count_distinct(trader) c from trades",
    duckdb: "select count(distinct trader) c from trades",
  },
  {
    name: "asof join of two symbols",
    sundial:
      "select count() c, sum(b.price - a.price) s from (trades where symbol = 'SYM005-USD') a asof join (trades where symbol = 'SYM003-USD') b",
    duckdb:
      "select count(*) c, sum(b.price - a.price) s from (from trades where symbol = 'SYM005-USD') a asof left join (from trades where symbol = 'SYM003-USD') b on a.timestamp >= b.timestamp",
  },
  {
    name: "lag over symbol for a day",
    sundial:
      "select count() c, sum(d) s from (select price - lag(price) over (partition by symbol order by timestamp) d from trades where timestamp in '2024-01-15')",
    duckdb:
      `select count(*) c, sum(d) s from (select price - lag(price) over (partition by symbol order by timestamp) d from trades where ${DAY})`,
  },
];
