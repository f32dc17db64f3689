/** Joins and sorts of the benchmark's trades with a table of its million traders, one of its hundred symbols, and one of quotes. */
import type { BenchQuery } from "./queries.ts";
import { SYMBOL_COUNT, TRADER_COUNT } from "./trades.ts";

/** The order of traders is scattered: 7919 and their count are coprime. */
export const JOIN_TABLES: { sundial: string; duckdb: string }[] = [
  {
    sundial:
      `create table traders as (select (x * 7919) % ${TRADER_COUNT} trader, (x % 1000) / 8.0 rate, cast('R' || (x % 16) as symbol) region from long_sequence(${TRADER_COUNT}))`,
    duckdb:
      `create table traders as select (x * 7919) % ${TRADER_COUNT} trader, (x % 1000) / 8.0 rate, 'R' || (x % 16) region from range(1, ${
        TRADER_COUNT + 1
      }) t(x)`,
  },
  {
    sundial:
      `create table symbols as (select cast('SYM' || lpad(cast(x - 1 as string), 3, '0') || '-USD' as symbol) symbol, cast('S' || (x % 7) as symbol) sector, x / 4.0 weight from long_sequence(${SYMBOL_COUNT}))`,
    duckdb:
      `create table symbols as select 'SYM' || lpad((x - 1)::varchar, 3, '0') || '-USD' symbol, 'S' || (x % 7) sector, x / 4.0 weight from range(1, ${
        SYMBOL_COUNT + 1
      }) t(x)`,
  },
  {
    sundial:
      "create table quotes as (select timestamp, symbol, max(price) bid from trades sample by 1m) timestamp(timestamp) partition by day",
    duckdb:
      "create table quotes as select time_bucket(INTERVAL 1 minute, timestamp) as timestamp, symbol, max(price) bid from trades group by 1, 2 order by 1",
  },
];

const both = (name: string, sql: string): BenchQuery => ({
  name,
  sundial: sql.replaceAll("count(*)", "count()"),
  duckdb: sql,
});

export const JOIN_QUERIES: BenchQuery[] = [
  both(
    "join 1M traders, sums",
    "select count(*) c, sum(t.amount * r.rate) s from trades t join traders r on t.trader = r.trader",
  ),
  both(
    "join 1M traders, by region",
    "select r.region, count(*) c, sum(t.amount) s from trades t join traders r on t.trader = r.trader group by r.region",
  ),
  both(
    "join 1M traders by wide keys",
    "select count(*) c, sum(t.amount * r.rate) s from trades t join traders r on t.trader * 1000003 = r.trader * 1000003",
  ),
  both(
    "join 100 symbols, by sector",
    "select s.sector, count(*) c, sum(t.amount * s.weight) w from trades t join symbols s on t.symbol = s.symbol group by s.sector",
  ),
  both(
    "join both, by sector and region",
    "select s.sector, r.region, count(*) c, sum(t.amount) a from trades t join symbols s on t.symbol = s.symbol join traders r on t.trader = r.trader group by s.sector, r.region",
  ),
  both(
    "join 1M traders, top 10 of them",
    "select t.trader, count(*) c, sum(t.amount * r.rate) s from trades t join traders r on t.trader = r.trader group by t.trader order by s desc, t.trader limit 10",
  ),
  both(
    "left join half the traders",
    "select count(*) c, count(r.rate) n, sum(r.rate) s from trades t left join (select * from traders where rate < 62.5) r on t.trader = r.trader",
  ),
  both(
    "join one region, dear trades",
    "select count(*) c, sum(t.amount) s from trades t join traders r on t.trader = r.trader where r.region = 'R3' and t.price > 200",
  ),
  both(
    "join on more than keys",
    "select count(*) c, sum(t.amount) s from trades t join traders r on t.trader = r.trader and t.amount > r.rate",
  ),
  both(
    "full join of the traders",
    "select count(*) c, sum(t.amount) s, sum(r.rate) r from trades t full join traders r on t.trader = r.trader",
  ),
  {
    name: "asof join of quotes",
    sundial: "select count() c, sum(q.bid - t.price) s from trades t asof join quotes q on (symbol)",
    duckdb:
      "select count(*) c, sum(q.bid - t.price) s from trades t asof left join quotes q on t.symbol = q.symbol and t.timestamp >= q.timestamp",
  },
  {
    name: "asof join of quotes by 1h",
    sundial: "select t.timestamp ts, avg(q.bid - t.price) d from trades t asof join quotes q on (symbol) sample by 1h",
    duckdb:
      "select time_bucket(INTERVAL 1 hour, t.timestamp) ts, avg(q.bid - t.price) d from trades t asof left join quotes q on t.symbol = q.symbol and t.timestamp >= q.timestamp group by 1 order by 1",
  },
  both(
    "join, top 10",
    "select t.timestamp, t.amount, r.rate from trades t join traders r on t.trader = r.trader order by t.amount * r.rate desc, t.timestamp limit 10",
  ),
  {
    name: "sort by amount, all rows",
    sundial: "select amount, trader, price from (trades order by amount, trader, price) limit -10",
    duckdb:
      "select * from (select amount, trader, price from trades order by amount, trader, price offset (select count(*) - 10 from trades))",
  },
  both(
    "count distinct by symbol",
    "select symbol, count(distinct trader) c from trades group by symbol",
  ),
];
