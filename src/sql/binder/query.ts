/** What the binders of queries and of their clauses share: they bind queries within queries through `Queries`. */
import type { Name, OrderItem, Query, SelectItem, Statement } from "../ast.ts";
import type { BoundStatement, Expr, Plan } from "../plan.ts";
import type { Binding, Names } from "./context.ts";
import type { Expressions } from "./expressions.ts";
import type { Relation, ScopeColumn } from "./scope.ts";

export interface QueryOptions {
  /** Add the designated timestamp as a last, hidden column where the select list leaves it out: for joins by time around it. */
  keepTimestamp?: boolean;
  /** Of a correlated sub-query: the rows of the query around it, put beside each row of its own. */
  outer?: { plan: Plan; columns: ScopeColumn[] };
}

export interface BoundQuery {
  plan: Plan;
  /** Columns that the query shows: all of the plan's but for a hidden timestamp. */
  visible: number;
  /** By what joins by time and SAMPLE BY around the query go, or -1. */
  timestamp: number;
  /** Is it known to have no rows? */
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

/** The language as a whole. Handed in, as its statements import the binders. */
export interface Language {
  /** First words of statements. */
  readonly statementWords: readonly string[];
  /** What stands behind SHOW, in lower case. */
  readonly showForms: readonly string[];
  readonly keywords: readonly string[];
  bind(statement: Statement, queries: Queries): BoundStatement;
}

/** Binds queries. `QueryBinder` implements it. */
export interface Queries {
  readonly binding: Binding;
  readonly expressions: Expressions;
  readonly language: Language;
  bind(query: Query, names: Names, options?: QueryOptions): BoundQuery;
}

/** One item of the select list after stars are spread. */
export interface OutputItem {
  item: SelectItem;
  /** undefined until bound. */
  expr: Expr;
  name: string;
  /** Was it written with its own alias? */
  aliased: boolean;
}

export interface OrderKey {
  order: OrderItem;
  /** Index of the result column that is meant … */
  output?: number;
  /** … or the expression over the sources. */
  expr?: Expr;
}
