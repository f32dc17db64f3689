/**
 * Flooring, adding and counting in units of time. The unit is a constant, so a call is rewritten to an entry with a fixed step:
 * `…_step` for units of fixed length (in the time's own unit), `…_months` for months and years.
 */
import { NULL_I32, NULL_I64, type Value } from "../../types/mod.ts";
import { bind, i32, i64, ifElse, type IrNode, select } from "../../engine/compiler/ir.ts";
import { TimeBuckets } from "../../engine/mod.ts";
import {
  addMonths,
  addUnits,
  addYears,
  floorDivide,
  nanosOf,
  parseBucketOffset,
  UNIT_NANOS,
} from "../../types/calendar.ts";
import { civilOfDay, splitInstant, splitParts } from "../../types/format/time.ts";
import { readValue } from "../../types/parse/mod.ts";
import { zoneOf } from "../../types/zone.ts";
import { civil, dayOfMonthStart, floorDiv32, floorDiv64, floorMod64 } from "./calendar-nodes.ts";
import type { BatchFunction, FunctionEntry, Rewritten } from "./entry.ts";
import { NULL_HIGH, wordsOf, writeSum } from "./instant-words.ts";
import { ZERO32, ZERO64 } from "./nodes.ts";

const STAMPS = ["TIMESTAMP", "TIMESTAMP_NS"];

function entry(
  name: string,
  args: FunctionEntry["args"],
  returns: string | ((types: string[]) => string),
  summary: string,
  how: Partial<FunctionEntry>,
  examples: [sql: string, gives: unknown][] = [],
): FunctionEntry {
  return {
    name,
    args,
    returns,
    nulls: "propagate",
    volatility: "immutable",
    summary,
    examples: examples.map(([sql, gives]) => ({ sql, gives })),
    ...how,
  };
}

/** DATE is handled like TIMESTAMP. */
const stampOf = (type: string) => (type === "TIMESTAMP_NS" ? "TIMESTAMP_NS" : "TIMESTAMP");
const unitsADay = (type: string) => UNIT_NANOS.d / nanosOf(stampOf(type));
const long = (value: bigint) => ({ value, type: "LONG" });
const int = (value: number) => ({ value, type: "INT" });

/**
 * Counts the time's months from 1970-01, floors them to `step` months from `origin`, and advances them by `more` steps.
 * Returns the start of that month.
 */
function floorMonths(time: IrNode, step: IrNode, origin: IrNode, more: number, dayUnits: bigint): IrNode {
  return civil(i32.wrap(floorDiv64(time, dayUnits)), (date) => {
    const index = i32.add(
      i32.mul(i32.sub(date.year, i32.const(1970)), i32.const(12)),
      i32.sub(date.month, i32.const(1)),
    );
    const floored = i32.add(i32.mul(i32.add(floorDiv32(i32.sub(index, origin), step), i32.const(more)), step), origin);
    return bind(floored, (months) =>
      bind(floorDiv32(months, i32.const(12)), (years) =>
        i64.mul(
          i64.extendS(
            dayOfMonthStart(
              i32.add(years, i32.const(1970)),
              i32.add(i32.sub(months, i32.mul(years, i32.const(12))), i32.const(1)),
            ),
          ),
          i64.const(dayUnits),
        )));
  });
}

/** Several days become the last one of a shorter month, and their hours mix. */
const DAYS_MEET = { keepsOrder: false };

const entries: FunctionEntry[] = [];

for (const type of STAMPS) {
  const time = { name: "time", type };
  const step = { name: "step", type: "LONG", constant: true }, origin = { name: "origin", type };
  entries.push(
    entry(
      "timestamp_floor_from",
      [time, step, origin],
      type,
      "The time floored to steps from an origin. Earlier times give the origin.",
      {
        emit: ([t, by, from]) =>
          bind(
            from,
            (first) =>
              bind(
                select(i64.ltS(t, first), first, t),
                (value) => ifElse(i64.eqz(by), value, i64.sub(value, floorMod64(i64.sub(value, first), by))),
              ),
          ),
      },
    ),
    entry("timestamp_floor_step", [time, step, origin], type, "The time floored to steps from an origin.", {
      emit: ([t, by, from]) =>
        bind(t, (value) => ifElse(i64.eqz(by), value, i64.sub(value, floorMod64(i64.sub(value, from), by)))),
    }),
    entry(
      "timestamp_ceil_step",
      [time, step, origin],
      type,
      "The first step from an origin that is later than the time.",
      {
        emit: ([t, by, from]) =>
          bind(
            t,
            (value) => ifElse(i64.eqz(by), value, i64.add(i64.sub(value, floorMod64(i64.sub(value, from), by)), by)),
          ),
      },
    ),
  );
  for (const [name, more] of [["timestamp_floor_months", 0], ["timestamp_ceil_months", 1]] as const) {
    entries.push(
      entry(
        name,
        [time, { name: "months", type: "INT", constant: true }, { name: "origin", type: "INT", constant: true }],
        type,
        "The time floored (or moved up) to months, counted from 1970-01.",
        {
          emit: ([t, months, from]) =>
            ifElse(i32.leS(months, ZERO32), t, floorMonths(t, months, from, more, unitsADay(type))),
        },
      ),
    );
  }
  entries.push(
    entry(
      "dateadd_step",
      [time, { name: "count", type: "LONG" }, step],
      type,
      "The time advanced by a number of steps.",
      {
        movesTime: { keepsOrder: true },
        emit: ([t, count, by]) => i64.add(t, i64.mul(count, by)),
      },
    ),
    entry(
      "dateadd_part",
      [time, { name: "count", type: "LONG" }, step],
      type,
      "The time advanced by a number of its own units.",
      {
        movesTime: { keepsOrder: true },
        emit: ([t, count, parts]) => ifElse(i64.leS(parts, ZERO64), t, i64.add(t, i64.divS(count, parts))),
      },
    ),
    entry("dateadd_months", [time, { name: "count", type: "INT" }], type, "The time advanced by a number of months.", {
      movesTime: DAYS_MEET,
      batch: adding(type, (value, count) => addMonths(value, count, unitsADay(type))),
    }),
    entry("dateadd_years", [time, { name: "count", type: "INT" }], type, "The time advanced by a number of years.", {
      movesTime: DAYS_MEET,
      batch: adding(type, (value, count) => addYears(value, count, unitsADay(type))),
    }),
    entry(
      "datediff_step",
      [time, { name: "other", type }, step],
      "LONG",
      "The number of whole steps between two times.",
      {
        emit: ([a, b, by]) =>
          bind(
            i64.sub(a, b),
            (difference) =>
              ifElse(
                i64.leS(by, ZERO64),
                difference,
                i64.divS(select(i64.ltS(difference, ZERO64), i64.sub(ZERO64, difference), difference), by),
              ),
          ),
      },
    ),
    entry(
      "datediff_part",
      [time, { name: "other", type }, step],
      "LONG",
      "The difference of two times in their own unit.",
      {
        emit: ([a, b, parts]) =>
          i64.mul(
            bind(
              i64.sub(a, b),
              (difference) => select(i64.ltS(difference, ZERO64), i64.sub(ZERO64, difference), difference),
            ),
            parts,
          ),
      },
    ),
    entry(
      "datediff_months",
      [time, { name: "other", type }, { name: "months", type: "INT", constant: true }],
      "LONG",
      "The number of whole spans of months between two times.",
      {
        batch: ([a, b, months], out, rowCount) => {
          const dayUnits = unitsADay(type);
          for (let row = 0; row < rowCount; row++) {
            const x = a.values[row], y = b.values[row];
            if (x === NULL_I64 || y === NULL_I64) out.values[row] = NULL_I64;
            else out.values[row] = monthSpans(x, y, months.values[row], dayUnits);
          }
        },
      },
    ),
  );
}

/** `move`: the instant of a day's start and a count. Times of a day move alike. */
function adding(type: string, move: (start: bigint, count: number) => bigint): BatchFunction {
  const dayUnits = unitsADay(type), unitsASecond = Number(1_000_000_000n / nanosOf(type));
  return ([times, counts], out, rowCount) => {
    const from = wordsOf(times), to = wordsOf(out), by = counts.values;
    let lastDay = NaN, lastCount = 0, more = 0;
    for (let row = 0; row < rowCount; row++) {
      const low = from[2 * row], high = from[2 * row + 1], count = by[row];
      if ((low === 0 && high === NULL_HIGH) || count === NULL_I32) {
        to[2 * row] = 0;
        to[2 * row + 1] = NULL_HIGH;
        continue;
      }
      splitInstant(low, high, unitsASecond);
      const day = Math.floor(splitParts.second / 86400);
      if (day !== lastDay || count !== lastCount) {
        const start = BigInt(day) * dayUnits;
        more = Number(move(start, count) - start);
        lastDay = day;
        lastCount = count;
      }
      if (Number.isSafeInteger(more)) writeSum(to, row, low, high, more);
      else out.values[row] = move(times.values[row], count);
    }
  };
}

/**
 * Number of complete months from `low` to `high`. A month is complete when the day and time of day of `low` are
 * reached.
 */
function monthsBetween(low: bigint, high: bigint, dayUnits: bigint): number {
  const dayA = floorDivide(low, dayUnits), dayB = floorDivide(high, dayUnits);
  const a = civilOfDay(Number(dayA)), b = civilOfDay(Number(dayB));
  const months = (b.year - a.year) * 12 + b.month - a.month;
  const timeA = low - dayA * dayUnits, timeB = high - dayB * dayUnits;
  const reached = b.day > a.day || (b.day === a.day && timeB >= timeA);
  return reached ? months : months - 1;
}

/** Number of complete spans of this many months between two times. */
function monthSpans(a: bigint, b: bigint, months: number, dayUnits: bigint): bigint {
  return BigInt(Math.floor(monthsBetween(a < b ? a : b, a < b ? b : a, dayUnits) / months));
}

/** "15m" → 15 and m. */
function splitUnit(text: unknown): { count: number; unit: string } | undefined {
  const match = /^(\d*)([a-zA-Z])$/.exec(String(text));
  if (match === null || (match[1] !== "" && Number(match[1]) < 1) || match[1].length > 9) return undefined;
  return match[2] in UNIT_NANOS || match[2] === "M" || match[2] === "y"
    ? { count: Number(match[1] || 1), unit: match[2] }
    : undefined;
}

const inMonths = ({ unit }: { unit: string }) => unit === "M" || unit === "y";

const OFFSET = { name: "offset", type: "text", constant: true };
const ZONE = { name: "zone", type: "text", constant: true };

const flooredInZone: BatchFunction = ([units, times, origins, offsets, zones], out, rowCount) => {
  const { type } = out, ticks = nanosOf(type), ticksASecond = 1_000_000_000n / ticks;
  const inTicks = (value: bigint, from: string) => value * nanosOf(from) / ticks;
  const { count, unit } = splitUnit(units.constant)!;
  const offset = parseBucketOffset(String(offsets.constant ?? "00:00"), type)!;
  const zone = zones.constant == null ? undefined : zoneOf(String(zones.constant));
  const from = rowCount === 0 || origins.isNull(0) ? undefined : inTicks(origins.values[0], origins.type);
  const sampling = { count, unit: unit === "u" ? "U" : unit, align: "calendar" as const, timeZone: "", offset, from };
  const buckets = new TimeBuckets(sampling, type, 0n);
  for (let row = 0; row < rowCount; row++) {
    if (times.isNull(row)) {
      out.values[row] = NULL_I64;
      continue;
    }
    const time = inTicks(times.values[row], times.type);
    const local = time + BigInt(zone?.offsetAt(Number(floorDivide(time, ticksASecond))) ?? 0) * ticksASecond;
    // Earlier times give the origin.
    const first = from === undefined ? local : from + offset;
    out.values[row] = buckets.of(local < first ? first : local).start;
  }
};

/** Of `timestamp_floor(unit, time, …)` and those like it. */
const TIME_ARGUMENT = 1;

/** Weeks begin on Monday: 1969-12-29. */
function floorTo(
  kind: "floor" | "ceil",
  unit: { count: number; unit: string },
  type: string,
  origin: Rewritten["args"][number] | undefined,
): Rewritten {
  const stamp = stampOf(type);
  if (inMonths(unit)) {
    return {
      name: `timestamp_${kind}_months`,
      args: [TIME_ARGUMENT, int(unit.count * (unit.unit === "y" ? 12 : 1)), int(0)],
    };
  }
  const step = BigInt(unit.count) * UNIT_NANOS[unit.unit] / nanosOf(stamp);
  if (origin !== undefined) return { name: "timestamp_floor_from", args: [TIME_ARGUMENT, long(step || 1n), origin] };
  const monday = { value: unit.unit === "w" ? -3n * unitsADay(stamp) : 0n, type: stamp };
  // In the finest unit there is nothing to round up.
  const finest = kind === "ceil" ? 0n : 1n;
  return { name: `timestamp_${kind}_step`, args: [TIME_ARGUMENT, long(step <= 1n ? finest : step), monday] };
}

/** The step is in the unit of the time, and so is the origin if it is constant. Otherwise both are in the finer unit. */
function floorFrom(
  unit: { count: number; unit: string },
  origin: Value | undefined,
  [, type, originType]: readonly string[],
): Rewritten {
  const stamp = stampOf(type);
  if (typeof origin === "bigint") {
    const value = floorDivide(origin * nanosOf(originType), nanosOf(stamp));
    return floorTo("floor", unit, type, { value, type: stamp });
  }
  const read = typeof origin === "string" ? readValue(origin, stamp) : undefined;
  if (typeof read === "bigint") return floorTo("floor", unit, type, { value: read, type: stamp });
  return floorTo("floor", unit, originType === "TIMESTAMP_NS" ? originType : type, 2);
}

const UNIT = { name: "unit", type: "text", constant: true };
const TIME = { name: "time", type: "time" };
const badUnit = (name: string, unit: unknown) => ({ argument: 0, message: `${name}: unknown unit of time '${unit}'` });
const stampType = (types: string[]) =>
  stampOf(types.find((type) => type.startsWith("TIMESTAMP") || type === "DATE") ?? "TIMESTAMP");

entries.push(
  entry(
    "timestamp_floor",
    [UNIT, TIME, { name: "origin", type: "time", optional: true }],
    stampType,
    "The start of the unit (such as 15m, h, d, w, M, y) that contains the time, in UTC. Units count from an origin; earlier times give the origin. " +
      "With NULL, units are those of the calendar.",
    {
      check: ([unit, , origin], types) => {
        const split = splitUnit(unit);
        if (split === undefined) return badUnit("timestamp_floor", unit);
        return types.length > 2 && origin === undefined && inMonths(split)
          ? { argument: 2, message: "timestamp_floor: months and years need a constant origin" }
          : undefined;
      },
      rewrite: ([unit, , origin], types) => {
        const split = splitUnit(unit)!;
        if (types.length === 2 || origin === null) return floorTo("floor", split, types[1], undefined);
        if (!inMonths(split)) return floorFrom(split, origin, types);
        const none = { value: null, type: "STRING" };
        return { name: "timestamp_floor", args: [0, 1, 2, none, none] };
      },
    },
    [["timestamp_floor('h', '2024-03-01T10:47:12Z')", "2024-03-01T10:00:00.000000Z"], [
      "timestamp_floor('h', '1969-12-31T23:59:59Z')",
      "1969-12-31T23:00:00.000000Z",
    ]],
  ),
  entry(
    "timestamp_floor",
    [UNIT, TIME, { name: "origin", type: "time", constant: true }, OFFSET, ZONE],
    stampType,
    "The start of the unit that contains the local time of a time zone, as local time. Units count from an origin plus an offset " +
      "([+-]HH:mm). With NULL, units are those of the calendar, without an offset, in UTC.",
    {
      nulls: "custom",
      check: ([unit, , , offset, zone]) => {
        if (splitUnit(unit) === undefined) return badUnit("timestamp_floor", unit);
        if (typeof offset === "string" && parseBucketOffset(offset, "TIMESTAMP") === undefined) {
          return { argument: 3, message: `timestamp_floor: invalid offset '${offset}': expected [+-]HH:mm` };
        }
        return typeof zone === "string" && zoneOf(zone) === undefined
          ? { argument: 4, message: `unknown time zone '${zone}'` }
          : undefined;
      },
      batch: flooredInZone,
    },
    [[
      "timestamp_floor('1d', '2024-03-01T23:30:00Z'::timestamp, null, '00:00', 'Europe/Berlin')",
      "2024-03-02T00:00:00.000000Z",
    ]],
  ),
  entry("timestamp_ceil", [UNIT, TIME], stampType, "The start of the next unit after the time, in UTC.", {
    check: (
      [unit],
    ) => (splitUnit(unit) === undefined || /\d/.test(String(unit)) ? badUnit("timestamp_ceil", unit) : undefined),
    rewrite: ([unit], types) => floorTo("ceil", splitUnit(unit)!, types[1], undefined),
  }, [["timestamp_ceil('h', '2024-03-01T10:47:12Z')", "2024-03-01T11:00:00.000000Z"]]),
);

const TRUNCATIONS: Record<string, string | { months: number; origin: number }> = {
  nanosecond: "n",
  microsecond: "u",
  millisecond: "T",
  second: "s",
  minute: "m",
  hour: "h",
  day: "d",
  week: "w",
  month: "M",
  quarter: { months: 3, origin: 0 },
  year: "y",
  decade: { months: 120, origin: 0 },
  century: { months: 1200, origin: 372 }, // from 2001
  millennium: { months: 12000, origin: 372 },
};
function truncation(unit: unknown): string | { months: number; origin: number } | undefined {
  const name = String(unit).toLowerCase();
  const singular = [name, name.replace(/s$/, ""), name.replace(/ies$/, "y"), name.replace(/ia$/, "ium")];
  const known = singular.find((word) => Object.hasOwn(TRUNCATIONS, word));
  return known === undefined ? undefined : TRUNCATIONS[known];
}
entries.push(
  entry(
    "date_trunc",
    [UNIT, TIME],
    stampType,
    `The start of the unit that contains the time: ${Object.keys(TRUNCATIONS).join(", ")}.`,
    {
      check: ([unit]) => (truncation(unit) === undefined ? badUnit("date_trunc", unit) : undefined),
      rewrite: ([unit], types) => {
        const found = truncation(unit)!;
        if (typeof found === "string") return floorTo("floor", { count: 1, unit: found }, types[1], undefined);
        return { name: "timestamp_floor_months", args: [1, int(found.months), int(found.origin)] };
      },
    },
    [["date_trunc('quarter', '2024-05-15T13:14:15Z')", "2024-04-01T00:00:00.000000Z"]],
  ),
);

/** The number of whole units between two times; undefined for an unknown unit. */
function unitsBetween(a: bigint, b: bigint, unit: string, type: string): bigint | undefined {
  if (unit === "M" || unit === "y") return monthSpans(a, b, unit === "M" ? 1 : 12, unitsADay(type));
  const nanos = UNIT_NANOS[unit];
  return nanos === undefined ? undefined : (a < b ? b - a : a - b) * nanosOf(type) / nanos;
}

/**
 * Entries of `name` with a unit of its own for each row, which computes by batches: `name` with a constant unit is rewritten by its unit. `rest`: the
 * other arguments. `valueOf`: undefined for an unknown unit.
 */
function byUnitOfRow<A, B>(
  name: string,
  rest: FunctionEntry["args"],
  returns: string,
  summary: string,
  valueOf: (unit: string, a: A, b: B) => bigint | undefined,
): FunctionEntry[] {
  const args = [{ name: "unit", type: "text" }, ...rest], batchName = `${name}_units`;
  const batch: BatchFunction = ([units, a, b], out, rowCount) => {
    for (let row = 0; row < rowCount; row++) {
      const unit = units.text(row), isNull = unit === undefined || a.isNull(row) || b.isNull(row);
      out.values[row] = isNull ? NULL_I64 : valueOf(unit, a.values[row] as A, b.values[row] as B) ?? NULL_I64;
    }
  };
  return [
    entry(name, args, returns, summary, { rewrite: () => ({ name: batchName, args: [0, 1, 2] }) }),
    entry(batchName, args, returns, summary, { nulls: "custom", batch }),
  ];
}

/** A unit of one letter. For a longer text the dialect reports the error at the call. */
function checkUnit(name: string): FunctionEntry["check"] {
  return ([unit]) => {
    const text = String(unit);
    if (text in UNIT_NANOS || text === "M" || text === "y") return undefined;
    return text.length === 1 ? badUnit(name, unit) : { message: `${name}: unknown unit of time '${unit}'` };
  };
}

function rewriteAdd(unit: string, type: string): Rewritten {
  if (unit === "M") return { name: "dateadd_months", args: [2, 1] };
  if (unit === "y") return { name: "dateadd_years", args: [2, 1] };
  const nanos = nanosOf(stampOf(type));
  return UNIT_NANOS[unit] >= nanos
    ? { name: "dateadd_step", args: [2, 1, long(UNIT_NANOS[unit] / nanos)] }
    : { name: "dateadd_part", args: [2, 1, long(nanos / UNIT_NANOS[unit])] };
}

const ZONED = "dateadd_units";

/** Null for unknown units and zones. */
const addInZones: BatchFunction = ([units, counts, times, zones], out, rowCount) => {
  const nanos = nanosOf(stampOf(times.type));
  const scale = times.type === "DATE" ? 1000n : 1n;
  const perSecond = 1000000000n / nanos;
  const secondOf = (value: bigint) => Number(value / perSecond) - (value % perSecond < 0n ? 1 : 0);
  // The text of a constant is read once: reading it for each row takes ten times as long as all else.
  const fixedUnit = typeof units.constant === "string" ? units.constant : undefined;
  const fixedZone = typeof zones.constant === "string" ? zoneOf(zones.constant) : undefined;
  for (let row = 0; row < rowCount; row++) {
    out.values[row] = NULL_I64;
    const given = times.values[row], count = counts.values[row];
    if (given === NULL_I64 || count === NULL_I32) continue;
    const unit = fixedUnit ?? units.text(row), zone = fixedZone ?? zoneOf(zones.text(row) ?? "");
    if (unit === undefined || zone === undefined) continue;
    const value = given * scale;
    const moved = addUnits(value + BigInt(zone.offsetAt(secondOf(value))) * perSecond, count, unit, nanos);
    if (moved === undefined) continue;
    const second = secondOf(moved);
    out.values[row] = moved + BigInt(zone.toUtc(second) - second) * perSecond;
  }
};

entries.push(
  entry(
    "dateadd",
    [UNIT, { name: "count", type: "INT" }, TIME],
    stampType,
    "The time advanced by a number of units (n u T s m h d w M y). Days beyond the end of a month become its last day.",
    {
      check: checkUnit("dateadd"),
      rewrite: ([unit], types) => rewriteAdd(String(unit), types[2]),
    },
    [["dateadd('M', 1, '2024-01-31T08:00:00Z')", "2024-02-29T08:00:00.000000Z"]],
  ),
  entry(
    "dateadd",
    [UNIT, { name: "count", type: "INT" }, TIME, { name: "zone", type: "text", constant: true }],
    stampType,
    "The time advanced by a number of units in the local time of a time zone.",
    {
      check: (constants, types) =>
        checkUnit("dateadd")!(constants, types) ??
          (zoneOf(String(constants[3] ?? "")) === undefined
            ? { argument: 3, message: `unknown time zone '${constants[3]}'` }
            : undefined),
      nulls: "custom",
      batch: addInZones,
    },
    [["dateadd('d', 1, '2024-03-30T12:00:00Z'::timestamp, 'Europe/Berlin')", "2024-03-31T11:00:00.000000Z"]],
  ),
  ...STAMPS.flatMap((type) =>
    ["dateadd", ZONED].map((name) =>
      entry(
        name,
        [
          { name: "unit", type: "text" },
          { name: "count", type: "INT" },
          { name: "time", type },
          { name: "zone", type: "text" },
        ],
        type,
        "The time advanced in local time, by units and time zones that differ by row. Null for unknown ones.",
        name === ZONED
          ? { nulls: "custom", batch: addInZones }
          : { rewrite: () => ({ name: ZONED, args: [0, 1, 2, 3] }) },
      )
    )
  ),
  ...STAMPS.flatMap((type) =>
    byUnitOfRow(
      "dateadd",
      [{ name: "count", type: "INT" }, { name: "time", type }],
      type,
      "The time advanced by a number of units that differ by row. Null for unknown units.",
      (unit, count: number, time: bigint) => addUnits(time, count, unit, nanosOf(type)),
    )
  ),
  entry(
    "datediff",
    [UNIT, TIME, { name: "other", type: "time" }],
    "LONG",
    "The number of whole units (n u T s m h d w M y) between two times, never negative.",
    {
      check: checkUnit("datediff"),
      rewrite: ([unit], types) => {
        if (unit === "M" || unit === "y") return { name: "datediff_months", args: [1, 2, int(unit === "M" ? 1 : 12)] };
        const nanos = types.includes("TIMESTAMP_NS") ? 1n : 1000n;
        const length = UNIT_NANOS[String(unit)];
        return length >= nanos
          ? { name: "datediff_step", args: [1, 2, long(length / nanos)] }
          : { name: "datediff_part", args: [1, 2, long(nanos / length)] };
      },
    },
    [["datediff('w', '2024-01-01', '2024-01-15')", 2]],
  ),
  ...STAMPS.flatMap((type) =>
    byUnitOfRow(
      "datediff",
      [{ name: "time", type }, { name: "other", type }],
      "LONG",
      "The number of whole units between two times, by units that differ by row. Null for unknown units.",
      (unit, a: bigint, b: bigint) => unitsBetween(a, b, unit, type),
    )
  ),
);

export const timeStepFunctions = entries;
