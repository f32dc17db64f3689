/** Current time, time zones, patterns, intervals. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { floorDivide, nanosOf } from "../../types/calendar.ts";
import { PatternFormatter, PatternReader } from "../../types/format/fixed-pattern.ts";
import { parsedPattern, parsePattern } from "../../types/format/pattern.ts";
import { isFar, splitInstant, splitParts } from "../../types/format/time.ts";
import { instant, instantAs, parseInstant } from "../../types/parse/mod.ts";
import { NULL_I64, typeOf } from "../../types/mod.ts";
import { type Zone, zoneOf } from "../../types/zone.ts";
import type { BatchColumn, BatchFunction, BatchOut, FunctionContext, FunctionEntry } from "./entry.ts";
import type { Interval } from "../plan.ts";
import { batchEntry } from "./batch-entry.ts";
import { NULL_HIGH, wordsOf, writeNumber, writeSum } from "./instant-words.ts";
import { HALF, offsetOf, viewOf, viewsOf } from "./memory-views.ts";
import { timeIntervals } from "./time-intervals.ts";

const TIME = { name: "time", type: "time" };
const STAMP = (types: string[]) => (types.includes("TIMESTAMP_NS") ? "TIMESTAMP_NS" : "TIMESTAMP");

const entries: FunctionEntry[] = [];

/** The start of the statement. Every call in the statement returns the same value. */
function clock(name: string, returns: string, of: (nowMicros: bigint) => bigint): FunctionEntry {
  return batchEntry(
    name,
    [],
    returns,
    "The time at which the statement started.",
    (_, out, rowCount, context) => {
      const value = of(context.nowMicros);
      for (let row = 0; row < rowCount; row++) out.values[row] = value;
    },
    [],
    { volatility: "stable", ofConstants: (_, nowMicros) => nowMicros && of(nowMicros) },
  );
}
entries.push(
  clock("now", "TIMESTAMP", (now) => now),
  clock("systimestamp", "TIMESTAMP", (now) => now),
  clock("current_timestamp", "TIMESTAMP", (now) => now),
  clock("sysdate", "DATE", (now) => now / 1000n),
  clock("now_ns", "TIMESTAMP_NS", (now) => now * 1000n),
  clock("systimestamp_ns", "TIMESTAMP_NS", (now) => now * 1000n),
);

const DAY_SECONDS = 86400;
for (const [name, shift] of [["today", 0], ["yesterday", -1], ["tomorrow", 1]] as const) {
  entries.push(batchEntry(
    name,
    [{ name: "zone", type: "text", optional: true }],
    "INTERVAL",
    `The interval from the start to the end of ${name}, in a time zone or in UTC. Null if there is no such zone.`,
    ([zones], out, rowCount, context) => {
      const now = Number(floorDivide(context.nowMicros, 1000000n));
      for (let row = 0; row < rowCount; row++) {
        const zone = zoneOf(zones?.text(row) ?? "UTC");
        if (zone === undefined) {
          out.setNull(row);
          continue;
        }
        const day = (Math.floor((now + zone.offsetAt(now)) / DAY_SECONDS) + shift) * DAY_SECONDS;
        out.values[2 * row] = BigInt(zone.toUtc(day)) * 1000000n;
        out.values[2 * row + 1] = BigInt(zone.toUtc(day + DAY_SECONDS)) * 1000000n - 1n;
      }
    },
    [],
    { volatility: "stable" },
  ));
}

function zoneFor(name: string | undefined, context: FunctionContext): Zone {
  const zone = name === undefined ? undefined : zoneOf(name);
  if (zone === undefined) {
    throw new SqlError(`unknown time zone '${name ?? "null"}'`, context.at, SQLSTATE.invalidParameter);
  }
  return zone;
}

/** Reports a constant zone that is null or unknown at the argument. */
const checkZone: FunctionEntry["check"] = ([, zone]) =>
  zone === undefined || (typeof zone === "string" && zoneOf(zone) !== undefined)
    ? undefined
    : { argument: 1, message: `unknown time zone '${zone ?? "null"}'` };

function moved(move: (zone: Zone, second: number) => number): BatchFunction {
  return ([times, zones], out, rowCount, context) => {
    const fixed = zones.isConstant ? zoneFor(zones.text(0), context) : undefined;
    // A row without a zone has times in UTC.
    const zoneAt = (row: number) => fixed ?? zoneFor(zones.text(row) ?? "UTC", context);
    if (times.type === "DATE") return movedDates(move, times, zoneAt, out, rowCount, context);
    const unitsASecond = times.type === "TIMESTAMP_NS" ? 1e9 : 1e6, from = wordsOf(times), to = wordsOf(out);
    for (let row = 0; row < rowCount; row++) {
      const low = from[2 * row], high = from[2 * row + 1];
      if (low === 0 && high === NULL_HIGH) {
        to[2 * row] = low;
        to[2 * row + 1] = high;
        continue;
      }
      const zone = zoneAt(row);
      splitInstant(low, high, unitsASecond);
      const { second } = splitParts;
      writeSum(to, row, low, high, (move(zone, second) - second) * unitsASecond);
      if ((row & 4095) === 4095) context.poll();
    }
  };
}

/** A DATE becomes a TIMESTAMP, whose range is smaller. */
function movedDates(
  move: (zone: Zone, second: number) => number,
  times: BatchColumn,
  zoneAt: (row: number) => Zone,
  out: BatchOut,
  rowCount: number,
  context: FunctionContext,
): void {
  for (let row = 0; row < rowCount; row++) {
    if (times.values[row] === NULL_I64) {
      out.values[row] = NULL_I64;
      continue;
    }
    const second = floorDivide(times.values[row], 1000n);
    out.values[row] = (BigInt(move(zoneAt(row), Number(second))) * 1000n + times.values[row] - second * 1000n) * 1000n;
    if ((row & 4095) === 4095) context.poll();
  }
}
const ZONE = { name: "zone", type: "text" };
entries.push(
  batchEntry(
    "to_timezone",
    [TIME, ZONE],
    STAMP,
    "The local time in a time zone at a UTC time. A row without a zone counts as UTC.",
    moved((zone, second) => second + zone.offsetAt(second)),
    [["to_timezone('2023-07-01T10:00:00Z', 'Asia/Tokyo')", "2023-07-01T19:00:00.000000Z"]],
    { check: checkZone },
  ),
  batchEntry(
    "to_utc",
    [TIME, ZONE],
    STAMP,
    "The UTC time of a local time in a time zone. A row without a zone counts as UTC.",
    moved((zone, second) => zone.toUtc(second)),
    [["to_utc('2023-07-01T10:00:00Z', 'Asia/Tokyo')", "2023-07-01T01:00:00.000000Z"]],
    { check: checkZone },
  ),
);

/** Copying so many bytes one by one takes less time than a call. */
const FEW_BYTES = 64;
const PATTERN = { name: "pattern", type: "text", constant: true };
entries.push({
  ...batchEntry(
    "to_str",
    [TIME, PATTERN],
    "STRING",
    "The time as text, by a pattern such as yyyy-MM-dd HH:mm:ss.SSSUUU.",
    ([times, patterns], out, rowCount, context) => {
      const pattern = patterns.text(0);
      const nanos = Number(nanosOf(times.type)), unitsASecond = 1e9 / nanos;
      const secondDigits = times.type === "DATE" ? 3 : times.type === "TIMESTAMP" ? 6 : 9;
      const formatter = new PatternFormatter(pattern ?? "", secondDigits);
      const words = wordsOf(times), { low: lowHalf, high: highHalf } = viewsOf(context.heap.u8);
      for (let row = 0; row < rowCount; row++) {
        const low = words[2 * row], high = words[2 * row + 1];
        if ((low === 0 && high === NULL_HIGH) || pattern === undefined) {
          out.setNull(row);
          continue;
        }
        if (isFar(high, unitsASecond)) {
          const second = floorDivide(times.values[row], 1000n);
          formatter.format(Number(second), Number(times.values[row] - second * 1000n) * nanos);
        } else {
          splitInstant(low, high, unitsASecond);
          formatter.format(splitParts.second, splitParts.rest * nanos);
        }
        const { bytes, length } = formatter;
        const address = out.placeText(row, length);
        const half = address < HALF ? lowHalf : highHalf, at = address & (HALF - 1);
        if (length > FEW_BYTES) half.set(bytes.subarray(0, length), at);
        else for (let k = 0; k < length; k++) half[at + k] = bytes[k];
        if ((row & 4095) === 4095) context.poll();
      }
    },
    [["to_str('2024-03-04T05:06:07Z'::timestamp, 'dd/MM/yyyy')", "04/03/2024"]],
  ),
});

for (
  const [name, returns] of [["to_timestamp", "TIMESTAMP"], ["to_timestamp_ns", "TIMESTAMP_NS"], ["to_date", "DATE"]]
) {
  const unit = typeOf(returns).timeUnit!;
  entries.push(
    batchEntry(
      name,
      [{ name: "text", type: "text" }, PATTERN],
      returns,
      "The time in a text, by a pattern. Null if the whole text does not match.",
      ([texts, patterns], out, rowCount, context) => {
        const pattern = patterns.text(0), reader = pattern === undefined ? undefined : PatternReader.of(pattern);
        const views = viewsOf(context.heap.u8), words = wordsOf(out);
        for (let row = 0; row < rowCount; row++) {
          const length = texts.values[2 * row + 1], from = offsetOf(texts, row);
          out.values[row] = NULL_I64;
          const isRead = length >= 0 && pattern !== undefined &&
            (reader?.read(viewOf(views, texts, row), from, from + length) || parsePattern(pattern, texts.text(row)!));
          if (isRead) {
            const { second, nano } = parsedPattern, micros = second * 1e6 + Math.floor(nano / 1e3);
            if (unit === "us" && Number.isSafeInteger(micros)) writeNumber(words, row, micros);
            else {
              instant.second = second;
              instant.nano = nano;
              out.values[row] = instantAs(unit) ?? NULL_I64;
            }
          }
          if ((row & 4095) === 4095) context.poll();
        }
      },
      returns === "TIMESTAMP"
        ? [["to_timestamp('22/11/2019 00:30', 'dd/MM/yyyy HH:mm')", "2019-11-22T00:30:00.000000Z"]]
        : [],
    ),
    batchEntry(
      name,
      [{ name: "text", type: "text" }],
      returns,
      "The time in a text; null if it contains none.",
      ([texts], out, rowCount, context) => {
        for (let row = 0; row < rowCount; row++) {
          const length = texts.values[2 * row + 1], from = texts.values[2 * row] >>> 0;
          out.values[row] = length >= 0 && parseInstant(context.heap.u8, from, from + length)
            ? instantAs(unit) ?? NULL_I64
            : NULL_I64;
        }
      },
      [],
    ),
  );
}

entries.push(
  ...["TIMESTAMP", "TIMESTAMP_NS"].map((type) =>
    batchEntry(
      "interval",
      [{ name: "low", type }, { name: "high", type }],
      "INTERVAL",
      `The interval from low to high, inclusive${type === "TIMESTAMP" ? "" : ", in whole microseconds"}.`,
      ([lows, highs], out, rowCount, context) => {
        const micros = type === "TIMESTAMP" ? (time: bigint) => time : (time: bigint) => floorDivide(time, 1000n);
        for (let row = 0; row < rowCount; row++) {
          const low = lows.values[row], high = highs.values[row];
          if (low === NULL_I64 || high === NULL_I64) {
            out.values[2 * row] = out.values[2 * row + 1] = NULL_I64;
            continue;
          }
          if (low > high) {
            throw new SqlError("interval: the end is before the start", context.at, SQLSTATE.invalidParameter);
          }
          out.values[2 * row] = micros(low);
          out.values[2 * row + 1] = micros(high);
        }
      },
      type === "TIMESTAMP"
        ? [["interval('2024-01-01', '2024-01-02')", "('2024-01-01T00:00:00.000Z', '2024-01-02T00:00:00.000Z')"]]
        : [],
    )
  ),
  ...[0, 1].map((half) =>
    batchEntry(
      half === 0 ? "interval_start" : "interval_end",
      [{ name: "interval", type: "INTERVAL" }],
      "TIMESTAMP",
      `The ${half === 0 ? "first" : "last"} time of an interval.`,
      ([intervals], out, rowCount) => {
        for (let row = 0; row < rowCount; row++) out.values[row] = intervals.values[2 * row + half];
      },
    )
  ),
);
for (const type of ["TIMESTAMP", "TIMESTAMP_NS"]) {
  const scale = type === "TIMESTAMP" ? 1n : 1000n;
  entries.push(
    batchEntry(
      "in",
      [{ name: "time", type }, { name: "interval", type: "INTERVAL" }],
      "BOOLEAN",
      "True if the time is in the interval, inclusive.",
      ([times, intervals], out, rowCount) => {
        for (let row = 0; row < rowCount; row++) {
          const time = times.values[row], low = intervals.values[2 * row], high = intervals.values[2 * row + 1];
          out.values[row] = time !== NULL_I64 && low !== NULL_I64 && time >= low * scale && time < (high + 1n) * scale
            ? 1
            : 0;
        }
      },
    ),
    batchEntry(
      "in",
      [{ name: "time", type }, { name: "intervals", type: "text" }],
      "BOOLEAN",
      "True if the time is in one of the intervals of a text.",
      ([times, texts], out, rowCount, context) => {
        let last: string | undefined, intervals: Interval[] = [];
        for (let row = 0; row < rowCount; row++) {
          const time = times.values[row], text = texts.text(row);
          if (text !== undefined && text !== last) {
            intervals = timeIntervals(text, type, context.at, () => context.nowMicros);
            last = text;
          }
          const isIn = text === undefined ? time === NULL_I64 : time !== NULL_I64 && isWithin(intervals, time);
          out.values[row] = isIn ? 1 : 0;
        }
      },
      [],
      // Texts may have $now.
      { volatility: "stable" },
    ),
  );
}

/** The intervals are sorted. */
function isWithin(intervals: readonly Interval[], time: bigint): boolean {
  let from = 0;
  for (let to = intervals.length; from < to;) {
    const middle = (from + to) >> 1;
    if (intervals[middle]![1] < time) from = middle + 1;
    else to = middle;
  }
  return from < intervals.length && intervals[from]![0] <= time;
}

export const timeFunctions = entries;
