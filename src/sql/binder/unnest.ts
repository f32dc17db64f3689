/**
 * `unnest(array, …)`: a row for each element. It is allowed in the select list and in FROM, where it may use the
 * sources before it.
 */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import { elementsOf } from "../../types/pg-arrays.ts";
import { arrayDimensions } from "../../types/wide.ts";
import type { FunctionCall, Join, Source } from "../ast.ts";
import type { Expr, Plan, UnnestNode } from "../plan.ts";
import { type Names, typeMismatch, UNTYPED } from "./context.ts";
import { fold } from "./convert.ts";
import { NO_CALLS_OF_ROWS, type Scope } from "./expression-binder.ts";
import type { Expressions } from "./expressions.ts";
import { noRows } from "./no-rows.ts";
import { columnsRead, filter } from "./plans.ts";
import { type Queries, relationOf } from "./query.ts";
import { renamed } from "./recursion.ts";
import { nothing, type Relation, type ScopeColumn } from "./scope.ts";
import { displayName, isText } from "./types.ts";

type FunctionSource = Extract<Source, { kind: "function" }>;

export function isUnnest(call: FunctionCall): boolean {
  return call.name.toLowerCase() === "unnest";
}

/** `outer`: columns of the query around a correlated sub-query. */
export function bindUnnest(
  queries: Queries,
  source: FunctionSource,
  names: Names,
  outer: readonly ScopeColumn[],
): Relation {
  const arrays = arraysOf(queries.expressions, source.call, { columns: outer, names });
  if (arrays === undefined) return texts(queries, source, names, outer);
  if (arrays.some((array) => columnsRead(array).size > 0)) throw notSupported("unnest of this column", source.call.at);
  return lateral(source, nothing(), arrays);
}

/** Joins the left side with the elements of its arrays. Undefined if the right side is not unnest. */
export function unnestJoin(queries: Queries, join: Join, left: Relation, names: Names): Relation | undefined {
  const { type, on, right } = join;
  if (right.kind !== "function" || !isUnnest(right.call)) return undefined;
  const arrays = arraysOf(queries.expressions, right.call, { columns: left.columns, names });
  if (arrays === undefined) return undefined;
  if (type !== "cross" && type !== "inner") throw notSupported(`${type.toUpperCase()} JOIN of unnest`, join.at);
  if (on?.kind === "list") throw notSupported("USING of unnest", on.at);
  const relation = lateral(right, left, arrays);
  if (on === undefined) return relation;
  const condition = queries.expressions.condition(on, { columns: relation.columns, names });
  return { ...relation, plan: filter(relation.plan, condition) };
}

/** Unnests arrays of the enclosing query, as the only source of a correlated sub-query. Undefined for other sources. */
export function unnestOver(queries: Queries, source: Source, outer: Relation, names: Names): Relation | undefined {
  if (source.kind !== "function" || !isUnnest(source.call)) return undefined;
  const arrays = arraysOf(queries.expressions, source.call, { columns: outer.columns, names });
  return arrays?.some((array) => columnsRead(array).size > 0) ? lateral(source, outer, arrays) : undefined;
}

function lateral(source: FunctionSource, left: Relation, arrays: Expr[]): Relation {
  const { alias, columnNames, ordinality } = source;
  const first = alias?.text ?? "unnest", width = left.plan.columns.length;
  const elements = arrays.map((_, i) => ({ name: i === 0 ? first : `${first}${i}`, type: "DOUBLE" }));
  const ordinals = ordinality === undefined ? [] : [{ name: "ordinality", type: "LONG" }];
  const own = renamed([...elements, ...ordinals], columnNames);
  const qualifier = first.toLowerCase();
  return {
    plan: unnestPlan(left.plan, arrays, own, ordinality !== undefined),
    columns: [...left.columns, ...own.map((column, i) => ({ ...column, qualifier, index: width + i }))],
    isTable: false,
    timestamp: left.timestamp,
  };
}

function unnestPlan(input: Plan, arrays: Expr[], own: Plan["columns"], ordinality: boolean): UnnestNode {
  const { columns, timestamp, order } = input;
  return { node: "unnest", input, arrays, ordinality, columns: [...columns, ...own], timestamp, order };
}

/** The arrays; undefined for a single text, which is an array in PostgreSQL's form. */
function arraysOf(expressions: Expressions, call: FunctionCall, scope: Scope): Expr[] | undefined {
  if (call.args.length === 0) {
    throw new SqlError("unnest takes an array: found no argument", call.at, SQLSTATE.undefinedFunction);
  }
  const bound = call.args.map((arg) => expressions.bind(arg, scope));
  const { type } = bound[0]!;
  if (bound.length === 1 && (isText(type) || type === UNTYPED || type === "NULL")) return undefined;
  return bound.map((array, i) => asArray(expressions, array, call.args[i]!.at));
}

function asArray(expressions: Expressions, given: Expr, at: number): Expr {
  const array = expressions.settle(given, "DOUBLE[]");
  if (array.type === "NULL") return expressions.cast(array, "DOUBLE[]", at);
  if (arrayDimensions(array.type) > 0) return array;
  throw typeMismatch(`unnest needs an array: found ${displayName(array.type)}`, at);
}

/** The elements of a constant text. A column is accepted only if it is known to be NULL. */
function texts(queries: Queries, source: FunctionSource, names: Names, outer: readonly ScopeColumn[]): Relation {
  const { call, alias, ordinality } = source;
  if (ordinality !== undefined) throw notSupported("WITH ORDINALITY of a text", ordinality.at);
  const { expressions, binding } = queries;
  const array = expressions.settle(expressions.bind(call.args[0]!, { columns: outer, names }), "STRING");
  const column = { name: alias?.text ?? "unnest", type: "STRING" };
  const named = alias ?? { text: "unnest", at: call.at, quoted: false };
  if (array.kind === "column" && outer.find(({ index }) => index === array.index)?.known === null) {
    return relationOf({ plan: noRows([column]), visible: 1, timestamp: -1, isEmpty: true }, named);
  }
  const text = fold(expressions.cast(array, "STRING", call.at), binding);
  if (text === undefined) throw notSupported("unnest of a text that is not constant", call.at);
  const elements = text.value === null ? [] : elementsOf(text.value as string);
  const plan: Plan = { ...noRows([column]), rows: elements.map((element) => [element ?? null]) };
  return relationOf({ plan, visible: 1, timestamp: -1 }, named);
}

/** The calls of unnest in one select list. Their elements are combined by position. */
export class UnnestCollector {
  private readonly arrays: Expr[] = [];
  /** The position of the first call. */
  at = -1;

  constructor(private readonly expressions: Expressions) {}

  get isUsed(): boolean {
    return this.arrays.length > 0;
  }

  add(call: FunctionCall, scope: Scope): Expr {
    if (call.args.length !== 1) {
      const message = `unnest in a select list expects one array: found ${call.args.length} arguments`;
      throw new SqlError(message, call.at, SQLSTATE.undefinedFunction);
    }
    const arg = call.args[0]!;
    const array = asArray(this.expressions, this.expressions.bind(arg, { ...scope, ...NO_CALLS_OF_ROWS }), arg.at);
    if (this.at < 0) this.at = call.at;
    return { kind: "placeholder", of: "unnest", index: this.arrays.push(array) - 1, type: "DOUBLE" };
  }

  /** The elements become the last columns. */
  plan(input: Plan): Plan {
    const own = this.arrays.map((_, i) => ({ name: `unnest ${i}`, type: "DOUBLE" }));
    return unnestPlan(input, this.arrays, own, false);
  }
}
