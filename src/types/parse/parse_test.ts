import assert from "node:assert/strict";
import { formatValue } from "../format/mod.ts";
import { zoneOf } from "../zone.ts";
import { parseIntervals } from "./interval.ts";
import { readValue } from "./values.ts";

const read: [text: string, tag: string, value: unknown][] = [
  ["12", "INT", 12],
  ["-7", "LONG", -7n],
  ["+3", "INT", 3],
  ["1_000", "INT", 1000],
  ["100", "SHORT", 100],
  ["9223372036854775807", "LONG", 9223372036854775807n],
  ["-9223372036854775808", "LONG", null],
  ["-2147483648", "INT", null],
  ["1.5", "DOUBLE", 1.5],
  ["-2e3", "DOUBLE", -2000],
  [".5", "DOUBLE", 0.5],
  ["NaN", "DOUBLE", null],
  ["Infinity", "DOUBLE", null],
  ["0.1", "FLOAT", Math.fround(0.1)],
  ["1e300", "FLOAT", null],
  ["T", "BOOLEAN", true],
  ["yes", "BOOLEAN", false],
  ["192.168.1.250", "IPv4", 0xc0a801fa],
  ["0.0.0.0", "IPv4", null],
  ["", "IPv4", null],
  ["123456789.123456789", "DOUBLE", 123456789.123456789],
  ["2.", "DOUBLE", 2],
  ["1e-7", "DOUBLE", 1e-7],
];
Deno.test("readValue() reads each type", () => {
  for (const [text, tag, value] of read) assert.deepEqual(readValue(text, tag), value, `${text} as ${tag}`);
});

const refused: [text: string, tag: string][] = [
  ["abc", "INT"],
  ["1.5", "INT"],
  ["", "LONG"],
  [" 12", "INT"],
  ["1e3", "INT"],
  ["99999999999", "INT"],
  ["1__0", "INT"],
  ["_1", "INT"],
  ["x1", "DOUBLE"],
  ["", "DOUBLE"],
  [".", "DOUBLE"],
  ["-", "DOUBLE"],
  ["0x10", "DOUBLE"],
  ["256.1.1.1", "IPv4"],
  ["1.2.3", "IPv4"],
  ["home", "IPv4"],
  ["not-a-uuid", "UUID"],
  ["2020-13-01", "TIMESTAMP"],
  ["2023-02-29", "TIMESTAMP"],
  ["2024-01-01T24", "TIMESTAMP"],
  ["2024-01-01T00:00:00.", "TIMESTAMP"],
  ["2024-01-01T00:00:00Zx", "TIMESTAMP"],
  ["2400-01-01", "TIMESTAMP_NS"],
  ["", "TIMESTAMP"],
  ["2024-", "DATE"],
];
Deno.test("readValue() refuses invalid texts", () => {
  for (const [text, tag] of refused) {
    assert.ok((readValue(text, tag) as { problem: string })?.problem, `${text} as ${tag}`);
  }
});

const times: [text: string, tag: string, printed: string][] = [
  ["2020", "TIMESTAMP", "2020-01-01T00:00:00.000000Z"],
  ["2020-07", "TIMESTAMP", "2020-07-01T00:00:00.000000Z"],
  ["2020-01-02T03:04", "TIMESTAMP", "2020-01-02T03:04:00.000000Z"],
  ["2020-01-02 03:04:05", "TIMESTAMP", "2020-01-02T03:04:05.000000Z"],
  ["2021-05-06T07:08:09+02:00", "TIMESTAMP", "2021-05-06T05:08:09.000000Z"],
  ["2023-07-01T10:00:00.5-0130", "TIMESTAMP", "2023-07-01T11:30:00.500000Z"],
  ["2024-05-06T07:08:09.123456789Z", "TIMESTAMP_NS", "2024-05-06T07:08:09.123456789Z"],
  ["2024-01-01T00:00:00.123456789Z", "TIMESTAMP", "2024-01-01T00:00:00.123456Z"],
  ["0001-01-01", "TIMESTAMP", "0001-01-01T00:00:00.000000Z"],
  ["9999-12-31T23:59:59.999999Z", "TIMESTAMP", "9999-12-31T23:59:59.999999Z"],
  ["1969-12-31T23:59:59.5Z", "DATE", "1969-12-31T23:59:59.500Z"],
  ["1700-01-01", "TIMESTAMP_NS", "1700-01-01T00:00:00.000000000Z"],
];
Deno.test("readValue() reads times, formatValue() writes them", () => {
  for (const [text, tag, printed] of times) {
    assert.equal(formatValue(readValue(text, tag) as bigint, tag), printed, text);
  }
});

const NOW = 1718000000000000n;
function intervals(text: string): string[] | string {
  const ranges = parseIntervals(text, "TIMESTAMP", () => NOW);
  return Array.isArray(ranges)
    ? ranges.map(([low, high]) =>
      `${formatValue(low, "TIMESTAMP")!.slice(0, 19)} ${formatValue(high + 1n, "TIMESTAMP")!.slice(0, 19)}`
    )
    : ranges.problem;
}
const spans: [text: string, ranges: string[]][] = [
  ["2023", ["2023-01-01T00:00:00 2024-01-01T00:00:00"]],
  ["2023-01-01T09:30", ["2023-01-01T09:30:00 2023-01-01T09:31:00"]],
  ["2023-01-07;1M", ["2023-01-07T00:00:00 2023-02-07T00:00:00"]],
  ["2023-01-01T09:00;1d30m31s", ["2023-01-01T09:00:00 2023-01-02T09:30:31"]],
  ["2023-01-01T09:30;1m;1d;2", ["2023-01-01T09:30:00 2023-01-01T09:31:00", "2023-01-02T09:30:00 2023-01-02T09:31:00"]],
  ["2023-01-01;3d;1d;3", ["2023-01-01T00:00:00 2023-01-06T00:00:00"]],
  ["2023-01-[02,05..06]", ["2023-01-02T00:00:00 2023-01-03T00:00:00", "2023-01-05T00:00:00 2023-01-07T00:00:00"]],
  ["2023-01-01T[00:00,09:31]", ["2023-01-01T00:00:00 2023-01-01T00:01:00", "2023-01-01T09:31:00 2023-01-01T09:32:00"]],
  ["[2022-12-31,2023-02-[02..03]]", [
    "2022-12-31T00:00:00 2023-01-01T00:00:00",
    "2023-02-02T00:00:00 2023-02-04T00:00:00",
  ]],
  ["2023-01-[01..09]#Mon,Fri", [
    "2023-01-02T00:00:00 2023-01-03T00:00:00",
    "2023-01-06T00:00:00 2023-01-07T00:00:00",
    "2023-01-09T00:00:00 2023-01-10T00:00:00",
  ]],
  ["2023-07-03T10:30@Europe/Berlin", ["2023-07-03T08:30:00 2023-07-03T08:31:00"]],
  ["2023-01-01@America/New_York", ["2023-01-01T05:00:00 2023-01-02T05:00:00"]],
  ["2023-W01", ["2023-01-02T00:00:00 2023-01-09T00:00:00"]],
  ["2023-W01-6", ["2023-01-07T00:00:00 2023-01-08T00:00:00"]],
  ["$today", ["2024-06-10T00:00:00 2024-06-11T00:00:00"]],
  ["$today - 1bd", ["2024-06-07T00:00:00 2024-06-08T00:00:00"]],
  ["$today+4BD", ["2024-06-14T00:00:00 2024-06-15T00:00:00"]],
  ["$today + 5bd", ["2024-06-17T00:00:00 2024-06-18T00:00:00"]],
  ["$yesterday - 6bd", ["2024-05-31T00:00:00 2024-06-01T00:00:00"]],
  ["$yesterday - 5bd", ["2024-06-03T00:00:00 2024-06-04T00:00:00"]],
  ["$yesterday + 1bd", ["2024-06-10T00:00:00 2024-06-11T00:00:00"]],
  ["$yesterday + 5bd", ["2024-06-14T00:00:00 2024-06-15T00:00:00"]],
  ["$yesterday + 0bd", ["2024-06-09T00:00:00 2024-06-10T00:00:00"]],
  // A time after variables, whose days it belongs to.
  ["$todayT09:30", ["2024-06-10T09:30:00 2024-06-10T09:31:00"]],
  ["$today - 1dT09;30m", ["2024-06-09T09:00:00 2024-06-09T09:30:00"]],
  ["$todayT[09:00,10:00]", ["2024-06-10T09:00:00 2024-06-10T09:01:00", "2024-06-10T10:00:00 2024-06-10T10:01:00"]],
  ["$todayT09:30@America/New_York#Mon;1h", ["2024-06-10T13:30:00 2024-06-10T14:30:00"]],
  ["[$today,$today - 7d]T09:30;1h", [
    "2024-06-03T09:30:00 2024-06-03T10:30:00",
    "2024-06-10T09:30:00 2024-06-10T10:30:00",
  ]],
  ["[$yesterday..$today,2024-01-05]T10:00", [
    "2024-01-05T10:00:00 2024-01-05T10:01:00",
    "2024-06-09T10:00:00 2024-06-09T10:01:00",
    "2024-06-10T10:00:00 2024-06-10T10:01:00",
  ]],
  // A range of days: its last day is whole, also if an end is an instant, and a duration applies to each day.
  ["$yesterday..$today", ["2024-06-09T00:00:00 2024-06-11T00:00:00"]],
  ["$yesterday..$now", ["2024-06-09T00:00:00 2024-06-11T00:00:00"]],
  ["[$yesterday..$today];1h", ["2024-06-09T00:00:00 2024-06-09T01:00:00", "2024-06-10T00:00:00 2024-06-10T01:00:00"]],
  ["[$yesterday..$today]#Mon;1h", ["2024-06-10T00:00:00 2024-06-10T01:00:00"]],
  ["[$yesterday..$today]@Asia/Tokyo", ["2024-06-08T15:00:00 2024-06-10T15:00:00"]],
  // It has only working days if its end is counted in them.
  ["$today - 3d..$today + 1bd", ["2024-06-07T00:00:00 2024-06-08T00:00:00", "2024-06-10T00:00:00 2024-06-12T00:00:00"]],
  ["$today - 1bd..$today", ["2024-06-07T00:00:00 2024-06-11T00:00:00"]],
  // Hours make an instant of a day, a multiple of 24 another day.
  ["$today + 24h", ["2024-06-11T00:00:00 2024-06-12T00:00:00"]],
  ["$today + 3h;1h", ["2024-06-10T03:00:00 2024-06-10T04:00:00"]],
  ["$today + 3hT10:00;1h", ["2024-06-10T03:00:00 2024-06-10T04:00:00"]],
  // A range of instants has neither a time nor a duration.
  ["[$now - 1h..$now]#Mon;5m", ["2024-06-10T05:13:20 2024-06-10T06:13:20"]],
  ["[$now - 3d..$now]#Mon", []],
  // The hour that clocks skip is the one after it.
  ["2023-03-26T02@Europe/Berlin", ["2023-03-26T01:00:00 2023-03-26T02:00:00"]],
  ["2023-03-26T02:59@Europe/Berlin", ["2023-03-26T01:59:00 2023-03-26T02:00:00"]],
  ["2023-03-26T01:30@Europe/Berlin;2h", ["2023-03-26T00:30:00 2023-03-26T01:30:00"]],
  // Items with a zone or time of their own.
  ["2024-01-15T[09:30@America/New_York,08:00]@Asia/Tokyo;1h", [
    "2024-01-14T23:00:00 2024-01-15T00:00:00",
    "2024-01-15T14:30:00 2024-01-15T15:30:00",
  ]],
  ["[2024-01-15@Europe/Paris,2024-07-15@Europe/Paris]T08", [
    "2024-01-15T07:00:00 2024-01-15T08:00:00",
    "2024-07-15T06:00:00 2024-07-15T07:00:00",
  ]],
  ["[2024-01-[05,06]T09:00,2024-01-08]T10:00", [
    "2024-01-05T09:00:00 2024-01-05T09:01:00",
    "2024-01-06T09:00:00 2024-01-06T09:01:00",
    "2024-01-08T10:00:00 2024-01-08T10:01:00",
  ]],
];
Deno.test("parseIntervals() expands brackets, ranges and repetitions", () => {
  for (const [text, ranges] of spans) assert.deepEqual(intervals(text), ranges, text);
  assert.deepEqual(parseIntervals("2023-01-01 09:30", "TIMESTAMP", () => NOW), [[
    1672565400000000n,
    1672565400000000n,
  ]]);
  assert.deepEqual(parseIntervals("2025-01-01T00:00:00.000000", "TIMESTAMP_NS", () => NOW), [[
    1735689600000000000n,
    1735689600000000999n,
  ]]);
  assert.deepEqual(parseIntervals("$now - 1h..$now", "TIMESTAMP", () => NOW), [[NOW - 3600000000n, NOW]]);
  assert.deepEqual(parseIntervals("[$now]T09:00", "TIMESTAMP", () => NOW), [[NOW, NOW]]);
  assert.deepEqual(parseIntervals("$now - 1dT09:00", "TIMESTAMP_NS", () => NOW), [[
    (NOW - 86400000000n) * 1000n,
    (NOW - 86400000000n) * 1000n,
  ]]);
});
Deno.test("parseIntervals() refuses invalid texts", () => {
  const none = [
    "yesterday noon",
    "2023-13",
    "2023-02-30",
    "2023-01-01T24",
    "2023-01-01;3x",
    "2023-01-01;h",
    "2023-01-01;1h;1d",
    "2023-01-[01,02",
    "2023-01-[]",
    "2023-01-[05..02]",
    "2023-01-01T09:30@Moon/Base",
    "2023-01-[01..31]#Foo",
    "$someday",
    "$todayX",
    "$tomorrow..$yesterday",
    "[2024-01-05][$today]",
    "[$now - 1h..$now]:30",
    "[2024-01-05@Moon/Base]T08:00",
    `$today + ${"9".repeat(400)}d`,
    "$today - 3000000000bd",
    "2023-W54",
    "",
  ];
  for (const text of none) assert.ok("problem" in parseIntervals(text, "TIMESTAMP", () => NOW), text);
});

Deno.test("zoneOf() follows changes of the clocks", () => {
  const berlin = zoneOf("europe/berlin")!;
  const at = (text: string) => Date.parse(text) / 1000;
  assert.equal(berlin.offsetAt(at("2023-03-26T00:59:59Z")), 3600);
  assert.equal(berlin.offsetAt(at("2023-03-26T01:00:00Z")), 7200);
  assert.equal(berlin.toUtc(at("2023-03-26T02:30:00Z")), at("2023-03-26T01:30:00Z"));
  assert.equal(berlin.toUtc(at("2023-10-29T02:30:00Z")), at("2023-10-29T00:30:00Z"));
  assert.equal(berlin.toUtc(at("2023-07-01T00:30:00Z")), at("2023-06-30T22:30:00Z"));
  assert.equal(zoneOf("+05:45")!.offsetAt(0), 20700);
  assert.equal(zoneOf("PST")!.offsetAt(at("2023-07-01T00:00:00Z")), -7 * 3600);
  for (const name of ["Europe/Atlantis", "", "Nowhere", "+25:00"]) assert.equal(zoneOf(name), undefined);
});
