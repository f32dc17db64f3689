/**
 * The normalised text of an expression: what an unnamed result column is called.
 */
import type { Expression, FunctionCall, TypeName } from "../ast.ts";

/** Names longer than this are cut. */
const NAME_LENGTH_MAX = 64;

const PRECEDENCE: Record<string, number> = {
  or: 1,
  and: 2,
  "=": 4,
  "!=": 4,
  "<": 5,
  "<=": 5,
  ">": 5,
  ">=": 5,
  "~": 5,
  "!~": 5,
  like: 5,
  ilike: 5,
  "not like": 5,
  "not ilike": 5,
  "<<": 5,
  "<<=": 5,
  ">>": 5,
  ">>=": 5,
  "|": 6,
  "^": 7,
  "&": 8,
  "||": 9,
  "+": 10,
  "-": 10,
  "*": 11,
  "/": 11,
  "%": 11,
};
const ATOM = 20;

function precedenceOf(e: Expression): number {
  switch (e.kind) {
    case "binary":
      return e.operator === "||" || e.operator.startsWith("not ") ? ATOM : PRECEDENCE[e.operator] ?? 5;
    case "isNull":
    case "between":
    case "in":
      return e.negated && e.kind !== "isNull" ? ATOM : 4;
    default:
      return ATOM;
  }
}

/** `source` is the statement's text: it tells `<>` from `!=`, which the tree does not. */
export function expressionText(
  e: Expression,
  source?: string,
  variable?: (name: string) => Expression | undefined,
): string {
  const text = (x: Expression): string => expressionText(x, source, variable);
  const list = (items: Expression[]): string => items.map(text).join(", ");
  const inside = (x: Expression, least: number): string => precedenceOf(x) < least ? `(${text(x)})` : text(x);
  switch (e.kind) {
    case "null":
      return "null";
    case "boolean":
      return String(e.value);
    case "number":
      return e.text;
    case "string":
      return `'${e.value}'`;
    case "geohash":
      return e.text;
    case "parameter":
      return `$${e.index + 1}`;
    case "variable": {
      const value = variable?.(e.name);
      return value === undefined ? `@${e.name}` : text(value);
    }
    case "column":
      return e.path.map((part) => part.text).join(".");
    case "star":
      return e.table === undefined ? "*" : `${e.table.text}.*`;
    case "unary":
      return e.operator === "+" ? text(e.operand) : `${e.operator}(${text(e.operand)})`;
    case "binary": {
      if (e.operator === "||") return `concat(${list(concatenated(e))})`;
      if (e.operator.startsWith("not ")) {
        return `not(${inside(e.left, 6)} ${e.operator.slice(4)} ${inside(e.right, 6)})`;
      }
      const level = precedenceOf(e);
      const operator = e.operator === "!=" && source?.startsWith("<>", e.at) ? "<>" : e.operator;
      return `${inside(e.left, level)} ${operator} ${inside(e.right, level + 1)}`;
    }
    case "isNull":
      return `${inside(e.operand, 5)} ${e.negated ? "!=" : "="} null`;
    case "between": {
      const plain = `${inside(e.operand, 5)} between (${text(e.low)}, ${text(e.high)})`;
      return e.negated ? `not(${plain})` : plain;
    }
    case "in": {
      const items = e.bare && e.items.length === 1 ? text(e.items[0]) : `(${list(e.items)})`;
      const plain = `${inside(e.operand, 5)} in ${items}`;
      return e.negated ? `not(${plain})` : plain;
    }
    case "inQuery":
      return `${e.negated ? "not " : ""}${text(e.operand)} in (query)`;
    case "cast":
      return `${inside(e.operand, ATOM)}::${typeText(e.type)}`;
    case "case": {
      const operand = e.operand === undefined ? "" : ` ${text(e.operand)}`;
      const branches = e.branches.map((branch) => ` when ${text(branch.when)} then ${text(branch.then)}`).join("");
      return `case${operand}${branches}${e.otherwise === undefined ? "" : ` else ${text(e.otherwise)}`} end`;
    }
    case "call":
      return callText(e, list);
    case "query":
      return "(query)";
    case "exists":
      return "exists(query)";
    case "array":
      return `ARRAY[${list(e.items)}]`;
    case "index":
      return `${text(e.operand)}[${
        e.subscripts.map((s) =>
          "index" in s
            ? text(s.index)
            : `${s.from === undefined ? "" : text(s.from)}:${s.to === undefined ? "" : text(s.to)}`
        ).join(", ")
      }]`;
    case "list":
      return `(${list(e.items)})`;
  }
}

function concatenated(e: Expression): Expression[] {
  return e.kind === "binary" && e.operator === "||" ? [...concatenated(e.left), e.right] : [e];
}

function callText(call: FunctionCall, list: (items: Expression[]) => string): string {
  const name = call.name.toLowerCase();
  if (name === "count" && call.args.length === 1 && call.args[0].kind === "star") return "count()";
  if (name === "count" && call.distinct) return `count_distinct(${list(call.args)})`;
  return `${name}(${list(call.args)})`;
}

function typeText(type: TypeName): string {
  const parameters = type.parameters.length === 0 ? "" : `(${type.parameters.join(",")})`;
  return type.name + parameters + "[]".repeat(type.dimensions);
}

/** What a result column without alias is called. */
export function columnName(
  e: Expression,
  source?: string,
  variable?: (name: string) => Expression | undefined,
): string {
  const inner = e.kind === "variable" ? variable?.(e.name) ?? e : e;
  if (inner.kind === "column") return inner.path.at(-1)!.text;
  const text = expressionText(inner, source, variable);
  const cut = text.length > NAME_LENGTH_MAX ? text.slice(0, NAME_LENGTH_MAX) : text;
  return cut.includes(".") ? `"${cut}"` : cut;
}
