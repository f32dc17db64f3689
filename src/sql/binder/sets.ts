/**
 * UNION, EXCEPT, INTERSECT. Column names come from the first query. Column types can hold the values of both queries.
 * EXCEPT and INTERSECT keep the order and the designated timestamp of the first query.
 */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { OrderItem, SetOperation } from "../ast.ts";
import type { Expr, Plan, SortKey } from "../plan.ts";
import { type Names, plainOf, typeMismatch, unknownColumn } from "./context.ts";
import { columnOf, project, sort, timeOf } from "./plans.ts";
import { type ScopeColumn } from "./scope.ts";
import { bindLimit } from "./limit.ts";
import type { BoundQuery, Queries } from "./query.ts";
import { computedTag, displayName, setType } from "./types.ts";
import { sameName } from "../../types/names.ts";

const CAST_ORDER = ["BYTE", "SHORT", "INT", "LONG", "DATE", "TIMESTAMP", "TIMESTAMP_NS", "FLOAT", "DOUBLE"];

export function bindSet(queries: Queries, query: SetOperation, names: Names): BoundQuery {
  const left = queries.bind(query.left, names);
  const right = queries.bind(query.right, names);
  if (left.visible !== right.visible) {
    throw new SqlError(
      `the queries have ${left.visible} and ${right.visible} columns: expected the same number`,
      query.rightAt,
      SQLSTATE.datatypeMismatch,
    );
  }
  const keepsLeft = !query.operator.startsWith("union");
  // If only rows of the left side are returned, and no column is converted, symbols remain symbols, without a common dictionary.
  const typeTags = (plan: Plan) => plan.columns.map(({ type }) => computedTag(type)).join();
  const keepsSymbols = keepsLeft && typeTags(left.plan) === typeTags(right.plan);
  const types = left.plan.columns.map((column, i) => {
    const other = right.plan.columns[i]!.type;
    const common = setType(column.type, other);
    if (common === undefined) {
      // Report the error at the query whose column would have to be converted.
      const isLeft = CAST_ORDER.indexOf(column.type) < CAST_ORDER.indexOf(other);
      throw typeMismatch(
        `${displayName(column.type)} and ${displayName(other)} cannot be combined`,
        (isLeft ? query.left : query.right).at,
      );
    }
    return keepsSymbols && computedTag(column.type) === "SYMBOL_TEXT" ? "SYMBOL_TEXT" : common;
  });
  const cast = (plan: Plan): Plan => castColumns(queries, plan, types, query.at);
  const first = cast(left.plan);
  let plan: Plan = {
    node: "set",
    operator: query.operator,
    left: first,
    right: cast(right.plan),
    columns: types.map((type, i) => ({ name: left.plan.columns[i]!.name, type })),
    timestamp: keepsLeft ? first.timestamp : -1,
    order: keepsLeft ? first.order : "none",
  };
  let timestamp = keepsLeft && types[left.timestamp] === left.plan.columns[left.timestamp]?.type ? left.timestamp : -1;
  if (query.orderBy.length > 0) {
    const keys = orderOfSet(queries, plan, query.orderBy, names);
    timestamp = timeOf(keys);
    plan = sort(plan, keys);
  }
  if (query.limit !== undefined) plan = bindLimit(queries.expressions, plan, query.limit, names);
  return { plan, visible: plan.columns.length, timestamp };
}

/** Casts the plan's columns to `types`. */
export function castColumns(queries: Queries, plan: Plan, types: string[], at: number): Plan {
  if (plan.columns.every((column, i) => column.type === types[i])) return plan;
  const expressions: Expr[] = plan.columns.map((_, i) => queries.expressions.cast(columnOf(plan, i), types[i]!, at));
  return project(plan, expressions, plan.columns.map((column) => column.name));
}

function orderOfSet(queries: Queries, plan: Plan, orderBy: OrderItem[], names: Names): SortKey[] {
  const columns: ScopeColumn[] = plan.columns.map((column, index) => ({ ...column, qualifier: undefined, index }));
  return orderBy.map((item): SortKey => {
    const e = plainOf(item.expression, names);
    let expression: Expr;
    if (e.kind === "number" && /^\d+$/.test(e.text)) {
      const position = Number(e.text);
      if (position < 1 || position > columns.length) {
        throw new SqlError(`there is no column ${e.text}`, e.at, SQLSTATE.grouping);
      }
      expression = columnOf(plan, position - 1);
    } else if (e.kind === "column" && e.path.length === 1) {
      const index = columns.findIndex((column) => sameName(column.name, e.path[0]!.text));
      if (index < 0) throw unknownColumn(e.path[0]!.text, e.at, columns);
      expression = columnOf(plan, index);
    } else {
      expression = queries.expressions.bind(e, { columns, names });
    }
    return { expression, descending: item.descending, nulls: item.nulls };
  });
}
