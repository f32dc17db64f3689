/**
 * Reference implementations of functions with emitters, over single values with BigInt and Date; null is null. They are
 * slow and simple, to compare kernels with.
 */
import { LONG_MAX, type Value } from "../../types/mod.ts";
import { decimalOf } from "../../types/wide.ts";

/** For arguments that no statement can produce. */
export const NOT_COMPARED = undefined as unknown as Value;

/** `type`: the result type. */
type Reference = (args: Value[], types: readonly string[], type: string) => Value;

const isFloat = (type: string): boolean => type === "FLOAT" || type === "DOUBLE";
const big = (value: Value): bigint => BigInt(value as number | bigint | boolean);

/** Wraps an integer to the type's bits. The value that represents the type's null is null. */
function whole(value: bigint, type: string): Value {
  switch (type) {
    case "BYTE":
      return Number(BigInt.asIntN(8, value));
    case "SHORT":
      return Number(BigInt.asIntN(16, value));
    case "CHAR": {
      const code = Number(BigInt.asUintN(16, value));
      return code === 0 ? null : String.fromCharCode(code);
    }
    case "INT": {
      const int = Number(BigInt.asIntN(32, value));
      return int === -(2 ** 31) ? null : int;
    }
    case "IPv4":
      return Number(BigInt.asUintN(32, value)) || null;
    default: {
      if (decimalOf(type) !== undefined) return value;
      const long = BigInt.asIntN(64, value);
      return long === -(2n ** 63n) ? null : long;
    }
  }
}

function fraction(value: number, type: string): Value {
  const rounded = type === "FLOAT" ? Math.fround(value) : value;
  return Number.isFinite(rounded) ? rounded : null;
}

/** Null if an argument is null. */
const strict = (of: Reference): Reference => (args, types, type) => args.includes(null) ? null : of(args, types, type);

const arithmetic = (
  ofWhole: (a: bigint, b: bigint) => bigint | null,
  ofFractions: (a: number, b: number) => number,
): Reference =>
  strict(([a, b], types, type) => {
    if (isFloat(type)) return fraction(ofFractions(Number(a), Number(b)), type);
    const result = ofWhole(big(a), big(b));
    if (result === null) return null;
    // Addresses do not wrap around.
    if (type === "IPv4" && types.includes("LONG") && (result < 0n || result >= 2n ** 32n)) return null;
    return whole(result, type);
  });

const bits = (of: (a: bigint, b: bigint) => bigint): Reference =>
  strict(([a, b], _, type) => whole(of(big(a), big(b ?? 0)), type));

/** Texts by UTF-8 bytes; numbers by value. */
function order(a: Value, b: Value, type: string): number {
  if (typeof a === "string" && typeof b === "string") {
    if (type === "CHAR") return a.charCodeAt(0) - b.charCodeAt(0);
    const x = [...a], y = [...b];
    const k = x.findIndex((letter, i) => letter !== y[i]);
    if (k < 0) return x.length - y.length;
    return y[k] === undefined ? 1 : x[k].codePointAt(0)! - y[k].codePointAt(0)!;
  }
  if (isFloat(type)) {
    const difference = Number(a) - Number(b);
    return Math.abs(difference) <= 1e-10 ? 0 : difference;
  }
  const x = big(a), y = big(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

/** `oneNull`: the result if one operand is null; `twoNulls`: if both are. */
const comparison =
  (holds: (sign: number) => boolean, oneNull: boolean, twoNulls: boolean): Reference => ([a, b], [type]) =>
    a === null || b === null ? (a === b ? twoNulls : oneNull) : holds(order(a, b, type));
/** For CHAR, two nulls are equal, but `<=` and `>=` of them are false. */
const notBeyond = (holds: (sign: number) => boolean): Reference => (args, types, type) =>
  comparison(holds, false, types[0] !== "CHAR")(args, types, type);

function between(x: Value, low: Value, high: Value, type: string): boolean {
  if (x === null || low === null || high === null) return false;
  const [from, to] = exact(low, high) > 0 ? [high, low] : [low, high];
  return order(from, x, type) <= 0 && order(x, to, type) <= 0;
}

/** Compares without tolerance. */
function exact(a: Value, b: Value): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return big(a) < big(b) ? -1 : big(a) > big(b) ? 1 : 0;
}

const truncated = (value: Value, limit: number): bigint | null => {
  const x = Number(value);
  return x >= -limit && x < limit ? BigInt(Math.trunc(x)) : null;
};

/** Ticks of the time types per second. */
const TICKS: Record<string, bigint> = { DATE: 1000n, TIMESTAMP: 1000000n, TIMESTAMP_NS: 1000000000n };

const absolute = (value: bigint) => value < 0n ? -value : value;

function cast(value: Value, from: string, to: string): Value {
  if (/^(?:STRING|VARCHAR|SYMBOL|SYMBOL_TEXT)$/.test(to)) return value;
  const hasNull = to !== "BOOLEAN" && to !== "BYTE" && to !== "SHORT";
  if (value === null) return hasNull ? null : to === "BOOLEAN" ? false : 0;
  if (to === "CHAR" && from === "BOOLEAN") return value ? "T" : "F";
  if (to === "BOOLEAN") return isFloat(from) ? value !== 0 : big(value) !== 0n;
  if (isFloat(to)) return fraction(Number(value), to);
  if (from in TICKS && to in TICKS) {
    if (TICKS[to] < TICKS[from]) return big(value) / (TICKS[from] / TICKS[to]);
    const refined = big(value) * (TICKS[to] / TICKS[from]);
    return absolute(refined) > LONG_MAX ? null : refined;
  }
  if (!isFloat(from)) return whole(big(value), to);
  if (to === "INT") {
    const int = Math.trunc(Number(value));
    return Math.abs(int) < 2 ** 31 ? int : null;
  }
  if (hasNull && to !== "CHAR") {
    const long = truncated(value, 2 ** 63);
    return long === null ? null : whole(long, to);
  }
  const max = to === "BYTE" ? 127 : to === "SHORT" ? 32767 : undefined;
  if (max !== undefined) return Number(value) >= -max - 1 && Number(value) <= max ? Math.trunc(Number(value)) : 0;
  // A CHAR takes the low bits of the nearest 32-bit integer.
  const int = Math.max(-(2 ** 31), Math.min(2 ** 31 - 1, Math.trunc(Number(value))));
  return whole(BigInt(int), to);
}

const castReference: Record<string, Reference> = Object.fromEntries(
  [
    "BYTE",
    "SHORT",
    "CHAR",
    "INT",
    "LONG",
    "FLOAT",
    "DOUBLE",
    "BOOLEAN",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NS",
    "IPv4",
    "STRING",
    "VARCHAR",
    "SYMBOL",
    "SYMBOL_TEXT",
  ].map((to) => [`cast_${to}`, ([value], [from]) => cast(value, from, to)]),
);

const nearestReference: Record<string, Reference> = Object.fromEntries(
  ["TIMESTAMP", "TIMESTAMP_NS"].map((to) => [
    `nearest_${to}`,
    ([value], [from]) => value === null ? null : cast(value, from, to) ?? (big(value) < 0n ? -LONG_MAX : LONG_MAX),
  ]),
);

const floorDivide = (a: bigint, b: bigint): bigint => (a - ((a % b) + b) % b) / b;

/** Splits a time into days since 1970 and ticks within the day. */
function split(value: Value, type: string): { days: bigint; rest: bigint; date: Date; ticks: bigint } {
  const ticks = TICKS[type], days = floorDivide(big(value), 86400n * ticks);
  return { days, rest: big(value) - days * 86400n * ticks, date: new Date(Number(days) * 86_400_000), ticks };
}

type Part = (date: Date, rest: bigint, ticks: bigint) => number | boolean;
const year = (date: Date) => date.getUTCFullYear();
const daysFrom = (a: number, b: number) => Math.round((b - a) / 86_400_000);
const startOf = (y: number, month = 0) => {
  const date = new Date(0);
  return date.setUTCFullYear(y, month, 1);
};
const monday = (date: Date) => (date.getUTCDay() + 6) % 7;
const thursday = (date: Date) => new Date(date.getTime() + (3 - monday(date)) * 86_400_000);
const isLeap = (y: number) => y % 4 === 0 && (y % 100 !== 0 || y % 400 === 0);
/** The fraction of the second, in units of 1/`scale`. */
const parts = (rest: bigint, ticks: bigint, scale: bigint) => Number(((rest % ticks) * scale) / ticks);
/** Centuries begin with a year 1; there is no century 0. */
const upwards = (y: number, by: number) => (y > 0 ? Math.ceil(y / by) : Math.trunc(y / by) - 1);

const PARTS: Record<string, Part> = {
  year,
  month: (date) => date.getUTCMonth() + 1,
  day: (date) => date.getUTCDate(),
  hour: (_, rest, ticks) => Number(rest / ticks) / 3600 | 0,
  minute: (_, rest, ticks) => Math.floor(Number(rest / ticks) / 60) % 60,
  second: (_, rest, ticks) => Number(rest / ticks) % 60,
  millis: (_, rest, ticks) => parts(rest, ticks, 1000n),
  micros: (_, rest, ticks) => parts(rest, ticks, 1000000n) % 1000,
  nanos: (_, rest, ticks) => parts(rest, ticks, 1000000000n) % 1000,
  day_of_week: (date) => monday(date) + 1,
  day_of_week_sunday_first: (date) => date.getUTCDay() + 1,
  week_of_year: (date) => Math.floor(daysFrom(startOf(year(thursday(date))), thursday(date).getTime()) / 7) + 1,
  days_in_month: (date) => new Date(new Date(startOf(year(date), date.getUTCMonth() + 1)).getTime() - 1).getUTCDate(),
  is_end_of_month: (date) => new Date(date.getTime() + 86_400_000).getUTCDate() === 1,
  is_leap_year: (date) => isLeap(year(date)),
  extract_quarter: (date) => Math.floor(date.getUTCMonth() / 3) + 1,
  extract_doy: (date) => daysFrom(startOf(year(date)), date.getTime()) + 1,
  extract_dow: (date) => date.getUTCDay(),
  extract_isoyear: (date) => year(thursday(date)),
  extract_decade: (date) => Math.trunc(year(date) / 10),
  extract_century: (date) => upwards(year(date), 100),
  extract_millennium: (date) => upwards(year(date), 1000),
  extract_milliseconds: (_, rest, ticks) => parts(rest, ticks, 1000n),
  extract_microseconds: (_, rest, ticks) => parts(rest, ticks, 1000000n),
  extract_nanoseconds: (_, rest, ticks) => parts(rest, ticks, 1000000000n),
};

const partReference: Record<string, Reference> = Object.fromEntries(
  Object.entries(PARTS).map(([name, part]): [string, Reference] => [name, ([time], [type], result) => {
    if (time === null) return result === "BOOLEAN" ? false : null;
    const { date, rest, ticks } = split(time, type);
    return part(date, rest, ticks);
  }]),
);

/** Rewritten calls have small steps and origins. Results beyond some 200,000 years are not compared. */
const months = (more: bigint): Reference =>
  strict(([time, step, origin], [type]) => {
    if (Number(step) <= 0) return time;
    if (Math.max(Number(step), Math.abs(Number(origin))) > 1_000_000) return NOT_COMPARED;
    const { date, ticks } = split(time, type);
    const index = BigInt((year(date) - 1970) * 12 + date.getUTCMonth());
    const floored = (floorDivide(index - big(origin), big(step)) + more) * big(step) + big(origin);
    const start = startOf(1970 + Number(floorDivide(floored, 12n)), Number(((floored % 12n) + 12n) % 12n));
    return whole(BigInt(start / 1000) * ticks, type);
  });

/** Times beyond the ends of their range wrap around. */
const steps = (of: (time: bigint, step: bigint, origin: bigint) => bigint): Reference =>
  strict(([time, step, origin], [type]) => whole(of(big(time), big(step), big(origin)), type));
const modulo = (a: bigint, b: bigint): bigint => {
  if (b === 0n) return 0n;
  const rest = BigInt.asIntN(64, a) % b;
  return rest < 0n ? rest + b : rest;
};

const difference = (of: (between: bigint, step: bigint) => bigint): Reference =>
  strict(([a, b, step]) => {
    const between = BigInt.asIntN(64, big(a) - big(b));
    return whole(of(between, big(step)), "LONG");
  });
const magnitude = (x: bigint): bigint => BigInt.asIntN(64, x < 0n ? -x : x);

const roundedUp = (x: number) => Math.abs(x) < 2 ** 52 ? Math.floor(x + 0.5) : x;
const chosen = (isBetter: (a: Value, b: Value) => boolean): Reference => (args) =>
  args.reduce((best, value) => best === null || (value !== null && isBetter(value, best)) ? value : best);
const signOf = (x: Value): number => (Number(x) > 0 ? 1 : Number(x) < 0 ? -1 : 0);

export const REFERENCE: Record<string, Reference> = {
  ...castReference,
  ...nearestReference,
  ...partReference,
  "+": arithmetic((a, b) => a + b, (a, b) => a + b),
  "-": arithmetic((a, b) => a - b, (a, b) => a - b),
  "*": arithmetic((a, b) => a * b, (a, b) => a * b),
  "/": arithmetic((a, b) => b === 0n ? null : a / b, (a, b) => a / b),
  "%": arithmetic((a, b) => b === 0n ? null : a % b, (a, b) => a % b),
  "&": bits((a, b) => a & b),
  "|": bits((a, b) => a | b),
  "^": bits((a, b) => a ^ b),
  "~": bits((a) => ~a),
  neg: strict(([a], _, type) => isFloat(type) ? -Number(a) : whole(-big(a), type)),
  "=": comparison((sign) => sign === 0, false, true),
  "!=": comparison((sign) => sign !== 0, true, false),
  "<": comparison((sign) => sign < 0, false, false),
  "<=": notBeyond((sign) => sign <= 0),
  ">": comparison((sign) => sign > 0, false, false),
  ">=": notBeyond((sign) => sign >= 0),
  between: ([x, low, high], [type]) => between(x, low, high, type),
  and: ([a, b]) => a === true && b === true,
  or: ([a, b]) => a === true || b === true,
  not: ([a]) => a !== true,
  is_null: ([a]) => a === null,
  within_box: ([x, y, minX, minY, maxX, maxY]) =>
    ![x, y, minX, minY, maxX, maxY].includes(null) && x! >= minX! && x! <= maxX! && y! >= minY! && y! <= maxY!,
  coalesce: (args) => args.find((value) => value !== null) ?? null,
  nvl: ([a, b]) => a ?? b,
  nullif: ([a, b], [type]) => a === null ? null : b !== null && order(a, b, type) === 0 ? null : a,
  greatest: chosen((a, b) => exact(a, b) > 0),
  least: chosen((a, b) => exact(a, b) < 0),
  sqrt: strict(([a], _, type) => fraction(Math.sqrt(Number(a)), type)),
  abs: strict(([a], _, type) => isFloat(type) ? Math.abs(Number(a)) : whole(big(a) < 0n ? -big(a) : big(a), type)),
  sign: strict(([a], _, type) => isFloat(type) ? signOf(a) : whole(BigInt(signOf(a)), type)),
  ceil: strict(([a]) => Math.ceil(Number(a))),
  ceiling: strict(([a]) => Math.ceil(Number(a))),
  floor: strict(([a]) => Math.floor(Number(a))),
  round: strict(([a]) => roundedUp(Number(a))),
  mid: strict(([bid, ask], _, type) => fraction((Number(bid) + Number(ask)) / 2, type)),
  spread: strict(([bid, ask], _, type) => fraction(Number(ask) - Number(bid), type)),
  spread_bps: strict(([b, a], _, type) => {
    const bid = Number(b), ask = Number(a);
    return fraction((ask - bid) / ((bid + ask) / 2) * 10000, type);
  }),
  wmid: strict((args, _, type) => {
    const [bidSize, bid, ask, askSize] = args.map(Number);
    return fraction((bid * askSize + ask * bidSize) / (bidSize + askSize), type);
  }),
  extract_epoch: strict(([time], [type]) => big(time) / TICKS[type]),
  timestamp_floor_from: steps((time, step, origin) => time < origin ? origin : time - modulo(time - origin, step)),
  timestamp_floor_step: steps((time, step, origin) => time - modulo(time - origin, step)),
  timestamp_ceil_step: steps((time, step, origin) => time - modulo(time - origin, step) + step),
  timestamp_floor_months: months(0n),
  timestamp_ceil_months: months(1n),
  dateadd_step: strict(([time, count, step], [type]) => whole(big(time) + big(count) * big(step), type)),
  dateadd_part: strict(([time, count, step], [type]) =>
    big(step) <= 0n ? time : whole(big(time) + big(count) / big(step), type)
  ),
  datediff_step: difference((between, step) => step <= 0n ? between : magnitude(between) / step),
  datediff_part: difference((between, step) => magnitude(between) * step),
  length_bytes: ([text]) => text === null ? -1 : new TextEncoder().encode(text as string).length,
};
