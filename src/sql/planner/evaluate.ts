/**
 * Evaluates constant expressions while a statement is bound or planned, with the same result as the engine over rows.
 */
import { type Constant, ConstantCalls, type ConstantContext } from "../../engine/mod.ts";
import { layoutOf, typeOf, type Value } from "../../types/mod.ts";
import { registry } from "../functions/mod.ts";
import type { Expr } from "../plan.ts";

export type { Constant };
export type EvaluationContext = ConstantContext;

let calls: ConstantCalls | undefined;

/**
 * Undefined if the expression is not constant or cannot be evaluated here. Volatile functions never are; stable ones
 * only with a clock.
 */
export function evaluate(expr: Expr, context: EvaluationContext = {}): Constant | undefined {
  try {
    return evaluateExpr(expr, context);
  } catch {
    // An expression that fails here fails at run time with its position, unless a CASE does not evaluate it.
    return undefined;
  }
}

function evaluateExpr(expr: Expr, context: EvaluationContext): Constant | undefined {
  switch (expr.kind) {
    case "constant":
      return expr.value === null ? { ...expr, value: typeOf(expr.type).missing } : expr;
    case "call": {
      if (!isKnown(expr, context)) return undefined;
      const args: Constant[] = [];
      for (const arg of expr.args) {
        const value = evaluateExpr(arg, context);
        if (value === undefined) return undefined;
        args.push(value);
      }
      return worked({ ...expr, args }, context);
    }
    case "case":
      // Branches after the taken one may fail.
      for (const { when, then } of expr.branches) {
        const condition = evaluateExpr(when, context);
        if (condition === undefined) return undefined;
        if (condition.value === true) return evaluateExpr(then, context);
      }
      return evaluateExpr(expr.otherwise, context);
    case "in": {
      const operand = evaluateExpr(expr.operand, context);
      return operand === undefined ? undefined : worked({ ...expr, operand }, context);
    }
    default:
      return undefined;
  }
}

function worked(expr: Expr, context: EvaluationContext): Constant {
  const value = plainValue(expr, context);
  if (value !== undefined) return { kind: "constant", value, type: expr.type };
  calls ??= new ConstantCalls(registry);
  return { kind: "constant", value: calls.valueOf(expr, context), type: expr.type };
}

/** The value of a call that needs no kernel. Most INSERTs have such calls: the clock, and texts as symbols. */
function plainValue(expr: Expr, { nowMicros }: EvaluationContext): Value | undefined {
  if (expr.kind !== "call") return undefined;
  const { entry: { ofConstants } } = registry.resolve(expr.function);
  return ofConstants?.(expr.args.map((arg) => (arg as Constant).value), nowMicros);
}

/** True if the call can be evaluated before the statement runs. Codes of symbols need a dictionary. */
function isKnown(call: Extract<Expr, { kind: "call" }>, context: EvaluationContext): boolean {
  const { entry } = registry.resolve(call.function);
  if (layoutOf(call.type) === "symbol") return false;
  if (entry.aggregate !== undefined || entry.window || entry.table) return false;
  return entry.volatility === "immutable" || (entry.volatility === "stable" && context.nowMicros !== undefined);
}
