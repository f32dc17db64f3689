/** Readings of 200 sensors as FLOAT: decimals of one and two places, one column with gaps and one with full precision. And queries of them. */
import type { BenchQuery } from "./queries.ts";

const SPAN_MICROS = 30 * 86_400_000_000;

export function createSensors(rowCount: number): string {
  const gap = Math.floor(SPAN_MICROS / rowCount);
  return `create table sensors as (select ts, sensor, cast(temperature as float) temperature, cast(humidity as float) humidity, cast(battery as float) battery, cast(full as float) full from (
      select timestamp_sequence('2024-01-01', ${gap}) ts, ('s' || (x * 7919 % 200))::symbol sensor,
        ((x * 7919 % 4001) - 1000) / 100.0 temperature, (x * 104729 % 1001) / 10.0 humidity,
        case when x % 7 = 0 then null else 3 + (x * 31 % 129) / 100.0 end battery, sin(x) full
      from long_sequence(${rowCount}))) timestamp(ts) partition by day`;
}

const DAY = "ts >= '2024-01-15' and ts < '2024-01-16'";

export const SENSOR_QUERIES: Pick<BenchQuery, "name" | "sundial">[] = [
  { name: "count of a filter", sundial: "select count() c from sensors where temperature > 25 and humidity < 30" },
  {
    name: "filter of two, sum",
    sundial: "select sum(temperature) s, count() c from sensors where temperature > 20 and humidity < 50",
  },
  {
    name: "filter of few rows, sum",
    sundial: "select sum(humidity) s, count() c from sensors where temperature > 29.5",
  },
  {
    name: "filter, sum of others",
    sundial: "select avg(battery) b, max(humidity) h from sensors where temperature < 10",
  },
  {
    name: "filter, extremes",
    sundial: "select min(battery) b, max(battery) h, count() c from sensors where temperature < 20",
  },
  {
    name: "sums, min, max",
    sundial: "select sum(temperature) s, avg(humidity) h, min(battery) mn, max(battery) mx from sensors",
  },
  { name: "sum of products", sundial: "select sum(temperature * humidity) s from sensors" },
  {
    name: "extremes by sensor",
    sundial: "select sensor, min(temperature) mn, max(temperature) mx from sensors group by sensor",
  },
  {
    name: "averages by sensor",
    sundial: "select sensor, count() c, avg(temperature) t, avg(humidity) h from sensors group by sensor",
  },
  {
    name: "averages by sensor of a filter",
    sundial: "select sensor, count() c, avg(humidity) h from sensors where temperature > 20 group by sensor",
  },
  {
    name: "one day by sensor",
    sundial: `select sensor, avg(temperature) t, max(battery) b from sensors where ${DAY} group by sensor`,
  },
  { name: "sample by 1h", sundial: "select ts, avg(temperature) t, max(humidity) h from sensors sample by 1h" },
  { name: "sample by 10s", sundial: "select ts, avg(temperature) t, max(humidity) h from sensors sample by 10s" },
  {
    name: "sample by 1h by sensor",
    sundial: "select ts, sensor, avg(temperature) t, count() c from sensors sample by 1h",
  },
  { name: "full precision, filter", sundial: "select sum(temperature) s, count() c from sensors where full > 0.3" },
];
