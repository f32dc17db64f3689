/**
 * Precedence: the grammar returns an expression as a flat list of operators and operands; this builds the tree. In ascending
 * precedence: OR, AND, NOT, = and != (with LIKE, ~, IS), < and the like (with subnet tests), IN and BETWEEN, |, ^, &, ||, + -,
 * * / %, unary - + ~, and finally :: and [ ].
 */
import { SqlError } from "../errors.ts";
import type { Expression } from "./ast.ts";
import { tooComplex } from "./effort.ts";

export type FlatItem =
  | { part: "operand"; expression: Expression }
  | { part: "prefix"; operator: string; at: number }
  | { part: "infix"; operator: string; at: number; spelling?: string }
  | { part: "postfix"; level: number; apply: (operand: Expression) => Expression; at: number };

export const LEVEL = {
  or: 1,
  and: 2,
  not: 3,
  equality: 4,
  order: 5,
  membership: 6,
  bitOr: 7,
  bitXor: 8,
  bitAnd: 9,
  concat: 10,
  sum: 11,
  product: 12,
  sign: 13,
  postfix: 14,
};

const INFIX_LEVELS: Record<string, number> = {
  or: LEVEL.or,
  and: LEVEL.and,
  "<": LEVEL.order,
  "<=": LEVEL.order,
  ">": LEVEL.order,
  ">=": LEVEL.order,
  "<<": LEVEL.order,
  "<<=": LEVEL.order,
  ">>": LEVEL.order,
  ">>=": LEVEL.order,
  in: LEVEL.membership,
  "not in": LEVEL.membership,
  between: LEVEL.membership,
  "not between": LEVEL.membership,
  "|": LEVEL.bitOr,
  "^": LEVEL.bitXor,
  "&": LEVEL.bitAnd,
  "||": LEVEL.concat,
  "+": LEVEL.sum,
  "-": LEVEL.sum,
  "*": LEVEL.product,
  "/": LEVEL.product,
  "%": LEVEL.product,
};

/** Trees up to this depth are safe for recursive functions. */
export const CHAIN_MAX = 1000;

export function buildExpression(items: FlatItem[]): Expression {
  const first = items[0];
  if (items.length === 1 && first?.part === "operand") return first.expression;
  return new Precedence(items).expression(0);
}

type Infix = Extract<FlatItem, { part: "infix" }>;

class Precedence {
  #next = 0;
  readonly #items: FlatItem[];
  constructor(items: FlatItem[]) {
    this.#items = items;
  }

  expression(levelMin: number): Expression {
    let left = this.#prefixed(levelMin);
    for (let chain = 0;; chain++) {
      const item = this.#items[this.#next];
      if (item === undefined) return left;
      if (chain > CHAIN_MAX && "at" in item) {
        throw tooComplex("too many operators in one expression", item.at, CHAIN_MAX);
      }
      if (item.part === "postfix") {
        if (item.level < levelMin) return left;
        this.#next++;
        left = item.apply(left);
        continue;
      }
      if (item.part !== "infix") throw new Error("two operands without an operator between them");
      const level = INFIX_LEVELS[item.operator] ?? LEVEL.equality;
      if (level < levelMin) return left;
      this.#next++;
      if (level <= LEVEL.and) left = this.#logical(left, item.operator, item.at, level);
      else left = this.#infix(left, item, level);
    }
  }

  #prefixed(levelMin: number): Expression {
    const item = this.#items[this.#next++]!;
    if (item.part === "operand") return item.expression;
    if (item.part !== "prefix") throw new Error("an expression begins with an infix operator");
    // NOT after a tighter operator (1 + NOT x) accepts operands of its own level; the binder checks types.
    const level = item.operator === "not" ? LEVEL.not : LEVEL.sign;
    const operand = this.expression(Math.max(level, item.operator === "not" ? levelMin : 0));
    return { kind: "unary", at: item.at, operator: item.operator, operand };
  }

  #infix(left: Expression, { operator, at, spelling }: Infix, level: number): Expression {
    switch (operator) {
      case "in":
      case "not in":
        return {
          kind: "in",
          at,
          operand: left,
          items: [this.expression(level + 1)],
          bare: true,
          negated: operator === "not in",
        };
      case "between":
      case "not between": {
        const low = this.expression(level + 1);
        const and = this.#items[this.#next];
        if (and === undefined || and.part !== "infix" || and.operator !== "and") {
          throw new SqlError("BETWEEN is incomplete: expected AND and the second bound", at);
        }
        this.#next++;
        const high = this.expression(level + 1);
        return { kind: "between", at, operand: left, low, high, negated: operator === "not between" };
      }
      default: {
        const right = this.expression(level + 1);
        return spelling === undefined
          ? { kind: "binary", at, operator, left, right }
          : { kind: "binary", at, operator, left, right, spelling };
      }
    }
  }

  /**
   * Programs generate chains of thousands of ANDs and ORs. Longer chains become balanced trees, which does not change
   * the result.
   */
  #logical(first: Expression, operator: string, at: number, level: number): Expression {
    const operands = [first, this.expression(level + 1)];
    const ats = [at];
    for (;;) {
      const item = this.#items[this.#next];
      if (item === undefined || item.part !== "infix" || item.operator !== operator) break;
      this.#next++;
      ats.push(item.at);
      operands.push(this.expression(level + 1));
    }
    const balance = (from: number, to: number): Expression => {
      if (to - from === 1) return operands[from]!;
      const middle = operands.length <= 64 ? to - 1 : (from + to) >> 1;
      return {
        kind: "binary",
        at: ats[middle - 1]!,
        operator,
        left: balance(from, middle),
        right: balance(middle, to),
      };
    };
    return balance(0, operands.length);
  }
}
