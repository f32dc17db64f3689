/** Types shared by the binders of queries and clauses. They bind nested queries through `Queries`. */
import type { Name, OrderItem, Query, SelectItem, Statement } from "../ast.ts";
import type { Effort } from "../effort.ts";
import type { BoundStatement, Expr, Plan } from "../plan.ts";
import type { Binding, Names } from "./context.ts";
import type { Expressions } from "./expressions.ts";
import type { Relation, ScopeColumn } from "./scope.ts";

export interface QueryOptions {
  /** Add the designated timestamp as a hidden last column if the select list omits it, for enclosing joins by time. */
  keepTimestamp?: boolean;
  /** For a correlated sub-query: the rows of the enclosing query, joined to each of its own rows. */
  outer?: { plan: Plan; columns: ScopeColumn[] };
}

export interface BoundQuery {
  plan: Plan;
  /** Number of visible columns: all but a hidden timestamp. */
  visible: number;
  /** Index of the timestamp for enclosing joins by time and SAMPLE BY, or -1. */
  timestamp: number;
  /** True if it is known to be empty. */
  isEmpty?: boolean;
}

/** The rows of a query or function as a source. */
export function relationOf(bound: BoundQuery, alias: Name | undefined): Relation {
  const qualifier = alias?.text.toLowerCase();
  const columns = bound.plan.columns.slice(0, bound.visible).map((column, index): ScopeColumn => ({
    name: column.name,
    type: column.type,
    qualifier,
    index,
  }));
  return { plan: bound.plan, columns, isTable: false, isEmpty: bound.isEmpty, timestamp: bound.timestamp };
}

/** All statement kinds. Passed in, because statements import the binders. */
export interface Language {
  /** First words of all statements. */
  readonly statementWords: readonly string[];
  /** Words that may follow SHOW, in lower case. */
  readonly showForms: readonly string[];
  readonly keywords: readonly string[];
  bind(statement: Statement, queries: Queries): BoundStatement;
  /** Parses the text of a view. @throws {SqlError} if it is no query. */
  query(text: string, effort?: Effort): Query;
}

/** Binds queries. `QueryBinder` implements it. */
export interface Queries {
  readonly binding: Binding;
  readonly expressions: Expressions;
  readonly language: Language;
  bind(query: Query, names: Names, options?: QueryOptions): BoundQuery;
}

/** An item of the select list, after expanding `*`. */
export interface OutputItem {
  item: SelectItem;
  /** Undefined until bound. */
  expr: Expr;
  name: string;
  /** True if it has an explicit alias. */
  aliased: boolean;
}

export interface OrderKey {
  order: OrderItem;
  /** Index of the result column. Exactly one of `output` and `expr` is given. */
  output?: number;
  /** An expression over the sources. */
  expr?: Expr;
}
