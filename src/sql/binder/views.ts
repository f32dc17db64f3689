/** Views in FROM: the text of a view is bound as a sub-query, with the names of the view alone. */
import { SqlError, SQLSTATE } from "../../errors.ts";
import type { Name, Query } from "../ast.ts";
import { typeName } from "../../types/mod.ts";
import type { Plan, View } from "../plan.ts";
import { type Names, NO_NAMES, type Variable } from "./context.ts";
import { TABLE_COLUMNS } from "./metadata.ts";
import { type BoundQuery, type Queries, relationOf } from "./query.ts";
import type { Relation } from "./scope.ts";

/** The rows of a view as a source of a statement that has `names` in scope. Mistakes in its text are reported at its name. */
export function viewRelation(queries: Queries, view: View, name: Name, alias: Name, names: Names): Relation {
  return relationOf(boundView(queries, view, name.at, names), alias);
}

export function boundView(queries: Queries, view: View, at: number, names: Names): BoundQuery {
  return queries.binding.insideView(view.name, at, names, (given) => {
    let query: Query, inner: Names;
    try {
      query = placedAt(queries.language.query(view.text, queries.binding.context.effort), at);
    } catch (error) {
      throw ofView(view, error, at);
    }
    ({ query, names: inner } = withValues(view, query, given));
    try {
      return queries.bind(query, inner, { keepTimestamp: true });
    } catch (error) {
      throw ofView(view, error, at);
    }
  });
}

/** The variables that the view declares OVERRIDABLE have the values that what reads the view declares, see insideView(). */
function withValues(
  view: View,
  query: Query,
  givenFor: (variable: string) => Variable | undefined,
): { query: Query; names: Names } {
  let names = NO_NAMES;
  for (const { name, value, overridable, assignAt } of query.declares) {
    const key = name.toLowerCase(), given = givenFor(key);
    if (given !== undefined && !overridable) {
      throw new SqlError(
        `@${name} of view ${view.name} cannot be given another value: it is not declared OVERRIDABLE`,
        given.at,
        SQLSTATE.invalidParameter,
      );
    }
    const own = { value, names, at: assignAt };
    names = { parent: names, queries: new Map(), variables: new Map([[key, given ?? own]]) };
  }
  return { query: { ...query, declares: [] }, names };
}

/** The columns of a view, as SHOW COLUMNS and table_columns() list those of tables. */
export function viewColumns({ plan, visible, timestamp }: BoundQuery): Plan {
  const rows = plan.columns.slice(0, visible).map(({ name, type }, k) => [
    ...[name, typeName(type), false, 0, false, 0, 0],
    ...[k === timestamp, false],
  ]);
  return { node: "values", columns: TABLE_COLUMNS, timestamp: -1, order: "none", rows };
}

function ofView({ name }: View, error: unknown, at: number): unknown {
  if (!(error instanceof SqlError)) return error;
  return new SqlError(`view ${name} cannot be read: ${error.message}`, at, error.sqlState, { cause: error });
}

/** The tree with all positions, which are those in the view's text, at one place of the statement. */
function placedAt<T>(tree: T, at: number): T {
  if (Array.isArray(tree)) return tree.map((each) => placedAt(each, at)) as T;
  if (typeof tree !== "object" || tree === null) return tree;
  if (tree instanceof Map || tree instanceof Set || ArrayBuffer.isView(tree)) return tree;
  const placed = Object.entries(tree).map(([key, value]) => {
    const isPosition = typeof value === "number" && value >= 0 && /^at$|At$/.test(key);
    return [key, isPosition ? at : placedAt(value, at)];
  });
  return Object.fromEntries(placed) as T;
}
