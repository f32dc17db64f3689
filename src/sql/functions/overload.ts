/** Overload resolution: exact types first, then the cheapest implicit casts, in listed order. */
import { typeOf, type Value } from "../../types/mod.ts";
import { type ReadFailure, readValue } from "../../types/parse/mod.ts";
import type { Arg, FunctionEntry, Rewritten } from "./entry.ts";
import { functionId } from "./entry.ts";
import { arrayDimensions, commonDecimal, decimalOf } from "../../types/wide.ts";
import { NO_DURATION } from "../other-dialects.ts";
import { isText, isWide, NUMBERS, TIMES } from "./nodes.ts";

/** A matching overload. Each argument that does not have type `types[i]` must be cast to it (by `cast_<TYPE>`). */
export interface Overload {
  entry: FunctionEntry;
  types: string[];
  returns: string;
  /** The function id in plans. */
  id: string;
  /** Set if the call was rewritten to another entry: its arguments, to which `types` refers. */
  arguments?: Rewritten["args"];
}

/** Why no overload matches. */
export interface OverloadFailure {
  failure: "unknown" | "count" | "types" | "constant" | "value";
  message: string;
  /** The argument at fault; undefined: report the error at the call. */
  argument?: number;
  /** Offset of the error within the argument's text, such as in a pattern after its quote. */
  offset?: number;
  /** True if the dialect reports it at position 0, such as a text that is not a number. */
  atStart?: boolean;
}

const NUMBER_COST: Record<string, Record<string, number>> = {
  BYTE: { SHORT: 1, INT: 1, LONG: 3, FLOAT: 4, DOUBLE: 5 },
  SHORT: { INT: 1, LONG: 3, FLOAT: 4, DOUBLE: 5 },
  INT: { LONG: 2, FLOAT: 3, DOUBLE: 4, TIMESTAMP: 12, TIMESTAMP_NS: 13, DATE: 14 },
  LONG: { DOUBLE: 3, TIMESTAMP: 10, TIMESTAMP_NS: 11, DATE: 15, FLOAT: 20 }, // LONG with FLOAT is DOUBLE
  FLOAT: { DOUBLE: 1 },
  DOUBLE: {},
  DATE: { TIMESTAMP: 1, TIMESTAMP_NS: 2, LONG: 42, DOUBLE: 43 },
  TIMESTAMP: { TIMESTAMP_NS: 1, LONG: 40, DOUBLE: 41 },
  TIMESTAMP_NS: { LONG: 40, DOUBLE: 41 },
  UUID: { STRING: 1, VARCHAR: 2 },
  CHAR: {
    STRING: 2,
    VARCHAR: 3,
    SYMBOL_TEXT: 4,
    INT: 25,
    LONG: 26,
    DOUBLE: 27,
    TIMESTAMP: 35,
    TIMESTAMP_NS: 36,
    DATE: 37,
  },
};
const TEXT_COST: Record<string, number> = {
  STRING: 1,
  VARCHAR: 1,
  SYMBOL_TEXT: 1,
  INT: 20,
  LONG: 21,
  DOUBLE: 23,
  FLOAT: 24,
  TIMESTAMP: 30,
  TIMESTAMP_NS: 31,
  DATE: 32,
  UUID: 33,
  IPv4: 34,
};

/** Added if all arguments are texts, which are then numbers of the widest type. With a number they are numbers of its type. */
const ONLY_TEXTS_COST: Record<string, number> = { INT: 5, LONG: 3, DOUBLE: 0, FLOAT: 5 };

const NULL_LAST = new Set(["BOOLEAN", "BYTE", "SHORT", "BINARY"]);

/** Cost of an implicit cast, or undefined if there is none. */
function implicitCost(from: string, to: string): number | undefined {
  if (from === to) return 0;
  // Types without null come last.
  if (from === "NULL") return to === "SYMBOL" ? undefined : NULL_LAST.has(to) ? 2 : 1;
  if (isText(from)) return TEXT_COST[to];
  return NUMBER_COST[from]?.[to];
}

/** The members of a class, in the order of searching for the cheapest cast. */
const CLASS_MEMBERS: Record<string, readonly string[]> = {
  number: NUMBERS,
  integer: ["BYTE", "SHORT", "INT", "LONG"],
  time: TIMES,
};
const CLASS_DEFAULTS: Record<string, readonly string[]> = {
  number: ["DOUBLE"],
  integer: ["LONG"],
  time: ["TIMESTAMP"],
  text: ["STRING"],
};

function isMember(type: string, spec: string): boolean {
  if (spec === "any" || spec === "same") return true;
  if (spec === "text") return isText(type);
  if (spec === "wide") return isWide(type);
  if (spec === "decimal") return decimalOf(type) !== undefined;
  if (spec === "array") return arrayDimensions(type) > 0;
  return CLASS_MEMBERS[spec]?.includes(type) ?? type === spec;
}

/** The type of an argument of `type` for `spec`, and the cost of the cast. `value`: of a constant. */
function target(type: string, spec: string, value: Value | undefined): { type: string; cost: number } | undefined {
  if (spec === "any" || isMember(type, spec)) return { type, cost: 0 };
  // There are no implicit casts to types with parameters, because the parameters are unknown.
  if (spec === "wide" || spec === "decimal" || spec === "array") return undefined;
  // The texts of a column may have nanoseconds.
  const mayHaveNanos = isText(type) && (value === undefined || (typeof value === "string" && hasNanoseconds(value)));
  if (spec === "time" && mayHaveNanos) return target(type, "TIMESTAMP_NS", value);
  for (const to of CLASS_DEFAULTS[spec] ?? [spec]) {
    const cost = implicitCost(type, to);
    if (cost !== undefined) {
      return { type: to, cost: mayHaveNanos && to === "TIMESTAMP" ? cost + LOST_NANOS_COST : cost };
    }
  }
  return undefined;
}

/** More than the difference between TIMESTAMP and TIMESTAMP_NS for a text. */
const LOST_NANOS_COST = 2;

/** True for the text of a time with more than six digits of its second's fraction: a TIMESTAMP_NS. */
export function hasNanoseconds(text: string): boolean {
  return /:\d\d\.\d{7}/.test(text);
}

/**
 * The common type of `types`: of CASE branches and coalesce arguments ("case"), or of columns of set operations
 * ("union"). undefined if they are incompatible.
 */
export function commonType(types: readonly string[], purpose: "case" | "union"): string | undefined {
  let common = types[0];
  for (const type of types.slice(1)) {
    const next = commonOfTwo(common, type, purpose);
    if (next === undefined) return undefined;
    common = next;
  }
  return common;
}

function commonOfTwo(a: string, b: string, purpose: "case" | "union"): string | undefined {
  if (a === b) return a === "SYMBOL" || a === "SYMBOL_TEXT" ? "STRING" : a;
  if (a === "NULL") return b === "SYMBOL" ? "SYMBOL_TEXT" : b;
  if (b === "NULL") return a === "SYMBOL" ? "SYMBOL_TEXT" : a;
  const decimal = commonDecimal(a, b);
  if (decimal !== undefined) return decimal;
  const numbers: readonly string[] = NUMBERS;
  if (numbers.includes(a) && numbers.includes(b)) {
    return numbers.indexOf(a) < numbers.indexOf(b) ? b : a;
  }
  const times: readonly string[] = TIMES;
  if (times.includes(a) && times.includes(b)) return times.indexOf(a) < times.indexOf(b) ? b : a;
  const textA = isText(a) || a === "CHAR", textB = isText(b) || b === "CHAR";
  if (textA && textB) {
    // STRING with VARCHAR is VARCHAR in an expression, but STRING in a set operation.
    if (purpose === "case" && (a === "VARCHAR" || b === "VARCHAR")) return "VARCHAR";
    return a === "VARCHAR" && b === "VARCHAR" ? "VARCHAR" : "STRING";
  }
  if (purpose === "union" && (textA || textB)) {
    const other = textA ? b : a;
    return other === "INTERVAL" ? undefined : (textA ? a : b) === "VARCHAR" ? "VARCHAR" : "STRING";
  }
  return undefined;
}

interface Candidate {
  entry: FunctionEntry;
  types: string[];
  cost: number;
  /** A constant that cannot be read as the type that this overload requires. */
  bad?: OverloadFailure;
}

function specOf(entry: FunctionEntry, index: number): Arg {
  return entry.args[Math.min(index, entry.args.length - 1)];
}

function takesCount(entry: FunctionEntry, count: number): boolean {
  const last = entry.args.at(-1);
  const required = entry.args.filter((arg) => !arg.optional).length;
  return count >= required && (count <= entry.args.length || last?.variadic === true);
}

/**
 * A text constant that is implicitly cast to a number or a time must be valid; explicit casts handle their values
 * themselves.
 */
function badConstant(
  value: Value | undefined,
  from: string,
  to: string,
  argument: number,
  isTimeSum: boolean,
): OverloadFailure | undefined {
  if (typeof value !== "string" || from === to || isText(to)) return undefined;
  const read = readValue(value, to);
  if (!(read instanceof Object && "problem" in read)) return undefined;
  if (isTimeSum) return { failure: "value", message: `'${value}' is not a number: ${NO_DURATION}`, argument };
  const isNumber = (NUMBERS as readonly string[]).includes(to);
  return { failure: "value", message: (read as ReadFailure).problem, argument, atStart: isNumber };
}

function candidate(
  entry: FunctionEntry,
  types: readonly string[],
  constants: readonly (Value | undefined)[],
): Candidate | OverloadFailure {
  const targets: string[] = [];
  let cost = 0;
  let bad: OverloadFailure | undefined;
  const isTimeSum = (entry.name === "+" || entry.name === "-") && types.some((type) => isMember(type, "time"));
  const onlyTexts = types.every((type) => type === "STRING" || type === "VARCHAR" || type === "NULL");
  const same = types.filter((_, i) => specOf(entry, i).type === "same");
  const common = same.length > 0 ? commonType(same, "case") : undefined;
  for (let i = 0; i < types.length; i++) {
    const spec = specOf(entry, i);
    if (spec.constant && constants[i] === undefined && types[i] !== "NULL") {
      return { failure: "constant", message: `${entry.name}: ${spec.name} must be a constant`, argument: i };
    }
    if (spec.type === "same") {
      if (common === undefined) {
        const at = types.findIndex((type, k) =>
          commonType(types.slice(0, k + 1).filter((_, j) => specOf(entry, j).type === "same"), "case") === undefined &&
          type !== ""
        );
        return {
          failure: "types",
          message: `${entry.name}: ${types[Math.max(at, 1)]} cannot be combined with ${types[0]}`,
          argument: Math.max(at, 1),
        };
      }
      targets.push(common);
      if (types[i] !== common) cost += implicitCost(types[i], common) ?? 1;
      continue;
    }
    const found = target(types[i], spec.type, constants[i]);
    if (found === undefined) {
      return {
        failure: "types",
        message: `${entry.name}: ${spec.name} cannot be ${nameOf(types[i])}: expected ${spec.type}`,
        argument: i,
      };
    }
    // Texts of numbers are aggregated, but not symbols of numbers.
    const isSymbol = types[i] === "SYMBOL" || types[i] === "SYMBOL_TEXT";
    if (entry.aggregate !== undefined && isSymbol && !isText(found.type)) {
      return {
        failure: "types",
        message: `${entry.name}: ${spec.name} cannot be ${nameOf(types[i])}: expected ${spec.type}`,
        argument: i,
      };
    }
    targets.push(found.type);
    cost += found.cost + (onlyTexts && isText(types[i]) ? ONLY_TEXTS_COST[found.type] ?? 0 : 0);
    bad ??= badConstant(constants[i], types[i], found.type, i, isTimeSum);
  }
  return { entry, types: targets, cost, bad };
}

function nameOf(tag: string): string {
  return tag === "NULL" ? "NULL" : typeOf(tag).name;
}

/**
 * For functions with several overloads of the same argument count, the dialect reports the error at the call, not at an
 * argument.
 */
const BLAME_CALL = new Set(
  ("length to_str avg sum bit_and bit_or bit_xor upper lower to_uppercase to_lowercase trim ltrim rtrim left right strpos " +
    "position lpad rpad starts_with quote_ident reverse repeat round to_timestamp to_timestamp_ns to_date timestamp_floor " +
    "json_extract")
    .split(" "),
);
const COMPARISONS = new Set(["=", "!=", "<", "<=", ">", ">="]);

function signature(entry: FunctionEntry): string {
  return `${entry.name}(${entry.args.map((arg) => `${arg.type}${arg.variadic ? "…" : ""}`).join(", ")})`;
}

export function createFindOverload(byName: ReadonlyMap<string, FunctionEntry[]>) {
  return function findOverload(
    name: string,
    types: readonly string[],
    constants: readonly (Value | undefined)[] = [],
  ): Overload | OverloadFailure {
    const overloads = byName.get(name) ?? byName.get(name.toLowerCase());
    if (overloads === undefined) return { failure: "unknown", message: `there is no function ${name}` };
    const fitting = overloads.filter((entry) => takesCount(entry, types.length));
    if (fitting.length === 0) {
      return {
        failure: "count",
        message: `${name} does not accept ${types.length} arguments: expected ${
          overloads.map(signature).slice(0, 5).join(", ")
        }`,
      };
    }
    let best: Candidate | undefined;
    let why: OverloadFailure | undefined;
    /** Incompatible arguments are reported first, even if other overloads exist. */
    let unlike: OverloadFailure | undefined;
    /** An overload that matches except for an argument that must be constant. */
    let noConstant: OverloadFailure | undefined;
    for (const entry of fitting) {
      const found = candidate(entry, types, constants);
      if ("failure" in found) {
        why ??= found;
        if (found.failure === "constant") noConstant ??= found;
        if (entry.args[0]?.type === "same") unlike = found;
        continue;
      }
      if (best === undefined || badness(found) < badness(best)) best = found;
    }
    if (best !== undefined) {
      if (best.bad !== undefined) return best.bad;
      const wrong = best.entry.check?.(constants, best.types);
      if (wrong !== undefined) return { failure: "value", ...wrong };
      const rewritten = best.entry.rewrite?.(constants, best.types);
      if (rewritten !== undefined) {
        // The rewritten call has steps in the unit of these types: a text keeps the time type that it got here.
        const { types: settled } = best;
        const typeAt = (i: number) =>
          isText(types[i]) && (TIMES as readonly string[]).includes(settled[i]) ? settled[i] : types[i];
        const argument = (place: Rewritten["args"][number]) =>
          typeof place === "number" ? { type: typeAt(place), value: constants[place] } : place;
        const made = rewritten.args.map(argument);
        const found = findOverload(rewritten.name, made.map(({ type }) => type), made.map(({ value }) => value));
        return "failure" in found ? found : { ...found, arguments: rewritten.args };
      }
      const returns = typeof best.entry.returns === "string"
        ? best.entry.returns
        : best.entry.returns(best.types, constants);
      return { entry: best.entry, types: best.types, returns, id: functionId(best.entry.name, best.types) };
    }
    if (unlike !== undefined) return unlike;
    if (noConstant !== undefined) return noConstant;
    if (fitting.length === 1 && (why!.failure !== "types" || !BLAME_CALL.has(name))) return why!;
    const wanted = types.map(nameOf).join(", ");
    const failure: OverloadFailure = {
      failure: "types",
      message: `there is no function ${name}(${wanted}): expected ${fitting.map(signature).slice(0, 8).join(", ")}`,
    };
    // For a comparison of a time with a boolean, the error is at the boolean.
    if (COMPARISONS.has(name) && types.length === 2 && (TIMES as readonly string[]).includes(types[0])) {
      failure.argument = 1;
    }
    return failure;
  };
}

function badness(found: Candidate): number {
  return found.bad === undefined ? found.cost : found.cost + 1e6;
}

/** True if the entry accepts exactly these tags, without a cast. */
export function takesExactly(entry: FunctionEntry, types: readonly string[]): boolean {
  if (!takesCount(entry, types.length)) return false;
  return types.every((type, i) => isMember(type, specOf(entry, i).type));
}
