/** Queries of WITH: by their names, and WITH RECURSIVE, where a query reads the rows that it gave in the round before. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { CommonTable, Name, Query, SetOperation, Source } from "../ast.ts";
import type { Plan, WorkingNode } from "../plan.ts";
import { type CommonQuery, innerNames, type Names, typeMismatch } from "./context.ts";
import type { BoundQuery, Queries } from "./query.ts";
import { castColumns } from "./sets.ts";
import { displayName, isTextOrChar, setType } from "./types.ts";
import { sameName } from "../../types/names.ts";

/** The query behind a name of WITH. */
export function bindCommon(queries: Queries, common: CommonQuery, options: { keepTimestamp: true }): BoundQuery {
  if ("working" in common) {
    const plan = common.working;
    return { plan, visible: plan.columns.length, timestamp: -1 };
  }
  const { table, names } = common;
  const place = table.recursive ? reads(table.query, table.name) : undefined;
  return place === undefined ? queries.bind(table.query, names, options) : bindRecursion(queries, table, names, place);
}

/** With the names that stand behind the name of the query, as in `n(a, b)`. */
export function renamed<C extends { name: string }>(columns: readonly C[], names: readonly Name[] | undefined): C[] {
  if (names !== undefined && names.length > columns.length) {
    const { at } = names[columns.length];
    throw new SqlError(`there are ${columns.length} columns to name: found ${names.length} names`, at);
  }
  return columns.map((column, i) => ({ ...column, name: names?.[i]?.text ?? column.name }));
}

/** The types of a recursion's columns may widen so often until they hold what both queries give. */
const WIDENINGS_MAX = 4;

/** `place`: where the query reads itself. */
function bindRecursion(queries: Queries, table: CommonTable, names: Names, place: number): BoundQuery {
  const { query, name } = table;
  const set = recursiveSet(query, name, place);
  const around = innerNames(set, names);
  const first = queries.bind(set.left, around);
  const columns = renamed(first.plan.columns.slice(0, first.visible), table.columnNames);
  const id = queries.binding.nextRecursion();
  let types = columns.map(({ type }) => setType(type, type === "NULL" ? "STRING" : type)!);
  for (let round = 0; round < WIDENINGS_MAX; round++) {
    const working: WorkingNode = {
      node: "working",
      id,
      columns: columns.map(({ name }, i) => ({ name, type: types[i] })),
      timestamp: -1,
      order: "none",
    };
    const step = queries.bind(set.right, {
      parent: around,
      queries: new Map([[name.text.toLowerCase(), { working }]]),
      variables: new Map(),
    });
    if (step.visible !== columns.length) {
      throw new SqlError(
        `the queries give ${columns.length} and ${step.visible} columns`,
        set.right.at,
        SQLSTATE.datatypeMismatch,
      );
    }
    const common = types.map((type, i) => commonType(type, step.plan.columns[i].type, set.right.at));
    if (common.every((type, i) => type === types[i])) {
      const cast = (plan: Plan): Plan => castColumns(queries, plan, types, set.at);
      const plan: Plan = {
        node: "recursion",
        id,
        distinct: set.operator === "union",
        left: cast(first.plan),
        right: cast(step.plan),
        columns: working.columns,
        timestamp: -1,
        order: "none",
      };
      return { plan, visible: columns.length, timestamp: -1 };
    }
    types = common;
  }
  throw typeMismatch(`the columns of ${name.text} have other types in each round`, set.right.at);
}

/** @throws where the query is no `first UNION [ALL] step` with the recursion in `step` alone. */
function recursiveSet(query: Query, name: Name, at: number): SetOperation {
  const refuse = (message: string, at: number): never => {
    throw new SqlError(message, at, SQLSTATE.invalidRecursion);
  };
  if (query.kind !== "set" || !query.operator.startsWith("union")) {
    return refuse(`${name.text} reads itself: expected "first query UNION [ALL] query that reads ${name.text}"`, at);
  }
  const place = reads(query.left, name);
  if (place !== undefined) return refuse(`only the query behind UNION may read ${name.text}`, place);
  const tail = query.limit ?? query.orderBy[0];
  if (tail !== undefined) {
    const at = "expression" in tail ? tail.expression.at : tail.at;
    throw notSupported("ORDER BY and LIMIT of a recursion (put them behind the query that reads it)", at);
  }
  return query;
}

/** The types widen, but stay of their kind: a number does not become a text from one round to the next. */
function commonType(type: string, step: string, at: number): string {
  const common = setType(type, step);
  if (common === undefined || isTextOrChar(common) !== isTextOrChar(type)) {
    throw typeMismatch(`${displayName(type)} and ${displayName(step)} do not go together`, at);
  }
  return common;
}

/** Where the query reads `name`, or undefined. */
function reads(query: Query, name: Name): number | undefined {
  const visit = (node: unknown): number | undefined => {
    if (Array.isArray(node)) return firstOf(node);
    if (node === null || typeof node !== "object") return undefined;
    const source = node as Source;
    if (source.kind === "table" && source.schema === undefined && sameName(source.name.text, name.text)) {
      return source.at;
    }
    return firstOf(Object.values(node));
  };
  const firstOf = (nodes: unknown[]): number | undefined => {
    for (const node of nodes) {
      const found = visit(node);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return visit(query);
}
