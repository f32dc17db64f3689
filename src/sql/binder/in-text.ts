/** `time in 'text'`: the text gives intervals, which are known when the statement is bound, or only when it is executed. */
import { timeIntervals } from "../functions/time-intervals.ts";
import type { Expr, Interval } from "../plan.ts";
import { constant, FALSE } from "./literals.ts";
import { or } from "./plans.ts";

type Call = Extract<Expr, { kind: "call" }>;
const IN_TEXT = /^in\(TIMESTAMP(_NS)?,(STRING|VARCHAR)\)$/;
/** A call with more intervals stays one, because each of them would become a comparison. */
const COMPARED_MAX = 64;

/** Tests whether `operand` is in one of the intervals. The planner recognises these calls and prunes by them. */
export function intervalTest(operand: Expr, intervals: readonly Interval[], at: number): Expr {
  const { type } = operand;
  const tests = intervals.map(([low, high]): Expr => ({
    kind: "call",
    function: `between(${type},${type},${type})`,
    args: [operand, constant(low, type), constant(high, type)],
    type: "BOOLEAN",
    at,
  }));
  return or(tests) ?? FALSE;
}

/** What `time in text` is when the text is known; undefined if it stays a call of the function. */
export function knownInText(call: Call, nowMicros: bigint | undefined): Expr | undefined {
  const [operand, text] = call.args as [Expr, Expr];
  if (!IN_TEXT.test(call.function) || text.kind !== "constant") return undefined;
  if (typeof text.value !== "string") return { kind: "in", operand, values: [null], type: "BOOLEAN" };
  if (nowMicros === undefined && text.value.includes("$")) return undefined;
  const intervals = timeIntervals(text.value, operand.type, call.at, () => nowMicros!);
  return intervals.length <= COMPARED_MAX ? intervalTest(operand, intervals, call.at) : undefined;
}
