/** `x in (…)`: lists of values, of times, and intervals of time. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import { typeOf, type Value } from "../../types/mod.ts";
import { parseIntervals } from "../../types/parse/interval.ts";
import type { Expression } from "../ast.ts";
import { timeIntervals } from "../functions/time-intervals.ts";
import type { Expr } from "../plan.ts";
import { bindComparison } from "./comparison.ts";
import { typeMismatch, UNTYPED } from "./context.ts";
import { convertCompared, convertConstant } from "./convert.ts";
import type { ExpressionBinder, Scope } from "./expression-binder.ts";
import { intervalTest } from "./in-text.ts";
import { type Constant, constant, FALSE } from "./literals.ts";
import { or, sizeOf } from "./plans.ts";
import { candidates, type Relation } from "./scope.ts";
import { displayName, isInteger, isNumber, isText, isTextOrChar, isTime, isTimestamp } from "./types.ts";
import { notOf } from "../../types/parse/values.ts";

type InExpression = Extract<Expression, { kind: "in" }>;

export function bindIn(expressions: ExpressionBinder, e: InExpression, scope: Scope): Expr {
  if (e.items.length === 0) throw new SqlError("IN needs at least one value", e.at);
  const test = positive(expressions, e, scope);
  return e.negated ? expressions.negate(test, e.at) : test;
}

function positive(expressions: ExpressionBinder, e: InExpression, scope: Scope): Expr {
  const operand = expressions.bind(e.operand, scope);
  const items = e.items.map((item) => expressions.bind(item, scope));
  if (isTimestamp(operand.type) && items.length === 1) {
    const item = items[0]!;
    if (item.kind === "constant" && isTextOrChar(item.type) && typeof item.value === "string") {
      return inIntervals(expressions, operand, item.value, e.items[0]!.at);
    }
    if (isOpen(item)) return inOpenText(expressions, operand, item, e.items[0]!.at);
  }
  if (isTime(operand.type) && items.length === 1 && items[0]!.type === "INTERVAL") {
    return expressions.operator("in", [operand, items[0]!], e.at);
  }
  if (operand.type === "DATE" && e.bare) {
    const item = items[0]!;
    if (item.kind === "constant" && isText(item.type) && typeof item.value === "string") {
      return inIntervals(expressions, expressions.cast(operand, "TIMESTAMP", e.at), item.value, e.items[0]!.at);
    }
    if (isOpen(item)) {
      return inOpenText(expressions, expressions.cast(operand, "TIMESTAMP", e.at), item, e.items[0]!.at);
    }
  }
  const [settled, ...others] = expressions.settleAlike([operand, ...items]);
  const tested = characterAsText(settled, others);
  refuseOtherKinds(tested, others, e);
  return inList(expressions, tested, others, e);
}

/** A constant of one character is a text beside texts. */
function characterAsText(operand: Expr, items: Expr[]): Expr {
  const isCharacter = operand.kind === "constant" && operand.type === "CHAR";
  return isCharacter && items.some((item) => isText(item.type)) ? { ...operand, type: "STRING" } : operand;
}

function isOpen(item: Expr): boolean {
  return item.kind === "parameter" && (item.type === UNTYPED || isText(item.type));
}

/** The intervals of a parameter are unknown until it has a value. */
function inOpenText(expressions: ExpressionBinder, operand: Expr, parameter: Expr, at: number): Expr {
  return expressions.operator("in", [operand, expressions.settle(parameter, "STRING")], at);
}

/** A single text after IN is one interval or several. */
function inIntervals(expressions: ExpressionBinder, operand: Expr, text: string, at: number): Expr {
  const { binding } = expressions;
  const intervals = timeIntervals(text, operand.type, at, () => binding.now(), (made) => binding.spend(made, at));
  return intervalTest(operand, intervals, at);
}

/**
 * Rewrites `ts != 'text'` of the designated timestamp in WHERE, alone or combined by AND: the text is an interval, as
 * after IN, whose rows are left out. (In other expressions the text is the interval's first instant.)
 */
export function leavingOutIntervals(where: Expression, relation: Relation): Expression {
  // Long chains of AND are nested on the left.
  const chain: Extract<Expression, { kind: "binary" }>[] = [];
  let first = where;
  for (; first.kind === "binary" && first.operator === "and"; first = first.left) chain.push(first);
  let result = leftOut(first, relation);
  for (const link of chain.reverse()) {
    const right = leavingOutIntervals(link.right, relation);
    result = result === link.left && right === link.right ? link : { ...link, left: result, right };
  }
  return result;
}

function leftOut(where: Expression, relation: Relation): Expression {
  const isNot = where.kind === "unary" && where.operator === "not";
  const test = isNot ? where.operand : where;
  if (test.kind !== "binary" || test.operator !== (isNot ? "=" : "!=")) return where;
  const isTurned = test.left.kind === "string";
  const [operand, item] = isTurned ? [test.right, test.left] : [test.left, test.right];
  if (operand.kind !== "column" || item.kind !== "string") return where;
  const [column, ...others] = candidates(relation.columns, operand.path);
  if (column === undefined || others.length > 0 || column.index !== relation.timestamp) return where;
  // A text that is not an interval gives the same error as with any other timestamp.
  if (!Array.isArray(parseIntervals(item.value, column.type, () => 0n))) return where;
  return { kind: "in", at: test.at, operand, items: [item], bare: true, negated: true };
}

/**
 * The items must be of the operand's kind, or texts that can be parsed as such: integers and timestamps for integers, texts for
 * texts.
 * @throws at the first that is not.
 */
function refuseOtherKinds(operand: Expr, items: Expr[], e: InExpression): void {
  const { type } = operand;
  if (type === "BOOLEAN") throw typeMismatch("IN does not accept BOOLEAN", e.at);
  const fits = isInteger(type)
    ? (item: string) => isInteger(item) || isTimestamp(item)
    : isNumber(type)
    ? isNumber
    : type === "CHAR"
    ? isTextOrChar
    : isText(type)
    ? isTextOrChar
    : undefined;
  if (fits === undefined) return;
  items.forEach((item, i) => {
    const isLong = type === "CHAR" && item.kind === "constant" && String(item.value ?? "").length > 1;
    if (item.type === "NULL" || (fits(item.type) && !isLong)) return;
    const refuse = (): never => {
      throw typeMismatch(`IN: ${displayName(item.type)} cannot be combined with ${displayName(type)}`, e.items[i]!.at);
    };
    if (!isNumber(type) || !isText(item.type)) refuse();
    if (item.kind !== "constant" || typeof item.value !== "string") return;
    if (convertConstant(item.value, item.type, isInteger(type) ? "LONG" : "DOUBLE") === undefined) refuse();
  });
}

function inList(expressions: ExpressionBinder, operand: Expr, items: Expr[], e: InExpression): Expr {
  const wide = items.reduce((type, item) => wider(type, item.type), operand.type);
  const typed = wide === operand.type ? operand : expressions.cast(operand, wide, e.at);
  const values: Value[] = [];
  const others: Expr[] = [];
  let unreadable = -1;
  items.forEach((item, i) => {
    if (item.kind !== "constant") {
      others.push(bindComparison(expressions, "=", operand, item, e.at));
    } else if (item.value === null || (typed.type === "CHAR" && item.value === "")) {
      // The empty text is the null of CHAR. No value of a type without NULL equals null.
      if (typeOf(typed.type).nullable) values.push(null);
    } else if (isTime(item.type) && isTime(typed.type) && item.type !== typed.type) {
      others.push(bindComparison(expressions, "=", operand, item, e.at));
    } else {
      const value = convertCompared(item.value, item.type, typed.type);
      if (value !== undefined) values.push(value);
      else if (isTime(typed.type) || typed.type === "UUID") unreadable = i;
      else if (!isTextOrChar(item.type) && !(isNumber(item.type) && isNumber(typed.type))) {
        // For a value of another kind, the comparison reports the error.
        others.push(bindComparison(expressions, "=", operand, item, e.at));
      }
    }
  });
  if (unreadable >= 0) {
    const { at } = e.items[unreadable]!, { value } = items[unreadable] as Constant;
    throw new SqlError(notOf(value, displayName(typed.type)), at, SQLSTATE.invalidText);
  }
  if (operand.kind === "constant" && others.length === 0) {
    return constant(values.includes(operand.value), "BOOLEAN");
  }
  // The operand is copied into each of these tests.
  expressions.binding.spend(sizeOf(operand) * others.length, e.at);
  const tests = [...others];
  if (values.length === 1 && values[0] !== null) {
    tests.unshift(expressions.operator("=", [typed, constant(values[0]!, constantType(typed.type))], e.at));
  } else if (values.length > 0) tests.unshift({ kind: "in", operand: typed, values, type: "BOOLEAN" });
  return or(tests) ?? FALSE;
}

/** Constants of SYMBOL are texts. */
function constantType(type: string): string {
  return type === "SYMBOL" || type === "SYMBOL_TEXT" ? "STRING" : type;
}

const NUMBER_ORDER = ["BYTE", "SHORT", "INT", "LONG", "DOUBLE"];

function wider(a: string, b: string): string {
  if (a === "FLOAT" && isNumber(b) && b !== "FLOAT") return "DOUBLE";
  if (!isNumber(a) || !isNumber(b) || b === "FLOAT") return a;
  return NUMBER_ORDER[Math.max(NUMBER_ORDER.indexOf(a), NUMBER_ORDER.indexOf(b))]!;
}
