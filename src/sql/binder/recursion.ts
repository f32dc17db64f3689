/** Queries of WITH, including WITH RECURSIVE, where a query reads its own rows of the previous round. */
import { notSupported, SqlError, SQLSTATE } from "../../errors.ts";
import type { CommonTable, Name, Query, SetOperation, Source } from "../ast.ts";
import type { Plan, WorkingNode } from "../plan.ts";
import { type CommonQuery, innerNames, type Names, typeMismatch } from "./context.ts";
import type { BoundQuery, Queries } from "./query.ts";
import { castColumns } from "./sets.ts";
import { displayName, isTextOrChar, setType } from "./types.ts";
import { sameName } from "../../types/names.ts";

/** Binds the query of WITH that the name refers to. */
export function bindCommon(queries: Queries, common: CommonQuery, options: { keepTimestamp: true }): BoundQuery {
  if ("working" in common) {
    const plan = common.working;
    return { plan, visible: plan.columns.length, timestamp: -1 };
  }
  const { table, names } = common;
  const position = table.recursive ? reads(table.query, table.name) : undefined;
  return position === undefined
    ? queries.bind(table.query, names, options)
    : bindRecursion(queries, table, names, position);
}

/** Renames columns by the list after the query's name, as in `n(a, b)`. */
export function renamed<C extends { name: string }>(columns: readonly C[], names: readonly Name[] | undefined): C[] {
  if (names !== undefined && names.length > columns.length) {
    const { at } = names[columns.length]!;
    throw new SqlError(`expected names for ${columns.length} columns: found ${names.length}`, at);
  }
  return columns.map((column, i) => ({ ...column, name: names?.[i]?.text ?? column.name }));
}

/** How often the types of a recursion's columns may widen until they hold the values of both queries. */
const WIDENINGS_MAX = 4;

/** `position`: where the query refers to itself. */
function bindRecursion(queries: Queries, table: CommonTable, names: Names, position: number): BoundQuery {
  const { query, name } = table;
  const set = recursiveSet(query, name, position);
  const around = innerNames(set, names);
  const first = queries.bind(set.left, around);
  const columns = renamed(first.plan.columns.slice(0, first.visible), table.columnNames);
  const id = queries.binding.nextRecursion();
  let types = columns.map(({ type }) => setType(type, type === "NULL" ? "STRING" : type)!);
  for (let round = 0; round < WIDENINGS_MAX; round++) {
    const working: WorkingNode = {
      node: "working",
      id,
      columns: columns.map(({ name }, i) => ({ name, type: types[i]! })),
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
        `the queries have ${columns.length} and ${step.visible} columns: expected the same number`,
        set.right.at,
        SQLSTATE.datatypeMismatch,
      );
    }
    const common = types.map((type, i) => commonType(type, step.plan.columns[i]!.type, set.right.at));
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
  throw typeMismatch(`the column types of ${name.text} change in every round`, set.right.at);
}

/** @throws if the query is not `first UNION [ALL] step`, with the recursion in `step` only. */
function recursiveSet(query: Query, name: Name, at: number): SetOperation {
  const refuse = (message: string, at: number): never => {
    throw new SqlError(message, at, SQLSTATE.invalidRecursion);
  };
  if (query.kind !== "set" || !query.operator.startsWith("union")) {
    return refuse(`${name.text} reads itself: expected "first query UNION [ALL] query that reads ${name.text}"`, at);
  }
  const position = reads(query.left, name);
  if (position !== undefined) return refuse(`only the query after UNION may read ${name.text}`, position);
  const tail = query.limit ?? query.orderBy[0];
  if (tail !== undefined) {
    const at = "expression" in tail ? tail.expression.at : tail.at;
    throw notSupported("ORDER BY and LIMIT of a recursion (put them after the query that reads it)", at);
  }
  return query;
}

/** Types may widen, but must remain of the same kind: a number cannot become a text in a later round. */
function commonType(type: string, step: string, at: number): string {
  const common = setType(type, step);
  if (common === undefined || isTextOrChar(common) !== isTextOrChar(type)) {
    throw typeMismatch(`${displayName(type)} and ${displayName(step)} cannot be combined`, at);
  }
  return common;
}

/** The position where the query reads `name`, or undefined. */
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
