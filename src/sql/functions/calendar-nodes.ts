/**
 * Calendar arithmetic as IR trees. A day is an i32 count since 1970; years are shifted so that divisions stay unsigned.
 */
import { bind, i32, i64, type IrNode, select } from "../../engine/compiler/ir.ts";
import { ZERO32, ZERO64 } from "./nodes.ts";

const c32 = i32.const;
const divU = (a: IrNode, b: number) => i32.divU(a, c32(b));
const plus = (a: IrNode, b: number) => i32.add(a, c32(b));

export function floorDiv64(x: IrNode, by: bigint | IrNode): IrNode {
  const divisor = typeof by === "bigint" ? i64.const(by) : by;
  return bind(x, (a) => i64.sub(i64.divS(a, divisor), i64.extendS(i64.ltS(i64.remS(a, divisor), ZERO64))));
}

/** 0 … by - 1 */
export function floorMod64(x: IrNode, by: bigint | IrNode): IrNode {
  const divisor = typeof by === "bigint" ? i64.const(by) : by;
  return bind(i64.remS(x, divisor), (rest) => select(i64.ltS(rest, ZERO64), i64.add(rest, divisor), rest));
}

export function floorDiv32(x: IrNode, by: IrNode): IrNode {
  return bind(x, (a) => i32.sub(i32.divS(a, by), i32.ltS(i32.remS(a, by), ZERO32)));
}

/** Shift in eras of 400 years: dates within 292,000 years of 1970 become positive. */
const ERAS = 1000;
const DAYS_AN_ERA = 146097;

/** Calls `body` with the civil date of a day. Source: Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
export function civil(day: IrNode, body: (date: { year: IrNode; month: IrNode; day: IrNode }) => IrNode): IrNode {
  return bind(
    plus(day, 719468 + ERAS * DAYS_AN_ERA),
    (shifted) =>
      bind(
        divU(shifted, DAYS_AN_ERA),
        (era) =>
          bind(i32.sub(shifted, i32.mul(era, c32(DAYS_AN_ERA))), (dayOfEra) =>
            bind(
              divU(
                i32.sub(
                  i32.add(i32.sub(dayOfEra, divU(dayOfEra, 1460)), divU(dayOfEra, 36524)),
                  divU(dayOfEra, 146096),
                ),
                365,
              ),
              (yearOfEra) =>
                bind(
                  i32.sub(
                    dayOfEra,
                    i32.sub(i32.add(i32.mul(yearOfEra, c32(365)), divU(yearOfEra, 4)), divU(yearOfEra, 100)),
                  ),
                  (dayOfYear) =>
                    bind(divU(plus(i32.mul(dayOfYear, c32(5)), 2), 153), (shiftedMonth) =>
                      bind(
                        select(i32.ltU(shiftedMonth, c32(10)), plus(shiftedMonth, 3), plus(shiftedMonth, -9)),
                        (month) =>
                          body({
                            year: i32.add(
                              plus(i32.add(yearOfEra, i32.mul(era, c32(400))), -400 * ERAS),
                              i32.leS(month, c32(2)),
                            ),
                            month,
                            day: plus(i32.sub(dayOfYear, divU(plus(i32.mul(shiftedMonth, c32(153)), 2), 5)), 1),
                          }),
                      )),
                ),
            )),
      ),
  );
}

/** The day number of the first of a month (1 … 12). */
export function dayOfMonthStart(year: IrNode, month: IrNode): IrNode {
  return bind(
    month,
    (m) =>
      bind(
        plus(i32.sub(year, i32.leS(m, c32(2))), 400 * ERAS),
        (y) =>
          bind(divU(y, 400), (era) =>
            bind(i32.sub(y, i32.mul(era, c32(400))), (yearOfEra) => {
              const dayOfYear = divU(
                plus(i32.mul(select(i32.gtS(m, c32(2)), plus(m, -3), plus(m, 9)), c32(153)), 2),
                5,
              );
              const dayOfEra = i32.add(
                i32.sub(i32.add(i32.mul(yearOfEra, c32(365)), divU(yearOfEra, 4)), divU(yearOfEra, 100)),
                dayOfYear,
              );
              return plus(i32.add(i32.mul(era, c32(DAYS_AN_ERA)), dayOfEra), -(719468 + ERAS * DAYS_AN_ERA));
            })),
      ),
  );
}

export function isLeap(year: IrNode): IrNode {
  return bind(year, (y) =>
    i32.and(
      i32.eqz(i32.and(y, c32(3))),
      i32.or(i32.ne(i32.remS(y, c32(100)), ZERO32), i32.eqz(i32.remS(y, c32(400)))),
    ));
}

/** Monday is 0. */
export function weekday(day: IrNode): IrNode {
  return bind(i32.remS(plus(day, 3), c32(7)), (rest) => select(i32.ltS(rest, ZERO32), plus(rest, 7), rest));
}
