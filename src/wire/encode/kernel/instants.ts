/** Functions of the row kernel that write instants as text, see `numbers.ts`. */
import type { Code, Module } from "../../../wasm/assembler.ts";
import { Digits, NOT_WRITTEN, ZEROS } from "../../../wasm/number-texts.ts";
import type { TableViews } from "./program.ts";

const MINUS = 0x2d, COLON = 0x3a, POINT = 0x2e, LETTER_T = 0x54, LETTER_Z = 0x5a, BLANK = 0x20;
const DAY_SECONDS = 86_400;

/** The last day that was written: neighbouring rows are mostly of the same one. Its start as i64, then `yyyy`, `-MM-` and `dd`. */
const KEPT_DAY_BYTES = 24;
const UNITS = [1_000, 1_000_000, 1_000_000_000];
export const INSTANT_TABLE_BYTES = UNITS.length * KEPT_DAY_BYTES;

/** Writes what the functions read, at a multiple of 8. */
export function writeInstantTables({ i64, u8 }: TableViews, address: number): void {
  const text = new TextEncoder().encode("1970-01-01");
  for (let k = 0; k < UNITS.length; k++, address += KEPT_DAY_BYTES) {
    i64[address / 8] = 0n;
    u8.set(text, address + 8);
  }
}

/** Each is (i64, at). Text of years from 0 to 9999 only. */
export interface InstantFunctions {
  /** 2024-03-01T10:20:30.123Z and so on, by units a second. */
  iso: Record<number, number>;
  /** PostgreSQL's form: 2024-03-01 10:20:30.123, with at most six decimals. */
  postgres: Record<number, number>;
}

/** `table`: the address of `writeInstantTables`. */
export function instantFunctions(module: Module, table: number): InstantFunctions {
  const keptDay = keptDayFunction(module);
  const functions: InstantFunctions = { iso: {}, postgres: {} };
  UNITS.forEach((unit, k) => {
    const day = table + k * KEPT_DAY_BYTES;
    functions.iso[unit] = instantFunction(module, unit, "iso", day, keptDay);
    functions.postgres[unit] = instantFunction(module, unit, "postgres", day, keptDay);
  });
  return functions;
}

function instantFunction(
  module: Module,
  unit: number,
  form: "iso" | "postgres",
  day: number,
  keptDay: number,
): number {
  const { code, index } = module.function(["i64", "i32"], ["i32"]);
  const [value, at] = [0, 1];
  const digits = new Digits(code), rest = code.local("i32"), thousandth = code.local("i32");
  toSecond(code, value, at, form === "iso" ? LETTER_T : BLANK, unit, day, keptDay);
  code.set(rest);
  /** The last `count` of eight digits. */
  const put = (value: () => void, count: number, offset: number) => {
    const others = BigInt(8 * (8 - count));
    code.get(at);
    value();
    digits.all().i64(others).op("i64.shr_u").i64(ZEROS >> others).op("i64.or").memory("i64.store", offset);
  };
  let decimals = Math.log10(unit);
  if (decimals < 9) put(() => code.get(rest), decimals, 20);
  else {
    code.get(rest).i32(1_000).op("i32.div_u").set(thousandth);
    put(() => code.get(thousandth), 6, 20);
    if (form === "iso") put(() => code.get(rest).get(thousandth).i32(1_000).op("i32.mul").op("i32.sub"), 3, 26);
    else decimals = 6;
  }
  if (form === "iso") code.get(at).i32(LETTER_Z).memory("i32.store8", 20 + decimals);
  code.get(at).i32(20 + decimals + (form === "iso" ? 1 : 0)).op("i32.add");
  return index;
}

/** Writes `yyyy-MM-ddTHH:mm:ss.`, 20 bytes, with `between` in the place of the T. Leaves what is left of the second on the stack. */
function toSecond(
  code: Code,
  value: number,
  at: number,
  between: number,
  unit: number,
  day: number,
  keptDay: number,
): void {
  const ofDay = code.local("i64"), second = code.local("i32"), hour = code.local("i32"), minute = code.local("i32");
  const ofHour = code.local("i32"), unitsADay = BigInt(DAY_SECONDS * unit);
  const sinceDay = () => code.get(value).i32(day).memory("i64.load").op("i64.sub").tee(ofDay);
  sinceDay().i64(unitsADay).op("i64.ge_u").if(() => {
    // Rounded down: (value + 1) / unit - 1 of negative ones.
    code.i32(day).get(value).get(value).i64(63n).op("i64.shr_s").tee(ofDay).op("i64.sub");
    code.i64(unitsADay).op("i64.div_s").get(ofDay).op("i64.add");
    code.i64(unitsADay).call(keptDay).op("i32.eqz").if(() => code.i32(NOT_WRITTEN).return());
    sinceDay().drop();
  });
  code.get(ofDay).i64(BigInt(unit)).op("i64.div_u").op("i32.wrap_i64").tee(second).i32(3_600).op("i32.div_u").set(hour);
  code.get(second).get(hour).i32(3_600).op("i32.mul").op("i32.sub").tee(ofHour).i32(60).op("i32.div_u").set(minute);
  code.get(at).i32(day).memory("i64.load", 8).memory("i64.store");
  pair(code, hour, hour);
  code.get(at).i32(day).memory("i32.load", 16).i32(between << 16).op("i32.or");
  code.get(hour).i32(24).op("i32.shl").op("i32.or").memory("i32.store", 8);
  code.get(at).get(hour).i32(8).op("i32.shr_u").i32(COLON << 8).op("i32.or");
  code.get(ofHour).get(minute).i32(60).op("i32.mul").op("i32.sub").set(ofHour);
  pair(code, minute, minute);
  code.get(minute).i32(16).op("i32.shl").op("i32.or").memory("i32.store", 12);
  pair(code, ofHour, ofHour);
  code.get(at).get(ofHour).i32(8).op("i32.shl").i32(COLON | POINT << 24).op("i32.or").memory("i32.store", 16);
  code.get(ofDay).get(second).op("i64.extend_i32_u").i64(BigInt(unit)).op("i64.mul").op("i64.sub").op("i32.wrap_i64");
}

/** Sets `to` to the two characters of the number in `from`, the first one in the lowest byte. */
function pair(code: Code, from: number, to: number): void {
  // x * 103 >> 10 is x / 10 for x below 100; x - 10 * tens << 8 | tens = x << 8 - 2559 * tens.
  code.get(from).i32(8).op("i32.shl").get(from).i32(103).op("i32.mul").i32(10).op("i32.shr_u").i32(2_559).op("i32.mul");
  code.op("i32.sub").i32(0x3030).op("i32.or").set(to);
}

/**
 * (day, number of days since 1970, units a day) → 1 if the year is one from 0 to 9999. Sets the kept day.
 * @see https://howardhinnant.github.io/date_algorithms.html#civil_from_days
 */
function keptDayFunction(module: Module): number {
  const { code, index } = module.function(["i32", "i64", "i64"], ["i32"]);
  const [day, days, unitsADay] = [0, 1, 2];
  const start = code.local("i64"),
    z = code.local("i32"),
    era = code.local("i32"),
    year = code.local("i32"),
    month = code.local("i32");
  const count = code.local("i32");
  // From 0000-03-01 to 9999-12-31.
  code.get(days).i64(719_468n).op("i64.add").i64(3_652_365n).op("i64.ge_u").if(() => code.i32(0).return());
  // Neither the day that starts before the first nanosecond of all is kept, nor the one that ends after the last: the first
  // nanoseconds would be of it, too, as their distance from its start wraps round.
  code.get(days).get(unitsADay).op("i64.mul").tee(start).get(days).op("i64.xor").i64(0n).op("i64.lt_s").if(() =>
    code.i32(0).return()
  );
  code.get(start).get(unitsADay).op("i64.add").get(start).op("i64.lt_s").if(() => code.i32(0).return());
  code.get(day).get(start).memory("i64.store");
  code.get(days).op("i32.wrap_i64").i32(719_468).op("i32.add").tee(z).i32(146_097).op("i32.div_u").set(era);
  code.get(z).get(era).i32(146_097).op("i32.mul").op("i32.sub").set(z);
  code.get(z).get(z).i32(1_460).op("i32.div_u").op("i32.sub").get(z).i32(36_524).op("i32.div_u").op("i32.add");
  code.get(z).i32(146_096).op("i32.div_u").op("i32.sub").i32(365).op("i32.div_u").set(year);
  // The day of a year that begins in March.
  code.get(z).get(year).i32(365).op("i32.mul").get(year).i32(4).op("i32.div_u").op("i32.add");
  code.get(year).i32(100).op("i32.div_u").op("i32.sub").op("i32.sub").tee(z);
  code.i32(5).op("i32.mul").i32(2).op("i32.add").i32(153).op("i32.div_u").set(month);
  code.get(z).get(month).i32(153).op("i32.mul").i32(2).op("i32.add").i32(5).op("i32.div_u").op("i32.sub");
  code.i32(1).op("i32.add").set(count);
  code.get(month).i32(3).i32(-9).get(month).i32(10).op("i32.lt_u").op("select").op("i32.add").tee(month);
  code.i32(3).op("i32.lt_u").get(year).op("i32.add").get(era).i32(400).op("i32.mul").op("i32.add").set(year);
  // The last four of eight digits.
  code.get(day).get(year);
  new Digits(code).all().i64(32n).op("i64.shr_u").op("i32.wrap_i64").i32(0x30303030).op("i32.or");
  code.memory("i32.store", 8);
  pair(code, month, month);
  code.get(day).get(month).i32(8).op("i32.shl").i32(MINUS | MINUS << 24).op("i32.or").memory("i32.store", 12);
  pair(code, count, count);
  code.get(day).get(count).memory("i32.store", 16);
  code.i32(1);
  return index;
}
