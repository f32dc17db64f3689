/** The normalised text of an expression, which is the name of an unnamed result column. */
import type { Expression, FunctionCall } from "../ast.ts";
import { quotedText } from "../quoting.ts";

/** Longer names are truncated, without trailing blanks. */
export const NAME_LENGTH_MAX = 64;
/** The limit for names with a dot, which are quoted. */
export const DOTTED_NAME_LENGTH_MAX = 61;

const PRECEDENCE: Record<string, number> = {
  or: 1,
  and: 2,
  "=": 4,
  "!=": 4,
  "<": 5,
  "<=": 5,
  ">": 5,
  ">=": 5,
  "~": 4,
  "!~": 4,
  like: 4,
  ilike: 4,
  "not like": 4,
  "not ilike": 4,
  "<<": 5,
  "<<=": 5,
  ">>": 5,
  ">>=": 5,
  "|": 7,
  "^": 8,
  "&": 9,
  "||": 10,
  "+": 11,
  "-": 11,
  "*": 12,
  "/": 12,
  "%": 12,
};
const ATOM = 20;

function precedenceOf(e: Expression): number {
  switch (e.kind) {
    case "binary":
      return e.operator === "||" || e.operator.startsWith("not ") ? ATOM : PRECEDENCE[e.operator] ?? 4;
    case "isNull":
      return 4;
    case "between":
    case "in":
      return e.negated ? ATOM : 6;
    default:
      return ATOM;
  }
}

/** `variable`: the value of a DECLARE variable, if it is shown instead of the name. */
export function expressionText(e: Expression, variable?: (name: string) => Expression | undefined): string {
  const text = (x: Expression): string => expressionText(x, variable);
  const list = (items: Expression[]): string => items.map(text).join(", ");
  const inside = (x: Expression, least: number): string => precedenceOf(x) < least ? `(${text(x)})` : text(x);
  switch (e.kind) {
    case "null":
      return e.spelling ?? "null";
    case "boolean":
      return e.spelling ?? String(e.value);
    case "number":
      return e.text;
    case "string":
      return e.spelling ?? quotedText(e.value);
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
    case "outer":
      return `outer ${e.index}`;
    case "star":
      return e.table === undefined ? "*" : `${e.table.text}.*`;
    case "unary":
      return e.operator === "+" ? text(e.operand) : `${e.operator}(${text(e.operand)})`;
    case "binary": {
      if (e.operator === "||") return `concat(${list(concatenated(e))})`;
      if (e.operator.startsWith("not ")) {
        return `not(${inside(e.left, 5)} ${e.operator.slice(4)} ${inside(e.right, 5)})`;
      }
      const level = precedenceOf(e);
      return `${inside(e.left, level)} ${e.spelling ?? e.operator} ${inside(e.right, level + 1)}`;
    }
    case "isNull":
      return `${inside(e.operand, 4)} ${e.negated ? "!=" : "="} ${e.spelling ?? "null"}`;
    case "between": {
      const plain = `${inside(e.operand, 6)} between (${text(e.low)}, ${text(e.high)})`;
      return e.negated ? `not(${plain})` : plain;
    }
    case "in": {
      const items = e.items.length === 1 ? text(e.items[0]!) : `(${list(e.items)})`;
      const plain = `${inside(e.operand, 6)} in ${items}`;
      return e.negated ? `not(${plain})` : plain;
    }
    case "inQuery":
      return `${e.negated ? "not " : ""}${text(e.operand)} in (query)`;
    case "cast": {
      const extracted = extractedText(e, list);
      if (extracted !== undefined) return extracted;
      const operand = inside(e.operand, ATOM);
      const isChoice = e.operand.kind === "case" && choiceOf(e.operand) === undefined;
      const inParentheses = isChoice || (e.operand.kind === "unary" && e.operand.operator === "-");
      return `${inParentheses ? `(${operand})` : operand}::${typeText(e)}`;
    }
    case "case": {
      const choice = choiceText(e, text);
      if (choice !== undefined) return choice;
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
      return e.items.length === 0 ? "ARRAY" : `ARRAY[${list(e.items)}]`;
    case "index": {
      const subscripts = e.subscripts.map((s) => "index" in s ? text(s.index) : sliceText(s.from, s.to, text));
      const operand = text(e.operand);
      return subscripts.length === 1 ? `${operand}[${subscripts[0]}]` : `[](${[operand, ...subscripts].join(", ")})`;
    }
    case "field":
      return `${inside(e.operand, ATOM)}.${e.name.text}`;
    case "list":
      return `(${list(e.items)})`;
  }
}

/** The numbers of types that `json_extract` gives by itself: a cast of its value is named as another argument. */
const EXTRACTED_TYPES: Readonly<Record<string, number>> = {
  boolean: 1,
  short: 3,
  int: 5,
  long: 6,
  date: 7,
  timestamp: 8,
  timestamp_ns: 262_152,
  float: 9,
  double: 10,
  ipv4: 25,
};

function extractedText(e: Cast, list: (items: Expression[]) => string): string | undefined {
  const { operand, type: { name }, style } = e;
  if (operand.kind !== "call" || operand.name.toLowerCase() !== "json_extract") return undefined;
  if (name === "varchar") return callText(operand, list);
  const number = EXTRACTED_TYPES[style === "::" && name === "float" ? "double" : name];
  return number === undefined ? undefined : `${operand.name}(${list(operand.args)}, ${number})`;
}

function sliceText(from: Expression | undefined, to: Expression | undefined, text: (e: Expression) => string): string {
  if (from !== undefined && to !== undefined) return `${text(from)} : ${text(to)}`;
  if (from !== undefined) return `:(${text(from)})`;
  return `:${to === undefined ? "" : text(to)}`;
}

function concatenated(e: Expression): Expression[] {
  return e.kind === "binary" && e.operator === "||" ? [...concatenated(e.left), ...concatenated(e.right)] : [e];
}

/** Aggregates of distinct values, by those that DISTINCT makes them of. Columns are named after them. */
export const DISTINCT_FORMS: Readonly<Record<string, string>> = {
  count: "count_distinct",
  string_agg: "string_distinct_agg",
};

function callText(call: FunctionCall, list: (items: Expression[]) => string): string {
  const { name } = call;
  const [operand, ...others] = call.args;
  if (call.isInfix) {
    return `${list([operand!])} ${name.toLowerCase()} ${others.length === 1 ? list(others) : `(${list(others)})`}`;
  }
  const isCount = name.toLowerCase() === "count";
  if (isCount && call.args.length === 1 && call.args[0]!.kind === "star") return `${name}()`;
  const form = call.distinct ? DISTINCT_FORMS[name.toLowerCase()] : undefined;
  return `${form ?? name}(${list(call.args)})`;
}

type Case = Extract<Expression, { kind: "case" }>;

/**
 * A CASE over the values of one expression is named switch(value, when, then, …, else): one with an operand, or whose
 * conditions all compare the same column with constants.
 */
function choiceText(e: Case, text: (e: Expression) => string): string | undefined {
  const choice = choiceOf(e);
  if (choice === undefined) return undefined;
  const parts = [choice.value, ...e.branches.flatMap((branch, i) => [choice.whens[i]!, branch.then])].map(text);
  if (e.otherwise !== undefined) parts.push(text(e.otherwise));
  else if (e.operand === undefined) parts.push("null");
  return `switch(${parts.join(", ")})`;
}

/** The expression that the branches compare, and the values that they compare it with. */
export function choiceOf(e: Case): { value: Expression; whens: Expression[] } | undefined {
  if (e.operand !== undefined) return { value: e.operand, whens: e.branches.map((branch) => branch.when) };
  let value: Extract<Expression, { kind: "column" }> | undefined;
  const whens: Expression[] = [];
  for (const { when } of e.branches) {
    const sides = comparedSides(when);
    if (sides === undefined) return undefined;
    const [column, constant] = sides;
    if (value !== undefined && pathText(value) !== pathText(column)) return undefined;
    value = column;
    whens.push(constant);
  }
  return value === undefined ? undefined : { value, whens };
}

type ColumnExpression = Extract<Expression, { kind: "column" }>;

function comparedSides(e: Expression): [ColumnExpression, Expression] | undefined {
  if (e.kind === "isNull" && !e.negated && e.operand.kind === "column") {
    return [e.operand, { kind: "null", at: e.at, spelling: e.spelling }];
  }
  if (e.kind !== "binary" || e.operator !== "=") return undefined;
  if (e.left.kind === "column" && isPlain(e.right)) return [e.left, e.right];
  if (e.right.kind === "column" && isPlain(e.left)) return [e.right, e.left];
  return undefined;
}

/** A constant as it is written, without a sign or a cast. */
export function isPlain(e: Expression): boolean {
  return e.kind === "number" || e.kind === "string" || e.kind === "boolean" || e.kind === "null";
}

function pathText(e: ColumnExpression): string {
  return e.path.map((part) => part.text.toLowerCase()).join(".");
}

/** PostgreSQL's types in names of columns. */
const SHOWN_TYPES: Readonly<Record<string, string>> = {
  int2: "SHORT",
  int4: "INT",
  int8: "LONG",
  float4: "FLOAT",
  float8: "DOUBLE",
  "double precision": "double",
  "timestamp with time zone": "timestamp",
};

type Cast = Extract<Expression, { kind: "cast" }>;

function typeText({ type, style }: Cast): string {
  if (style === "::" && type.name === "float") return "DOUBLE";
  const shown = SHOWN_TYPES[type.name];
  if (shown !== undefined && type.dimensions === 0) return shown;
  const parameters = type.name === "geohash"
    ? type.parameters.join("")
    : type.parameters.map((parameter) => `_${parameter}`).join("");
  return (type.spelling ?? type.name) + parameters + "[]".repeat(type.dimensions);
}

/** The name of a result column without an alias. */
export function columnName(e: Expression, variable?: (name: string) => Expression | undefined): string {
  const inner = e.kind === "variable" ? variable?.(e.name) ?? e : e;
  if (inner.kind === "column") return inner.path.at(-1)!.text;
  return nameOfText(expressionText(inner, variable));
}

/** A text as the name of a column. */
export function nameOfText(text: string): string {
  if (text === "" || text.includes(".")) return `"${text.slice(0, DOTTED_NAME_LENGTH_MAX)}"`;
  return text.length > NAME_LENGTH_MAX ? text.slice(0, NAME_LENGTH_MAX).trimEnd() : text;
}
