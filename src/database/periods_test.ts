import assert from "node:assert/strict";
import type { RefreshPeriod, UnitCount } from "../sql/plan.ts";
import { typeOf } from "../types/mod.ts";
import { nextTick, Periods } from "./periods.ts";

const MICROS = typeOf("TIMESTAMP").text;
const hour: UnitCount = { count: 1, unit: "HOUR" }, day: UnitCount = { count: 1, unit: "DAY" };

const cases: (Partial<RefreshPeriod> & { title: string; now: string; to: string; next: string })[] = [
  { title: "an hour", length: hour, now: "2024-01-01T10:59:59", to: "2024-01-01T10:00", next: "2024-01-01T11:00" },
  { title: "its end", length: hour, now: "2024-01-01T11:00", to: "2024-01-01T11:00", next: "2024-01-01T12:00" },
  {
    title: "a delay that has not passed",
    length: hour,
    delay: { count: 90, unit: "SECOND" },
    now: "2024-01-01T11:01",
    to: "2024-01-01T10:00",
    next: "2024-01-01T11:01:30",
  },
  {
    title: "hours of a zone that is off by half an hour",
    length: hour,
    timeZone: "Asia/Kolkata",
    now: "2024-01-01T11:10",
    to: "2024-01-01T10:30",
    next: "2024-01-01T11:30",
  },
  {
    title: "seven hours, counted from the epoch",
    length: { count: 7, unit: "HOUR" },
    now: "2026-11-28T12:52",
    to: "2026-11-28T08:00",
    next: "2026-11-28T15:00",
  },
  {
    title: "a day of 23 hours, before clocks are turned",
    length: day,
    timeZone: "Europe/London",
    now: "2024-03-31T00:30",
    to: "2024-03-31T00:00",
    next: "2024-03-31T01:00",
  },
  {
    title: "a day of 23 hours, after clocks were turned",
    length: day,
    timeZone: "Europe/London",
    now: "2024-03-31T22:59",
    to: "2024-03-31T00:00",
    next: "2024-03-31T23:00",
  },
  {
    title: "a day of 25 hours",
    length: day,
    timeZone: "Europe/London",
    delay: { count: 2, unit: "HOUR" },
    now: "2024-10-28T01:59",
    to: "2024-10-26T23:00",
    next: "2024-10-28T02:00",
  },
];
for (const { title, now, to, next, ...period } of cases) {
  Deno.test(`Periods knows ${title}`, () => {
    const micros = (text: string) => MICROS.parse(text) as bigint;
    const periods = new Periods({ startMicros: 0, length: hour, ...period });
    assert.equal(MICROS.format(periods.completeTo(micros(now))), MICROS.format(micros(to)));
    assert.equal(MICROS.format(periods.next(micros(now))), MICROS.format(micros(next)));
  });
}

const ticks = [
  { title: "the start, if it is to come", now: "2024-01-01T11:10", zone: undefined, to: "2024-01-03T00:00" },
  {
    title: "the start in the zone's local time",
    now: "2024-01-01T11:10",
    zone: "America/New_York",
    to: "2024-01-03T05:00",
  },
  { title: "a multiple of the unit after it", now: "2024-01-03T07:10", zone: undefined, to: "2024-01-03T08:00" },
];
for (const { title, now, zone, to } of ticks) {
  Deno.test(`nextTick() is ${title}`, () => {
    const micros = (text: string) => MICROS.parse(text) as bigint;
    const timer = { every: hour, startMicros: Number(micros("2024-01-03")), timeZone: zone, kind: "timer" as const };
    assert.equal(MICROS.format(nextTick(timer, micros(now))), MICROS.format(micros(to)));
  });
}
