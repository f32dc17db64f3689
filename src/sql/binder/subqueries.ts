/**
 * Sub-queries as values. Each is joined to the query's input, and the expression reads the column that the join adds.
 * A correlated sub-query is bound over its own rows combined with the distinct values of the outer columns that it
 * uses. It is grouped by these columns, so that it gives one row for each combination. They are also the join keys.
 */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { Expression, Query, Select } from "../ast.ts";
import type { AggregateCall, Expr, Plan } from "../plan.ts";
import { resolveOverload } from "./calls.ts";
import { type Names, typeMismatch, UnknownColumn } from "./context.ts";
import type { SubqueryHost } from "./expression-binder.ts";
import { constant, TRUE } from "./literals.ts";
import { columnOf, columnsOf, crossJoin, filter, isOneRow, project } from "./plans.ts";
import { candidates, type ScopeColumn } from "./scope.ts";
import type { BoundQuery, Queries } from "./query.ts";
import { displayName, isText } from "./types.ts";

/** The query that contains the sub-queries. */
export interface OuterQuery {
  /** Its rows before any sub-query was joined. */
  base: Plan;
  columns: readonly ScopeColumn[];
  /** Its rows, including the columns that sub-queries have added. */
  input(): Plan;
  replace(plan: Plan): void;
}

/** The rows of a sub-query: `value` is its result, `keys` identify the rows of the outer query that it belongs to. */
interface Rows {
  plan: Plan;
  value: Expr;
  keys: Expr[];
  /** The same keys in the outer query. */
  outerKeys: Expr[];
}

export class Subqueries implements SubqueryHost {
  constructor(private readonly queries: Queries, private readonly outer: OuterQuery) {}

  private input(): Plan {
    return this.outer.input();
  }

  private replaceInput(plan: Plan): void {
    this.outer.replace(plan);
  }

  private bindOne(query: Query, names: Names, at: number): BoundQuery {
    const bound = this.queries.bind(query, names);
    if (bound.visible !== 1) {
      throw new SqlError(`expected a sub-query of one column: found ${bound.visible}`, at, SQLSTATE.syntax);
    }
    return bound;
  }

  /**
   * A left join with the distinct values and a marker column. In a row without a match the marker is false, the null of
   * BOOLEAN.
   */
  membership(given: Expr, query: Query, names: Names, at: number): Expr {
    const { plan: values } = this.bindOne(query, names, at);
    const expressions = this.queries.expressions;
    let value = columnOf(values, 0);
    const operand = given.type === "NULL" && isText(value.type) ? expressions.cast(given, "STRING", at) : given;
    let key = operand;
    if (value.type === "CHAR" && isText(operand.type)) value = expressions.cast(value, "STRING", at);
    const { type } = value;
    if (type !== operand.type || type === "SYMBOL") {
      if (isText(type) && isText(operand.type)) {
        key = operand.type === "SYMBOL" && type !== "SYMBOL" ? expressions.cast(operand, "STRING", at) : operand;
        value = type === "SYMBOL" && operand.type !== "SYMBOL" ? expressions.cast(value, "STRING", at) : value;
      } else if (type !== "NULL") {
        const fits = ["LONG", "DOUBLE", "TIMESTAMP"].find((wide) =>
          implicit(type, wide) && implicit(operand.type, wide)
        );
        if (fits === undefined) {
          throw typeMismatch(`${displayName(operand.type)} is compared with ${displayName(type)}`, at);
        }
        key = expressions.cast(operand, fits, at);
        value = expressions.cast(value, fits, at);
      } else {
        value = expressions.cast(value, operand.type, at);
      }
    }
    const single = project(values, [value], ["value"]);
    const distinct: Plan = { node: "distinct", input: single, columns: single.columns, timestamp: -1, order: "none" };
    const marked = project(distinct, [columnOf(distinct, 0), TRUE], ["value", "found"]);
    const left = this.input();
    this.replaceInput({
      node: "join",
      type: "left",
      left,
      right: marked,
      leftKeys: [key],
      rightKeys: [columnOf(marked, 0)],
      columns: [...left.columns, ...marked.columns],
      timestamp: left.timestamp,
      order: left.order,
    });
    return { kind: "column", index: left.columns.length + 1, type: "BOOLEAN" };
  }

  /** In a condition: a cross join with the one row. If there is no row, nothing matches. */
  scalar(query: Query, names: Names, at: number): Expr {
    const rows = this.rows(query, names, at);
    if (rows.keys.length > 0) return this.single(rows, query, at);
    const plan = firstRow(project(rows.plan, [rows.value], ["value"]));
    const left = this.input();
    this.replaceInput(crossJoin(left, plan));
    return { kind: "column", index: left.columns.length, type: plan.columns[0]!.type };
  }

  /** In a select list: NULL if there is no row. */
  value(query: Query, names: Names, at: number): Expr {
    return this.single(this.rows(query, names, at), query, at);
  }

  exists(query: Query, names: Names, at: number): Expr {
    const { plan, keys, outerKeys } = this.rows(query, names, at, false);
    const single = project(plan, keys, keys.map((_, i) => `key ${i}`));
    const found: Plan = keys.length > 0
      ? { node: "distinct", input: single, columns: single.columns, timestamp: -1, order: "none" }
      : firstRow(plan);
    const marked = project(found, [...columnsOf(found).slice(0, keys.length), TRUE], [
      ...keys.map((_, i) => `key ${i}`),
      "found",
    ]);
    return this.joined(marked, outerKeys, keys.length);
  }

  array(query: Query, names: Names, at: number): Expr {
    const { plan, value, keys, outerKeys } = this.rows(query, names, at);
    const { expressions } = this.queries;
    const text = expressions.cast(value, "STRING", at);
    const element = expressions.function("quote_array_element", [text], at);
    const listed = project(plan, [...keys, element], [...keys.map((_, i) => `key ${i}`), "element"]);
    const joinedUp = this.aggregated(listed, keys.length, [
      this.aggregate("string_agg", [columnOf(listed, keys.length), constant(",", "STRING")], at),
    ]);
    const elements = this.joined(joinedUp, outerKeys, keys.length);
    const inner = expressions.function("coalesce", [elements, constant("", "STRING")], at);
    return expressions.function("concat", [constant("{", "STRING"), inner, constant("}", "STRING")], at);
  }

  /** Joins at most one row to each row of the outer query. @throws at run time if there are several. */
  private single({ plan, value, keys, outerKeys }: Rows, query: Query, at: number): Expr {
    const { expressions } = this.queries;
    const given = value.type === "NULL" ? expressions.cast(value, "STRING", at) : value;
    const listed = project(plan, [...keys, given], [...keys.map((_, i) => `key ${i}`), "value"]);
    let right: Plan = firstRow(listed);
    if (keys.length > 0) {
      const grouped = this.aggregated(listed, keys.length, [
        this.aggregate("first", [columnOf(listed, keys.length)], at),
        this.aggregate("count", [], at),
      ]);
      const count = columnOf(grouped, keys.length + 1);
      right = filter(grouped, expressions.function("is_single_row", [count], at));
    }
    const found = this.joined(right, outerKeys, keys.length);
    // The count of no rows is 0, not NULL.
    return isCount(query) ? expressions.function("coalesce", [found, constant(0n, "LONG")], at) : found;
  }

  /** A left join by the keys, or a cross join if there are none. Returns the column after the keys. */
  private joined(right: Plan, outerKeys: Expr[], at: number): Expr {
    const left = this.input();
    const one = constant(1, "INT");
    const isFree = outerKeys.length === 0;
    const marked = isFree
      ? project(right, [...columnsOf(right), one], [...right.columns.map(({ name }) => name), "one"])
      : right;
    this.replaceInput({
      node: "join",
      type: "left",
      left,
      right: marked,
      leftKeys: isFree ? [one] : outerKeys,
      rightKeys: isFree ? [columnOf(marked, marked.columns.length - 1)] : outerKeys.map((_, i) => columnOf(marked, i)),
      columns: [...left.columns, ...marked.columns],
      timestamp: left.timestamp,
      order: left.order,
    });
    return { kind: "column", index: left.columns.length + at, type: marked.columns[at]!.type };
  }

  private aggregate(name: string, args: Expr[], at: number): AggregateCall {
    const { id, args: cast, type } = resolveOverload(this.queries.expressions, name, args, at, "function");
    return { function: id, args: cast, distinct: false, type, at };
  }

  private aggregated(input: Plan, keyCount: number, aggregates: AggregateCall[]): Plan {
    const keys = columnsOf(input).slice(0, keyCount);
    const columns = [
      ...input.columns.slice(0, keyCount),
      ...aggregates.map(({ type }, i) => ({ name: `a${i}`, type })),
    ];
    return { node: "aggregate", input, keys, aggregates, columns, timestamp: -1, order: "none" };
  }

  /** `isOne`: the sub-query must have exactly one column. */
  private rows(query: Query, names: Names, at: number, isOne = true): Rows {
    try {
      const { plan } = isOne ? this.bindOne(query, names, at) : this.queries.bind(query, names);
      return { plan, value: columnOf(plan, 0), keys: [], outerKeys: [] };
    } catch (error) {
      if (!(error instanceof UnknownColumn)) throw error;
      const used = usedColumns(query, this.outer.columns);
      if (used.length === 0) throw error;
      return this.correlated(query, names, used, at, isOne);
    }
  }

  private correlated(query: Query, names: Names, used: ScopeColumn[], at: number, isOne: boolean): Rows {
    if (query.kind === "set") throw notSupported("a correlated sub-query of UNION, EXCEPT or INTERSECT", query.at);
    const { limit, sampleBy, latestOn } = query;
    const clause = limit ? "LIMIT" : sampleBy ? "SAMPLE BY" : latestOn ? "LATEST ON" : undefined;
    if (clause !== undefined) {
      throw notSupported(`${clause} in a correlated sub-query`, (limit ?? sampleBy ?? latestOn)!.at);
    }
    const { base } = this.outer;
    const rows = project(base, used.map(({ index }) => columnOf(base, index)), used.map((_, i) => `outer ${i}`));
    const plan: Plan = { node: "distinct", input: rows, columns: rows.columns, timestamp: -1, order: "none" };
    const columns = used.map((column, index) => ({ ...column, index, outer: index }));
    const keys = used.map((_, index): Expression => ({ kind: "outer", at, index }));
    const inner: Select = {
      ...query,
      items: [
        ...query.items,
        ...keys.map((expression, i) => ({ at, expression, alias: { text: `outer ${i}`, at, quoted: true } })),
      ],
      groupBy: query.groupBy && { ...query.groupBy, items: [...query.groupBy.items, ...keys] },
    };
    const bound = this.queries.bind(inner, names, { outer: { plan, columns } });
    const own = bound.visible - used.length;
    if (isOne && own !== 1) {
      throw new SqlError(`expected a sub-query of one column: found ${own}`, at, SQLSTATE.syntax);
    }
    return {
      plan: bound.plan,
      value: columnOf(bound.plan, 0),
      keys: used.map((_, i) => columnOf(bound.plan, own + i)),
      outerKeys: used.map(({ index }) => columnOf(base, index)),
    };
  }
}

function firstRow(plan: Plan): Plan {
  if (isOneRow(plan)) return plan;
  const { columns, timestamp, order } = plan;
  return { node: "limit", input: plan, high: constant(1n, "LONG"), columns, timestamp, order };
}

/** Columns of the outer query that the sub-query may refer to. Listing too many is harmless. */
function usedColumns(query: Query, columns: readonly ScopeColumn[]): ScopeColumn[] {
  const used = new Set<ScopeColumn>();
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) return node.forEach(visit);
    if (node === null || typeof node !== "object") return;
    const { kind, path } = node as Partial<Extract<Expression, { kind: "column" }>>;
    if (kind === "column" && path !== undefined) {
      const found = candidates(columns, path);
      if (found.length === 1) used.add(found[0]!);
      return;
    }
    Object.values(node).forEach(visit);
  };
  visit(query);
  return [...used];
}

function isCount(query: Query): boolean {
  if (query.kind === "set" || query.groupBy !== undefined || query.items.length !== 1) return false;
  const { expression } = query.items[0]!;
  return expression.kind === "call" && expression.name.toLowerCase() === "count";
}

const NUMBERS = ["BYTE", "SHORT", "INT", "LONG"];

function implicit(from: string, to: string): boolean {
  if (from === to) return true;
  if (to === "LONG") return NUMBERS.includes(from);
  if (to === "DOUBLE") return from === "FLOAT" || NUMBERS.includes(from);
  return to === "TIMESTAMP" && from === "DATE";
}
