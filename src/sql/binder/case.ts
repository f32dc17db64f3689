/** Binds CASE, and functions that choose one of their arguments: for some types they become a CASE. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { asDecimal, decimalOf, decimalTag } from "../../types/wide.ts";
import type { Expression, FunctionCall } from "../ast.ts";
import type { Expr } from "../plan.ts";
import { bindComparison } from "./comparison.ts";
import { typeMismatch, UNTYPED } from "./context.ts";
import { fold } from "./convert.ts";
import type { ExpressionBinder, Scope } from "./expression-binder.ts";
import { type Constant, NULL_CONSTANT } from "./literals.ts";
import { not, rewrite, sizeOf } from "./plans.ts";
import { choiceOf } from "./text.ts";
import { tolerant } from "./tolerant.ts";
import { branchType, displayName, isText, isTextOrChar } from "./types.ts";

export function bindCase(binder: ExpressionBinder, e: Extract<Expression, { kind: "case" }>, scope: Scope): Expr {
  const choice = choiceOf(e);
  if (choice !== undefined) refuseDuplicates(binder, choice.whens, scope);
  const operand = e.operand === undefined ? undefined : binder.bind(e.operand, scope);
  // The operand is copied into the condition of each branch.
  if (operand !== undefined) binder.binding.spend(sizeOf(operand) * (e.branches.length - 1), e.at);
  const whens = e.branches.map((branch) => {
    if (operand === undefined) return binder.condition(branch.when, scope);
    const value = binder.bind(branch.when, scope);
    refuseUnlikeText(operand, value, branch.when.at);
    return bindComparison(binder, "=", operand, value, branch.when.at);
  });
  const values = [...e.branches.map((branch) => branch.then), ...(e.otherwise === undefined ? [] : [e.otherwise])];
  const bound = binder.settleAlike(values.map((value, i) => bindBranch(binder, value, whens[i], scope)));
  const type = branchesType(bound, values, choice !== undefined && e.otherwise !== undefined);
  const branches = e.branches.map((_, i) => ({ when: whens[i]!, then: binder.cast(bound[i]!, type, values[i]!.at) }));
  const otherwise = e.otherwise === undefined ? binder.nullOf(type) : binder.cast(bound.at(-1)!, type, e.otherwise.at);
  return { kind: "case", branches, otherwise, type };
}

/**
 * The value after THEN or ELSE. Values that are not supported become NULL if the constant columns of the catalogue
 * rule the branch out.
 */
function bindBranch(binder: ExpressionBinder, value: Expression, when: Expr | undefined, scope: Scope): Expr {
  if (when === undefined || !isNever(binder, when, scope)) return binder.bind(value, scope);
  return tolerant(() => binder.bind(value, scope)) ?? NULL_CONSTANT;
}

function isNever(binder: ExpressionBinder, when: Expr, { columns }: Scope): boolean {
  let hasKnown = false;
  const known = rewrite(when, (e) => {
    if (e.kind !== "column") return undefined;
    const value = columns.find(({ index }) => index === e.index)?.known;
    if (value === undefined) return undefined;
    hasKnown = true;
    return { kind: "constant", value, type: e.type };
  });
  return hasKnown && fold(known, binder.binding)?.value === false;
}

/**
 * The common type of all branches. `elseFirst`: ELSE is considered first. @throws at the first branch whose type does
 * not match the previous ones.
 */
function branchesType(bound: Expr[], values: Expression[], elseFirst: boolean): string {
  const indices = bound.map((_, i) => i);
  if (elseFirst) indices.unshift(indices.pop()!);
  let type = bound[indices[0]!]!.type;
  for (const i of indices) {
    const common = branchType(type, bound[i]!.type) ?? typeOfTexts(type, bound, i);
    if (common === undefined) {
      throw typeMismatch(
        `the branches of CASE differ: ${displayName(type)} and ${displayName(bound[i]!.type)}`,
        values[i]!.at,
      );
    }
    type = common;
  }
  return type;
}

/** UUID or IPv4, if branch `i` or all those before it are texts, which can be read as that. Texts of columns that cannot give null. */
function typeOfTexts(type: string, bound: readonly Expr[], i: number): string | undefined {
  const own = bound[i]!;
  const isText = ({ kind, type }: Expr) =>
    type === "STRING" || type === "VARCHAR" || kind === "constant" && isTextOrChar(type);
  if (TYPES_OF_TEXTS.has(type) && isText(own)) return type;
  const others = bound.filter((branch) => branch.type !== own.type && branch.type !== "NULL");
  return TYPES_OF_TEXTS.has(own.type) && others.every(isText) ? own.type : undefined;
}
const TYPES_OF_TEXTS = new Set(["UUID", "IPv4"]);

/** Refuses a branch of another type in a CASE over a text. */
function refuseUnlikeText(operand: Expr, value: Expr, at: number): void {
  if (!isText(operand.type) || isTextOrChar(value.type) || value.type === "NULL" || value.type === UNTYPED) return;
  throw typeMismatch(`CASE over ${displayName(operand.type)} has a branch for ${displayName(value.type)}`, at);
}

/** Refuses a CASE with the same constant twice. */
function refuseDuplicates(binder: ExpressionBinder, whens: Expression[], scope: Scope): void {
  const seen = new Set<string>();
  for (const when of whens) {
    if (when.kind !== "number" && when.kind !== "string") continue;
    const { value } = binder.bind(when, scope) as Constant;
    const key = `${when.kind} ${value}`;
    if (seen.has(key)) throw new SqlError(`CASE has two branches for ${value}`, when.at, SQLSTATE.syntax);
    seen.add(key);
  }
}

/** NULL is never the greatest or least: as a BYTE or SHORT it would be 0. */
export function bindExtreme(binder: ExpressionBinder, name: string, args: Expr[], e: FunctionCall): Expr {
  const kept = [...args.keys()].filter((i) => args[i]!.type !== "NULL");
  if (kept.length === 0 && args.length > 0) return binder.nullOf("STRING");
  const [only] = kept;
  if (kept.length === 1 && decimalOf(args[only!]!.type) !== undefined) return args[only!]!;
  const call = { ...e, args: kept.map((i) => e.args[i]!) }, values = kept.map((i) => args[i]!);
  return bindChoice(binder, name, values, call) ?? binder.function(name, values, e.at);
}

/** There are no kernels for DECIMAL and LONG256, so functions that choose an argument are rewritten as CASE. */
export function bindChoice(binder: ExpressionBinder, name: string, given: Expr[], e: FunctionCall): Expr | undefined {
  if (given.length < 2 || !given.some(({ type }) => decimalOf(type) !== undefined || type === "LONG256")) {
    return undefined;
  }
  const args: Expr[] = binder.settleAlike(given);
  const isSet = (expr: Expr) => not(binder.isNull(expr, e.at), e.at);
  if (name === "nullif" && args.length === 2) {
    const [value, unwanted] = args as [Expr, Expr], own = asDecimal(value.type);
    if (own === undefined) return undefined;
    const type = decimalTag(own.precision, own.scale);
    const when = binder.operator("=", [value, unwanted], e.at);
    const otherwise = binder.cast(value, type, e.args[0]!.at);
    return { kind: "case", branches: [{ when, then: binder.nullOf(type) }], otherwise, type };
  }
  const isOrdered = name === "greatest" || name === "least";
  if (!isOrdered && name !== "coalesce" && name !== "nvl") return undefined;
  // As with a number of each other kind, the greater of a DECIMAL and a DOUBLE is a DOUBLE.
  if (isOrdered && args.some(({ type }) => type === "DOUBLE" || type === "FLOAT")) {
    return binder.function(name, args.map((arg, i) => binder.cast(arg, "DOUBLE", e.args[i]!.at)), e.at);
  }
  const type = branchesType(args, e.args, false);
  if (isOrdered && decimalOf(type) === undefined) return undefined;
  const values = args.map((arg, i) => binder.cast(arg, type, e.args[i]!.at));
  const branches = values.slice(0, -1).map((then) => {
    const beaten = values.filter((other) => isOrdered && other !== then).map((other) => {
      const isBeyond = binder.operator(name === "greatest" ? ">=" : "<=", [then, other], e.at);
      return binder.function("or", [isBeyond, binder.isNull(other, e.at)], e.at);
    });
    return { when: beaten.reduce((all, each) => binder.function("and", [all, each], e.at), isSet(then)), then };
  });
  return { kind: "case", branches, otherwise: values.at(-1)!, type };
}
