/** Rule: evaluates constant expressions. With a clock, also those that are constant only during the statement. */
import { knownInText } from "../binder/in-text.ts";
import type { Expr, Plan } from "../plan.ts";
import { evaluate, type EvaluationContext } from "./evaluate.ts";
import { mapExpressions } from "./nodes.ts";

export function foldConstants(plan: Plan, context: EvaluationContext): Plan {
  return mapExpressions(plan, (e) => foldExpr(e, context));
}

export function foldExpr(e: Expr, context: EvaluationContext): Expr {
  switch (e.kind) {
    case "call": {
      const args = e.args.map((arg) => foldExpr(arg, context));
      const folded = args.every((arg, i) => arg === e.args[i]) ? e : { ...e, args };
      if (!args.every((arg) => arg.kind === "constant")) {
        return knownInText(folded, context.nowMicros) ?? simplified(folded);
      }
      return evaluate(folded, context) ?? folded;
    }
    case "case": {
      const branches = e.branches
        .map((branch) => ({ when: foldExpr(branch.when, context), then: foldExpr(branch.then, context) }))
        .filter((branch) => !(branch.when.kind === "constant" && branch.when.value !== true));
      const otherwise = foldExpr(e.otherwise, context);
      if (branches.length === 0) return otherwise;
      const first = branches[0]!;
      if (first.when.kind === "constant") return first.then;
      return { ...e, branches, otherwise };
    }
    case "in":
      return { ...e, operand: foldExpr(e.operand, context) };
    default:
      return e;
  }
}

/** Simplifies AND and OR with a constant operand. */
function simplified(e: Extract<Expr, { kind: "call" }>): Expr {
  const isAnd = e.function === "and(BOOLEAN,BOOLEAN)";
  if (!isAnd && e.function !== "or(BOOLEAN,BOOLEAN)") return e;
  const known = e.args.findIndex((arg) => arg.kind === "constant");
  if (known < 0) return e;
  const constant = e.args[known] as Extract<Expr, { kind: "constant" }>;
  return constant.value === isAnd ? e.args[1 - known]! : constant;
}
