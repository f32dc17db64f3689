/** The intervals of a text after `time in`. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { parseIntervals } from "../../types/parse/interval.ts";
import type { Interval } from "../plan.ts";

/** Returns sorted disjoint intervals in the unit of `type`. `made`: as for `parseIntervals`. @throws if the text has none */
export function timeIntervals(
  text: string,
  type: string,
  at: number,
  nowMicros: () => bigint,
  made?: (count: number) => void,
): Interval[] {
  const parsed = parseIntervals(text, type, nowMicros, made);
  if (!Array.isArray(parsed)) throw new SqlError(parsed.problem, at, SQLSTATE.invalidText);
  return parsed;
}
