/**
 * The interface through which the binders of expressions call each other, and the scope of an expression. `Expressions`
 * implements it.
 */
import type { Expression, FunctionCall, OrderItem, Query } from "../ast.ts";
import type { AggregateCall, Expr, SortKey } from "../plan.ts";
import type { Binding, Names } from "./context.ts";
import type { Constant } from "./literals.ts";
import type { ScopeColumn } from "./scope.ts";

/** Binds sub-queries in expressions, which are joined to the query's input. Provided by the query's binder. */
export interface SubqueryHost {
  /** A BOOLEAN expression: true if `operand` is among the query's values. */
  membership(operand: Expr, query: Query, names: Names, at: number): Expr;
  /** The value of a one-row query. */
  scalar(query: Query, names: Names, at: number): Expr;
  /** A BOOLEAN expression: true if the query returns a row. */
  exists(query: Query, names: Names, at: number): Expr;
  /** The values of a query of one column, as PostgreSQL writes an array: `{a,b}`. */
  array(query: Query, names: Names, at: number): Expr;
}

/** The columns and names that an expression can use, and the calls that are allowed in it. */
export interface Scope {
  columns: readonly ScopeColumn[];
  names: Names;
  /** Aliases of the select list. */
  aliases?: Map<string, Expr>;
  /** Aliases hide columns, as in a name alone in GROUP BY. */
  aliasesFirst?: boolean;
  /** Collects aggregate calls. Absent if they are not allowed. */
  aggregates?: AggregateCall[];
  /**
   * Equal aggregate calls share one state. Not with FILL, because its values correspond to items of the select list.
   */
  shareAggregates?: boolean;
  /** Receives the row order that an aggregate's ORDER BY asks for. Absent if ORDER BY is not allowed in calls. */
  aggregateOrder?: (keys: SortKey[], call: AggregateCall) => void;
  /** Collects window calls. */
  windows?: WindowSink;
  /** Collects calls of `unnest`. Absent if they are not allowed. */
  unnest?: UnnestSink;
  subqueries?: SubqueryHost;
  /** True for the condition of WHERE. */
  isFilter?: boolean;
  /** True inside a window function. */
  isWindow?: boolean;
}

/**
 * Members of a scope inside an aggregate or a window function, where aggregates and window functions are not allowed.
 */
export const NO_CALLS_OF_ROWS = { aggregates: undefined, windows: undefined, unnest: undefined };

export interface WindowSink {
  add(call: FunctionCall, scope: Scope): Expr;
}

export interface UnnestSink {
  add(call: FunctionCall, scope: Scope): Expr;
}

/** As many expressions. */
export type Alike<T extends readonly Expr[]> = { -readonly [K in keyof T]: Expr };

/** Passed to the files that bind calls, comparisons, CASE and the like, to bind their operands. */
export interface ExpressionBinder {
  readonly binding: Binding;
  bind(e: Expression, scope: Scope): Expr;
  /** Binds a condition. @throws at the expression if it is not BOOLEAN. */
  condition(e: Expression, scope: Scope): Expr;
  args(e: FunctionCall, scope: Scope): Expr[];
  /** Binds an item of ORDER BY in a call. */
  sortKey(item: OrderItem, scope: Scope): SortKey;
  /** A call of a function. Errors are at the call or at the argument that does not fit. */
  function(name: string, args: Expr[], at: number): Expr;
  operator(name: string, operands: Expr[], at: number): Expr;
  isNull(operand: Expr, at: number): Expr;
  negate(condition: Expr, at: number): Expr;
  /** Gives `type` to a parameter without a type. */
  settle(expr: Expr, type: string): Expr;
  /** Gives parameters without a type the type of the other operands. */
  settleAlike<T extends readonly Expr[]>(operands: readonly [...T]): Alike<T>;
  /** An explicit or implicit cast. */
  cast(expr: Expr, target: string, at: number): Expr;
  /** Puts `expr` into type `target` for an overload that takes it. */
  coerce(expr: Expr, target: string, at: number): Expr;
  /**
   * Returns the constant value of `expr`, or undefined. `standIn` replaces a parameter whose value is not known yet.
   */
  constantOf(expr: Expr, standIn: Constant): Constant | undefined;
  /** The null of the type, or false or 0 if the type has no null. */
  nullOf(type: string): Constant;
}
